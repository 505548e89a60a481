// Convolution over time of [time, batch, channels], and its gradients.
#include "params/convolution.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

// Convolution over time: self [T, B, I], weight [K, I, O], bias [O], out [T + 2 pad - K + 1, B, O].
struct Tbc {
  int64_t steps, batch, in, kernel, out, pad, made;
};
aclnnStatus plan_tbc(Call& c, int self, int weight, int bias, int pad, int result) {
  ACL_RETURN_IF_FAILED(expect_given(c, {self, weight, result}));
  for (int i : {self, weight}) ACL_RETURN_IF_FAILED(expect_rank(c, i, 3, 3));
  const Tensor &x = c.tensor(self), &w = c.tensor(weight);
  Tbc& t = c.make<Tbc>();
  t = {x.dims[0], x.dims[1], x.dims[2], w.dims[0], w.dims[2], c.integer(pad), 0};
  t.made = t.steps + 2 * t.pad - t.kernel + 1;
  if (t.pad < 0 || t.made < 0 || w.dims[1] != t.in) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "weight %s and pad %lld don't fit %s.", shape_text(w),
                  static_cast<long long>(t.pad), shape_text(x));
  }
  ACL_RETURN_IF_FAILED(expect_dims(c, bias, {t.out}));
  return expect_dims(c, result, {t.made, t.batch, t.out});
}
// f(output, input, weight) for every product of the convolution.
template <class F>
void each_product(const Tbc& t, F f) {
  for (int64_t o = 0; o < t.made * t.batch * t.out; ++o) {
    const int64_t step = o / t.out / t.batch, b = o / t.out % t.batch, to = o % t.out;
    for (int64_t k = 0; k < t.kernel; ++k) {
      const int64_t from = step - t.pad + k;
      if (from < 0 || from >= t.steps) continue;
      for (int64_t i = 0; i < t.in; ++i) {
        f(o, (from * t.batch + b) * t.in + i, (k * t.in + i) * t.out + to);
      }
    }
  }
}
aclnnStatus check_tbc(Call& c) {
  using P = params::ConvTbc;
  return plan_tbc(c, P::self, P::weight, P::bias, P::pad, P::output);
}
void run_tbc(Call& c) {
  using P = params::ConvTbc;

  const Tbc& t = c.get<Tbc>();
  const Numbers x = numbers(c.tensor(P::self)), w = numbers(c.tensor(P::weight)),
                b = numbers_or(c.maybe(P::bias), t.out, 0);
  Numbers y(static_cast<size_t>(c.tensor(P::output).numel()));
  for (size_t i = 0; i < y.size(); ++i) y[i] = b[i % b.size()];
  each_product(t, [&](int64_t o, int64_t i, int64_t k) { y[o] += x[i] * w[k]; });
  put(c.tensor(P::output), y);
}
aclnnStatus check_tbc_grad(Call& c) {
  using P = params::ConvTbcBackward;

  ACL_RETURN_IF_FAILED(plan_tbc(c, P::input, P::weight, P::bias, P::pad, P::self));
  ACL_RETURN_IF_FAILED(expect_given(c, {P::gradInput, P::gradWeight, P::gradBias}));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::gradInput, P::input));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::gradWeight, P::weight));
  return expect_dims(c, P::gradBias, {c.get<Tbc>().out});
}
void run_tbc_grad(Call& c) {
  using P = params::ConvTbcBackward;

  const Tbc& t = c.get<Tbc>();
  const Numbers g = numbers(c.tensor(P::self)), x = numbers(c.tensor(P::input)),
                w = numbers(c.tensor(P::weight));
  Numbers gx(x.size()), gw(w.size()), gb(static_cast<size_t>(t.out));
  each_product(t, [&](int64_t o, int64_t i, int64_t k) {
    gx[i] += g[o] * w[k];
    gw[k] += g[o] * x[i];
  });
  for (size_t i = 0; i < g.size(); ++i) gb[i % gb.size()] += g[i];
  put(c.tensor(P::gradInput), gx);
  put(c.tensor(P::gradWeight), gw);
  put(c.tensor(P::gradBias), gb);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnConvTbc, check_tbc, run_tbc)
ACLNN_OP(aclnnConvTbcBackward, check_tbc_grad, run_tbc_grad)
