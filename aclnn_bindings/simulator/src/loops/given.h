// Phase-1 rules for arguments that may be absent: inputs that some modes need, outputs that a mask
// asks for, statistics of any shape with the right number of elements.
#pragma once

#include "loops/promote.h"

namespace aclsim {

inline aclDataType compute_dtype(const Tensor& t) {
  return t.dtype == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
}
// An absent argument passes.
inline aclnnStatus expect_numel(const Call& c, TensorAt arg, int64_t n) {
  if (c.null(arg) || c.tensor(arg).numel() == n) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have %lld elements, but its shape is %s.",
                c.name(arg), static_cast<long long>(n), shape_text(c.tensor(arg)));
}
// Null where this version of the operator lacks the argument, and where it is absent or empty.
inline const Tensor* at_or_null(const Call& c, TensorAt arg) {
  if (arg == kNone || c.null(arg) || c.tensor(arg).numel() == 0) return nullptr;
  return c.maybe(arg);
}
inline aclnnStatus expect_given(const Call& c, std::initializer_list<int> arguments) {
  for (int i : arguments) {
    if (c.null(i)) return c.fail(ACLNN_ERR_PARAM_NULLPTR, "Parameter %s is null.", c.name(i));
  }
  return ACLNN_SUCCESS;
}
// Two tensors that mean something only together; one that is null or empty is not given. Negative:
// this version of the operator has none.
inline aclnnStatus expect_together(const Call& c, TensorAt one, TensorAt other) {
  if (one < 0 || other < 0) return ACLNN_SUCCESS;
  const auto given = [&](int i) { return !c.null(i) && c.tensor(i).numel() > 0; };
  if (given(one) == given(other)) return ACLNN_SUCCESS;
  const int missing = given(one) ? other : one;
  return c.fail(ACLNN_ERR_PARAM_NULLPTR, "Parameter %s is null, and %s is given: they belong together.",
                c.name(missing), c.name(missing == one ? other : one));
}
// `mask` has `count` elements, and the outputs from `first_out` that it asks for are there.
inline aclnnStatus expect_masked(const Call& c, At<ArgKind::BoolArray> mask, int count, TensorAt first_out) {
  const Span<const bool> bits = c.bools(mask);
  if (bits.size != count) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have %d elements, but has %lld.",
                  c.name(mask), count, static_cast<long long>(bits.size));
  }
  for (int i = 0; i < count; ++i) {
    if (bits[i]) ACL_RETURN_IF_FAILED(expect_given(c, {first_out + i}));
  }
  return ACLNN_SUCCESS;
}
// The output at `out`, or null where bit `bit` of the mask does not ask for it.
inline const Tensor* masked(const Call& c, At<ArgKind::BoolArray> mask, int64_t bit, TensorAt out) {
  return c.bools(mask)[bit] ? c.maybe(out) : nullptr;
}

}  // namespace aclsim

// A row whose own check knows which arguments may be null and which limits hold in which mode.
#define ACLNN_OWN(op, ...) ACLNN_OP_FLAGS(op, __VA_ARGS__, kOwnNulls | kOwnLimits)
