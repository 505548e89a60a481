// The logarithm of sums of exponentials over axes.
#include "params/reduction.h"
#include "loops/exponentials.h"
#include "loops/promote.h"
#include "loops/reduce.h"
#include "loops/rows.h"
#include "loops/stage.h"

#include "loops/max_finite.h"

namespace aclsim {
namespace {

// An all -inf row has no finite shift.
template <class C>
C safe_shift(C top) {
  return top - top == C(0) ? top : C(0);
}

// (self, dim, keepDim, out): max + log(sum(exp(x - max))) over any axes, in two reductions.
aclnnStatus check_logsumexp(Call& c) {
  using P = params::LogSumExp;

  ReducePlan& plan = c.make<ReducePlan>();
  const Tensor &self = c.tensor(P::self), &out = c.tensor(P::out);
  ACL_RETURN_IF_FAILED(axes_of(c, self, P::dim, plan.axes));
  if (!is_float(out.dtype)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "out should be floating, but is %s.",
                  dtype_name(out.dtype));
  }
  plan.domain = wider(self.dtype, out.dtype);
  const size_t bytes = dtype_size(plan.domain);
  c.workspace_size = (self.numel() + 2 * out.numel()) * bytes;
  return expect_reduced(c, P::out, self, plan.axes, c.flag(P::keepDim));
}
template <class C>
ACL_EXACT void exp_of_difference(int64_t n, C* out, const C* const* in) {
  const C *a = in[0], *b = in[1];
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] - b[i];
  if constexpr (std::is_same<C, float>::value) {
    exponentials(out, out, n);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = std::exp(out[i]);
  }
}
template <class C>
void logsumexp(Call& c, const ReducePlan& plan) {
  using P = params::LogSumExp;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(P::out);
  C* space = static_cast<C*>(c.workspace);
  Shape kept = shape_of(self);
  for (int i = 0; i < self.rank; ++i) {
    if (plan.axes >> i & 1) kept.dims[i] = 1;
  }
  const Tensor shifted = dense(space, dtype_of<C>(), self.dims, self.rank);
  const Tensor top = dense(space + self.numel(), dtype_of<C>(), kept.dims, kept.rank);
  Tensor sum = top;
  sum.data = space + self.numel() + out.numel();
  reduce_tensor(top, self, plan.axes, plan.domain, reducers_of<MaxFinite>());
  C* tops = top.ptr<C>();
  for (int64_t i = 0; i < out.numel(); ++i) tops[i] = safe_shift(tops[i]);
  Loop loop = loop_over(shifted);
  loop.add(self);
  loop.add(top);
  loop.coalesce();
  run_loop<C>(loop, exp_of_difference<C>);
  reduce_tensor(sum, shifted, plan.axes, plan.domain, reducers_of<SumOf>());
  C* sums = sum.ptr<C>();
  for (int64_t i = 0; i < out.numel(); ++i) sums[i] = tops[i] + std::log(sums[i]);
  copy_tensor(out, dense(sums, dtype_of<C>(), out.dims, out.rank));
}
void run_logsumexp(Call& c) {
  using P = params::LogSumExp;

  const ReducePlan& plan = c.get<ReducePlan>();
  if (c.tensor(P::out).numel() == 0) return;
  with_float(plan.domain, [&](auto tag) { logsumexp<typename decltype(tag)::type>(c, plan); });
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnLogSumExp, check_logsumexp, run_logsumexp)
