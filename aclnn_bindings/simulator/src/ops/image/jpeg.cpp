// JPEG files into images and back.
#include "params/image.h"
#include "loops/image.h"
#include "loops/jpeg.h"

namespace aclsim {
namespace {

aclnnStatus expect_bytes(const Call& c, int arg) {
  if (c.null(arg)) return c.fail(ACLDVPP_ERR_PARAM_NULLPTR, "Parameter %s is null.", c.name(arg));
  if (c.tensor(arg).dtype == ACL_UINT8) return ACLNN_SUCCESS;
  return c.fail(ACLDVPP_ERR_PARAM_INVALID, "%s should be DT_UINT8, but is %s.", c.name(arg),
                dtype_name(c.tensor(arg).dtype));
}
// (self: the file's bytes, channels 1 or 3, tryRecoverTruncated, out).
aclnnStatus check_decode(Call& c) {
  using P = params::DvppDecodeJpeg;

  ACL_RETURN_IF_FAILED(expect_bytes(c, P::self));
  if (c.integer(P::channels) != 1 && c.integer(P::channels) != 3) {
    return c.fail(ACLDVPP_ERR_PARAM_INVALID, "channels should be 1 or 3, but is %lld.",
                  static_cast<long long>(c.integer(P::channels)));
  }
  ACL_RETURN_IF_FAILED(expect_image(c, P::out, c.integer(P::channels), -1, -1));
  return expect_bytes(c, P::out);
}
aclError run_decode(Call& c) {
  using P = params::DvppDecodeJpeg;

  const Tensor& out = c.tensor(P::out);
  const Integers given = integers(c.tensor(P::self));
  const std::vector<uint8_t> bytes(given.begin(), given.end());
  Pixels p;
  std::string why;
  if (!decode_jpeg(bytes.data(), static_cast<int64_t>(bytes.size()), c.flag(P::tryRecoverTruncated),
                   p, why)) {
    return c.trap(507018, "the file can't be decoded: %s", why.c_str());
  }
  Image m = image_of(out);
  if (p.height != m.height || p.width != m.width || m.batch != 1) {
    return c.trap(507018, "the file's image is %lld x %lld, which out, %s, has no room for",
                  static_cast<long long>(p.height), static_cast<long long>(p.width), shape_text(out));
  }
  for (int64_t i = 0; i < m.plane(); ++i) {
    const double* from = p.x.data() + i;
    const auto of = [&](int64_t k) { return from[p.channels == 1 ? 0 : k * m.plane()]; };
    const double gray = 0.299 * of(0) + 0.587 * of(1) + 0.114 * of(2);
    for (int64_t k = 0; k < m.channels; ++k) m.x[k * m.plane() + i] = m.channels == 1 ? gray : of(k);
  }
  put_image(out, m);
  return ACL_SUCCESS;
}
// (self, quality, out: room for the file's bytes, whose number becomes out's size).
aclnnStatus check_encode(Call& c) {
  using P = params::DvppEncodeJpeg;

  ACL_RETURN_IF_FAILED(expect_image(c, P::self, -1, -1, -1));
  ACL_RETURN_IF_FAILED(expect_bytes(c, P::self));
  ACL_RETURN_IF_FAILED(expect_bytes(c, P::out));
  const Tensor v = planes_of(c.tensor(P::self), channels_last(c.tensor(P::self)));
  const bool fits = v.dims[0] == 1 && (v.dims[1] == 1 || v.dims[1] == 3) && v.dims[2] > 0 &&
                    v.dims[3] > 0 && v.dims[2] < 65536 && v.dims[3] < 65536;
  if (fits && c.integer(P::quality) >= 1 && c.integer(P::quality) <= 100 &&
      c.tensor(P::out).rank == 1)
    return ACLNN_SUCCESS;
  return c.fail(
      ACLDVPP_ERR_PARAM_INVALID,
      "self %s should be one image of 1 or 3 channels, quality %lld in [1, 100], out have 1 dim.",
      shape_text(c.tensor(P::self)), static_cast<long long>(c.integer(P::quality)));
}
aclError run_encode(Call& c) {
  using P = params::DvppEncodeJpeg;

  const Image m = image_of(c.tensor(P::self));
  const Tensor& out = c.tensor(P::out);
  const std::vector<uint8_t> file =
      encode_jpeg({m.height, m.width, m.channels, m.x}, static_cast<int>(c.integer(P::quality)));
  const auto n = static_cast<int64_t>(file.size());
  if (out.offset + n > out.storage_numel || out.strides[0] != 1) {
    return c.trap(507018, "the file has %lld bytes, out has room for %lld", static_cast<long long>(n),
                  static_cast<long long>(out.storage_numel - out.offset));
  }
  std::memcpy(out.ptr<uint8_t>(), file.data(), file.size());
  c.resize(P::out, &n, 1);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP_FLAGS(acldvppDecodeJpeg, check_decode, run_decode, kOwnNulls | kOwnDtypes)
ACLNN_OP_FLAGS(acldvppEncodeJpeg, check_encode, run_encode, kOwnNulls | kOwnDtypes | kDynamicOut)
