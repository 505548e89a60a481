// The short causal convolution of state space models under a mask, and its gradients.
#include "params/convolution.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

// (x [S, B, H], weight [W, H], mask [B, S], out): every channel over its own past; masked steps give 0.
aclnnStatus expect_causal(const Call& c, int x, int weight, int mask) {
  ACL_RETURN_IF_FAILED(expect_given(c, {x, weight}));
  ACL_RETURN_IF_FAILED(expect_rank(c, x, 3, 3));
  const Tensor& t = c.tensor(x);
  ACL_RETURN_IF_FAILED(expect_dims(c, weight, {-1, t.dims[2]}));
  return expect_dims(c, mask, {t.dims[1], t.dims[0]});
}
aclnnStatus check_masked(Call& c) {
  using P = params::MaskedCausalConv1d;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::out}));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::out, P::x));
  return expect_causal(c, P::x, P::weight, P::maskOptional);
}
// f(output, input, weight) for every product whose step the mask leaves.
template <class F>
void each_past(const Tensor& x, int64_t taps, const Tensor* mask, F f) {
  const int64_t batch = x.dims[1], width = x.dims[2];
  const Integers kept = mask ? integers(*mask) : Integers();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t step = i / width / batch, b = i / width % batch;
    if (mask && kept[b * x.dims[0] + step] == 0) continue;
    for (int64_t k = 0; k < taps; ++k) {
      const int64_t from = step - (taps - 1) + k;
      if (from >= 0) f(i, (from * batch + b) * width + i % width, k * width + i % width);
    }
  }
}
void run_masked(Call& c) {
  using P = params::MaskedCausalConv1d;

  const Numbers x = numbers(c.tensor(P::x)), w = numbers(c.tensor(P::weight));
  Numbers y(x.size());
  each_past(c.tensor(P::x), c.tensor(P::weight).dims[0], c.maybe(P::maskOptional),
            [&](int64_t o, int64_t i, int64_t k) { y[o] += x[i] * w[k]; });
  put(c.tensor(P::out), y);
}
aclnnStatus check_causal_grad(Call& c) {
  using P = params::MaskedCausalConv1dBackward;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::gradY, P::x, P::weight, P::gradXOut, P::gradWeightOut}));
  ACL_RETURN_IF_FAILED(expect_all_shaped_like(c, P::x, {P::gradY, P::gradXOut}));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::gradWeightOut, P::weight));
  return expect_causal(c, P::x, P::weight, P::maskOptional);
}
void run_causal_grad(Call& c) {
  using P = params::MaskedCausalConv1dBackward;

  const Numbers g = numbers(c.tensor(P::gradY)), x = numbers(c.tensor(P::x)),
                w = numbers(c.tensor(P::weight));
  Numbers gx(x.size()), gw(w.size());
  each_past(c.tensor(P::x), c.tensor(P::weight).dims[0], c.maybe(P::maskOptional),
            [&](int64_t o, int64_t i, int64_t k) {
              gx[i] += g[o] * w[k];
              gw[k] += g[o] * x[i];
            });
  put(c.tensor(P::gradXOut), gx);
  put(c.tensor(P::gradWeightOut), gw);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnMaskedCausalConv1d, check_masked, run_masked)
ACLNN_OP(aclnnMaskedCausalConv1dBackward, check_causal_grad, run_causal_grad)
