// The next step of a decoding loop: tokens, positions, lengths and slots of a cache in blocks. Formula: the
// "npu_advance_step_flashattn" page of torch_npu.
#include "loops/values.h"

#include <cmath>
#include <cstring>

namespace aclsim {
namespace {

// (inputTokens, sampledTokenIds, inputPositions, seqLens, slotMapping, blockTables, numSeqs,
// numQueries, blockSize): all but the samples and tables move on by a token.
aclnnStatus check_advance(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 3, 4, 5}));
  const int64_t seqs = c.integer(6), queries = c.integer(7);
  if (queries > seqs || queries < 0 || c.integer(8) < 1 || c.tensor(5).rank != 2 ||
      c.tensor(5).dims[0] < queries) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "numSeqs %lld, numQueries %lld and blockSize %lld do not fit.",
                  static_cast<long long>(seqs), static_cast<long long>(queries),
                  static_cast<long long>(c.integer(8)));
  }
  ACL_RETURN_IF_FAILED(expect_numel(c, 1, queries));
  for (int i : {0, 2, 3, 4}) ACL_RETURN_IF_FAILED(expect_numel(c, i, seqs));
  return ACLNN_SUCCESS;
}
aclError run_advance(Call& c) {
  Ints tokens = integers(c.tensor(0)), positions = integers(c.tensor(2)),
       lengths = integers(c.tensor(3)), slots = integers(c.tensor(4));
  const Ints samples = integers(c.tensor(1)), table = integers(c.tensor(5));
  const int64_t size = c.integer(8), per = width_of(c.tensor(5)), queries = c.integer(7);
  for (int64_t i = 0; i < c.integer(6); ++i) {
    if (i >= queries) {  // padding
      tokens[i] = 0, positions[i] = 0, slots[i] = -1;
      continue;
    }
    const int64_t next = lengths[i];
    if (next / size >= per) return c.trap(507015, "A sequence is longer than its block table.");
    tokens[i] = samples[i], lengths[i] = next + 1, positions[i] = next;
    slots[i] = table[i * per + next / size] * size + next % size;
  }
  write(c.tensor(0), tokens), write(c.tensor(2), positions), write(c.tensor(3), lengths),
      write(c.tensor(4), slots);
  return ACL_SUCCESS;
}
// With speculation: (inputTokens, sampledTokenIds, inputPositions, seqLens, slotMapping,
// blockTables, specToken, acceptedNum, numSeqs, numQueries, blockSize).
aclnnStatus check_advance_spec(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 3, 4, 5, 6, 7}));
  const int64_t seqs = c.integer(8), each = 1 + width_of(c.tensor(6));
  ACL_RETURN_IF_FAILED(expect_numel(c, 7, seqs));
  ACL_RETURN_IF_FAILED(expect_numel(c, 6, seqs * (each - 1)));
  for (int i : {0, 2, 3, 4}) ACL_RETURN_IF_FAILED(expect_numel(c, i, seqs * each));
  return c.integer(10) < 1 || rows_of(c.tensor(1)) != seqs || rows_of(c.tensor(5)) < seqs
             ? expect_numel(c, 1, seqs)
             : ACLNN_SUCCESS;
}
aclError run_advance_spec(Call& c) {
  Ints tokens = integers(c.tensor(0)), positions = integers(c.tensor(2)), slots(positions.size()),
       lengths(positions.size());
  const Ints samples = integers(c.tensor(1)), table = integers(c.tensor(5)),
             spec = integers(c.tensor(6)), accepted = integers(c.tensor(7));
  const int64_t size = c.integer(10), per = width_of(c.tensor(5)), wide = width_of(c.tensor(1)),
                each = 1 + width_of(c.tensor(6));
  for (int64_t s = 0; s < c.integer(8); ++s) {
    int64_t last = 0;  // the sample before the first that is -1
    while (last + 1 < wide && samples[s * wide + last + 1] != -1) ++last;
    for (int64_t j = 0; j < each; ++j) {
      const int64_t at = s * each + j;
      positions[at] += accepted[s] + 1, lengths[at] = positions[at] + 1;
      tokens[at] = j == 0 ? samples[s * wide + last] : spec[s * (each - 1) + j - 1];
      if (positions[at] / size >= per)
        return c.trap(507015, "A sequence is longer than its block table.");
      slots[at] = table[s * per + positions[at] / size] * size + positions[at] % size;
    }
  }
  write(c.tensor(0), tokens), write(c.tensor(2), positions), write(c.tensor(3), lengths),
      write(c.tensor(4), slots);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

#define ACLNN_STATE(op, ...) ACLNN_OP_FLAGS(op, __VA_ARGS__, kOwnNulls | kOwnLimits)
ACLNN_STATE(aclnnAdvanceStep, check_advance, run_advance)
ACLNN_STATE(aclnnAdvanceStepV2, check_advance_spec, run_advance_spec)
