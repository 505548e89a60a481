// Resizing of images by scales.
#include "params/resize.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

// (self [N, C, H, W], scales, mode, out): "nearest" or "bilinear" between pixel centres.
aclnnStatus check_resize(Call& c) {
  using P = params::Resize;

  ACL_RETURN_IF_FAILED(expect_rank(c, P::self, 4, 4));
  const Span<const float> scales = c.floats(P::scales);
  const char* mode = c.text(P::mode);
  if (!mode || (std::strcmp(mode, "nearest") && std::strcmp(mode, "bilinear"))) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "mode should be nearest or bilinear, but is %s.",
                  mode ? mode : "null");
  }
  Shape shape = shape_of(c.tensor(P::self));
  bool fits = scales.size == 4;
  for (int d = 0; fits && d < 4; ++d) {
    const double size = std::floor(static_cast<double>(shape.dims[d]) * scales[d]);
    fits = scales[d] > 0 && size < 1e9 && (d > 1 || scales[d] == 1);
    shape.dims[d] = static_cast<int64_t>(fits ? size : 0);
  }
  if (fits) return expect_shape(c, P::out, shape);
  return c.fail(ACLNN_ERR_PARAM_INVALID, "scales should be 1, 1 and two positive numbers.");
}
// The two neighbours of an output position along a dim, and the share of the second.
struct Between {
  int64_t low, high;
  double share;
};
Between between(int64_t o, int64_t in, int64_t out, bool nearest) {
  const double ratio = static_cast<double>(in) / static_cast<double>(out);
  if (nearest) {
    const auto k = std::min(in - 1, static_cast<int64_t>(std::floor(static_cast<double>(o) * ratio)));
    return {k, k, 0};
  }
  const double at = std::max(0.0, (static_cast<double>(o) + 0.5) * ratio - 0.5);
  const auto low = std::min(in - 1, static_cast<int64_t>(at));
  return {low, std::min(in - 1, low + 1), at - static_cast<double>(low)};
}
void run_resize(Call& c) {
  using P = params::Resize;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(P::out);
  const bool nearest = c.text(P::mode)[0] == 'n';
  const int64_t ih = self.dims[2], iw = self.dims[3], oh = out.dims[2], ow = out.dims[3];
  const Numbers x = numbers(self);
  Numbers y(static_cast<size_t>(out.numel()));
  for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
    const double* plane = x.data() + i / (oh * ow) * ih * iw;
    const Between r = between(i / ow % oh, ih, oh, nearest), k = between(i % ow, iw, ow, nearest);
    const auto line = [&](int64_t row) {
      return plane[row * iw + k.low] * (1 - k.share) + plane[row * iw + k.high] * k.share;
    };
    y[i] = line(r.low) * (1 - r.share) + line(r.high) * r.share;
  }
  put(out, y);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnResize, check_resize, run_resize)
