// Images as planes of numbers, whatever the order of channels in memory: what image rows share.
// Bytes run from 0 to 255, floats from 0 to 1.
#pragma once

#include <acldvppop/acldvpp_base.h>

#include "loops/numbers.h"
#include "params/image.h"

namespace aclsim {

struct Image {
  int64_t batch = 1, channels = 1, height = 0, width = 0;
  bool bytes = true;
  Numbers x;  // [N, C, H, W]

  double top() const { return bytes ? 255 : 1; }
  int64_t plane() const { return height * width; }
  double& at(int64_t p, int64_t h, int64_t w) { return x[(p * height + h) * width + w]; }
  double at(int64_t p, int64_t h, int64_t w) const { return x[(p * height + h) * width + w]; }
  // An image of other sizes, filled with zeros.
  Image like(int64_t c, int64_t h, int64_t w) const {
    Image made = {batch, c, h, w, bytes, {}};
    made.x.resize(static_cast<size_t>(batch * c * h * w));
    return made;
  }
};

// Where the channels stand: the format says so, and for ND a last dim of 1, 3 or 4.
inline bool channels_last(const Tensor& t) {
  if (t.format == ACL_FORMAT_NHWC) return true;
  if (t.format == ACL_FORMAT_NCHW || t.rank < 3) return false;
  const int64_t last = t.dims[t.rank - 1];
  return last == 1 || last == 3 || last == 4;
}
// [N, C, H, W] as a view of a tensor of 3 or 4 dims.
inline Tensor planes_of(const Tensor& t, bool last) {
  Tensor v = t;
  const int first = t.rank - 3, order[3] = {last ? 2 : 0, last ? 0 : 1, last ? 1 : 2};
  v.rank = 4;
  v.dims[0] = first ? t.dims[0] : 1;
  v.strides[0] = first ? t.strides[0] : 0;
  for (int i = 0; i < 3; ++i) {
    v.dims[i + 1] = t.dims[first + order[i]];
    v.strides[i + 1] = t.strides[first + order[i]];
  }
  return v;
}
inline Image image_of(const Tensor& t) {
  const Tensor v = planes_of(t, channels_last(t));
  return {v.dims[0], v.dims[1], v.dims[2], v.dims[3], t.dtype == ACL_UINT8, numbers(v)};
}
// Bytes are rounded to the nearest and clamped, floats clamped.
inline void put_image(const Tensor& t, Image& image) {
  const double top = t.dtype == ACL_UINT8 ? 255 : 1;
  for (double& v : image.x) {
    v = std::min(std::max(v, 0.0), top);
    if (t.dtype == ACL_UINT8) v = std::floor(v + 0.5);
  }
  write(planes_of(t, channels_last(t)), image.x);
}

// Where every operator of images has what it reads.
constexpr TensorAt kSelf = params::DvppInvert::self;

// Phase 1: both are images of known dtypes, and the result has the sizes told (-1: any).
inline aclnnStatus expect_image(const Call& c, int arg, int64_t channels, int64_t height,
                                int64_t width) {
  if (c.null(arg)) return c.fail(ACLDVPP_ERR_PARAM_NULLPTR, "Parameter %s is null.", c.name(arg));
  const Tensor& t = c.tensor(arg);
  const auto is_image = [](const Tensor& x) {
    return (x.rank == 3 || x.rank == 4) && (x.dtype == ACL_UINT8 || x.dtype == ACL_FLOAT);
  };
  bool fits = is_image(t) && t.numel() > 0;  // there is nothing to take a pixel of none from
  if (fits) {
    const Tensor v = planes_of(t, channels_last(t));
    const int64_t wanted[3] = {channels, height, width};
    for (int i = 0; i < 3; ++i) fits = fits && (wanted[i] < 0 || wanted[i] == v.dims[i + 1]);
    const Tensor& self = c.tensor(kSelf);  // the bytes of a file where images are decoded
    fits = fits && (!is_image(self) ||
                    planes_of(self, channels_last(self)).dims[0] == v.dims[0]);
  }
  if (fits) return ACLNN_SUCCESS;
  return c.fail(ACLDVPP_ERR_PARAM_INVALID,
                "%s should be a uint8 or float image [N, C, H, W] or [N, H, W, C] that is not empty, of as "
                "many images as the first, of %lld channels, "
                "%lld x %lld (-1: any), but is %s of shape %s.",
                c.name(arg), static_cast<long long>(channels), static_cast<long long>(height),
                static_cast<long long>(width), dtype_name(t.dtype), shape_text(t));
}
inline aclnnStatus expect_same_image(const Call& c, int out, int64_t channels = -1) {
  ACL_RETURN_IF_FAILED(expect_image(c, kSelf, channels, -1, -1));
  const Tensor v = planes_of(c.tensor(kSelf), channels_last(c.tensor(kSelf)));
  ACL_RETURN_IF_FAILED(expect_image(c, out, v.dims[1], v.dims[2], v.dims[3]));
  const Tensor& t = c.tensor(out);
  if (planes_of(t, channels_last(t)).dims[0] == v.dims[0]) return ACLNN_SUCCESS;
  return c.fail(ACLDVPP_ERR_PARAM_INVALID, "%s has another number of images than self.", c.name(out));
}

}  // namespace aclsim
