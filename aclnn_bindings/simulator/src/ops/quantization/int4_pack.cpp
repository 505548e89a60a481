// Weights of four bits packed by eights.
#include "loops/matrices.h"

#include <cmath>
#include <cstring>

namespace aclsim {
namespace {

// (weight int32, packed): one int4 for each element, the first in the low bits.
aclnnStatus check_pack(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1}));
  return expect_quantized(c, 1, 0);
}
aclError run_pack(Call& c) {
  write_quantized(c.maybe(1), floats(c.tensor(0)));
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

#define ACLNN_PRODUCT(op, ...) ACLNN_OP_FLAGS(op, __VA_ARGS__, kOwnNulls | kOwnLimits)
ACLNN_PRODUCT(aclnnConvertWeightToINT4Pack, check_pack, run_pack)
