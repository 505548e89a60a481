// Permutations of ragged rows.
#include "params/indexing.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

// (permute, inputOffset, outputOffset, outputSize, out): FBGEMM's expand_into_jagged_permute: row i
// of the result counts on from where row permute[i] began.
aclnnStatus check_jagged(Call& c) {
  using P = params::ExpandIntoJaggedPermute;

  const int64_t n = c.tensor(P::permute).numel();
  for (int i : {P::inputOffset, P::outputOffset}) ACL_RETURN_IF_FAILED(expect_dims(c, i, {n + 1}));
  return expect_dims(c, P::outputPermuteOut, {c.integer(P::outputSize)});
}
aclError run_jagged(Call& c) {
  using P = params::ExpandIntoJaggedPermute;

  const Integers permute = integers(c.tensor(P::permute)),
                 from = integers(c.tensor(P::inputOffset)),
                 to = integers(c.tensor(P::outputOffset));
  Integers out(static_cast<size_t>(c.tensor(P::outputPermuteOut).numel()));
  const auto n = static_cast<int64_t>(permute.size()), size = static_cast<int64_t>(out.size());
  for (int64_t i = 0; i < n; ++i) {
    if (permute[i] < 0 || permute[i] >= n || to[i] < 0 || to[i + 1] > size) {
      return c.trap(507015, "row %lld leads outside", static_cast<long long>(i));
    }
    for (int64_t k = to[i]; k < to[i + 1]; ++k) out[k] = from[permute[i]] + k - to[i];
  }
  put(c.tensor(P::outputPermuteOut), out);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnExpandIntoJaggedPermute, check_jagged, run_jagged)
