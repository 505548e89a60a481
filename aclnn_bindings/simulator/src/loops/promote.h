// The dtype and shape rules that phase 1 shares between ops: promotion, castability, broadcasting.
// Source: "mutual deduction" and "broadcast" pages of the CANN operator documents, 9.1.
#pragma once

#include "ascendcl/dtype.h"

namespace aclsim {

// Both operands are tensors. ACL_DT_UNDEFINED where no common dtype exists.
aclDataType promote(aclDataType a, aclDataType b);
// A tensor's dtype with a scalar's: the tensor wins within its category.
aclDataType promote_scalar(aclDataType tensor, aclDataType scalar);
bool castable(aclDataType from, aclDataType to);

struct Shape {
  int rank = 0;
  int64_t dims[kMaxRank] = {};
};
inline Shape shape_of(const Tensor& t) {
  Shape s;
  s.rank = t.rank;
  for (int i = 0; i < t.rank; ++i) s.dims[i] = t.dims[i];
  return s;
}
bool broadcast(Shape& into, const Tensor& t);

// In place of a position: this version of the operator has no such parameter.
constexpr int kNone = -1;

// Phase-1 refusals in CANN's words, 161002 unless said otherwise. `out` and friends are argument
// positions.
aclnnStatus expect_shape(const Call& c, TensorAt out, const Shape& shape);
aclnnStatus expect_same_shape(const Call& c, TensorAt out, TensorAt like);
// For shapes already known not to fit, whether they are equal or not: never succeeds.
aclnnStatus refuse_fit(const Call& c, TensorAt arg, TensorAt other);
aclnnStatus expect_castable(const Call& c, aclDataType from, TensorAt out);
aclnnStatus expect_dtype(const Call& c, TensorAt arg, aclDataType dtype);
aclnnStatus expect_same_dtype(const Call& c, TensorAt arg, TensorAt like);
// Resolves a negative axis into `axis`; 0-d tensors have one axis.
aclnnStatus expect_axis(const Call& c, At<ArgKind::Int, ArgKind::IntArray> arg, int64_t& axis, int rank);

#define ACL_RETURN_IF_FAILED(expression)        \
  do {                                          \
    const aclnnStatus status_ = (expression);   \
    if (status_ != ACLNN_SUCCESS) return status_; \
  } while (0)

}  // namespace aclsim
