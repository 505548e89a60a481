// The next step of a decoding loop: tokens, positions, lengths and slots of a cache in blocks. Formula: the
// "npu_advance_step_flashattn" page of torch_npu.
#include "params/kv_cache.h"
#include "loops/values.h"

namespace aclsim {
namespace {

// (inputTokens, sampledTokenIds, inputPositions, seqLens, slotMapping, blockTables, numSeqs,
// numQueries, blockSize): all but the samples and tables move on by a token.
aclnnStatus check_advance(Call& c) {
  using P = params::AdvanceStep;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::inputTokens, P::sampledTokenIds, P::inputPositions,
                                        P::seqLens, P::slotMapping, P::blockTables}));
  const int64_t seqs = c.integer(P::numSeqs), queries = c.integer(P::numQueries);
  if (queries > seqs || queries < 0 || c.integer(P::blockSize) < 1 ||
      c.tensor(P::blockTables).rank != 2 || c.tensor(P::blockTables).dims[0] < queries) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "numSeqs %lld, numQueries %lld and blockSize %lld do not fit.",
                  static_cast<long long>(seqs), static_cast<long long>(queries),
                  static_cast<long long>(c.integer(P::blockSize)));
  }
  ACL_RETURN_IF_FAILED(expect_numel(c, P::sampledTokenIds, queries));
  for (int i : {P::inputTokens, P::inputPositions, P::seqLens, P::slotMapping})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, seqs));
  return ACLNN_SUCCESS;
}
aclError run_advance(Call& c) {
  using P = params::AdvanceStep;

  Ints tokens = integers(c.tensor(P::inputTokens)),
       positions = integers(c.tensor(P::inputPositions)), lengths = integers(c.tensor(P::seqLens)),
       slots = integers(c.tensor(P::slotMapping));
  const Ints samples = integers(c.tensor(P::sampledTokenIds)),
             table = integers(c.tensor(P::blockTables));
  const int64_t size = c.integer(P::blockSize), per = width_of(c.tensor(P::blockTables)),
                queries = c.integer(P::numQueries);
  for (int64_t i = 0; i < c.integer(P::numSeqs); ++i) {
    if (i >= queries) {  // padding
      tokens[i] = 0, positions[i] = 0, slots[i] = -1;
      continue;
    }
    const int64_t next = lengths[i];
    if (next / size >= per) return c.trap(507015, "A sequence is longer than its block table.");
    tokens[i] = samples[i], lengths[i] = next + 1, positions[i] = next;
    slots[i] = table[i * per + next / size] * size + next % size;
  }
  write(c.tensor(P::inputTokens), tokens), write(c.tensor(P::inputPositions), positions),
      write(c.tensor(P::seqLens), lengths), write(c.tensor(P::slotMapping), slots);
  return ACL_SUCCESS;
}
// With speculation: (inputTokens, sampledTokenIds, inputPositions, seqLens, slotMapping,
// blockTables, specToken, acceptedNum, numSeqs, numQueries, blockSize).
aclnnStatus check_advance_spec(Call& c) {
  using P = params::AdvanceStepV2;

  ACL_RETURN_IF_FAILED(
      expect_given(c, {P::inputTokens, P::sampledTokenIds, P::inputPositions, P::seqLens,
                       P::slotMapping, P::blockTables, P::specToken, P::acceptedNum}));
  const int64_t seqs = c.integer(P::numSeqs), each = 1 + width_of(c.tensor(P::specToken));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::acceptedNum, seqs));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::specToken, seqs * (each - 1)));
  for (int i : {P::inputTokens, P::inputPositions, P::seqLens, P::slotMapping})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, seqs * each));
  return c.integer(P::blockSize) < 1 || rows_of(c.tensor(P::sampledTokenIds)) != seqs ||
                 rows_of(c.tensor(P::blockTables)) < seqs
             ? expect_numel(c, P::sampledTokenIds, seqs)
             : ACLNN_SUCCESS;
}
aclError run_advance_spec(Call& c) {
  using P = params::AdvanceStepV2;

  Ints tokens = integers(c.tensor(P::inputTokens)),
       positions = integers(c.tensor(P::inputPositions)), slots(positions.size()),
       lengths(positions.size());
  const Ints samples = integers(c.tensor(P::sampledTokenIds)),
             table = integers(c.tensor(P::blockTables)), spec = integers(c.tensor(P::specToken)),
             accepted = integers(c.tensor(P::acceptedNum));
  const int64_t size = c.integer(P::blockSize), per = width_of(c.tensor(P::blockTables)),
                wide = width_of(c.tensor(P::sampledTokenIds)),
                each = 1 + width_of(c.tensor(P::specToken));
  for (int64_t s = 0; s < c.integer(P::numSeqs); ++s) {
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
  write(c.tensor(P::inputTokens), tokens), write(c.tensor(P::inputPositions), positions),
      write(c.tensor(P::seqLens), lengths), write(c.tensor(P::slotMapping), slots);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnAdvanceStep, check_advance, run_advance)
ACLNN_OWN(aclnnAdvanceStepV2, check_advance_spec, run_advance_spec)
