// Fills with one value.
#include "params/creation.h"
#include "loops/iterate.h"
#include "loops/matrices.h"
#include "loops/promote.h"

namespace aclsim {
namespace {

template <int Value>
void run_constant(Call& c) {
  using P = params::InplaceOne;

  Scalar s = {ACL_INT64, {}};
  s.bytes[0] = Value;
  fill_tensor(c.tensor(P::selfRef), s);
}
void run_fill_scalar(Call& c) {
  using P = params::InplaceFillScalar;

  fill_tensor(c.tensor(P::selfRef), c.scalar(P::value));
}

// Arguments: (selfRef, value), value 0-d or of one element.
aclnnStatus check_fill_tensor(Call& c) {
  using P = params::InplaceFillTensor;

  if (c.tensor(P::value).numel() == 1 && c.tensor(P::value).rank <= 1) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have one element, but its shape is %s.",
                c.name(P::value), shape_text(c.tensor(P::value)));
}
void run_fill_tensor(Call& c) {
  using P = params::InplaceFillTensor;

  Tensor value = c.tensor(P::value);
  value.rank = 0;
  copy_tensor(c.tensor(P::selfRef), value);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnInplaceZero, nullptr, run_constant<0>)
ACLNN_OP(aclnnInplaceOne, nullptr, run_constant<1>)
ACLNN_OP(aclnnInplaceFillScalar, nullptr, run_fill_scalar)
ACLNN_OP(aclnnInplaceFillTensor, check_fill_tensor, run_fill_tensor)
