// Fills with one value.
#include "loops/iterate.h"
#include "loops/matrices.h"
#include "loops/promote.h"

namespace aclsim {
namespace {

template <int Value>
aclError run_constant(Call& c) {
  Scalar s = {ACL_INT64, {}};
  s.bytes[0] = Value;
  fill_tensor(c.tensor(0), s);
  return ACL_SUCCESS;
}
aclError run_fill_scalar(Call& c) {
  fill_tensor(c.tensor(0), c.scalar(1));
  return ACL_SUCCESS;
}

// Arguments: (selfRef, value), value 0-d or of one element.
aclnnStatus check_fill_tensor(Call& c) {
  if (c.tensor(1).numel() == 1 && c.tensor(1).rank <= 1) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have one element, but its shape is %s.",
                c.name(1), shape_text(c.tensor(1)));
}
aclError run_fill_tensor(Call& c) {
  Tensor value = c.tensor(1);
  value.rank = 0;
  copy_tensor(c.tensor(0), value);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnInplaceZero, nullptr, run_constant<0>)
ACLNN_OP(aclnnInplaceOne, nullptr, run_constant<1>)
ACLNN_OP(aclnnInplaceFillScalar, nullptr, run_fill_scalar)
ACLNN_OP(aclnnInplaceFillTensor, check_fill_tensor, run_fill_tensor)
