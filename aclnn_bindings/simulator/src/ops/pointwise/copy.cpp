// Copies and casts.
#include "loops/iterate.h"
#include "loops/matrices.h"
#include "loops/promote.h"

namespace aclsim {
namespace {

// Arguments: (selfRef, src); src broadcasts.
aclnnStatus check_copy(Call& c) {
  Shape shape = shape_of(c.tensor(0));
  if (!broadcast(shape, c.tensor(1))) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of %s can't broadcast to %s.",
                  shape_text(c.tensor(1)), c.name(1), shape_text(c.tensor(0)));
  }
  return expect_shape(c, 0, shape);
}
aclError run_copy(Call& c) {
  const Tensor &to = c.tensor(0), &from = c.tensor(1);
  const bool tiles = stands_for_tiles(to);
  if ((tiles || stands_for_tiles(from)) && to.same_shape(from)) {
    const Matrices m = matrices_of(from, false, false);
    tiles ? write_tiles(to, m) : write(to, m.v);
    return ACL_SUCCESS;
  }
  copy_tensor(to, from);
  return ACL_SUCCESS;
}

// Arguments: (self, dtype, out).
aclnnStatus check_cast(Call& c) {
  ACL_RETURN_IF_FAILED(expect_dtype(c, 2, static_cast<aclDataType>(c.integer(1))));
  return expect_same_shape(c, 2, 0);
}
aclError run_cast(Call& c) {
  copy_tensor(c.tensor(2), c.tensor(0));
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnInplaceCopy, check_copy, run_copy)
ACLNN_OP(aclnnCast, check_cast, run_cast)
