// Products over a part of the vocabulary and their cross entropy. Formulas: the "npu_fused_linear_online_max_sum",
// "npu_fused_cross_entropy_loss_with_max_sum" and
// "npu_fused_linear_cross_entropy_loss_with_max_sum_backward" pages of torch_npu.
#include "params/loss.h"
#include "loops/matrices.h"

#include <cmath>

namespace aclsim {
namespace {

aclnnStatus check_online(Call& c) {
  using P = params::FusedLinearOnlineMaxSum;

  ACL_RETURN_IF_FAILED(expect_given(
      c, {P::input, P::weight, P::target, P::logitsMaxLocalOut, P::sumExpLogitsLocalOut,
          P::predictedLogitsLocalOut, P::targetMaskOut, P::maskedTargetOut}));
  const Tensor &x = c.tensor(P::input), &w = c.tensor(P::weight);
  if (x.rank != 2 || w.rank != 2 || x.dims[1] != w.dims[1] || w.dims[0] == 0)
    return refuse_fit(c, P::weight, P::input);
  for (int i : {P::target, P::logitsMaxLocalOut, P::sumExpLogitsLocalOut,
                P::predictedLogitsLocalOut, P::maskedTargetOut})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, x.dims[0]));
  if (at_or_null(c, P::vocabParallelLogitsOutOptional))
    ACL_RETURN_IF_FAILED(expect_numel(c, P::vocabParallelLogitsOutOptional, x.dims[0] * w.dims[0]));
  return expect_numel(c, P::targetMaskOut, (x.dims[0] + 7) / 8);
}
aclError run_online(Call& c) {
  using P = params::FusedLinearOnlineMaxSum;

  const Matrices m = product(matrices_of(c.tensor(P::input), false, false),
                             matrices_of(c.tensor(P::weight), true, false));
  const Ints target = integers(c.tensor(P::target));
  Floats tops, sums, predicted;
  Ints bits(static_cast<size_t>((m.rows + 7) / 8), 0), masked;
  for (int64_t r = 0; r < m.rows; ++r) {
    const double* row = m.v.data() + r * m.cols;
    const double top = *std::max_element(row, row + m.cols);
    double sum = 0;
    for (int64_t i = 0; i < m.cols; ++i) sum += std::exp(row[i] - top);
    const bool outside =
        target[r] < c.integer(P::vocabStartIndex) || target[r] > c.integer(P::vocabEndIndex);
    const int64_t at = outside ? 0 : target[r] - c.integer(P::vocabStartIndex);
    if (at < 0 || at >= m.cols)
      return c.trap(507015, "A target lies outside the rows of weight.");
    tops.push_back(static_cast<float>(top)), sums.push_back(static_cast<float>(sum)),
        masked.push_back(at);
    predicted.push_back(outside ? 0 : static_cast<float>(row[at] - top));
    bits[r / 8] |= static_cast<int64_t>(outside) << (7 - r % 8);  // the first row in the high bit
  }
  for (int64_t r = m.rows; r < static_cast<int64_t>(bits.size()) * 8; ++r)
    bits[r / 8] |= int64_t{1} << (7 - r % 8);
  write(c.tensor(P::logitsMaxLocalOut), tops), write(c.tensor(P::sumExpLogitsLocalOut), sums),
      write(c.tensor(P::predictedLogitsLocalOut), predicted);
  write(c.tensor(P::targetMaskOut), bits), write(c.tensor(P::maskedTargetOut), masked);
  write(at_or_null(c, P::vocabParallelLogitsOutOptional), m.v);
  return ACL_SUCCESS;
}
aclnnStatus check_loss(Call& c) {
  using P = params::FusedCrossEntropyLossWithMaxSum;

  ACL_RETURN_IF_FAILED(
      expect_given(c, {P::logitsMax, P::sumExpLogits, P::predictedLogits, P::lossOut}));
  if (c.number(P::labelSmoothing) != 0)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "labelSmoothing %g should be 0.",
                  c.number(P::labelSmoothing));
  const int64_t rows = c.tensor(P::logitsMax).numel();
  for (int i : {P::sumExpLogits, P::predictedLogits, P::lossOut})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, rows));
  if (at_or_null(c, P::vocabParallelLogitsOptional) && at_or_null(c, P::softMaxOutOptional)) {
    if (rows_of(c.tensor(P::vocabParallelLogitsOptional)) != rows)
      return refuse_fit(c, P::vocabParallelLogitsOptional, P::logitsMax);
    return expect_same_shape(c, P::softMaxOutOptional, P::vocabParallelLogitsOptional);
  }
  return ACLNN_SUCCESS;
}
void run_loss(Call& c) {
  using P = params::FusedCrossEntropyLossWithMaxSum;

  const Floats top = floats(c.tensor(P::logitsMax)), sum = floats(c.tensor(P::sumExpLogits)),
               predicted = floats(c.tensor(P::predictedLogits));
  Floats loss(top.size());
  for (size_t i = 0; i < loss.size(); ++i) loss[i] = std::log(sum[i]) - predicted[i];
  write(c.tensor(P::lossOut), loss);
  if (!at_or_null(c, P::vocabParallelLogitsOptional) || !at_or_null(c, P::softMaxOutOptional))
    return;
  Floats p = floats(c.tensor(P::vocabParallelLogitsOptional));
  const size_t n = static_cast<size_t>(width_of(c.tensor(P::vocabParallelLogitsOptional)));
  for (size_t i = 0; i < p.size(); ++i) p[i] = std::exp(p[i] - top[i / n]) / sum[i / n];
  write(c.tensor(P::softMaxOutOptional), p);
}
aclnnStatus check_loss_grad(Call& c) {
  using P = params::FusedLinearCrossEntropyLossGrad;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::grad, P::input, P::weight, P::targetMask,
                                        P::maskedTarget, P::inputGradOut, P::weightGradOut}));
  if (!at_or_null(c, P::softmaxOptional))
    ACL_RETURN_IF_FAILED(expect_given(c, {P::logitsMaxOptional, P::sumExpLogitsOptional}));
  const Tensor &x = c.tensor(P::input), &w = c.tensor(P::weight);
  if (x.rank != 2 || w.rank != 2 || x.dims[1] != w.dims[1])
    return refuse_fit(c, P::weight, P::input);
  for (int i : {P::grad, P::maskedTarget}) ACL_RETURN_IF_FAILED(expect_numel(c, i, x.dims[0]));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::targetMask, (x.dims[0] + 7) / 8));
  if (at_or_null(c, P::softmaxOptional))
    ACL_RETURN_IF_FAILED(expect_numel(c, P::softmaxOptional, x.dims[0] * w.dims[0]));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::inputGradOut, P::input));
  return expect_same_shape(c, P::weightGradOut, P::weight);
}
aclError run_loss_grad(Call& c) {
  using P = params::FusedLinearCrossEntropyLossGrad;

  const Floats grad = floats(c.tensor(P::grad)), top = floats(at_or_null(c, P::logitsMaxOptional)),
               sum = floats(at_or_null(c, P::sumExpLogitsOptional));
  const Matrices x = matrices_of(c.tensor(P::input), false, false),
                 w = matrices_of(c.tensor(P::weight), false, false);
  const Ints bits = integers(c.tensor(P::targetMask)), target = integers(c.tensor(P::maskedTarget));
  Matrices p = {doubles(at_or_null(c, P::softmaxOptional)), 1, x.rows, w.rows};
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
  write(c.tensor(P::inputGradOut), product(p, w).v),
      write(c.tensor(P::weightGradOut), product(transposed_of(p), x).v);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnFusedLinearOnlineMaxSum, check_online, run_online)
ACLNN_OWN(aclnnFusedCrossEntropyLossWithMaxSum, check_loss, run_loss)
ACLNN_OWN(aclnnFusedLinearCrossEntropyLossGrad, check_loss_grad, run_loss_grad)
