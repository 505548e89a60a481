// Norms, variances and standard deviations over axes.
#include "loops/reduce.h"
#include "loops/rows.h"

namespace aclsim {
namespace {

template <class T>
ACL_INLINE T magnitude(T x) {
  return x < T(0) ? -x : x;
}
struct Norm : Combine {
  static constexpr bool integer = false;
  template <class T>
  static constexpr T first() {
    return T(0);
  }
  template <class T>
  static ACL_INLINE T join(T a, T b) {
    return a + b;
  }
};
struct Norm0 : Norm {
  template <class T>
  static ACL_INLINE T map(T x) {
    return x != T(0) ? T(1) : T(0);
  }
};
struct Norm1 : Norm {
  template <class T>
  static ACL_INLINE T map(T x) {
    return magnitude(x);
  }
};
struct Norm2 : Norm {
  template <class T>
  static ACL_INLINE T map(T x) {
    return x * x;
  }
  template <class T>
  static ACL_INLINE T finish(T x, int64_t) {
    return std::sqrt(x);
  }
};
struct NormInf : Norm1 {
  template <class T>
  static ACL_INLINE T join(T a, T b) {
    return b > a || b != b ? b : a;
  }
};
struct NormMinusInf : Norm1 {
  template <class T>
  static constexpr T first() {
    return std::numeric_limits<T>::infinity();
  }
  template <class T>
  static ACL_INLINE T join(T a, T b) {
    return b < a || b != b ? b : a;
  }
};

struct NormPlan {
  ReducePlan reduce;
  double order;
};

// |x|^p in the compute type; the sum's p-th root follows.
template <class C>
void any_norm(Call& c, const Tensor& out, const Tensor& self, const NormPlan& p) {
  const Tensor powers = dense(c.workspace, dtype_of<C>(), self.dims, self.rank);
  Loop loop = loop_over(powers);
  loop.add(self);
  loop.add(dense(const_cast<double*>(&p.order), ACL_DOUBLE, nullptr, 0));
  loop.coalesce();
  run_loop<C>(loop, [](int64_t n, C* o, const C* const* in) {
    for (int64_t i = 0; i < n; ++i) o[i] = std::pow(std::fabs(in[0][i]), in[1][i]);
  });
  C* sums = powers.ptr<C>() + powers.numel();
  const Tensor sum = dense(sums, dtype_of<C>(), out.dims, out.rank);
  reduce_tensor(sum, powers, p.reduce.axes, p.reduce.domain, reducers_of<SumOf>());
  for (int64_t i = 0; i < sum.numel(); ++i) sums[i] = std::pow(sums[i], C(1 / p.order));
  copy_tensor(out, sum);
}

const Reducers* common_norm(double order) {
  if (order == 0) return &reducers_of<Norm0>();
  if (order == 1) return &reducers_of<Norm1>();
  if (order == 2) return &reducers_of<Norm2>();
  if (order == std::numeric_limits<double>::infinity()) return &reducers_of<NormInf>();
  if (order == -std::numeric_limits<double>::infinity()) return &reducers_of<NormMinusInf>();
  return nullptr;
}

void norm_of(Call& c, const Tensor& out, const Tensor& self, const NormPlan& p) {
  if (const Reducers* r = common_norm(p.order)) {
    reduce_tensor(out, self, p.reduce.axes, p.reduce.domain, *r);
    return;
  }
  with_float(p.reduce.domain,
             [&](auto tag) { any_norm<typename decltype(tag)::type>(c, out, self, p); });
}

// (self, order, dims, keepDims, [dtype,] out).
template <int Out>
aclnnStatus check_norm(Call& c) {
  const Tensor &self = c.tensor(0), &out = c.tensor(Out);
  NormPlan& p = c.make<NormPlan>();
  p.order = c.null(1) ? 2.0 : c.scalar(1).real();
  ACL_RETURN_IF_FAILED(axes_of(c, self, 2, p.reduce.axes));
  p.reduce.domain = out.dtype == ACL_DOUBLE || self.dtype == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
  if (!is_float(out.dtype)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should be floating, but is %s.", c.name(Out),
                  dtype_name(out.dtype));
  }
  if (!common_norm(p.order)) {
    c.workspace_size = (self.numel() + out.numel()) * dtype_size(p.reduce.domain);
  }
  return expect_reduced(c, Out, self, p.reduce.axes, c.flag(3));
}
template <int Out>
aclError run_norm(Call& c) {
  if (c.tensor(Out).numel() > 0) norm_of(c, c.tensor(Out), c.tensor(0), c.get<NormPlan>());
  return ACL_SUCCESS;
}

// (x, scalar, out): one norm per member.
aclnnStatus check_foreach_norm(Call& c) {
  NormPlan& p = c.make<NormPlan>();
  p.order = c.null(1) ? 2.0 : c.scalar(1).real();
  const Span<Tensor*> x = c.tensors(0), out = c.tensors(2);
  if (x.size != out.size) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "out has %lld tensors, x has %lld.",
                  static_cast<long long>(out.size), static_cast<long long>(x.size));
  }
  for (int64_t i = 0; i < x.size; ++i) {
    if (!x[i] || !out[i]) return c.fail(ACLNN_ERR_PARAM_NULLPTR, "A list member is null.");
    if (out[i]->numel() != 1) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape of out[%lld] should be [], but is %s.",
                    static_cast<long long>(i), shape_text(*out[i]));
    }
    if (!common_norm(p.order)) {
      const uint64_t bytes = (x[i]->numel() + 1) * 8;
      c.workspace_size = std::max<uint64_t>(c.workspace_size, bytes);
    }
  }
  return ACLNN_SUCCESS;
}
aclError run_foreach_norm(Call& c) {
  NormPlan p = c.get<NormPlan>();
  for (int64_t i = 0; i < c.tensors(0).size; ++i) {
    const Tensor& x = *c.tensors(0)[i];
    Tensor out = *c.tensors(2)[i];
    out.rank = 0;
    p.reduce.axes = (1u << x.rank) - 1;
    p.reduce.domain = x.dtype == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
    norm_of(c, out, x, p);
  }
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
  const Tensor& self = c.tensor(0);
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
  const Tensor& self = c.tensor(0);
  Spread& p = c.make<Spread>();
  p.root = Root;
  p.spread_arg = 4;
  p.mean_arg = Mean ? 5 : -1;
  p.correction = c.args[2].kind == ArgKind::Bool ? c.flag(2) : static_cast<double>(c.integer(2));
  p.reduce.domain = self.dtype == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
  if (!is_float(self.dtype)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "self should be floating, but is %s.",
                  dtype_name(self.dtype));
  }
  ACL_RETURN_IF_FAILED(axes_of(c, self, 1, p.reduce.axes));
  c.workspace_size = (self.numel() + 2 * c.tensor(4).numel()) * dtype_size(p.reduce.domain);
  if (Mean) ACL_RETURN_IF_FAILED(expect_reduced(c, 5, self, p.reduce.axes, c.flag(3)));
  return expect_reduced(c, 4, self, p.reduce.axes, c.flag(3));
}
aclError run_spread(Call& c) {
  const Spread& p = c.get<Spread>();
  if (c.tensor(4).numel() == 0) return ACL_SUCCESS;
  with_float(p.reduce.domain, [&](auto tag) { spread<typename decltype(tag)::type>(c, p); });
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnNorm, check_norm<4>, run_norm<4>)
ACLNN_OP(aclnnLinalgVectorNorm, check_norm<5>, run_norm<5>)
ACLNN_OP(aclnnForeachNorm, check_foreach_norm, run_foreach_norm)
ACLNN_OP(aclnnVar, (check_spread<false, false>), run_spread)
ACLNN_OP(aclnnVarCorrection, (check_spread<false, false>), run_spread)
ACLNN_OP(aclnnVarMean, (check_spread<false, true>), run_spread)
ACLNN_OP(aclnnStd, (check_spread<true, false>), run_spread)
ACLNN_OP(aclnnStdMeanCorrection, (check_spread<true, true>), run_spread)
