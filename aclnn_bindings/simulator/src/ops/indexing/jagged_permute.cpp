// Permutations of ragged rows.
#include "loops/numbers.h"

namespace aclsim {
namespace {

// (permute, inputOffset, outputOffset, outputSize, out): FBGEMM's expand_into_jagged_permute: row i
// of the result counts on from where row permute[i] began.
aclnnStatus check_jagged(Call& c) {
  const int64_t n = c.tensor(0).numel();
  for (int i : {1, 2}) ACL_RETURN_IF_FAILED(expect_dims(c, i, {n + 1}));
  return expect_dims(c, 4, {c.integer(3)});
}
aclError run_jagged(Call& c) {
  const Integers permute = integers(c.tensor(0)), from = integers(c.tensor(1)),
                 to = integers(c.tensor(2));
  Integers out(static_cast<size_t>(c.tensor(4).numel()));
  const auto n = static_cast<int64_t>(permute.size()), size = static_cast<int64_t>(out.size());
  for (int64_t i = 0; i < n; ++i) {
    if (permute[i] < 0 || permute[i] >= n || to[i] < 0 || to[i + 1] > size) {
      return c.trap(507015, "row %lld leads outside", static_cast<long long>(i));
    }
    for (int64_t k = to[i]; k < to[i + 1]; ++k) out[k] = from[permute[i]] + k - to[i];
  }
  put(c.tensor(4), out);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnExpandIntoJaggedPermute, check_jagged, run_jagged)
