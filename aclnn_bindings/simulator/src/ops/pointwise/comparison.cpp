// Comparisons, truth and bits.
#include "params/pointwise.h"
#include "loops/pointwise.h"

namespace aclsim {

ACL_FN(Eq, Test, (T a, T b), T(a == b))
ACL_FN(Ne, Test, (T a, T b), T(a != b))
ACL_FN(Lt, TestReal, (T a, T b), T(a < b))
ACL_FN(Le, TestReal, (T a, T b), T(a <= b))
ACL_FN(Gt, TestReal, (T a, T b), T(a > b))
ACL_FN(Ge, TestReal, (T a, T b), T(a >= b))
ACL_FN(And, Test, (T a, T b), T(a != T(0) && b != T(0)))
ACL_FN(Or, Test, (T a, T b), T(a != T(0) || b != T(0)))
ACL_FN(Xor, Test, (T a, T b), T((a != T(0)) != (b != T(0))))
ACL_FN(Not, Test, (T a), T(a == T(0)))
struct Close : TestMeasured {
  template <class T>
  static ACL_INLINE T f(T a, T b, T rtol, T atol, T equal_nan) {
    const T apart = a < b ? b - a : a - b, size = b < T(0) ? -b : b;
    const bool close = a == b || (apart - apart == T(0) && apart <= atol + rtol * size);
    return T(close || (equal_nan != T(0) && a != a && b != b));
  }
};

// Bits: floating domains are never reached, the dtype lists hold integers and bool only.
template <class T>
ACL_INLINE int64_t bits(T x) {
  return static_cast<int64_t>(x);
}
struct Bits : Computes<true, false> {};
ACL_FN(BitAnd, Bits, (T a, T b), bits(a) & bits(b))
ACL_FN(BitOr, Bits, (T a, T b), bits(a) | bits(b))
ACL_FN(BitXor, Bits, (T a, T b), bits(a) ^ bits(b))
ACL_FN(BitNot, Bits, (T a), ~bits(a))
ACL_FN(ShiftLeft, Bits, (T a, T b),
       bits(b) < 0 || bits(b) > 63
           ? int64_t{0}
           : static_cast<int64_t>(static_cast<uint64_t>(bits(a)) << bits(b)))
ACL_FN(ShiftRight, Bits, (T a, T b),
       bits(a) >> (bits(b) < 0 || bits(b) > 63 ? int64_t{63} : bits(b)))

namespace {

template <class Row>
aclnnStatus check_bits(Call& c) {
  using P = params::LeftShift;

  const aclDataType d = c.tensor(P::self).dtype;
  if (domain_of(d) != Domain::Integer) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s not implemented for %s, should be integer or bool.",
                  c.name(P::self), dtype_name(d));
  }
  return Row::check(c);
}
// For bool, ~ is "not".
aclError run_bit_not(Call& c) {
  using P = params::BitwiseNot;

  return c.tensor(P::self).dtype == ACL_BOOL ? Pointwise<Not, 1, 0>::run(c)
                                             : Pointwise<BitNot, 1, 0>::run(c);
}

// (self, other, out): whether all elements, and the shapes, are equal.
aclnnStatus check_equal(Call& c) {
  using P = params::Equal;

  if (promote(c.tensor(P::self).dtype, c.tensor(P::other).dtype) == ACL_DT_UNDEFINED) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "self and other dtypes can't promote.");
  }
  if (c.tensor(P::out).numel() == 1) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape of out should be [1], but current is %s.",
                shape_text(c.tensor(P::out)));
}
void run_equal(Call& c) {
  using P = params::Equal;

  const Tensor &a = c.tensor(P::self), &b = c.tensor(P::other), &out = c.tensor(P::out);
  int64_t same = a.same_shape(b);
  if (same) {
    const Domain d = domain_of(promote(a.dtype, b.dtype));
    Walker at(a.rank, a.dims);
    for (int64_t i = a.numel(); same && i > 0; --i, at.next()) {
      const int64_t ia = a.offset + at.offset(a.strides), ib = b.offset + at.offset(b.strides);
      same = d == Domain::Integer
                 ? load_one<int64_t>(a.data, a.dtype, ia) == load_one<int64_t>(b.data, b.dtype, ib)
                 : load_one<c128>(a.data, a.dtype, ia) == load_one<c128>(b.data, b.dtype, ib);
    }
  }
  store_one(same, out.data, out.dtype, out.offset);
}

}  // namespace
}  // namespace aclsim

// op(self, other, out) and inplace(selfRef, other), with a tensor and with a scalar.
#define ACLNN_COMPARE(tensor, in_tensor, scalar, in_scalar, Fn) \
  ACLNN_BINARY_INPLACE(tensor, in_tensor, Fn) ACLNN_BINARY_INPLACE(scalar, in_scalar, Fn)
ACLNN_COMPARE(aclnnEqTensor, aclnnInplaceEqTensor, aclnnEqScalar, aclnnInplaceEqScalar, Eq)
ACLNN_COMPARE(aclnnNeTensor, aclnnInplaceNeTensor, aclnnNeScalar, aclnnInplaceNeScalar, Ne)
ACLNN_COMPARE(aclnnLtTensor, aclnnInplaceLtTensor, aclnnLtScalar, aclnnInplaceLtScalar, Lt)
ACLNN_COMPARE(aclnnLeTensor, aclnnInplaceLeTensor, aclnnLeScalar, aclnnInplaceLeScalar, Le)
ACLNN_COMPARE(aclnnGtTensor, aclnnInplaceGtTensor, aclnnGtScalar, aclnnInplaceGtScalar, Gt)
ACLNN_COMPARE(aclnnGeTensor, aclnnInplaceGeTensor, aclnnGeScalar, aclnnInplaceGeScalar, Ge)
ACLNN_BINARY_INPLACE(aclnnLogicalAnd, aclnnInplaceLogicalAnd, And)
ACLNN_BINARY_INPLACE(aclnnLogicalOr, aclnnInplaceLogicalOr, Or)
ACLNN_BINARY(aclnnLogicalXor, Xor)
ACLNN_UNARY_INPLACE(aclnnLogicalNot, aclnnInplaceLogicalNot, Not)
ACLNN_POINTWISE(aclnnIsClose, Close, 5, 0, 1, ~2, ~3, ~4)
ACLNN_OP(aclnnEqual, check_equal, run_equal)

#define ACLNN_BITS_OF(op, Fn, out) \
  ACLNN_OP(op, (check_bits<Pointwise<Fn, out, 0, 1>>), (Pointwise<Fn, out, 0, 1>::run))
#define ACLNN_BITS(tensor, in_tensor, scalar, in_scalar, Fn)      \
  ACLNN_BITS_OF(tensor, Fn, 2) ACLNN_BITS_OF(in_tensor, Fn, 0)    \
  ACLNN_BITS_OF(scalar, Fn, 2) ACLNN_BITS_OF(in_scalar, Fn, 0)
ACLNN_BITS(aclnnBitwiseAndTensor, aclnnInplaceBitwiseAndTensor, aclnnBitwiseAndScalar,
           aclnnInplaceBitwiseAndScalar, BitAnd)
ACLNN_BITS(aclnnBitwiseOrTensor, aclnnInplaceBitwiseOrTensor, aclnnBitwiseOrScalar,
           aclnnInplaceBitwiseOrScalar, BitOr)
ACLNN_BITS(aclnnBitwiseXorTensor, aclnnInplaceBitwiseXorTensor, aclnnBitwiseXorScalar,
           aclnnInplaceBitwiseXorScalar, BitXor)
ACLNN_BITS_OF(aclnnBitwiseAndTensorOut, BitAnd, 2)
ACLNN_BITS_OF(aclnnInplaceBitwiseAndTensorOut, BitAnd, 0)
ACLNN_BITS_OF(aclnnLeftShift, ShiftLeft, 2)
ACLNN_BITS_OF(aclnnLeftShifts, ShiftLeft, 2)
ACLNN_BITS_OF(aclnnRightShift, ShiftRight, 2)
ACLNN_OP(aclnnBitwiseNot, (check_bits<Pointwise<BitNot, 1, 0>>), run_bit_not)
