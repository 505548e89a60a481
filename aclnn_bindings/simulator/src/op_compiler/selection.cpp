// Types that choose boxes by score and overlap, and overlaps of rotated boxes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "op_compiler/rows.h"

namespace aclsim {
namespace {

struct Point {
  double x, y;
};
using Polygon = std::vector<Point>;

double cross(Point a, Point b) { return a.x * b.y - a.y * b.x; }
Point minus(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }

double area(const Polygon& p) {
  double twice = 0;
  for (size_t i = 0; i < p.size(); ++i) twice += cross(p[i], p[(i + 1) % p.size()]);
  return std::abs(twice) * 0.5;
}

// What of a convex polygon lies to the left of each edge of another (Sutherland and Hodgman, 1974).
double shared_area(Polygon subject, Polygon window) {
  auto turn = [](Polygon& p) {
    if (cross(minus(p[1], p[0]), minus(p[2], p[1])) < 0) std::reverse(p.begin(), p.end());
  };
  turn(subject), turn(window);
  for (size_t e = 0; e < window.size() && subject.size() > 2; ++e) {
    Point from = window[e], along = minus(window[(e + 1) % window.size()], from);
    Polygon kept;
    for (size_t i = 0; i < subject.size(); ++i) {
      Point a = subject[i], b = subject[(i + 1) % subject.size()];
      double at_a = cross(along, minus(a, from)), at_b = cross(along, minus(b, from));
      if (at_a >= 0) kept.push_back(a);
      if ((at_a >= 0) != (at_b >= 0)) {
        double t = at_a / (at_a - at_b);
        kept.push_back({a.x + t * (b.x - a.x), a.y + t * (b.y - a.y)});
      }
    }
    subject = std::move(kept);
  }
  return subject.size() > 2 ? area(subject) : 0;
}

struct Rotated {
  double x, y, w, h, degrees;
  double size() const { return w * h; }
};
// Five values in steps: centre and size, or corners before the rotation.
Rotated rotated(const float* box, int64_t step, bool by_corners) {
  double v[5];
  for (int64_t i = 0; i < 5; ++i) v[i] = box[i * step];
  if (!by_corners) return {v[0], v[1], v[2], v[3], v[4]};
  return {(v[0] + v[2]) * 0.5, (v[1] + v[3]) * 0.5, v[2] - v[0], v[3] - v[1], v[4]};
}
// Corners about `origin`; far from zero their products lose digits.
Polygon outline(const Rotated& box, Point origin) {
  double angle = box.degrees * (M_PI / 180), c = std::cos(angle) * 0.5, s = std::sin(angle) * 0.5;
  Point middle = {box.x - origin.x, box.y - origin.y};
  Point w = {c * box.w, s * box.w}, h = {-s * box.h, c * box.h};
  return {{middle.x - w.x - h.x, middle.y - w.y - h.y}, {middle.x + w.x - h.x, middle.y + w.y - h.y},
          {middle.x + w.x + h.x, middle.y + w.y + h.y}, {middle.x - w.x + h.x, middle.y - w.y + h.y}};
}
double shared_area(const Rotated& a, const Rotated& b) {
  if (a.size() < 1e-14 || b.size() < 1e-14) return 0;
  Point origin = {(a.x + b.x) * 0.5, (a.y + b.y) * 0.5};
  return shared_area(outline(a, origin), outline(b, origin));
}

enum class Base { kNone, kUnion, kFirst };

// boxes [batch, 5, n], query_boxes [batch, 5, k] → [batch, n, k].
aclError rotated_pairs(TypeCall& c, Base base, bool cross_all) {
  EXPECT(c, 2, 1);
  EXPECT_IN(c, 0, {-1, 5, -1});
  int64_t batch = c.in(0).dims[0], n = c.in(0).dims[2];
  EXPECT_IN(c, 1, {batch, 5, -1});
  int64_t k = c.in(1).dims[2];
  EXPECT_OUT(c, 0, {batch, n, k});
  bool by_corners = c.flag_attr("trans", false);
  return on_floats(c, {0, 1}, {0}, [=](const auto& from, const auto& to) {
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t i = 0; i < n; ++i) {
        Rotated first = rotated(from[0] + b * 5 * n + i, n, by_corners);
        for (int64_t j = 0; j < k; ++j) {
          Rotated second = rotated(from[1] + b * 5 * k + j, k, by_corners);
          double inter = cross_all || i == j ? shared_area(first, second) : 0;
          double whole = base == Base::kNone ? 1
                         : base == Base::kFirst ? first.size()
                                                : first.size() + second.size() - inter;
          to[0][(b * n + i) * k + j] = static_cast<float>(inter > 0 ? inter / whole : 0);
        }
      }
    }
    return ACL_SUCCESS;
  });
}
aclError rotated_overlaps(TypeCall& c) { return rotated_pairs(c, Base::kNone, true); }
aclError rotated_iou(TypeCall& c) {
  bool by_first = c.text_attr("mode", "iou") == "iof";
  return rotated_pairs(c, by_first ? Base::kFirst : Base::kUnion, c.flag_attr("is_cross", true));
}

struct Rule {
  double overlap, score;
  size_t most;
};
// The best box, then each next that overlaps none of the chosen by more than the rule allows.
template <class Overlap>
std::vector<int64_t> suppress(const Rule& rule, const float* scores, int64_t n, int64_t step,
                              Overlap overlap) {
  std::vector<int64_t> order(static_cast<size_t>(n)), chosen;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return scores[a * step] > scores[b * step];
  });
  for (int64_t at : order) {
    if (chosen.size() >= rule.most || !(scores[at * step] > rule.score)) break;
    if (std::none_of(chosen.begin(), chosen.end(),
                     [&](int64_t kept) { return overlap(at, kept) > rule.overlap; })) {
      chosen.push_back(at);
    }
  }
  return chosen;
}
double upright_iou(const float* a, const float* b) {
  auto low = [](const float* box, int k) { return std::min(box[k], box[k + 2]); };
  auto high = [](const float* box, int k) { return std::max(box[k], box[k + 2]); };
  double inter = 1, first = 1, second = 1;
  for (int k = 0; k < 2; ++k) {
    inter *= std::max(0.0f, std::min(high(a, k), high(b, k)) - std::max(low(a, k), low(b, k)));
    first *= high(a, k) - low(a, k);
    second *= high(b, k) - low(b, k);
  }
  double whole = first + second - inter;
  return whole > 0 ? inter / whole : 0;
}

// boxes [n, 5], scores [n], labels → the chosen boxes and their positions; as many as there are.
aclError rotated_nms(TypeCall& c) {
  EXPECT(c, 2, 2);
  EXPECT_IN(c, 0, {-1, 5});
  int64_t n = c.in(0).dims[0];
  EXPECT_IN(c, 1, {n});
  EXPECT_OUT(c, 0, {n, 5});
  EXPECT_OUT(c, 1, {n});
  for (size_t i = 0; i < 2; ++i) {
    if (c.in(i).dtype != ACL_FLOAT) return c.refuse("boxes and scores must be float32");
  }
  if (c.out(0).dtype != ACL_FLOAT || c.out(1).dtype != ACL_INT32) {
    return c.refuse("the outputs must be float32 and int32");
  }
  int64_t most = c.int_attr("max_output_size", -1);
  bool by_corners = c.int_attr("mode", 0) == 1;
  Rule rule = {c.float_attr("iou_threshold", 0.5f), c.float_attr("score_threshold", 0),
               most < 0 ? std::numeric_limits<size_t>::max() : static_cast<size_t>(most)};
  if (aclError code = c.settle()) return code;
  const auto* boxes = static_cast<const float*>(c.in(0).data);
  std::vector<Rotated> all;
  for (int64_t i = 0; i < n; ++i) {
    all.push_back(rotated(boxes + i * 5, 1, by_corners));
    if (by_corners) all.back().degrees = -all.back().degrees;  // mode 1 turns counter-clockwise
  }
  auto chosen = suppress(rule, static_cast<const float*>(c.in(1).data), n, 1,
                         [&](int64_t i, int64_t j) {
    const Rotated &a = all[static_cast<size_t>(i)], &b = all[static_cast<size_t>(j)];
    double inter = shared_area(a, b);
    return inter > 0 ? inter / (a.size() + b.size() - inter) : 0;
  });
  auto* kept = static_cast<float*>(c.out(0).data);
  auto* positions = static_cast<int32_t*>(c.out(1).data);
  for (size_t i = 0; i < chosen.size(); ++i) {
    std::copy_n(boxes + chosen[i] * 5, 5, kept + i * 5);
    positions[i] = static_cast<int32_t>(chosen[i]);
  }
  auto count = static_cast<int64_t>(chosen.size());
  if (!c.set_dims(0, {count, 5}) || !c.set_dims(1, {count})) {
    return c.refuse("the number of boxes depends on values: call it by aclopCompileAndExecuteV2");
  }
  return ACL_SUCCESS;
}

// boxes [n, 4], scores [n], the most, thresholds of overlap and score → positions padded with 0,
// and how many there are.
aclError nms_v4(TypeCall& c) {
  EXPECT(c, 3, 2);
  EXPECT_IN(c, 0, {-1, 4});
  int64_t n = c.in(0).dims[0], room = count_of(c.out(0).dims);
  EXPECT_IN(c, 1, {n});
  if (c.out(0).dtype != ACL_INT32 || c.out(1).dtype != ACL_INT32 || count_of(c.out(1).dims) != 1 ||
      c.in(2).dtype != ACL_INT32 || count_of(c.in(2).dims) != 1) {
    return c.refuse("max_output_size is one int32, and the outputs are int32, the second one value");
  }
  std::vector<size_t> ins = {0, 1};
  for (size_t i = 3; i < 5 && c.given(i); ++i) {
    if (count_of(c.in(i).dims) != 1) return c.refuse("thresholds must be one value");
    ins.push_back(i);
  }
  const auto* limit = static_cast<const int32_t*>(c.in(2).data);
  auto* positions = static_cast<int32_t*>(c.out(0).data);
  auto* valid = static_cast<int32_t*>(c.out(1).data);
  return on_floats(c, ins, {}, [=](const auto& from, const auto&) {
    Rule rule = {from.size() > 2 ? from[2][0] : 0.5,
                 from.size() > 3 ? from[3][0] : -std::numeric_limits<double>::infinity(),
                 static_cast<size_t>(std::clamp<int64_t>(*limit, 0, room))};
    auto chosen = suppress(rule, from[1], n, 1, [&](int64_t i, int64_t j) {
      return upright_iou(from[0] + i * 4, from[0] + j * 4);
    });
    std::fill_n(positions, room, 0);
    for (size_t i = 0; i < chosen.size(); ++i) positions[i] = static_cast<int32_t>(chosen[i]);
    *valid = static_cast<int32_t>(chosen.size());
    return ACL_SUCCESS;
  });
}

// boxes and scores [n, 5] in descending order of scores → themselves, their positions, and which of
// them no earlier one that is left covers. Corners are pixels: a box is one wider than they differ.
aclError nms_with_mask(TypeCall& c) {
  EXPECT(c, 1, 3);
  EXPECT_IN(c, 0, {-1, 5});
  int64_t n = c.in(0).dims[0];
  EXPECT_OUT(c, 0, {n, 5});
  EXPECT_OUT(c, 1, {n});
  EXPECT_OUT(c, 2, {n});
  if (c.out(1).dtype != ACL_INT32 || c.out(2).dtype != ACL_UINT8) {
    return c.refuse("positions must be int32, and the mask uint8");
  }
  double most = c.float_attr("iou_threshold", 0.5f);
  auto* positions = static_cast<int32_t*>(c.out(1).data);
  auto* left = static_cast<uint8_t*>(c.out(2).data);
  return on_floats(c, {0}, {0}, [=](const auto& from, const auto& to) {
    auto covers = [&](int64_t i, int64_t j) {
      const float *a = from[0] + i * 5, *b = from[0] + j * 5;
      double inter = 1, first = 1, second = 1;
      for (int k = 0; k < 2; ++k) {
        inter *= std::max(0.0f, std::min(a[k + 2], b[k + 2]) - std::max(a[k], b[k]) + 1);
        first *= a[k + 2] - a[k] + 1;
        second *= b[k + 2] - b[k] + 1;
      }
      return inter > most * (first + second - inter);
    };
    std::copy_n(from[0], n * 5, to[0]);
    for (int64_t i = 0; i < n; ++i) {
      positions[i] = static_cast<int32_t>(i);
      left[i] = 1;
      for (int64_t j = 0; j < i && left[i]; ++j) left[i] = !(left[j] && covers(j, i));
    }
    return ACL_SUCCESS;
  });
}

// boxes [batch, n, q, 4] (or [batch, q, 4, n]), scores [batch, n, classes] (or [batch, classes, n]);
// q is 1 or the classes → boxes, scores, classes padded with 0, and how many there are.
aclError batch_nms(TypeCall& c) {
  EXPECT(c, 2, 4);
  bool turned = c.flag_attr("transpose_box", false);
  EXPECT_IN(c, 0, {-1, -1, -1, -1});
  const Dims &b = c.in(0).dims, &s = c.in(1).dims;
  int64_t batch = b[0], n = turned ? b[3] : b[1], q = turned ? b[1] : b[2];
  EXPECT_IN(c, 1, {batch, -1, -1});
  int64_t classes = turned ? s[1] : s[2];
  if ((turned ? s[2] : s[1]) != n || (turned ? b[2] : b[3]) != 4 || (q != 1 && q != classes)) {
    return c.refuse("boxes and scores do not fit each other");
  }
  if (c.flag_attr("change_coordinate_frame", false)) {
    return c.refuse("change_coordinate_frame needs a window, which the call has no input for");
  }
  int64_t total = c.int_attr("max_total_size", 0);
  EXPECT_OUT(c, 0, {batch, total, 4});
  EXPECT_OUT(c, 1, {batch, total});
  EXPECT_OUT(c, 2, {batch, total});
  EXPECT_OUT(c, 3, {batch});
  if (c.out(3).dtype != ACL_INT32) return c.refuse("the number of boxes must be int32");
  Rule rule = {c.float_attr("iou_threshold", 0), c.float_attr("score_threshold", 0),
               static_cast<size_t>(std::max<int64_t>(0, c.int_attr("max_size_per_class", 0)))};
  auto* valid = static_cast<int32_t*>(c.out(3).data);
  return on_floats(c, {0, 1}, {0, 1, 2}, [=](const auto& from, const auto& to) {
    struct Choice {
      float score, box[4];
      int64_t of;
    };
    for (int64_t i = 0; i < batch; ++i) {
      std::vector<Choice> choices;
      for (int64_t k = 0; k < classes; ++k) {
        int64_t group = q == 1 ? 0 : k;
        std::vector<float> boxes(static_cast<size_t>(n * 4));
        for (int64_t j = 0; j < n; ++j) {
          for (int64_t d = 0; d < 4; ++d) {
            boxes[static_cast<size_t>(j * 4 + d)] =
                from[0][turned ? ((i * q + group) * 4 + d) * n + j : ((i * n + j) * q + group) * 4 + d];
          }
        }
        const float* scores = from[1] + (turned ? (i * classes + k) * n : i * n * classes + k);
        int64_t step = turned ? 1 : classes;
        auto chosen = suppress(rule, scores, n, step, [&](int64_t x, int64_t y) {
          return upright_iou(boxes.data() + x * 4, boxes.data() + y * 4);
        });
        for (int64_t j : chosen) {
          Choice choice = {scores[j * step], {}, k};
          std::copy_n(boxes.data() + j * 4, 4, choice.box);
          choices.push_back(choice);
        }
      }
      std::stable_sort(choices.begin(), choices.end(),
                       [](const Choice& x, const Choice& y) { return x.score > y.score; });
      if (static_cast<int64_t>(choices.size()) > total) choices.resize(static_cast<size_t>(total));
      std::fill_n(to[0] + i * total * 4, total * 4, 0.0f);
      std::fill_n(to[1] + i * total, total, 0.0f);
      std::fill_n(to[2] + i * total, total, 0.0f);
      for (size_t j = 0; j < choices.size(); ++j) {
        int64_t at = i * total + static_cast<int64_t>(j);
        std::copy_n(choices[j].box, 4, to[0] + at * 4);
        to[1][at] = choices[j].score;
        to[2][at] = static_cast<float>(choices[j].of);
      }
      valid[i] = static_cast<int32_t>(choices.size());
    }
    return ACL_SUCCESS;
  });
}

}  // namespace

const TypeTable& selection_types() {
  static const auto* rows = new TypeTable{
      {"RotatedOverlaps", rotated_overlaps}, {"RotatedIou", rotated_iou},
      {"RotatedNMS", rotated_nms}, {"NMSWithMask", nms_with_mask}, {"NonMaxSuppressionV4", nms_v4},
      {"BatchMultiClassNonMaxSuppression", batch_nms}};
  return *rows;
}

}  // namespace aclsim
