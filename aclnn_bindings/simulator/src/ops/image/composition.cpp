// Images laid over each other.
#include "params/image.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

// Images of [H, W, 3] under an alpha or a mask of [H, W] or [H, W, 1]; bytes are rounded down.
aclnnStatus check_layers(const Call& c, int mask, std::initializer_list<int> images) {
  using P = params::MrgbaCustom;

  for (int i : images) ACL_RETURN_IF_FAILED(expect_same_shape(c, i, P::rgb));
  const Tensor &image = c.tensor(P::rgb), &m = c.tensor(mask);
  const int64_t channels = image.rank ? image.dims[image.rank - 1] : 1;
  if (m.numel() == image.numel() || m.numel() * channels == image.numel()) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of %s doesn't fit %s.", shape_text(m),
                c.name(mask), shape_text(image));
}
template <class F>
void blend(const Call& c, int mask, int other, int out, F f) {
  using P = params::MrgbaCustom;

  Numbers x = numbers(c.tensor(P::rgb));
  const Numbers m = numbers(c.tensor(mask)), y = other < 0 ? x : numbers(c.tensor(other));
  const size_t share = m.empty() ? 1 : x.size() / m.size();
  for (size_t i = 0; i < x.size(); ++i) x[i] = f(x[i], y[i], m[i / share]);
  put(c.tensor(out), x);
}
// (rgb, alpha, out), (rgb, alpha, frame, out), (bkg, src, mask, out).
aclnnStatus check_mrgba(Call& c) {
  using P = params::MrgbaCustom;
  return check_layers(c, P::alpha, {P::out});
}
void run_mrgba(Call& c) {
  using P = params::MrgbaCustom;

  return blend(c, P::alpha, -1, P::out,
               [](double x, double, double a) { return std::floor(x * a / 255); });
}
aclnnStatus check_blend(Call& c) {
  using P = params::BlendImagesCustom;
  return check_layers(c, P::alpha, {P::frame, P::out});
}
void run_blend(Call& c) {
  using P = params::BlendImagesCustom;

  return blend(c, P::alpha, P::frame, P::out, [](double x, double y, double a) {
    return std::floor((x * a + y * (255 - a)) / 255);
  });
}
aclnnStatus check_replace(Call& c) {
  using P = params::BackgroundReplace;
  return check_layers(c, P::mask, {P::src, P::out});
}
void run_replace(Call& c) {
  using P = params::BackgroundReplace;

  return blend(c, P::mask, P::src, P::out,
               [](double x, double y, double m) { return x * (1 - m) + y * m; });
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnMrgbaCustom, check_mrgba, run_mrgba)
ACLNN_OP(aclnnBlendImagesCustom, check_blend, run_blend)
ACLNN_OP(aclnnBackgroundReplace, check_replace, run_replace)
