// Regions of interest and boxes: pooling of regions, overlaps, and the choice among boxes.
#include "params/detection.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

// Bilinear weights of one sample; outside [-1, size] it counts as zero, as torchvision has it.
struct Sample {
  int64_t at[4];
  double weight[4];
};
bool sample_at(double y, double x, int64_t height, int64_t width, Sample& s) {
  if (y < -1 || y > static_cast<double>(height) || x < -1 || x > static_cast<double>(width)) {
    return false;
  }
  const auto split = [](double v, int64_t size, int64_t& low, int64_t& high) {
    v = std::max(v, 0.0);
    low = std::min(static_cast<int64_t>(v), size - 1);
    high = std::min(low + 1, size - 1);
    return low == high ? 0.0 : v - static_cast<double>(low);
  };
  int64_t y0, y1, x0, x1;
  const double v = split(y, height, y0, y1), u = split(x, width, x0, x1);
  const int64_t at[4] = {y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1};
  const double weight[4] = {(1 - v) * (1 - u), (1 - v) * u, v * (1 - u), v * u};
  std::copy_n(at, 4, s.at);
  std::copy_n(weight, 4, s.weight);
  return true;
}

struct RoiPlan {
  int64_t height, width, out_h, out_w, ratio;
  double scale, shift;  // shift: half a pixel where aligned
  bool at_least_one;    // regions are one pixel wide or more
};
// f(plane-relative sample or nothing, share of the bin) over the samples of one bin of a region.
template <class F>
void each_sample(const RoiPlan& p, const double* box, int64_t h, int64_t w, F f) {
  const double x0 = box[0] * p.scale - p.shift, y0 = box[1] * p.scale - p.shift;
  double wide = box[2] * p.scale - p.shift - x0, high = box[3] * p.scale - p.shift - y0;
  if (p.at_least_one) {
    wide = std::max(wide, 1.0);
    high = std::max(high, 1.0);
  }
  const double bin_h = high / static_cast<double>(p.out_h), bin_w = wide / static_cast<double>(p.out_w);
  const int64_t nh = p.ratio > 0 ? p.ratio : static_cast<int64_t>(std::ceil(bin_h));
  const int64_t nw = p.ratio > 0 ? p.ratio : static_cast<int64_t>(std::ceil(bin_w));
  const double share = 1.0 / static_cast<double>(std::max<int64_t>(nh * nw, 1));
  for (int64_t i = 0; i < nh; ++i) {
    const double y = y0 + (static_cast<double>(h) + (i + 0.5) / static_cast<double>(nh)) * bin_h;
    for (int64_t j = 0; j < nw; ++j) {
      const double x = x0 + (static_cast<double>(w) + (j + 0.5) / static_cast<double>(nw)) * bin_w;
      Sample s;
      f(sample_at(y, x, p.height, p.width, s) ? &s : nullptr, share);
    }
  }
}
aclError bad_image(const Call& c, double index) {
  return c.trap(507015, "a region names image %g, which there is not", index);
}
// f(image, region, its box) for regions of [image, x0, y0, x1, y1], or with images apart.
template <class F>
aclError each_region(const Call& c, const Numbers& boxes, const Numbers* images, int64_t count, F f) {
  const size_t width = images ? 4 : 5, n = boxes.size() / width;
  for (size_t r = 0; r < n; ++r) {
    const double image = images ? (*images)[r] : boxes[r * width];
    if (!(image >= 0 && image < static_cast<double>(count))) return bad_image(c, image);
    f(static_cast<int64_t>(image), static_cast<int64_t>(r), boxes.data() + r * width + width - 4);
  }
  return ACL_SUCCESS;
}

aclError roi_align(Call& c, const RoiPlan& p, int boxes_arg, const Numbers* images, bool max,
                   int out) {
  using P = params::RoiAlign;

  const Tensor& self = c.tensor(P::self);
  const Numbers x = numbers(self), boxes = numbers(c.tensor(boxes_arg));
  Numbers y(static_cast<size_t>(c.tensor(out).numel()));
  const int64_t channels = self.dims[1], plane = p.height * p.width;
  const aclError error =
      each_region(c, boxes, images, self.dims[0], [&](int64_t n, int64_t r, const double* box) {
        for (int64_t k = 0; k < channels * p.out_h * p.out_w; ++k) {
          const double* from = x.data() + (n * channels + k / (p.out_h * p.out_w)) * plane;
          double& to = y[r * channels * p.out_h * p.out_w + k];
          bool first = true;
          each_sample(p, box, k / p.out_w % p.out_h, k % p.out_w,
                      [&](const Sample* s, double share) {
                        double sum = 0, top = 0;
                        for (int i = 0; s && i < 4; ++i) {
                          sum += s->weight[i] * from[s->at[i]];
                          top = std::max(i ? top : s->weight[0] * from[s->at[0]],
                                         s->weight[i] * from[s->at[i]]);
                        }
                        to = max ? (first ? top : std::max(to, top)) : to + sum * share;
                        first = false;
                      });
        }
      });
  if (error == ACL_SUCCESS) put(c.tensor(out), y);
  return error;
}

aclnnStatus expect_regions(const Call& c, int self, int boxes, int width, int64_t h, int64_t w,
                           int out) {
  ACL_RETURN_IF_FAILED(expect_rank(c, self, 4, 4));
  ACL_RETURN_IF_FAILED(expect_dims(c, boxes, {-1, width}));
  if (h < 1 || w < 1) return c.fail(ACLNN_ERR_PARAM_INVALID, "The pooled size should be positive.");
  return expect_dims(c, out, {c.tensor(boxes).dims[0], c.tensor(self).dims[1], h, w});
}
// (self, rois [R, 4], batchIndices [R], mode, outputHeight, outputWidth, samplingRatio,
// spatialScale, out): ONNX' RoiAlign of output_half_pixel.
aclnnStatus check_roi_align(Call& c) {
  using P = params::RoiAlign;

  ACL_RETURN_IF_FAILED(expect_regions(c, P::self, P::rois, 4, c.integer(P::outputHeight),
                                      c.integer(P::outputWidth), P::out));
  return expect_dims(c, P::batchIndices, {c.tensor(P::rois).dims[0]});
}
aclError run_roi_align(Call& c) {
  using P = params::RoiAlign;

  const Tensor& self = c.tensor(P::self);
  const RoiPlan p = {self.dims[2],
                     self.dims[3],
                     c.integer(P::outputHeight),
                     c.integer(P::outputWidth),
                     c.integer(P::samplingRatio),
                     c.number(P::spatialScale),
                     0,
                     true};
  const Numbers images = numbers(c.tensor(P::batchIndices));
  return roi_align(c, p, P::rois, &images, c.text(P::mode) && !std::strcmp(c.text(P::mode), "max"),
                   P::out);
}
// (self, boxes [R, 5], pooledHeight, pooledWidth, spatialScale, samplingRatio, aligned, out).
aclnnStatus check_roi_align_v2(Call& c) {
  using P = params::RoiAlignV2;

  return expect_regions(c, P::self, P::boxes, 5, c.integer(P::pooledHeight),
                        c.integer(P::pooledWidth), P::out);
}
RoiPlan plan_v2(const Call& c, int first, int64_t height, int64_t width) {
  const bool aligned = c.flag(first + 4);
  return {height, width, c.integer(first), c.integer(first + 1), c.integer(first + 3),
          c.number(first + 2), aligned ? 0.5 : 0.0, !aligned};
}
aclError run_roi_align_v2(Call& c) {
  using P = params::RoiAlignV2;

  const Tensor& self = c.tensor(P::self);
  return roi_align(c, plan_v2(c, P::pooledHeight, self.dims[2], self.dims[3]), P::boxes, nullptr,
                   false, P::out);
}
aclnnStatus check_roi_align_grad(Call& c) {
  using P = params::RoiAlignV2Backward;

  ACL_RETURN_IF_FAILED(expect_ints(c, P::inputShape, 4, 4));
  const Span<const int64_t> s = c.ints(P::inputShape);
  ACL_RETURN_IF_FAILED(expect_dims(c, P::gradInput, {s[0], s[1], s[2], s[3]}));
  return expect_regions(c, P::gradInput, P::boxes, 5, c.integer(P::pooledHeight),
                        c.integer(P::pooledWidth), P::gradOutput);
}
aclError run_roi_align_grad(Call& c) {
  using P = params::RoiAlignV2Backward;

  const Tensor& out = c.tensor(P::gradInput);
  const RoiPlan p = plan_v2(c, P::pooledHeight, out.dims[2], out.dims[3]);
  const Numbers g = numbers(c.tensor(P::gradOutput)), boxes = numbers(c.tensor(P::boxes));
  Numbers x(static_cast<size_t>(out.numel()));
  const int64_t bins = p.out_h * p.out_w, channels = out.dims[1], plane = p.height * p.width;
  const aclError error =
      each_region(c, boxes, nullptr, out.dims[0], [&](int64_t n, int64_t r, const double* box) {
        for (int64_t k = 0; k < channels * bins; ++k) {
          double* to = x.data() + (n * channels + k / bins) * plane;
          const double grad = g[r * channels * bins + k];
          each_sample(p, box, k / p.out_w % p.out_h, k % p.out_w,
                      [&](const Sample* s, double share) {
                        for (int i = 0; s && i < 4; ++i) to[s->at[i]] += s->weight[i] * grad * share;
                      });
        }
      });
  if (error == ACL_SUCCESS) put(out, x);
  return error;
}

// (x, rois [R, 5], pooledH, pooledW, scaleH, scaleW, y, argmax): the maximum of each bin, and its
// place in the plane, -1 for an empty bin.
aclnnStatus check_roi_pool(Call& c) {
  using P = params::RoiPoolingWithArgMax;

  ACL_RETURN_IF_FAILED(
      expect_regions(c, P::x, P::rois, 5, c.integer(P::pooled_h), c.integer(P::pooled_w), P::y));
  return expect_same_shape(c, P::argmax, P::y);
}
struct Bins {
  int64_t start, size, count, limit;
  int64_t begin(int64_t i) const { return clip(start + i * size / count); }
  int64_t end(int64_t i) const { return clip(start + ((i + 1) * size + count - 1) / count); }
  int64_t clip(int64_t v) const { return std::min(std::max<int64_t>(v, 0), limit); }
};
Bins bins_of(double low, double high, double scale, int64_t count, int64_t limit) {
  const auto start = static_cast<int64_t>(std::round(low * scale));
  const auto stop = static_cast<int64_t>(std::round(high * scale));
  return {start, std::max<int64_t>(stop - start + 1, 1), count, limit};
}
aclError run_roi_pool(Call& c) {
  using P = params::RoiPoolingWithArgMax;

  const Tensor& self = c.tensor(P::x);
  const int64_t oh = c.integer(P::pooled_h), ow = c.integer(P::pooled_w), channels = self.dims[1];
  const int64_t height = self.dims[2], width = self.dims[3];
  const Numbers x = numbers(self), boxes = numbers(c.tensor(P::rois));
  Numbers y(static_cast<size_t>(c.tensor(P::y).numel()));
  Integers where(y.size(), -1);
  const aclError error =
      each_region(c, boxes, nullptr, self.dims[0], [&](int64_t n, int64_t r, const double* box) {
        const Bins wide = bins_of(box[0], box[2], c.number(P::spatial_scale_w), ow, width);
        const Bins high = bins_of(box[1], box[3], c.number(P::spatial_scale_h), oh, height);
        for (int64_t k = 0; k < channels * oh * ow; ++k) {
          const double* plane = x.data() + (n * channels + k / (oh * ow)) * height * width;
          const int64_t to = r * channels * oh * ow + k, h = k / ow % oh, w = k % ow;
          for (int64_t i = high.begin(h); i < high.end(h); ++i) {
            for (int64_t j = wide.begin(w); j < wide.end(w); ++j) {
              const int64_t at = i * width + j;
              if (where[to] >= 0 && !(plane[at] > y[to])) continue;
              where[to] = at;
              y[to] = plane[at];
            }
          }
        }
      });
  if (error != ACL_SUCCESS) return error;
  put(c.tensor(P::y), y);
  put(c.tensor(P::argmax), where);
  return ACL_SUCCESS;
}
// (gradOutput, gradInputRef, rois, argmax, pooledH, pooledW, spatialScale): adds to gradInput.
aclnnStatus check_roi_pool_grad(Call& c) {
  using P = params::RoiPoolingGradWithArgMax;

  ACL_RETURN_IF_FAILED(expect_regions(c, P::gradInputRef, P::rois, 5, c.integer(P::pooledH),
                                      c.integer(P::pooledW), P::gradOutput));
  return expect_same_shape(c, P::argmax, P::gradOutput);
}
aclError run_roi_pool_grad(Call& c) {
  using P = params::RoiPoolingGradWithArgMax;

  const Tensor& to = c.tensor(P::gradInputRef);
  const Numbers g = numbers(c.tensor(P::gradOutput)), boxes = numbers(c.tensor(P::rois));
  const Integers where = integers(c.tensor(P::argmax));
  Numbers x = numbers(to);
  const int64_t per_region = to.dims[1] * c.integer(P::pooledH) * c.integer(P::pooledW);
  const int64_t bins = c.integer(P::pooledH) * c.integer(P::pooledW),
                plane = to.dims[2] * to.dims[3];
  const aclError error =
      each_region(c, boxes, nullptr, to.dims[0], [&](int64_t n, int64_t r, const double*) {
        for (int64_t k = 0; k < per_region; ++k) {
          const int64_t at = where[r * per_region + k];
          if (at < 0 || at >= plane) continue;
          x[(n * to.dims[1] + k / bins) * plane + at] += g[r * per_region + k];
        }
      });
  if (error == ACL_SUCCESS) put(to, x);
  return error;
}

// Overlap of two boxes of corners.
double intersection(const double* a, const double* b) {
  const double w = std::min(a[2], b[2]) - std::max(a[0], b[0]);
  const double h = std::min(a[3], b[3]) - std::max(a[1], b[1]);
  return std::max(w, 0.0) * std::max(h, 0.0);
}
double area(const double* a) { return (a[2] - a[0]) * (a[3] - a[1]); }

// (bBoxes [M, 4], gtBoxes [N, 4], mode, eps, aligned, overlap): "iou" divides by the union, "iof"
// by the area of gtBoxes. overlap is [M, N], or [M, 1] for pairs.
aclnnStatus check_iou(Call& c) {
  using P = params::Iou;

  ACL_RETURN_IF_FAILED(expect_dims(c, P::bBoxes, {-1, 4}));
  ACL_RETURN_IF_FAILED(
      expect_dims(c, P::gtBoxes, {c.flag(P::aligned) ? c.tensor(P::bBoxes).dims[0] : -1, 4}));
  return expect_dims(
      c, P::overlap,
      {c.tensor(P::bBoxes).dims[0], c.flag(P::aligned) ? 1 : c.tensor(P::gtBoxes).dims[0]});
}
void run_iou(Call& c) {
  using P = params::Iou;

  const Numbers a = numbers(c.tensor(P::bBoxes)), b = numbers(c.tensor(P::gtBoxes));
  const int64_t m = c.tensor(P::bBoxes).dims[0],
                n = c.flag(P::aligned) ? 1 : c.tensor(P::gtBoxes).dims[0];
  const bool of_truth = c.text(P::mode) && !std::strcmp(c.text(P::mode), "iof");
  Numbers out(static_cast<size_t>(m * n));
  for (int64_t k = 0; k < m * n; ++k) {
    const double* x = a.data() + k / n * 4;
    const double* y = b.data() + (c.flag(P::aligned) ? k : k % n) * 4;
    const double common = intersection(x, y);
    const double base = of_truth ? area(y) : area(x) + area(y) - common;
    out[k] = common / (base + c.number(P::eps));
  }
  put(c.tensor(P::overlap), out);
}

// (boxes [B, N, 4], scores [B, C, N], maxOutputBoxesPerClass, iouThreshold, scoreThreshold,
// centerPointBox, selectedIndices [K, 3]): ONNX' NonMaxSuppression; rows left over hold -1.
aclnnStatus check_nms(Call& c) {
  using P = params::NonMaxSuppression;

  ACL_RETURN_IF_FAILED(expect_dims(c, P::boxes, {-1, -1, 4}));
  ACL_RETURN_IF_FAILED(
      expect_dims(c, P::scores, {c.tensor(P::boxes).dims[0], -1, c.tensor(P::boxes).dims[1]}));
  ACL_RETURN_IF_FAILED(expect_int(c, P::centerPointBox, 0, 1));
  return expect_dims(c, P::selectedIndices, {-1, 3});
}
// Corners in order, whichever are given.
void corners_of(const double* box, bool center, double to[4]) {
  if (center) {
    const double half_w = box[2] / 2, half_h = box[3] / 2;
    const double made[4] = {box[0] - half_w, box[1] - half_h, box[0] + half_w, box[1] + half_h};
    std::copy_n(made, 4, to);
    return;
  }
  for (int i = 0; i < 2; ++i) {
    to[i] = std::min(box[i], box[i + 2]);
    to[i + 2] = std::max(box[i], box[i + 2]);
  }
}
struct Suppression {
  size_t most;
  double overlap, score;
};
// The chosen boxes of one class, best first.
Integers suppress(const Suppression& rule, const Numbers& corners, const double* scores, int64_t n) {
  Integers order(static_cast<size_t>(n)), chosen;
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  for (int64_t k : order) {
    if (chosen.size() >= rule.most || !(scores[k] > rule.score)) break;
    const double* box = corners.data() + k * 4;
    const auto covers = [&](int64_t other) {
      const double* b = corners.data() + other * 4;
      const double common = intersection(box, b);
      return common / (area(box) + area(b) - common) > rule.overlap;
    };
    if (std::none_of(chosen.begin(), chosen.end(), covers)) chosen.push_back(k);
  }
  return chosen;
}
void run_nms(Call& c) {
  using P = params::NonMaxSuppression;

  const Tensor &boxes = c.tensor(P::boxes), &out = c.tensor(P::selectedIndices);
  const int64_t n = boxes.dims[1], classes = c.tensor(P::scores).dims[1];
  const Numbers given = numbers(boxes), scores = numbers(c.tensor(P::scores));
  const Span<const float> overlap = c.floats(P::iouThreshold), least = c.floats(P::scoreThreshold);
  const Suppression rule = {
      c.ints(P::maxOutputBoxesPerClass).size
          ? static_cast<size_t>(std::max<int64_t>(0, c.ints(P::maxOutputBoxesPerClass)[0]))
          : 0,
      overlap.size ? overlap[0] : 0.0,
      least.size ? least[0] : -std::numeric_limits<double>::infinity()};
  Integers rows(static_cast<size_t>(out.numel()), -1);
  size_t row = 0;
  for (int64_t b = 0; b < boxes.dims[0]; ++b) {
    Numbers corners(static_cast<size_t>(n * 4));
    for (int64_t i = 0; i < n; ++i) {
      corners_of(given.data() + (b * n + i) * 4, c.integer(P::centerPointBox) == 1,
                 corners.data() + i * 4);
    }
    for (int64_t k = 0; k < classes; ++k) {
      for (int64_t i : suppress(rule, corners, scores.data() + (b * classes + k) * n, n)) {
        if (row + 3 > rows.size()) break;
        rows[row++] = b;
        rows[row++] = k;
        rows[row++] = i;
      }
    }
  }
  put(out, rows);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnRoiAlign, check_roi_align, run_roi_align)
ACLNN_OP(aclnnRoiAlignV2, check_roi_align_v2, run_roi_align_v2)
ACLNN_OP(aclnnRoiAlignV2Backward, check_roi_align_grad, run_roi_align_grad)
ACLNN_OP(aclnnRoiPoolingWithArgMax, check_roi_pool, run_roi_pool)
ACLNN_OP(aclnnRoiPoolingGradWithArgMax, check_roi_pool_grad, run_roi_pool_grad)
ACLNN_OP(aclnnIou, check_iou, run_iou)
ACLNN_OP(aclnnNonMaxSuppression, check_nms, run_nms)
