// Products joined with collectives: sums over the ranks of a group, gathered operands, scattered
// results, and norms after them. Formulas: the "npu_mm_all_reduce_base", "npu_all_gather_base_mm"
// and "npu_mm_reduce_scatter_base" pages of torch_npu.
#include <cmath>
#include <cstring>

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
  return {2, x3, kNone, kNone, kNone, kNone, group, out};
}
constexpr Places quantised(int token, int group, int out) {
  return {2,
          3,
          token == 4 ? 5 : 4,
          token,
          kNone,
          kNone,
          group,
          out,
          kNone,
          kNone,
          kNone,
          kNone,
          group == 8 ? 6 : 0,
          group == 8 ? 7 : -1};
}
constexpr Places weights(int x3, int group, int out) {
  return {2, x3, kNone, kNone, 3, 4, group, out};
}
constexpr Places with_norm(Places p, int residual, int out) {
  p.residual = residual, p.gamma = residual + 1, p.eps = residual + 2, p.group = residual + 3;
  p.norm = out, p.out = residual;
  return p;
}
constexpr Places kPlain = plain(kNone, 3, 7), kPlainV2 = plain(3, 4, 8), kPlainV3 = plain(3, 4, 9);
constexpr Places kQuant = quantised(kNone, 5, 9), kQuantV2 = quantised(5, 6, 10),
                 kQuantV3 = quantised(5, 8, 12), kQuantV4 = quantised(4, 8, 14),
                 kQuantV5 = quantised(4, 8, 15);
constexpr Places kWeights = weights(5, 6, 11), kWeightsV2 = weights(5, 6, 12);
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
  const int out = sum_out<Inplace>(at);
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, out}));
  if (at.scale != kNone) ACL_RETURN_IF_FAILED(expect_given(c, {at.scale}));
  if (at.anti_scale != kNone) ACL_RETURN_IF_FAILED(expect_given(c, {at.anti_scale}));
  if (at.norm != kNone) ACL_RETURN_IF_FAILED(expect_given(c, {at.residual, at.gamma, at.norm}));
  for (int i = at.refused_from; i <= at.refused_to; ++i) {
    if (at_or_null(c, i))
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is not supported by the simulator.", c.name(i));
  }
  const Matrices a = matrices_like(c.tensor(0), false, true),
                 b = matrices_like(c.tensor(1), false, true);
  const int64_t count = a.batch * a.rows * b.cols;
  if (c.tensor(0).rank < 2 || c.tensor(1).rank < 2 || b.batch != 1 || a.cols != b.rows ||
      c.tensor(out).numel() != count) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "x1 %s and x2 %s do not give the output %s.",
                  shape_text(c.tensor(0)), shape_text(c.tensor(1)), shape_text(c.tensor(out)));
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
Tensor over_columns(const Tensor& t) {
  Tensor v = t;
  if (t.rank == 1)
    v.rank = 2, v.dims[1] = t.dims[0], v.strides[1] = t.strides[0], v.dims[0] = 1, v.strides[0] = 0;
  return v;
}
Floats local_product(const Call& c, const Places& at) {
  Matrices a = matrices_of(c.tensor(0), false, true), b = matrices_of(c.tensor(1), false, true);
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
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, Out}));
  for (int i = 3; i < G && G > 3; ++i) {
    if (i < 6 && at_or_null(c, i))
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is not supported by the simulator.", c.name(i));
  }
  ACL_RETURN_IF_FAILED(find_group(c, G, kNone));
  const Group& g = c.get<Group>();
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  if (a.rank != 2 || b.rank != 2 || a.dims[1] != b.dims[0] || c.integer(G + 1) != 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "x1 %s and x2 %s can't be multiplied, or gatherIndex is not 0.", shape_text(a),
                  shape_text(b));
  }
  if (at_or_null(c, 2)) ACL_RETURN_IF_FAILED(expect_numel(c, 2, b.dims[1]));
  if (at_or_null(c, Out + 1)) ACL_RETURN_IF_FAILED(expect_numel(c, Out + 1, a.numel() * g.ranks));
  return expect_numel(c, Out, a.dims[0] * g.ranks * b.dims[1]);
}
template <int G, int Out>
aclError run_gathered(Call& c) {
  const Group& g = c.get<Group>();
  Floats mine = floats(c.tensor(0)), all(mine.size() * g.ranks);
  const aclError code = exchange(c, kAllGather, mine, 1, all, g.ranks);
  if (code != ACL_SUCCESS) return code;
  write(at_or_null(c, Out + 1), all);
  const Matrices a = {Doubles(all.begin(), all.end()), 1, c.tensor(0).dims[0] * g.ranks,
                      c.tensor(0).dims[1]};
  Matrices m = product(a, matrices_of(c.tensor(1), false, false));
  const Floats bias = floats(at_or_null(c, 2));
  for (size_t i = 0; i < m.v.size() && !bias.empty(); ++i) m.v[i] += bias[i % bias.size()];
  write(c.tensor(Out), m.v);
  return ACL_SUCCESS;
}
// (x1, x2, bias, [...,] group, reduceOp, .., output): this rank's rows of the sum of all products.
template <int G, int Out>
aclnnStatus check_scattered(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, Out}));
  for (int i = 3; i < G && G > 3; ++i) {
    if (i < 6 && at_or_null(c, i))
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is not supported by the simulator.", c.name(i));
  }
  ACL_RETURN_IF_FAILED(find_group(c, G, G + 1));
  const Group& g = c.get<Group>();
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  if (a.rank != 2 || b.rank != 2 || a.dims[1] != b.dims[0] || a.dims[0] % g.ranks != 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "x1 %s and x2 %s can't be multiplied and split among %u ranks.", shape_text(a),
                  shape_text(b), g.ranks);
  }
  if (at_or_null(c, 2)) ACL_RETURN_IF_FAILED(expect_numel(c, 2, b.dims[1]));
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
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 4, 5}));
  ACL_RETURN_IF_FAILED(find_group(c, 2, kNone));
  for (int i : {1, 4, 5})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, c.tensor(0).numel() * c.get<Group>().ranks));
  return ACLNN_SUCCESS;
}
aclError run_gather_add(Call& c) {
  Floats mine = floats(c.tensor(0)), all(mine.size() * c.get<Group>().ranks);
  const aclError code = exchange(c, kAllGather, mine, 1, all, c.get<Group>().ranks);
  if (code != ACL_SUCCESS) return code;
  write(c.tensor(5), all);
  const Floats b = floats(c.tensor(1));
  for (size_t i = 0; i < all.size(); ++i) all[i] += b[i];
  write(c.tensor(4), all);
  return ACL_SUCCESS;
}
// (x list, weight list, bias list, groupList, splitItem, group, reduceOp, .., y list): member by
// member.
aclnnStatus check_members(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 9}));
  const Span<Tensor*> x = c.tensors(0), w = c.tensors(1), bias = c.tensors(2), y = c.tensors(9);
  bool fits = x.size == w.size && x.size == y.size && (bias.size == 0 || bias.size == x.size) &&
              c.ints(3).size == 0;
  for (int64_t i = 0; fits && i < x.size; ++i) {
    const Matrices a = matrices_like(*x[i], false, false), b = matrices_like(*w[i], false, false);
    fits = b.batch == 1 && a.cols == b.rows && y[i]->numel() == a.batch * a.rows * b.cols;
  }
  if (!fits)
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "x, weight and y do not fit member by member; a group list is not supported by "
                  "the simulator.");
  return find_group(c, 5, 6);
}
aclError run_members(Call& c) {
  for (int64_t i = 0; i < c.tensors(0).size; ++i) {
    Matrices a = matrices_of(*c.tensors(0)[i], false, false);
    a.rows *= a.batch, a.batch = 1;
    const Matrices m = product(a, matrices_of(*c.tensors(1)[i], false, false));
    Floats y(m.v.begin(), m.v.end());
    const Floats bias = c.tensors(2).size ? floats(c.tensors(2)[i]) : Floats();
    for (size_t j = 0; j < y.size() && !bias.empty(); ++j) y[j] += bias[j % bias.size()];
    const aclError code = exchange(c, kAllReduce, y, 1, y, 1);
    if (code != ACL_SUCCESS) return code;
    write(*c.tensors(9)[i], y);
  }
  return ACL_SUCCESS;
}

// (xRef, [timeOut, elasticInfo,] group, worldSize): all ranks come here; x stays as it is.
aclnnStatus check_barrier(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0}));
  return find_group(c, named(c, "group"), kNone);
}
aclError run_barrier(Call& c) {
  Floats one(1);
  return exchange(c, kAllReduce, one, 1, one, 1);
}

}  // namespace
}  // namespace aclsim

#define ACLNN_JOINED(op, ...) ACLNN_OP_FLAGS(op, __VA_ARGS__, kOwnNulls | kOwnLimits)
#define ACLNN_REDUCED(op, at, inplace) \
  ACLNN_JOINED(op, (check_reduced<at, inplace>), (run_reduced<at, inplace>))
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
ACLNN_JOINED(aclnnAllGatherMatmul, (check_gathered<3, 7>), (run_gathered<3, 7>))
ACLNN_JOINED(aclnnAllGatherMatmulV2, (check_gathered<7, 13>), (run_gathered<7, 13>))
ACLNN_JOINED(aclnnMatmulReduceScatter, (check_scattered<3, 7>), (run_scattered<3, 7>))
ACLNN_JOINED(aclnnMatmulReduceScatterV2, (check_scattered<7, 13>), (run_scattered<7, 13>))
ACLNN_JOINED(aclnnAllGatherAdd, check_gather_add, run_gather_add)
ACLNN_JOINED(aclnnGroupedMatMulAllReduce, check_members, run_members)
ACLNN_JOINED(aclnnDistributeBarrier, check_barrier, run_barrier)
ACLNN_JOINED(aclnnDistributeBarrierV2, check_barrier, run_barrier)
