// Products over a part of the vocabulary and their cross entropy. Formulas: the "npu_fused_linear_online_max_sum",
// "npu_fused_cross_entropy_loss_with_max_sum" and
// "npu_fused_linear_cross_entropy_loss_with_max_sum_backward" pages of torch_npu.
#include "loops/matrices.h"

#include <cmath>
#include <cstring>

namespace aclsim {
namespace {

// (input, weight, target, begin, end, max, sumExp, predicted, targetMask, maskedTarget, logits).
aclnnStatus check_online(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 5, 6, 7, 8, 9}));
  const Tensor &x = c.tensor(0), &w = c.tensor(1);
  if (x.rank != 2 || w.rank != 2 || x.dims[1] != w.dims[1] || w.dims[0] == 0)
    return refuse_fit(c, 1, 0);
  for (int i : {2, 5, 6, 7, 9}) ACL_RETURN_IF_FAILED(expect_numel(c, i, x.dims[0]));
  if (at_or_null(c, 10)) ACL_RETURN_IF_FAILED(expect_numel(c, 10, x.dims[0] * w.dims[0]));
  return expect_numel(c, 8, (x.dims[0] + 7) / 8);
}
aclError run_online(Call& c) {
  const Matrices m =
      product(matrices_of(c.tensor(0), false, false), matrices_of(c.tensor(1), true, false));
  const Ints target = integers(c.tensor(2));
  Floats tops, sums, predicted;
  Ints bits(static_cast<size_t>((m.rows + 7) / 8), 0), masked;
  for (int64_t r = 0; r < m.rows; ++r) {
    const double* row = m.v.data() + r * m.cols;
    const double top = *std::max_element(row, row + m.cols);
    double sum = 0;
    for (int64_t i = 0; i < m.cols; ++i) sum += std::exp(row[i] - top);
    const bool outside = target[r] < c.integer(3) || target[r] > c.integer(4);
    const int64_t at = outside ? 0 : target[r] - c.integer(3);
    if (at < 0 || at >= m.cols)
      return c.trap(507015, "A target lies outside the rows of weight.");
    tops.push_back(static_cast<float>(top)), sums.push_back(static_cast<float>(sum)),
        masked.push_back(at);
    predicted.push_back(outside ? 0 : static_cast<float>(row[at] - top));
    bits[r / 8] |= static_cast<int64_t>(outside) << (7 - r % 8);  // the first row in the high bit
  }
  for (int64_t r = m.rows; r < static_cast<int64_t>(bits.size()) * 8; ++r)
    bits[r / 8] |= int64_t{1} << (7 - r % 8);
  write(c.tensor(5), tops), write(c.tensor(6), sums), write(c.tensor(7), predicted);
  write(c.tensor(8), bits), write(c.tensor(9), masked);
  write(at_or_null(c, 10), m.v);
  return ACL_SUCCESS;
}
// (max, sumExp, predicted, labelSmoothing, input, weight, logits, loss, softmax).
aclnnStatus check_loss(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 7}));
  if (c.number(3) != 0)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "labelSmoothing %g should be 0.", c.number(3));
  const int64_t rows = c.tensor(0).numel();
  for (int i : {1, 2, 7}) ACL_RETURN_IF_FAILED(expect_numel(c, i, rows));
  if (at_or_null(c, 6) && at_or_null(c, 8)) {
    if (rows_of(c.tensor(6)) != rows) return refuse_fit(c, 6, 0);
    return expect_same_shape(c, 8, 6);
  }
  return ACLNN_SUCCESS;
}
aclError run_loss(Call& c) {
  const Floats top = floats(c.tensor(0)), sum = floats(c.tensor(1)),
               predicted = floats(c.tensor(2));
  Floats loss(top.size());
  for (size_t i = 0; i < loss.size(); ++i) loss[i] = std::log(sum[i]) - predicted[i];
  write(c.tensor(7), loss);
  if (!at_or_null(c, 6) || !at_or_null(c, 8)) return ACL_SUCCESS;
  Floats p = floats(c.tensor(6));
  const size_t n = static_cast<size_t>(width_of(c.tensor(6)));
  for (size_t i = 0; i < p.size(); ++i) p[i] = std::exp(p[i] - top[i / n]) / sum[i / n];
  write(c.tensor(8), p);
  return ACL_SUCCESS;
}
// (grad, input, weight, targetMask, maskedTarget, labelSmoothing, max, sumExp, softmax, inputGrad,
// weightGrad).
aclnnStatus check_loss_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 3, 4, 9, 10}));
  if (!at_or_null(c, 8)) ACL_RETURN_IF_FAILED(expect_given(c, {6, 7}));
  const Tensor &x = c.tensor(1), &w = c.tensor(2);
  if (x.rank != 2 || w.rank != 2 || x.dims[1] != w.dims[1]) return refuse_fit(c, 2, 1);
  for (int i : {0, 4}) ACL_RETURN_IF_FAILED(expect_numel(c, i, x.dims[0]));
  ACL_RETURN_IF_FAILED(expect_numel(c, 3, (x.dims[0] + 7) / 8));
  if (at_or_null(c, 8)) ACL_RETURN_IF_FAILED(expect_numel(c, 8, x.dims[0] * w.dims[0]));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 9, 1));
  return expect_same_shape(c, 10, 2);
}
aclError run_loss_grad(Call& c) {
  const Floats grad = floats(c.tensor(0)), top = floats(at_or_null(c, 6)),
               sum = floats(at_or_null(c, 7));
  const Matrices x = matrices_of(c.tensor(1), false, false),
                 w = matrices_of(c.tensor(2), false, false);
  const Ints bits = integers(c.tensor(3)), target = integers(c.tensor(4));
  Matrices p = {doubles(at_or_null(c, 8)), 1, x.rows, w.rows};
  if (p.v.empty()) {
    p = product(x, transposed_of(w));
    for (size_t i = 0; i < p.v.size(); ++i)
      p.v[i] = std::exp(p.v[i] - top[i / w.rows]) / sum[i / w.rows];
  }
  for (int64_t r = 0; r < x.rows; ++r) {
    const bool outside = bits[r / 8] >> (7 - r % 8) & 1;
    if (target[r] < 0 || target[r] >= w.rows)
      return c.trap(507015, "A target lies outside the rows of weight.");
    p.v[r * w.rows + target[r]] -= outside ? 0 : 1;
    for (int64_t i = 0; i < w.rows; ++i) p.v[r * w.rows + i] *= grad[r];
  }
  write(c.tensor(9), product(p, w).v), write(c.tensor(10), product(transposed_of(p), x).v);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

#define ACLNN_VOCABULARY(op, ...) ACLNN_OP_FLAGS(op, __VA_ARGS__, kOwnNulls | kOwnLimits)
ACLNN_VOCABULARY(aclnnFusedLinearOnlineMaxSum, check_online, run_online)
ACLNN_VOCABULARY(aclnnFusedCrossEntropyLossWithMaxSum, check_loss, run_loss)
ACLNN_VOCABULARY(aclnnFusedLinearCrossEntropyLossGrad, check_loss_grad, run_loss_grad)
