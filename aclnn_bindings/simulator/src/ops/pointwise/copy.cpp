// Copies and casts.
#include "params/pointwise.h"
#include "loops/iterate.h"
#include "loops/matrices.h"
#include "loops/promote.h"

namespace aclsim {
namespace {

// Arguments: (selfRef, src); src broadcasts.
aclnnStatus check_copy(Call& c) {
  using P = params::InplaceCopy;

  Shape shape = shape_of(c.tensor(P::selfRef));
  if (!broadcast(shape, c.tensor(P::src))) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of %s can't broadcast to %s.",
                  shape_text(c.tensor(P::src)), c.name(P::src), shape_text(c.tensor(P::selfRef)));
  }
  return expect_shape(c, P::selfRef, shape);
}
void run_copy(Call& c) {
  using P = params::InplaceCopy;

  const Tensor &to = c.tensor(P::selfRef), &from = c.tensor(P::src);
  const bool tiles = stands_for_tiles(to);
  if ((tiles || stands_for_tiles(from)) && to.same_shape(from)) {
    const Matrices m = matrices_of(from, false, false);
    tiles ? write_tiles(to, m) : write(to, m.v);
    return;
  }
  copy_tensor(to, from);
}

// Arguments: (self, dtype, out).
aclnnStatus check_cast(Call& c) {
  using P = params::Cast;

  ACL_RETURN_IF_FAILED(expect_dtype(c, P::out, static_cast<aclDataType>(c.integer(P::dtype))));
  return expect_same_shape(c, P::out, P::self);
}
void run_cast(Call& c) {
  using P = params::Cast;

  copy_tensor(c.tensor(P::out), c.tensor(P::self));
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnInplaceCopy, check_copy, run_copy)
ACLNN_OP(aclnnCast, check_cast, run_cast)
