// Types that compare boxes or turn them into regression targets. Formulas: generalised overlap
// (Rezatofighi et al., CVPR 2019), distance and complete overlap (Zheng et al., AAAI 2020), box
// deltas (Girshick et al., CVPR 2014), targets of a grid (Redmon and Farhadi, 2018).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "op_compiler/rows.h"

namespace aclsim {
namespace {

constexpr size_t kPartials = 8;  // of four coordinates each of two boxes

// A number with its derivatives by the coordinates, so that a formula is its own gradient.
struct Dual {
  double value = 0;
  std::array<double, kPartials> by = {};

  Dual() = default;
  Dual(double constant) : value(constant) {}  // NOLINT: numbers mix with duals
  static Dual coordinate(double value, size_t at) {
    Dual d(value);
    d.by[at] = 1;
    return d;
  }
};
// a·x + b·y of derivatives, with the value of an operation.
Dual combined(double value, const Dual& x, double a, const Dual& y, double b) {
  Dual d(value);
  for (size_t i = 0; i < kPartials; ++i) d.by[i] = a * x.by[i] + b * y.by[i];
  return d;
}
Dual operator+(const Dual& x, const Dual& y) { return combined(x.value + y.value, x, 1, y, 1); }
Dual operator-(const Dual& x, const Dual& y) { return combined(x.value - y.value, x, 1, y, -1); }
Dual operator*(const Dual& x, const Dual& y) {
  return combined(x.value * y.value, x, y.value, y, x.value);
}
Dual operator/(const Dual& x, const Dual& y) {
  return combined(x.value / y.value, x, 1 / y.value, y, -x.value / (y.value * y.value));
}
// Where two are equal, each has half of the derivative.
Dual larger(const Dual& x, const Dual& y) {
  double share = x.value > y.value ? 1 : x.value < y.value ? 0 : 0.5;
  return combined(std::max(x.value, y.value), x, share, y, 1 - share);
}
Dual smaller(const Dual& x, const Dual& y) { return Dual(0) - larger(Dual(0) - x, Dual(0) - y); }
Dual at_least_zero(const Dual& x) { return x.value >= 0 ? x : Dual(0); }
Dual arctangent(const Dual& x) {
  return combined(std::atan(x.value), x, 1 / (1 + x.value * x.value), x, 0);
}

struct Corners {
  Dual x1, y1, x2, y2;
};
// Four coordinates: corners, or (`centred`) a centre with width and height.
Corners corners(const Dual* box, bool centred) {
  if (!centred) return {box[0], box[1], box[2], box[3]};
  Dual half_w = box[2] * 0.5, half_h = box[3] * 0.5;
  return {box[0] - half_w, box[1] - half_h, box[0] + half_w, box[1] + half_h};
}
Dual intersection(const Corners& a, const Corners& b) {
  return at_least_zero(smaller(a.x2, b.x2) - larger(a.x1, b.x1)) *
         at_least_zero(smaller(a.y2, b.y2) - larger(a.y1, b.y1));
}

struct Overlap {
  Dual score;
  double angle = 0;  // difference of the boxes' arctangents of width by height
};
using Measure = Overlap (*)(const Corners&, const Corners&, bool by_second);

Overlap generalised(const Corners& a, const Corners& b, bool by_second) {
  Dual inter = intersection(a, b);
  Dual second = (b.x2 - b.x1) * (b.y2 - b.y1);
  Dual whole = (a.x2 - a.x1) * (a.y2 - a.y1) + second - inter + 1e-16;
  Dual hull = (larger(a.x2, b.x2) - smaller(a.x1, b.x1)) *
              (larger(a.y2, b.y2) - smaller(a.y1, b.y1));
  return {inter / (by_second ? second : whole) - (hull - whole) / hull};
}

struct Distance {
  Dual iou, penalty, w1, h1, w2, h2;
};
Distance distance(const Corners& a, const Corners& b, bool by_second) {
  constexpr double kEps = 1e-9;
  Distance d;
  d.w1 = a.x2 - a.x1, d.h1 = a.y2 - a.y1 + kEps;
  d.w2 = b.x2 - b.x1, d.h2 = b.y2 - b.y1 + kEps;
  Dual inter = intersection(a, b), second = d.w2 * d.h2;
  Dual whole = by_second ? second : d.w1 * d.h1 + second - inter;
  d.iou = inter / (whole + kEps);
  Dual w = larger(a.x2, b.x2) - smaller(a.x1, b.x1), h = larger(a.y2, b.y2) - smaller(a.y1, b.y1);
  Dual dx = b.x1 + b.x2 - a.x1 - a.x2, dy = b.y1 + b.y2 - a.y1 - a.y2;
  d.penalty = (dx * dx + dy * dy) * 0.25 / (w * w + h * h + kEps);
  return d;
}
Overlap by_distance(const Corners& a, const Corners& b, bool by_second) {
  Distance d = distance(a, b, by_second);
  return {d.iou - d.penalty};
}
// The weight of the aspect's term is a constant for gradients.
Overlap complete(const Corners& a, const Corners& b, bool by_second) {
  Distance d = distance(a, b, by_second);
  Dual angle = arctangent(d.w2 / d.h2) - arctangent(d.w1 / d.h1);
  Dual aspect = angle * angle * (4 / (M_PI * M_PI));
  double weight = aspect.value / (1 + 1e-9 - d.iou.value + aspect.value);
  return {d.iou - d.penalty - aspect * weight, angle.value};
}

// Boxes are the columns of [4, n]; `first` numbers the derivatives by their coordinates.
std::array<Dual, 4> column(const float* boxes, int64_t n, int64_t at, size_t first) {
  std::array<Dual, 4> box;
  for (size_t i = 0; i < 4; ++i) {
    box[i] = Dual::coordinate(boxes[static_cast<int64_t>(i) * n + at], first + i);
  }
  return box;
}

// bboxes [4, n], gtboxes [4, m] → [1, n], or with is_cross [m, n].
template <Measure measure>
aclError overlap(TypeCall& c) {
  EXPECT(c, 2, 1);
  EXPECT_IN(c, 0, {4, -1});
  EXPECT_IN(c, 1, {4, -1});
  int64_t n = c.in(0).dims[1], m = c.in(1).dims[1];
  bool cross = c.flag_attr("is_cross", true), centred = c.flag_attr("trans", false);
  bool by_second = c.text_attr("mode", "iou") == "iof", angles = c.outputs() > 1;
  if (!cross && n != m) return c.refuse("is_cross is false, and %lld and %lld boxes are given",
                                        static_cast<long long>(n), static_cast<long long>(m));
  std::vector<size_t> outs = {0};
  EXPECT_OUT(c, 0, {cross ? m : 1, n});
  if (angles) {
    EXPECT_OUT(c, 1, {cross ? m : 1, n});
    outs.push_back(1);
  }
  return on_floats(c, {0, 1}, outs, [=](const auto& from, const auto& to) {
    for (int64_t row = 0; row < (cross ? m : 1); ++row) {
      for (int64_t i = 0; i < n; ++i) {
        auto a = column(from[0], n, i, 0), b = column(from[1], m, cross ? row : i, 4);
        Overlap o = measure(corners(a.data(), centred), corners(b.data(), centred), by_second);
        to[0][row * n + i] = static_cast<float>(o.score.value);
        if (angles) to[1][row * n + i] = static_cast<float>(o.angle);
      }
    }
    return ACL_SUCCESS;
  });
}

// grad of [1, n] or [m, n], bboxes, gtboxes → gradients of both.
template <Measure measure>
aclError overlap_grad(TypeCall& c) {
  EXPECT(c, 3, 2);
  EXPECT_IN(c, 1, {4, -1});
  EXPECT_IN(c, 2, {4, -1});
  int64_t n = c.in(1).dims[1], m = c.in(2).dims[1];
  bool cross = c.flag_attr("is_cross", true), centred = c.flag_attr("trans", false);
  bool by_second = c.text_attr("mode", "iou") == "iof";
  if ((!cross && n != m) || count_of(c.in(0).dims) != (cross ? m * n : n)) {
    return c.refuse("the gradient has %lld values for %lld and %lld boxes",
                    static_cast<long long>(count_of(c.in(0).dims)), static_cast<long long>(n),
                    static_cast<long long>(m));
  }
  EXPECT_OUT(c, 0, {4, n});
  EXPECT_OUT(c, 1, {4, m});
  return on_floats(c, {0, 1, 2}, {0, 1}, [=](const auto& from, const auto& to) {
    std::vector<double> first(static_cast<size_t>(4 * n)), second(static_cast<size_t>(4 * m));
    for (int64_t row = 0; row < (cross ? m : 1); ++row) {
      for (int64_t i = 0; i < n; ++i) {
        int64_t j = cross ? row : i;
        auto a = column(from[1], n, i, 0), b = column(from[2], m, j, 4);
        Overlap o = measure(corners(a.data(), centred), corners(b.data(), centred), by_second);
        double grad = from[0][row * n + i];
        for (int64_t k = 0; k < 4; ++k) {
          first[static_cast<size_t>(k * n + i)] += grad * o.score.by[static_cast<size_t>(k)];
          second[static_cast<size_t>(k * m + j)] += grad * o.score.by[static_cast<size_t>(k + 4)];
        }
      }
    }
    std::copy(first.begin(), first.end(), to[0]);
    std::copy(second.begin(), second.end(), to[1]);
    return ACL_SUCCESS;
  });
}

// bboxes [n, 4], gtboxes [m, 4] → [m, n]; `eps` widens the boxes' areas, not what they share.
aclError iou(TypeCall& c) {
  EXPECT(c, 2, 1);
  EXPECT_IN(c, 0, {-1, 4});
  EXPECT_IN(c, 1, {-1, 4});
  int64_t n = c.in(0).dims[0], m = c.in(1).dims[0];
  EXPECT_OUT(c, 0, {m, n});
  bool by_second = c.text_attr("mode", "iou") == "iof";
  double eps = c.float_attr("eps", 1);
  return on_floats(c, {0, 1}, {0}, [=](const auto& from, const auto& to) {
    auto area = [eps](const float* b) { return (b[2] - b[0] + eps) * (b[3] - b[1] + eps); };
    for (int64_t j = 0; j < m; ++j) {
      for (int64_t i = 0; i < n; ++i) {
        const float *a = from[0] + i * 4, *b = from[1] + j * 4;
        double w = std::min(a[2], b[2]) - std::max(a[0], b[0]);
        double h = std::min(a[3], b[3]) - std::max(a[1], b[1]);
        double inter = std::max(w, 0.0) * std::max(h, 0.0);
        double base = by_second ? area(b) : area(a) + area(b) - inter;
        to[0][j * n + i] = static_cast<float>(inter / base);
      }
    }
    return ACL_SUCCESS;
  });
}

struct Middle {
  double x, y, w, h;
};
// Corners are pixels, so a box is one wider than their difference.
Middle middle(const float* b) {
  return {(b[0] + b[2]) * 0.5, (b[1] + b[3]) * 0.5, b[2] - b[0] + 1.0, b[3] - b[1] + 1.0};
}

aclError rows_of_boxes(TypeCall& c) {
  EXPECT_IN(c, 0, {-1, 4});
  EXPECT_IN(c, 1, {c.in(0).dims[0], 4});
  EXPECT_OUT(c, 0, {c.in(0).dims[0], 4});
  return ACL_SUCCESS;
}

// anchors, ground truth → how far centre and logarithm of the size are off, normalised.
aclError encode(TypeCall& c) {
  EXPECT(c, 2, 1);
  if (aclError code = rows_of_boxes(c)) return code;
  int64_t n = c.in(0).dims[0];
  auto means = c.floats_attr("means", {0, 0, 0, 0}), stds = c.floats_attr("stds", {1, 1, 1, 1});
  if (means.size() != 4 || stds.size() != 4) return c.refuse("means and stds need four values");
  return on_floats(c, {0, 1}, {0}, [=](const auto& from, const auto& to) {
    for (int64_t i = 0; i < n; ++i) {
      Middle a = middle(from[0] + i * 4), b = middle(from[1] + i * 4);
      double off[] = {(b.x - a.x) / a.w, (b.y - a.y) / a.h, std::log(b.w / a.w), std::log(b.h / a.h)};
      for (size_t k = 0; k < 4; ++k) {
        to[0][i * 4 + static_cast<int64_t>(k)] = static_cast<float>((off[k] - means[k]) / stds[k]);
      }
    }
    return ACL_SUCCESS;
  });
}

// rois, deltas → boxes within max_shape (height, width).
aclError decode(TypeCall& c) {
  EXPECT(c, 2, 1);
  if (aclError code = rows_of_boxes(c)) return code;
  int64_t n = c.in(0).dims[0];
  auto means = c.floats_attr("means", {0, 0, 0, 0}), stds = c.floats_attr("stds", {1, 1, 1, 1});
  Dims most = c.ints_attr("max_shape", {});
  if (means.size() != 4 || stds.size() != 4) return c.refuse("means and stds need four values");
  if (most.size() != 2) return c.refuse("max_shape needs a height and a width");
  double bound = std::abs(std::log(static_cast<double>(c.float_attr("wh_ratio_clip", 0.016f))));
  return on_floats(c, {0, 1}, {0}, [=](const auto& from, const auto& to) {
    for (int64_t i = 0; i < n; ++i) {
      Middle box = middle(from[0] + i * 4);
      double d[4];
      for (size_t k = 0; k < 4; ++k) {
        d[k] = static_cast<double>(from[1][i * 4 + static_cast<int64_t>(k)]) * stds[k] + means[k];
      }
      double w = box.w * std::exp(std::clamp(d[2], -bound, bound));
      double h = box.h * std::exp(std::clamp(d[3], -bound, bound));
      double x = box.x + box.w * d[0], y = box.y + box.h * d[1];
      double edges[] = {x - w * 0.5 + 0.5, y - h * 0.5 + 0.5, x + w * 0.5 - 0.5, y + h * 0.5 - 0.5};
      for (size_t k = 0; k < 4; ++k) {
        double last = static_cast<double>(most[k % 2 ? 0 : 1] - 1);
        to[0][i * 4 + static_cast<int64_t>(k)] =
            static_cast<float>(std::max(0.0, std::min(edges[k], last)));
      }
    }
    return ACL_SUCCESS;
  });
}

// anchors, ground truth, stride per box → position in the cell (half is its middle), log of size.
aclError yolo_encode(TypeCall& c) {
  EXPECT(c, 3, 1);
  if (aclError code = rows_of_boxes(c)) return code;
  int64_t n = c.in(0).dims[0];
  EXPECT_IN(c, 2, {n});
  return on_floats(c, {0, 1, 2}, {0}, [=](const auto& from, const auto& to) {
    constexpr double kEps = 1e-6;
    for (int64_t i = 0; i < n; ++i) {
      const float *a = from[0] + i * 4, *b = from[1] + i * 4;
      for (int64_t k = 0; k < 2; ++k) {
        double off = (b[k] + b[k + 2] - a[k] - a[k + 2]) * 0.5 / from[2][i] + 0.5;
        double ratio = (static_cast<double>(b[k + 2]) - b[k]) / (static_cast<double>(a[k + 2]) - a[k]);
        to[0][i * 4 + k] = static_cast<float>(std::clamp(off, kEps, 1 - kEps));
        to[0][i * 4 + k + 2] = static_cast<float>(std::log(std::max(ratio, kEps)));
      }
    }
    return ACL_SUCCESS;
  });
}

// Boxes [batch, 5, n] of corners and degrees: offsets as above without the pixel, and the difference
// of the angles' tangents; weights multiply what is encoded.
struct Turned {
  double x, y, w, h, slope;
};
Turned turned(const float* b, int64_t n) {
  return {(b[0] + b[2 * n]) * 0.5, (b[n] + b[3 * n]) * 0.5, static_cast<double>(b[2 * n]) - b[0],
          static_cast<double>(b[3 * n]) - b[n], std::tan(b[4 * n] * (M_PI / 180))};
}
template <class F>
aclError turned_boxes(TypeCall& c, F of_box) {
  EXPECT(c, 2, 1);
  EXPECT_IN(c, 0, {-1, 5, -1});
  const Dims dims = c.in(0).dims;
  EXPECT_IN(c, 1, {dims[0], 5, dims[2]});
  EXPECT_OUT(c, 0, {dims[0], 5, dims[2]});
  auto weight = c.floats_attr("weight", {1, 1, 1, 1, 1});
  if (weight.size() != 5) return c.refuse("weight needs five values");
  return on_floats(c, {0, 1}, {0}, [=](const auto& from, const auto& to) {
    int64_t n = dims[2];
    for (int64_t i = 0; i < dims[0] * n; ++i) {
      int64_t at = i / n * 5 * n + i % n;
      double values[5];
      of_box(turned(from[0] + at, n), from[1] + at, n, weight.data(), values);
      for (int64_t k = 0; k < 5; ++k) to[0][at + k * n] = static_cast<float>(values[k]);
    }
    return ACL_SUCCESS;
  });
}
aclError turned_encode(TypeCall& c) {
  return turned_boxes(c, [](Turned a, const float* truth, int64_t n, const float* weight, double* out) {
    Turned b = turned(truth, n);
    double off[] = {(b.x - a.x) / a.w, (b.y - a.y) / a.h, std::log(b.w / a.w), std::log(b.h / a.h),
                    b.slope - a.slope};
    for (int k = 0; k < 5; ++k) out[k] = off[k] * weight[k];
  });
}
aclError turned_decode(TypeCall& c) {
  return turned_boxes(c, [](Turned a, const float* deltas, int64_t n, const float* weight, double* out) {
    double d[5];
    for (int k = 0; k < 5; ++k) d[k] = deltas[k * n] / static_cast<double>(weight[k]);
    double x = a.x + d[0] * a.w, y = a.y + d[1] * a.h;
    double w = a.w * std::exp(d[2]) * 0.5, h = a.h * std::exp(d[3]) * 0.5;
    out[0] = x - w, out[1] = y - h, out[2] = x + w, out[3] = y + h;
    out[4] = std::atan(a.slope + d[4]) * (180 / M_PI);
  });
}

// Ground truth → which cells of a feature map have a box's centre, for each base anchor.
aclError responses(TypeCall& c) {
  EXPECT(c, 1, 1);
  EXPECT_IN(c, 0, {-1, 4});
  Dims map = c.ints_attr("featmap_size", {}), strides = c.ints_attr("strides", {});
  int64_t anchors = c.int_attr("num_base_anchors", 1), n = c.in(0).dims[0];
  if (map.size() != 2 || strides.size() != 2) return c.refuse("featmap_size and strides need two values");
  if (strides[0] <= 0 || strides[1] <= 0 || map[0] < 0 || map[1] < 0 || anchors < 0) {
    return c.refuse("featmap_size, strides or num_base_anchors are not positive");
  }
  EXPECT_OUT(c, 0, {map[0] * map[1] * anchors});
  if (c.out(0).dtype != ACL_UINT8) return c.refuse("the output must be uint8");
  auto* flags = static_cast<uint8_t*>(c.out(0).data);
  return on_floats(c, {0}, {}, [=](const auto& from, const auto&) {
    std::memset(flags, 0, static_cast<size_t>(map[0] * map[1] * anchors));
    for (int64_t i = 0; i < n; ++i) {
      const float* b = from[0] + i * 4;
      float x = std::floor((b[0] + b[2]) * 0.5f / static_cast<float>(strides[0]));
      float y = std::floor((b[1] + b[3]) * 0.5f / static_cast<float>(strides[1]));
      if (!(x >= 0 && y >= 0 && x < static_cast<float>(map[1]) && y < static_cast<float>(map[0]))) continue;
      int64_t cell = static_cast<int64_t>(y) * map[1] + static_cast<int64_t>(x);
      std::memset(flags + cell * anchors, 1, static_cast<size_t>(anchors));
    }
    return ACL_SUCCESS;
  });
}

}  // namespace

const TypeTable& box_types() {
  static const auto* rows = new TypeTable{
      {"Iou", iou}, {"PtIou", iou},
      {"GIoU", overlap<generalised>}, {"GIoUGrad", overlap_grad<generalised>},
      {"DIoU", overlap<by_distance>}, {"DIoUGrad", overlap_grad<by_distance>},
      {"CIoU", overlap<complete>}, {"CIoUGrad", overlap_grad<complete>},
      {"RotatedBoxEncode", turned_encode}, {"RotatedBoxDecode", turned_decode},
      {"BoundingBoxEncode", encode}, {"BoundingBoxDecode", decode},
      {"YoloBoxesEncode", yolo_encode}, {"AnchorResponseFlags", responses}};
  return *rows;
}

}  // namespace aclsim
