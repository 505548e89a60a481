// Scores of shifted windows: softmax with a mask and a bias by relative position.
#include "params/attention.h"
#include "loops/numbers.h"
#include "loops/philox.h"

namespace aclsim {
namespace {

// (x, attenMask, relativePosBias, scaleValue, innerPrecisionMode, out): softmax(scale x + mask +
// bias). x is [B, W, N, S1, S2] or [B W, N, S1, S2]; a mask is [W, S1, S2], a bias [N, S1, S2], or
// either with dims of one in between.
struct Swin {
  int64_t windows, heads, area;
};
aclnnStatus check_swin_softmax(Call& c) {
  using P = params::MaskedSoftmaxWithRelPosBias;

  ACL_RETURN_IF_FAILED(expect_rank(c, P::x, 4, 5));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::out, P::x));
  const Tensor& x = c.tensor(P::x);
  Swin& s = c.make<Swin>();
  s.area = x.dims[x.rank - 1] * x.dims[x.rank - 2];
  s.heads = x.dims[x.rank - 3];
  s.windows = x.rank == 5 ? x.dims[1] : 1;
  if (!c.null(P::attenMaskOptional) && s.area > 0) {
    const int64_t w = c.tensor(P::attenMaskOptional).numel() / s.area;
    if (x.rank == 4 && w > 0 && x.dims[0] % w == 0) s.windows = w;
    ACL_RETURN_IF_FAILED(expect_numel(c, P::attenMaskOptional, s.windows * s.area));
  }
  return expect_numel(c, P::relativePosBias, s.heads * s.area);
}
void run_swin_softmax(Call& c) {
  using P = params::MaskedSoftmaxWithRelPosBias;

  const Swin& s = c.get<Swin>();
  const int64_t width = c.tensor(P::x).dims[c.tensor(P::x).rank - 1];
  Numbers x = numbers(c.tensor(P::x));
  const Numbers bias = numbers(c.tensor(P::relativePosBias)),
                mask = c.null(P::attenMaskOptional) ? Numbers()
                                                    : numbers(c.tensor(P::attenMaskOptional));
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    const int64_t head = i / s.area, window = head / s.heads % s.windows;
    x[i] = x[i] * c.number(P::scaleValue) + bias[head % s.heads * s.area + i % s.area];
    if (!mask.empty()) x[i] += mask[window * s.area + i % s.area];
  }
  for (int64_t r = 0; width && r < static_cast<int64_t>(x.size()) / width; ++r) {
    softmax_row(x.data() + r * width, width);
  }
  put(c.tensor(P::out), x);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnMaskedSoftmaxWithRelPosBias, check_swin_softmax, run_swin_softmax)
