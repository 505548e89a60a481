// Sums of exponentials and target logits over a part of the vocabulary.
#include "loops/numbers.h"

namespace aclsim {
namespace {

// (vocabParallelLogits [..., V], target, globalLogitsMax, vocabStartIndex, vocabEndIndex,
// predictedLogits, sumExpLogits, expLogits, targetOffset, targetMask): one rank's part of a cross
// entropy over a vocabulary that is split, as Megatron has it.
aclnnStatus check_parallel(Call& c) {
  ACL_RETURN_IF_FAILED(expect_rank(c, 0, 1, kMaxRank));
  const int64_t width = tail_numel(c.tensor(0), 1), rows = width ? c.tensor(0).numel() / width : 0;
  for (int i : {1, 2, 5, 6, 8, 9}) ACL_RETURN_IF_FAILED(expect_numel(c, i, rows));
  return expect_numel(c, 7, c.tensor(0).numel());
}
aclError run_parallel(Call& c) {
  const int64_t width = tail_numel(c.tensor(0), 1), start = c.integer(3), end = c.integer(4);
  Numbers x = numbers(c.tensor(0));
  const Numbers top = numbers(c.tensor(2));
  Integers target = integers(c.tensor(1)), mask(target.size());
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
  put(c.tensor(5), predicted);
  put(c.tensor(6), sums);
  put(c.tensor(7), x);
  put(c.tensor(8), target);
  put(c.tensor(9), mask);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnCrossEntropySumExpAndIndexLogit, check_parallel, run_parallel)
