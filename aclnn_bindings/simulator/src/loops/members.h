// Phase-1 rules for lists of tensors.
#pragma once

#include "loops/promote.h"

#include <algorithm>
#include <cmath>

namespace aclsim {

inline aclnnStatus expect_members(const Call& c, int arg) {
  const Span<Tensor*> list = c.tensors(arg);
  if (list.size == 0) return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is empty.", c.name(arg));
  for (const Tensor* t : list) {
    if (!t) return c.fail(ACLNN_ERR_PARAM_NULLPTR, "A member of %s is null.", c.name(arg));
  }
  return ACLNN_SUCCESS;
}

}  // namespace aclsim
