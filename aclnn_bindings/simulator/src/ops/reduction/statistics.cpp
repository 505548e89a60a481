// Norms, variances and standard deviations over axes.
#include "params/reduction.h"
#include "loops/lanes.h"
#include "loops/reduce.h"
#include "loops/rows.h"
#include "loops/vector_norm.h"

namespace aclsim {
namespace {

// (self, order, dims, keepDims, [dtype,] out).
template <int Out>
aclnnStatus check_norm(Call& c) {
  using P = params::Norm;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(Out);
  NormPlan& p = c.make<NormPlan>();
  p.order = c.null(P::pScalar) ? 2.0 : c.scalar(P::pScalar).real();
  ACL_RETURN_IF_FAILED(axes_of(c, self, P::dim, p.reduce.axes));
  p.reduce.domain = out.dtype == ACL_DOUBLE || self.dtype == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
  if (!is_float(out.dtype)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should be floating, but is %s.", c.name(Out),
                  dtype_name(out.dtype));
  }
  if (!common_norm(p.order)) {
    c.workspace_size = (self.numel() + out.numel()) * dtype_size(p.reduce.domain);
  }
  return expect_reduced(c, Out, self, p.reduce.axes, c.flag(P::keepdim));
}
// The roots of the sums of squares of rows that lie one after another and fill no vector of torch's,
// whose compiler fuses what is left of fours (aten/src/ATen/native/cpu/ReduceOpsKernel.cpp).
template <class C>
ACL_EXACT void norm_short_rows(C* out, const C* x, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r, x += n) {
    C sum = 0;
    int64_t i = 0;
    for (; i < n / 4 * 4; ++i) sum += x[i] * x[i];
    for (; i < n; ++i) sum = fused(x[i], x[i], sum);
    out[r] = std::sqrt(sum);
  }
}
bool short_rows(const Tensor& out, const Tensor& self, const NormPlan& p) {
  const bool plain = self.dtype == out.dtype && (self.dtype == ACL_FLOAT || self.dtype == ACL_DOUBLE);
  return plain && p.order == 2 && self.rank > 1 && p.reduce.axes == 1u << (self.rank - 1) &&
         self.dims[self.rank - 1] < (self.dtype == ACL_FLOAT ? lanes_of<float>() : lanes_of<double>()) && self.contiguous() && out.contiguous();
}
template <int Out>
aclError run_norm(Call& c) {
  using P = params::Norm;

  const Tensor &out = c.tensor(Out), &self = c.tensor(P::self);
  const NormPlan& p = c.get<NormPlan>();
  if (out.numel() == 0) return ACL_SUCCESS;
  if (!short_rows(out, self, p)) {
    norm_of(c, out, self, p);
    return ACL_SUCCESS;
  }
  with_float(self.dtype, [&](auto tag) {
    using C = typename decltype(tag)::type;
    norm_short_rows(out.ptr<C>(), self.ptr<C>(), out.numel(),
                    self.dims[self.rank - 1]);
  });
  return ACL_SUCCESS;
}

// Variance in two passes over a copy of the elements less their mean.
struct Spread {
  ReducePlan reduce;
  double correction;
  bool root;
  int spread_arg, mean_arg;  // -1: none
};

template <class C>
void spread(Call& c, const Spread& p) {
  using P = params::Std;

  const Tensor& self = c.tensor(P::self);
  const Tensor& out = c.tensor(p.spread_arg);
  C* space = static_cast<C*>(c.workspace);
  Shape kept = shape_of(self);
  int64_t count = 1;
  for (int i = 0; i < self.rank; ++i) {
    if (p.reduce.axes >> i & 1) {
      count *= kept.dims[i];
      kept.dims[i] = 1;
    }
  }
  const Tensor squares = dense(space, dtype_of<C>(), self.dims, self.rank);
  const Tensor mean = dense(space + self.numel(), dtype_of<C>(), kept.dims, kept.rank);
  Tensor sum = mean;
  sum.data = space + self.numel() + out.numel();
  reduce_tensor(mean, self, p.reduce.axes, p.reduce.domain, reducers_of<SumOf>());
  C* means = mean.ptr<C>();
  for (int64_t i = 0; i < out.numel(); ++i) means[i] /= static_cast<C>(count);
  Loop loop = loop_over(squares);
  loop.add(self);
  loop.add(mean);
  loop.coalesce();
  run_loop<C>(loop, [](int64_t n, C* o, const C* const* in) {
    for (int64_t i = 0; i < n; ++i) o[i] = (in[0][i] - in[1][i]) * (in[0][i] - in[1][i]);
  });
  reduce_tensor(sum, squares, p.reduce.axes, p.reduce.domain, reducers_of<SumOf>());
  C* sums = sum.ptr<C>();
  const double divisor = std::max(0.0, static_cast<double>(count) - p.correction);
  for (int64_t i = 0; i < out.numel(); ++i) {
    sums[i] = static_cast<C>(sums[i] / divisor);
    if (p.root) sums[i] = std::sqrt(sums[i]);
  }
  copy_tensor(out, dense(sums, dtype_of<C>(), out.dims, out.rank));
  if (p.mean_arg >= 0)
    copy_tensor(c.tensor(p.mean_arg), dense(means, dtype_of<C>(), out.dims, out.rank));
}

// (self, dim, correction or unbiased, keepdim, spread[, mean]).
template <bool Root, bool Mean>
aclnnStatus check_spread(Call& c) {
  using P = params::VarMean;

  const Tensor& self = c.tensor(P::self);
  Spread& p = c.make<Spread>();
  p.root = Root;
  p.spread_arg = 4;
  p.mean_arg = Mean ? 5 : -1;
  p.correction = c.args[P::correction].kind == ArgKind::Bool
                     ? c.flag(params::Var::unbiased)
                     : static_cast<double>(c.integer(P::correction));
  p.reduce.domain = self.dtype == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
  if (!is_float(self.dtype)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "self should be floating, but is %s.",
                  dtype_name(self.dtype));
  }
  ACL_RETURN_IF_FAILED(axes_of(c, self, P::dim, p.reduce.axes));
  c.workspace_size = (self.numel() + 2 * c.tensor(P::varOut).numel()) * dtype_size(p.reduce.domain);
  if (Mean)
    ACL_RETURN_IF_FAILED(expect_reduced(c, P::meanOut, self, p.reduce.axes, c.flag(P::keepdim)));
  return expect_reduced(c, P::varOut, self, p.reduce.axes, c.flag(P::keepdim));
}
aclError run_spread(Call& c) {
  using P = params::Std;

  const Spread& p = c.get<Spread>();
  if (c.tensor(P::out).numel() == 0) return ACL_SUCCESS;
  with_float(p.reduce.domain, [&](auto tag) { spread<typename decltype(tag)::type>(c, p); });
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnNorm, check_norm<params::Norm::out>, run_norm<params::Norm::out>)
ACLNN_OP(aclnnLinalgVectorNorm, check_norm<params::LinalgVectorNorm::out>,
         run_norm<params::LinalgVectorNorm::out>)
ACLNN_OP(aclnnVar, (check_spread<false, false>), run_spread)
ACLNN_OP(aclnnVarCorrection, (check_spread<false, false>), run_spread)
ACLNN_OP(aclnnVarMean, (check_spread<false, true>), run_spread)
ACLNN_OP(aclnnStd, (check_spread<true, false>), run_spread)
ACLNN_OP(aclnnStdMeanCorrection, (check_spread<true, true>), run_spread)
