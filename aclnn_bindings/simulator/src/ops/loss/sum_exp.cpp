// Sums of exponentials and target logits over a part of the vocabulary.
#include "params/loss.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

// (vocabParallelLogits [..., V], target, globalLogitsMax, vocabStartIndex, vocabEndIndex,
// predictedLogits, sumExpLogits, expLogits, targetOffset, targetMask): one rank's part of a cross
// entropy over a vocabulary that is split, as Megatron has it.
aclnnStatus check_parallel(Call& c) {
  using P = params::CrossEntropySumExpAndIndexLogit;

  ACL_RETURN_IF_FAILED(expect_rank(c, P::vocabParallelLogits, 1, kMaxRank));
  const int64_t width = tail_numel(c.tensor(P::vocabParallelLogits), 1),
                rows = width ? c.tensor(P::vocabParallelLogits).numel() / width : 0;
  for (int i : {P::target, P::globalLogitsMax, P::predictedLogitsOut, P::sumExpLogitsOut,
                P::targetOffsetOut, P::targetMaskOut})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, rows));
  return expect_numel(c, P::expLogitsOut, c.tensor(P::vocabParallelLogits).numel());
}
aclError run_parallel(Call& c) {
  using P = params::CrossEntropySumExpAndIndexLogit;

  const int64_t width = tail_numel(c.tensor(P::vocabParallelLogits), 1),
                start = c.integer(P::vocabStartIndex), end = c.integer(P::vocabEndIndex);
  Numbers x = numbers(c.tensor(P::vocabParallelLogits));
  const Numbers top = numbers(c.tensor(P::globalLogitsMax));
  Integers target = integers(c.tensor(P::target)), mask(target.size());
  Numbers predicted(target.size()), sums(target.size());
  for (size_t r = 0; r < target.size(); ++r) {
    mask[r] = target[r] < start || target[r] >= end;
    target[r] = mask[r] ? 0 : target[r] - start;
    double* row = x.data() + r * static_cast<size_t>(width);
    if (target[r] >= width) return c.trap(507015, "a target lies past the %lld logits",
                                          static_cast<long long>(width));
    for (int64_t i = 0; i < width; ++i) row[i] -= top[r];
    predicted[r] = mask[r] ? 0 : row[target[r]];
    for (int64_t i = 0; i < width; ++i) sums[r] += row[i] = std::exp(row[i]);
  }
  put(c.tensor(P::predictedLogitsOut), predicted);
  put(c.tensor(P::sumExpLogitsOut), sums);
  put(c.tensor(P::expLogitsOut), x);
  put(c.tensor(P::targetOffsetOut), target);
  put(c.tensor(P::targetMaskOut), mask);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnCrossEntropySumExpAndIndexLogit, check_parallel, run_parallel)
