// Promotion, casting and broadcasting rules: see promote.h.
#include "loops/promote.h"

#include <algorithm>

namespace aclsim {
namespace {

enum Category { kBool, kInt, kFloat, kComplex };

Category category(aclDataType d) {
  if (is_complex(d) || d == ACL_COMPLEX32) return kComplex;
  if (is_float(d)) return kFloat;
  return d == ACL_BOOL ? kBool : kInt;
}

bool wide_unsigned(aclDataType d) {
  return d == ACL_UINT16 || d == ACL_UINT32 || d == ACL_UINT64;
}

aclDataType promote_ints(aclDataType a, aclDataType b) {
  const bool mixed = (a == ACL_UINT8) != (b == ACL_UINT8);
  const size_t wide = std::max(dtype_size(a), dtype_size(b));
  if (mixed && wide == 1) return ACL_INT16;
  return dtype_size(a) == wide && (a != ACL_UINT8 || !mixed) ? a : b;
}

aclDataType promote_floats(aclDataType a, aclDataType b) {
  if (a == ACL_DOUBLE || b == ACL_DOUBLE) return ACL_DOUBLE;
  return ACL_FLOAT;  // also float16 with bfloat16
}

aclDataType promote_complex(aclDataType a, aclDataType b) {
  for (aclDataType d : {a, b}) {
    if (d == ACL_COMPLEX128 || d == ACL_DOUBLE) return ACL_COMPLEX128;
  }
  for (aclDataType d : {a, b}) {
    if (d == ACL_COMPLEX64 || d == ACL_FLOAT) return ACL_COMPLEX64;
  }
  return ACL_COMPLEX32;
}

}  // namespace

aclDataType promote(aclDataType a, aclDataType b) {
  if (a == b) return a;
  if (wide_unsigned(a) || wide_unsigned(b)) return ACL_DT_UNDEFINED;
  const Category ca = category(a), cb = category(b);
  if (ca == kComplex || cb == kComplex) return promote_complex(a, b);
  if (ca != cb) return ca > cb ? a : b;
  return ca == kInt ? promote_ints(a, b) : promote_floats(a, b);
}

aclDataType promote_scalar(aclDataType tensor, aclDataType scalar) {
  const Category ct = category(tensor), cs = category(scalar);
  if (cs <= ct) return tensor;
  if (cs == kFloat) return ACL_FLOAT;
  if (cs == kInt) return scalar;
  if (tensor == ACL_DOUBLE) return ACL_COMPLEX128;
  return tensor == ACL_FLOAT16 ? ACL_COMPLEX32 : ACL_COMPLEX64;
}

bool castable(aclDataType from, aclDataType to) {
  if (from == to) return true;
  const Category cf = category(from), ct = category(to);
  switch (cf) {
    case kBool: return true;
    case kInt: return ct != kBool;
    case kFloat: return ct != kBool;
    case kComplex: return ct == kFloat || ct == kComplex;
  }
  return false;
}

bool broadcast(Shape& into, const Tensor& t) {
  if (t.rank > into.rank) {
    const int shift = t.rank - into.rank;
    std::copy_backward(into.dims, into.dims + into.rank, into.dims + t.rank);
    std::fill(into.dims, into.dims + shift, 1);
    into.rank = t.rank;
  }
  const int shift = into.rank - t.rank;
  for (int i = 0; i < t.rank; ++i) {
    int64_t& d = into.dims[i + shift];
    if (d == t.dims[i] || t.dims[i] == 1) continue;
    if (d != 1) return false;
    d = t.dims[i];
  }
  return true;
}

aclnnStatus expect_shape(const Call& c, TensorAt out, const Shape& shape) {
  const Tensor& t = c.tensor(out);
  if (t.rank == shape.rank && std::equal(t.dims, t.dims + t.rank, shape.dims)) {
    return ACLNN_SUCCESS;
  }
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape of %s should be %s, but current is %s.",
                c.name(out), shape_text(shape.dims, shape.rank), shape_text(t));
}

aclnnStatus expect_same_shape(const Call& c, TensorAt out, TensorAt like) {
  return expect_shape(c, out, shape_of(c.tensor(like)));
}

aclnnStatus refuse_fit(const Call& c, TensorAt arg, TensorAt other) {
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of %s does not fit shape %s of %s.",
                shape_text(c.tensor(arg)), c.name(arg), shape_text(c.tensor(other)), c.name(other));
}

aclnnStatus expect_castable(const Call& c, aclDataType from, TensorAt out) {
  const aclDataType to = c.tensor(out).dtype;
  if (castable(from, to)) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID,
                "Result type %s can't be cast to the desired output type %s of %s.",
                dtype_name(from), dtype_name(to), c.name(out));
}

aclnnStatus expect_dtype(const Call& c, TensorAt arg, aclDataType dtype) {
  const aclDataType given = c.tensor(arg).dtype;
  if (given == dtype) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Dtype of %s should be %s, but current is %s.",
                c.name(arg), dtype_name(dtype), dtype_name(given));
}

aclnnStatus expect_same_dtype(const Call& c, TensorAt arg, TensorAt like) {
  const aclDataType given = c.tensor(arg).dtype, wanted = c.tensor(like).dtype;
  if (given == wanted) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Dtype of %s should equal that of %s, %s, but is %s.",
                c.name(arg), c.name(like), dtype_name(wanted), dtype_name(given));
}

aclnnStatus expect_axis(const Call& c, At<ArgKind::Int, ArgKind::IntArray> arg, int64_t& axis, int rank) {
  const int64_t span = rank == 0 ? 1 : rank;
  if (axis < -span || axis >= span) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should be in range [%lld, %lld], but is %lld.",
                  c.name(arg), static_cast<long long>(-span), static_cast<long long>(span - 1),
                  static_cast<long long>(axis));
  }
  if (axis < 0) axis += span;
  return ACLNN_SUCCESS;
}

}  // namespace aclsim
