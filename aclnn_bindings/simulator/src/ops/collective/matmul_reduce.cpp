// Products joined with collectives: sums over the ranks of a group, gathered operands, scattered
// results, and norms after them. Formulas: the "npu_mm_all_reduce_base", "npu_all_gather_base_mm"
// and "npu_mm_reduce_scatter_base" pages of torch_npu.
#include "params/collective.h"
#include <cmath>

#include "loops/group.h"
#include "loops/matrices.h"

namespace aclsim {
namespace {

// Where the ops have their arguments. The local product is (x1 x2 + integer bias) scale token, or
// of a dequantised x2, plus bias, plus x3; then comes the sum over ranks.
struct Places {
  int bias = 2, x3 = kNone, scale = kNone, token = kNone, anti_scale = kNone, anti_offset = kNone,
      group = kNone, out = kNone;
  int residual = kNone, gamma = kNone, eps = kNone, norm = kNone;  // y = sum + residual, norm of y
  int refused_from = 0, refused_to = -1;
};
constexpr Places plain(int x3, int group, int out) {
  using P = params::MatmulAllReduce;

  return {P::bias, x3, kNone, kNone, kNone, kNone, group, out};
}
constexpr Places quantised(int token, int group, int out) {
  using P = params::QuantMatmulAllReduceV3;

  return {P::biasOptional,
          P::x3Optional,
          token == 4 ? P::pertokenScaleOptional : P::dequantScale,
          token,
          kNone,
          kNone,
          group,
          out,
          kNone,
          kNone,
          kNone,
          kNone,
          group == 8 ? P::commQuantScale1Optional : P::x1,
          group == 8 ? 7 : -1};
}
constexpr Places weights(int x3, int group, int out) {
  using P = params::WeightQuantMatmulAllReduce;

  return {P::bias, x3, kNone, kNone, P::antiquantScale, P::antiquantOffset, group, out};
}
constexpr Places with_norm(Places p, int residual, int out) {
  p.residual = residual, p.gamma = residual + 1, p.eps = residual + 2, p.group = residual + 3;
  p.norm = out, p.out = residual;
  return p;
}
constexpr Places kPlain =
                     [] {
                       using P = params::MatmulAllReduce;
                       return plain(kNone, P::group, 7);
                     }(),
                 kPlainV2 =
                     [] {
                       using P = params::MatmulAllReduceV2;
                       return plain(P::x3, P::group, 8);
                     }(),
                 kPlainV3 = [] {
                   using P = params::MatmulAllReduceV3;
                   return plain(P::x3, P::group, 9);
                 }();
constexpr Places kQuant =
                     [] {
                       using P = params::QuantMatmulAllReduce;
                       return quantised(kNone, P::group, 9);
                     }(),
                 kQuantV2 =
                     [] {
                       using P = params::QuantMatmulAllReduceV2;
                       return quantised(P::pertokenScaleOptional, P::group, 10);
                     }(),
                 kQuantV3 =
                     [] {
                       using P = params::QuantMatmulAllReduceV3;
                       return quantised(P::pertokenScaleOptional, P::group, 12);
                     }(),
                 kQuantV4 =
                     [] {
                       using P = params::QuantMatmulAllReduceV4;
                       return quantised(P::x1ScaleOptional, P::group, 14);
                     }(),
                 kQuantV5 = [] {
                   using P = params::QuantMatmulAllReduceV5;
                   return quantised(P::x1ScaleOptional, P::group, 15);
                 }();
constexpr Places kWeights =
                     [] {
                       using P = params::WeightQuantMatmulAllReduce;
                       return weights(P::x3, P::group, 11);
                     }(),
                 kWeightsV2 = [] {
                   using P = params::WeightQuantMatmulAllReduceV2;
                   return weights(P::x3, P::group, 12);
                 }();
constexpr Places kPlainNorm = with_norm({}, 3, 11), kPlainNormInplace = with_norm({}, 3, 10);
constexpr Places with_scale() {
  Places p;
  p.scale = 3;
  return p;
}
constexpr Places kQuantNorm = with_norm(with_scale(), 4, 12),
                 kQuantNormInplace = with_norm(with_scale(), 4, 11);
constexpr Places kWeightsNorm = with_norm(weights(kNone, 0, 0), 5, 14),
                 kWeightsNormInplace = with_norm(weights(kNone, 0, 0), 5, 13);
// Of the forms that are not in place the sum goes to an output of its own, before the norm.
template <bool Inplace>
int sum_out(const Places& at) {
  return at.norm == kNone ? at.out : Inplace ? at.residual : at.norm - 1;
}

template <const Places& at, bool Inplace>
aclnnStatus check_reduced(Call& c) {
  using P = params::MatmulAllReduce;

  const int out = sum_out<Inplace>(at);
  ACL_RETURN_IF_FAILED(expect_given(c, {P::x1, P::x2, out}));
  if (at.scale != kNone) ACL_RETURN_IF_FAILED(expect_given(c, {at.scale}));
  if (at.anti_scale != kNone) ACL_RETURN_IF_FAILED(expect_given(c, {at.anti_scale}));
  if (at.norm != kNone) ACL_RETURN_IF_FAILED(expect_given(c, {at.residual, at.gamma, at.norm}));
  for (int i = at.refused_from; i <= at.refused_to; ++i) {
    if (at_or_null(c, i))
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is not supported by the simulator.", c.name(i));
  }
  const Matrices a = matrices_like(c.tensor(P::x1), false, true),
                 b = matrices_like(c.tensor(P::x2), false, true);
  const int64_t count = a.batch * a.rows * b.cols;
  if (c.tensor(P::x1).rank < 2 || c.tensor(P::x2).rank < 2 || b.batch != 1 || a.cols != b.rows ||
      c.tensor(out).numel() != count) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "x1 %s and x2 %s do not give the output %s.",
                  shape_text(c.tensor(P::x1)), shape_text(c.tensor(P::x2)),
                  shape_text(c.tensor(out)));
  }
  if (at_or_null(c, at.bias)) ACL_RETURN_IF_FAILED(expect_numel(c, at.bias, b.cols));
  if (at.x3 != kNone && at_or_null(c, at.x3)) ACL_RETURN_IF_FAILED(expect_numel(c, at.x3, count));
  if (at.norm != kNone) {
    ACL_RETURN_IF_FAILED(expect_numel(c, at.residual, count));
    ACL_RETURN_IF_FAILED(expect_numel(c, at.gamma, b.cols));
    ACL_RETURN_IF_FAILED(expect_numel(c, at.norm, count));
  }
  return find_group(c, at.group, at.group + 1);
}
Floats local_product(const Call& c, const Places& at) {
  using P = params::MatmulAllReduce;

  Matrices a = matrices_of(c.tensor(P::x1), false, true),
           b = matrices_of(c.tensor(P::x2), false, true);
  a.rows *= a.batch, a.batch = 1;
  if (const Tensor* shift = at_or_null(c, at.anti_offset)) shift_blocks(b, over_columns(*shift), 1);
  if (at.anti_scale != kNone) scale_blocks(b, over_columns(c.tensor(at.anti_scale)), true);
  const Matrices m = product(a, b);
  const Tensor* bias = at_or_null(c, at.bias);
  const Floats add = floats(bias), scale = packed_scales(at_or_null(c, at.scale)),
               token = floats(at_or_null(c, at.token)), third = floats(at_or_null(c, at.x3));
  const bool early = bias && bias->dtype == ACL_INT32;
  Floats y(m.v.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t j = i % static_cast<size_t>(m.cols), r = i / static_cast<size_t>(m.cols);
    double v = m.v[i] + (early ? add[j] : 0);
    v *= (scale.empty() ? 1 : scale[scale.size() == 1 ? 0 : j]) *
         (token.empty() ? 1 : token[token.size() == 1 ? 0 : r]);
    y[i] = static_cast<float>(v + (early || add.empty() ? 0 : add[j]) +
                              (third.empty() ? 0 : third[i]));
  }
  return y;
}
template <const Places& at, bool Inplace>
aclError run_reduced(Call& c) {
  Floats y = local_product(c, at);
  const aclError code = exchange(c, kAllReduce, y, 1, y, 1);
  if (code != ACL_SUCCESS) return code;
  if (at.norm != kNone) {
    const Floats residual = floats(c.tensor(at.residual)), gamma = floats(c.tensor(at.gamma));
    const size_t n = gamma.size();
    for (size_t i = 0; i < y.size(); ++i) y[i] += residual[i];
    Floats norm(y.size());
    for (size_t row = 0; row < y.size(); row += n) {
      double square = 0;
      for (size_t i = 0; i < n; ++i) square += static_cast<double>(y[row + i]) * y[row + i];
      const double rstd = 1 / std::sqrt(square / static_cast<double>(n) + c.number(at.eps));
      for (size_t i = 0; i < n; ++i)
        norm[row + i] = static_cast<float>(y[row + i] * rstd * gamma[i]);
    }
    write(c.tensor(at.norm), norm);
  }
  write(c.tensor(sum_out<Inplace>(at)), y);
  return ACL_SUCCESS;
}

// (x1, x2, bias, [x1Scale, x2Scale, quantScale, blockSize,] group, gatherIndex, .., output,
// gatherOut): rows of all ranks' x1, times x2.
template <int G, int Out>
aclnnStatus check_gathered(Call& c) {
  using P = params::AllGatherMatmulV2;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x1, P::x2, Out}));
  for (int i = P::x1Scale; i < G && G > 3; ++i) {
    if (i < 6 && at_or_null(c, i))
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is not supported by the simulator.", c.name(i));
  }
  ACL_RETURN_IF_FAILED(find_group(c, G, kNone));
  const Group& g = c.get<Group>();
  const Tensor &a = c.tensor(P::x1), &b = c.tensor(P::x2);
  if (a.rank != 2 || b.rank != 2 || a.dims[1] != b.dims[0] || c.integer(G + 1) != 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "x1 %s and x2 %s can't be multiplied, or gatherIndex is not 0.", shape_text(a),
                  shape_text(b));
  }
  if (at_or_null(c, P::bias)) ACL_RETURN_IF_FAILED(expect_numel(c, P::bias, b.dims[1]));
  if (at_or_null(c, Out + 1)) ACL_RETURN_IF_FAILED(expect_numel(c, Out + 1, a.numel() * g.ranks));
  return expect_numel(c, Out, a.dims[0] * g.ranks * b.dims[1]);
}
template <int G, int Out>
aclError run_gathered(Call& c) {
  using P = params::AllGatherMatmul;

  const Group& g = c.get<Group>();
  Floats mine = floats(c.tensor(P::x1)), all(mine.size() * g.ranks);
  const aclError code = exchange(c, kAllGather, mine, 1, all, g.ranks);
  if (code != ACL_SUCCESS) return code;
  write(at_or_null(c, Out + 1), all);
  const Matrices a = {Doubles(all.begin(), all.end()), 1, c.tensor(P::x1).dims[0] * g.ranks,
                      c.tensor(P::x1).dims[1]};
  Matrices m = product(a, matrices_of(c.tensor(P::x2), false, false));
  const Floats bias = floats(at_or_null(c, P::bias));
  for (size_t i = 0; i < m.v.size() && !bias.empty(); ++i) m.v[i] += bias[i % bias.size()];
  write(c.tensor(Out), m.v);
  return ACL_SUCCESS;
}
// (x1, x2, bias, [...,] group, reduceOp, .., output): this rank's rows of the sum of all products.
template <int G, int Out>
aclnnStatus check_scattered(Call& c) {
  using P = params::MatmulReduceScatterV2;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x1, P::x2, Out}));
  for (int i = P::x1Scale; i < G && G > 3; ++i) {
    if (i < 6 && at_or_null(c, i))
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is not supported by the simulator.", c.name(i));
  }
  ACL_RETURN_IF_FAILED(find_group(c, G, G + 1));
  const Group& g = c.get<Group>();
  const Tensor &a = c.tensor(P::x1), &b = c.tensor(P::x2);
  if (a.rank != 2 || b.rank != 2 || a.dims[1] != b.dims[0] || a.dims[0] % g.ranks != 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "x1 %s and x2 %s can't be multiplied and split among %u ranks.", shape_text(a),
                  shape_text(b), g.ranks);
  }
  if (at_or_null(c, P::bias)) ACL_RETURN_IF_FAILED(expect_numel(c, P::bias, b.dims[1]));
  return expect_numel(c, Out, a.dims[0] / g.ranks * b.dims[1]);
}
template <int G, int Out>
aclError run_scattered(Call& c) {
  constexpr Places kAt = plain(kNone, G, Out);
  Floats y = local_product(c, kAt), mine(static_cast<size_t>(c.tensor(Out).numel()));
  const aclError code = exchange(c, kReduceScatter, y, c.get<Group>().ranks, mine, 1);
  if (code == ACL_SUCCESS) write(c.tensor(Out), mine);
  return code;
}
// (a, b, group, rankSize, c, gatherOut): all ranks' a, plus b.
aclnnStatus check_gather_add(Call& c) {
  using P = params::AllGatherAdd;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::a, P::b, P::cOut, P::gatherOutOut}));
  ACL_RETURN_IF_FAILED(find_group(c, P::group, kNone));
  for (int i : {P::b, P::cOut, P::gatherOutOut})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, c.tensor(P::a).numel() * c.get<Group>().ranks));
  return ACLNN_SUCCESS;
}
aclError run_gather_add(Call& c) {
  using P = params::AllGatherAdd;

  Floats mine = floats(c.tensor(P::a)), all(mine.size() * c.get<Group>().ranks);
  const aclError code = exchange(c, kAllGather, mine, 1, all, c.get<Group>().ranks);
  if (code != ACL_SUCCESS) return code;
  write(c.tensor(P::gatherOutOut), all);
  const Floats b = floats(c.tensor(P::b));
  for (size_t i = 0; i < all.size(); ++i) all[i] += b[i];
  write(c.tensor(P::cOut), all);
  return ACL_SUCCESS;
}
// (x list, weight list, bias list, groupList, splitItem, group, reduceOp, .., y list): member by
// member.
aclnnStatus check_members(Call& c) {
  using P = params::GroupedMatMulAllReduce;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::weight, P::y}));
  const Span<Tensor*> x = c.tensors(P::x), w = c.tensors(P::weight), bias = c.tensors(P::bias),
                      y = c.tensors(P::y);
  bool fits = x.size == w.size && x.size == y.size && (bias.size == 0 || bias.size == x.size) &&
              c.ints(P::groupListOptional).size == 0;
  for (int64_t i = 0; fits && i < x.size; ++i) {
    const Matrices a = matrices_like(*x[i], false, false), b = matrices_like(*w[i], false, false);
    fits = b.batch == 1 && a.cols == b.rows && y[i]->numel() == a.batch * a.rows * b.cols;
  }
  if (!fits)
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "x, weight and y do not fit member by member; a group list is not supported by "
                  "the simulator.");
  return find_group(c, P::group, P::reduceOp);
}
aclError run_members(Call& c) {
  using P = params::GroupedMatMulAllReduce;

  for (int64_t i = 0; i < c.tensors(P::x).size; ++i) {
    Matrices a = matrices_of(*c.tensors(P::x)[i], false, false);
    a.rows *= a.batch, a.batch = 1;
    const Matrices m = product(a, matrices_of(*c.tensors(P::weight)[i], false, false));
    Floats y(m.v.begin(), m.v.end());
    const Floats bias = c.tensors(P::bias).size ? floats(c.tensors(P::bias)[i]) : Floats();
    for (size_t j = 0; j < y.size() && !bias.empty(); ++j) y[j] += bias[j % bias.size()];
    const aclError code = exchange(c, kAllReduce, y, 1, y, 1);
    if (code != ACL_SUCCESS) return code;
    write(*c.tensors(P::y)[i], y);
  }
  return ACL_SUCCESS;
}

// (xRef, [timeOut, elasticInfo,] group, worldSize): all ranks come here; x stays as it is.
aclnnStatus check_barrier(Call& c) {
  using P = params::DistributeBarrier;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::xRef}));
  return find_group(c, named(c, "group"), kNone);
}
aclError run_barrier(Call& c) {
  Floats one(1);
  return exchange(c, kAllReduce, one, 1, one, 1);
}

}  // namespace
}  // namespace aclsim

#define ACLNN_REDUCED(op, at, inplace) \
  ACLNN_OWN(op, (check_reduced<at, inplace>), (run_reduced<at, inplace>))
ACLNN_REDUCED(aclnnMatmulAllReduce, kPlain, false)
ACLNN_REDUCED(aclnnMatmulAllReduceV2, kPlainV2, false)
ACLNN_REDUCED(aclnnMatmulAllReduceV3, kPlainV3, false)
ACLNN_REDUCED(aclnnQuantMatmulAllReduce, kQuant, false)
ACLNN_REDUCED(aclnnQuantMatmulAllReduceV2, kQuantV2, false)
ACLNN_REDUCED(aclnnQuantMatmulAllReduceV3, kQuantV3, false)
ACLNN_REDUCED(aclnnQuantMatmulAllReduceV4, kQuantV4, false)
ACLNN_REDUCED(aclnnQuantMatmulAllReduceV5, kQuantV5, false)
ACLNN_REDUCED(aclnnWeightQuantMatmulAllReduce, kWeights, false)
ACLNN_REDUCED(aclnnWeightQuantMatmulAllReduceV2, kWeightsV2, false)
ACLNN_REDUCED(aclnnMatmulAllReduceAddRmsNorm, kPlainNorm, false)
ACLNN_REDUCED(aclnnInplaceMatmulAllReduceAddRmsNorm, kPlainNormInplace, true)
ACLNN_REDUCED(aclnnQuantMatmulAllReduceAddRmsNorm, kQuantNorm, false)
ACLNN_REDUCED(aclnnInplaceQuantMatmulAllReduceAddRmsNorm, kQuantNormInplace, true)
ACLNN_REDUCED(aclnnWeightQuantMatmulAllReduceAddRmsNorm, kWeightsNorm, false)
ACLNN_REDUCED(aclnnInplaceWeightQuantMatmulAllReduceAddRmsNorm, kWeightsNormInplace, true)
ACLNN_OWN(aclnnAllGatherMatmul,
             (check_gathered<params::AllGatherMatmul::group, params::AllGatherMatmul::output>),
             (run_gathered<3, params::AllGatherMatmul::output>))
ACLNN_OWN(aclnnAllGatherMatmulV2,
             (check_gathered<params::AllGatherMatmulV2::group, params::AllGatherMatmulV2::output>),
             (run_gathered<7, params::AllGatherMatmulV2::output>))
ACLNN_OWN(
    aclnnMatmulReduceScatter,
    (check_scattered<params::MatmulReduceScatter::group, params::MatmulReduceScatter::output>),
    (run_scattered<params::MatmulReduceScatter::group, params::MatmulReduceScatter::output>))
ACLNN_OWN(
    aclnnMatmulReduceScatterV2,
    (check_scattered<params::MatmulReduceScatterV2::group, params::MatmulReduceScatterV2::output>),
    (run_scattered<params::MatmulReduceScatterV2::group, params::MatmulReduceScatterV2::output>))
ACLNN_OWN(aclnnAllGatherAdd, check_gather_add, run_gather_add)
ACLNN_OWN(aclnnGroupedMatMulAllReduce, check_members, run_members)
ACLNN_OWN(aclnnDistributeBarrier, check_barrier, run_barrier)
ACLNN_OWN(aclnnDistributeBarrierV2, check_barrier, run_barrier)
