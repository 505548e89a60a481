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
// Norms of floats in torch's order (aten/src/ATen/native/cpu/ReduceOpsKernel.cpp): squares of rows that
// lie one after another in vectors of eight, whose compiler fuses what is left of fours; all else is
// added one by one, in the order of memory.
template <class C>
ACL_EXACT C norm_of_row(const C* x, int64_t n) {
  constexpr int64_t kLanes = 8;
  const int64_t whole = n / kLanes * kLanes;
  C lanes[kLanes] = {};
  for (int64_t i = 0; i < whole; i += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] += x[i + l] * x[i + l];
  C sum = lanes[0];
  for (int64_t l = 1; l < kLanes; ++l) sum += lanes[l];
  int64_t i = whole;
  for (; i < whole + (n - whole) / 4 * 4; ++i) sum += x[i] * x[i];
  for (; i < n; ++i) sum = fused(x[i], x[i], sum);
  return std::sqrt(sum);
}
// The axes by their steps in memory, the largest first; those of one element apart.
struct InMemory {
  int rank = 0, axes[kMaxRank];
  explicit InMemory(const Tensor& self) {
    for (int i = 0; i < self.rank; ++i)
      if (self.dims[i] != 1) axes[rank++] = i;
    std::stable_sort(axes, axes + rank, [&](int a, int b) { return self.strides[a] > self.strides[b]; });
  }
};
// Whether what is reduced lies together, and how long such a row is.
bool in_rows(const Tensor& out, const Tensor& self, const NormPlan& p, int64_t& row) {
  const bool floats = self.dtype == ACL_FLOAT;
  if (p.order != 2 || self.dtype != out.dtype || !(floats || self.dtype == ACL_DOUBLE)) return false;
  const InMemory order(self);
  row = 1;
  int k = order.rank - 1;
  for (; k >= 0 && (p.reduce.axes >> order.axes[k] & 1); --k) {
    if (self.strides[order.axes[k]] != row) return false;
    row *= self.dims[order.axes[k]];
  }
  for (; k >= 0; --k)
    if (p.reduce.axes >> order.axes[k] & 1) return false;
  return out.contiguous() && row > 1 && (floats || (self.rank > 1 && row < lanes_of<double>()));
}
template <class C>
void norm_rows(const Tensor& out, const Tensor& self, uint32_t axes, int64_t n) {
  Shape kept;
  int64_t strides[kMaxRank];
  for (int i = 0; i < self.rank; ++i) {
    if (axes >> i & 1) continue;
    strides[kept.rank] = self.strides[i];
    kept.dims[kept.rank++] = self.dims[i];
  }
  C* to = out.ptr<C>();
  const C* x = self.ptr<C>();
  Walker at(kept.rank, kept.dims);
  for (int64_t r = 0; r < out.numel(); ++r, at.next()) to[r] = norm_of_row(x + at.offset(strides), n);
}

template <class Map>
ACL_EXACT void add_line(float* sums, const float* x, int64_t n, int64_t step, int64_t to, Map map) {
  if (to == 0) {
    float sum = *sums;
    for (int64_t i = 0; i < n; ++i) sum += map(x[i * step]);
    *sums = sum;
  } else if (step == 1 && to == 1) {
    for (int64_t i = 0; i < n; ++i) sums[i] += map(x[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) sums[i * to] += map(x[i * step]);
  }
}
template <class Map>
void add_one_by_one(float* sums, const Tensor& self, uint32_t axes, Map map) {
  const InMemory order(self);
  int64_t places[kMaxRank] = {}, size = 1;
  for (int i = self.rank - 1; i >= 0; --i) {
    if (axes >> i & 1) continue;
    places[i] = size;
    size *= self.dims[i];
  }
  // The innermost axis that stays is a line, or the innermost one; axes that go are outside the others.
  int line = -1;
  for (int k = order.rank - 1; k >= 0 && line < 0; --k)
    if (!(axes >> order.axes[k] & 1)) line = order.axes[k];
  if (line < 0 && order.rank > 0) line = order.axes[order.rank - 1];
  Shape walked;
  int64_t from[kMaxRank], to[kMaxRank];
  for (uint32_t gone = 2; gone-- > 0;) {
    for (int k = 0; k < order.rank; ++k) {
      const int i = order.axes[k];
      if (i == line || (axes >> i & 1) != gone) continue;
      from[walked.rank] = self.strides[i];
      to[walked.rank] = places[i];
      walked.dims[walked.rank++] = self.dims[i];
    }
  }
  const float* x = self.ptr<float>();
  const int64_t n = line < 0 ? 1 : self.dims[line], lines = n ? self.numel() / n : 0;
  const int64_t step = line < 0 ? 0 : self.strides[line], place = line < 0 ? 0 : places[line];
  Walker at(walked.rank, walked.dims);
  for (int64_t r = 0; r < lines; ++r, at.next())
    add_line(sums + at.offset(to), x + at.offset(from), n, step, place, map);
}
void norm_one_by_one(const Tensor& out, const Tensor& self, const NormPlan& p) {
  Buffer<float> sums(out.numel());
  const auto order = static_cast<float>(p.order);
  std::fill_n(sums.get(), out.numel(), 0.0f);
  if (p.order == 1) {
    add_one_by_one(sums.get(), self, p.reduce.axes, [](float x) ACL_LAMBDA { return std::fabs(x); });
  } else if (p.order == 2) {
    add_one_by_one(sums.get(), self, p.reduce.axes, [](float x) ACL_LAMBDA { return x * x; });
    for (int64_t i = 0; i < out.numel(); ++i) sums[i] = std::sqrt(sums[i]);
  } else {
    add_one_by_one(sums.get(), self, p.reduce.axes, [order](float x) ACL_LAMBDA { return std::pow(std::fabs(x), order); });
    for (int64_t i = 0; i < out.numel(); ++i) sums[i] = std::pow(sums[i], 1.0f / order);
  }
  copy_tensor(out, dense(sums.get(), ACL_FLOAT, out.dims, out.rank));
}
// What is added one by one is off by as many roundings, the same way where elements are repeated:
// longer sums, and those, are exact instead.
constexpr int64_t kMostOneByOne = 4096;
bool may_add_one_by_one(const Tensor& out, const Tensor& self) {
  for (int i = 0; i < self.rank; ++i)
    if (self.strides[i] == 0 && self.dims[i] > 1) return false;
  return self.numel() <= kMostOneByOne * out.numel();
}
template <int Out>
aclError run_norm(Call& c) {
  using P = params::Norm;

  const Tensor &out = c.tensor(Out), &self = c.tensor(P::self);
  const NormPlan& p = c.get<NormPlan>();
  if (out.numel() == 0) return ACL_SUCCESS;
  const bool adds = p.order != 0 && std::isfinite(p.order) && may_add_one_by_one(out, self);
  int64_t row;
  if (in_rows(out, self, p, row)) {
    with_float(self.dtype, [&](auto tag) { norm_rows<typename decltype(tag)::type>(out, self, p.reduce.axes, row); });
  } else if (self.dtype == ACL_FLOAT && out.dtype == ACL_FLOAT && adds) {
    norm_one_by_one(out, self, p);
  } else {
    norm_of(c, out, self, p);
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
  p.reduce.domain = ACL_DOUBLE;  // torch's, of any dtype
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
