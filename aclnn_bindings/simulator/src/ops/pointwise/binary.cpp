// Powers, remainders, extrema, clamps and other functions of two or three operands.
#include "params/pointwise.h"
#include "loops/pointwise.h"
#include "loops/smooth.h"

#include <numeric>

namespace aclsim {

template <class T>
constexpr bool kInteger = std::is_same<T, int64_t>::value;

// fmod(a, b) of floats, exact in double where the quotient has few digits; else NaN.
ACL_INLINE float quick_rest(float a, float b) {
  const double x = a, y = b, quotient = std::trunc(x / y);
  const float rest = std::copysign(static_cast<float>(x - quotient * y), a);
  return std::fabs(quotient) < 16777216.0 ? rest : std::numeric_limits<float>::quiet_NaN();
}
// What is added where a rest has another sign than the divisor, else -0. Written so, loops vectorise.
ACL_INLINE float if_opposed(float value, float rest, float b) {
  const float step = static_cast<int32_t>(bits_of(rest) ^ bits_of(b)) < 0 ? value : -0.0f;
  return rest == 0.0f ? -0.0f : step;
}
struct QuickFmod : FloatingReal {
  static ACL_INLINE float f(float a, float b) { return quick_rest(a, b); }
};
struct QuickRemainder : FloatingReal {
  static ACL_INLINE float f(float a, float b) {
    const float rest = quick_rest(a, b);
    return rest + if_opposed(b, rest, b);
  }
};
struct QuickFloorDiv : FloatingReal {
  static ACL_INLINE float f(float a, float b) {
    const float rest = quick_rest(a, b), whole = (a - rest) / b;
    const float quotient = whole + if_opposed(-1.0f, rest, b), floored = std::floor(quotient);
    const float nearest = floored + (quotient - floored > 0.5f ? 1.0f : -0.0f);
    const float zero = float_of((bits_of(a) ^ bits_of(b)) & 0x80000000u);
    return quotient == 0.0f ? zero : nearest;
  }
};

// Integer division by zero gives 0 here: the device has no exception for it.
struct FloorDiv : Real {
  using Quick = QuickFloorDiv;
  template <class T>
  static ACL_INLINE T f(T a, T b) {
    if constexpr (kInteger<T>) {
      if (b == 0) return 0;
      if (b == -1) return static_cast<T>(-static_cast<uint64_t>(a));
      return a / b - (a % b != 0 && (a < 0) != (b < 0));
    } else {
      if (b == T(0)) return a / b;
      const T rest = std::fmod(a, b);
      const T quotient = (a - rest) / b - T(rest != T(0) && (b < T(0)) != (rest < T(0)));
      if (quotient == T(0)) return std::copysign(T(0), a / b);
      const T floored = std::floor(quotient);
      return floored + T(quotient - floored > T(0.5));
    }
  }
};
struct TruncDiv : Real {
  template <class T>
  static ACL_INLINE T f(T a, T b) {
    if constexpr (kInteger<T>) {
      if (b == 0) return 0;
      return b == -1 ? static_cast<T>(-static_cast<uint64_t>(a)) : a / b;
    } else {
      return std::trunc(a / b);
    }
  }
};
ACL_FN(TrueDiv, Floating, (T a, T b), a / b)
struct Remainder : Real {  // the sign of the divisor
  using Quick = QuickRemainder;
  template <class T>
  static ACL_INLINE T f(T a, T b) {
    if constexpr (kInteger<T>) {
      if (b == 0 || b == -1) return 0;
      const T r = a % b;
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    } else {
      const T r = std::fmod(a, b);
      return r != T(0) && (b < T(0)) != (r < T(0)) ? r + b : r;
    }
  }
};
struct Fmod : Real {  // the sign of the dividend
  using Quick = QuickFmod;
  template <class T>
  static ACL_INLINE T f(T a, T b) {
    if constexpr (kInteger<T>) {
      return b == 0 || b == -1 ? 0 : a % b;
    } else {
      return std::fmod(a, b);
    }
  }
};
struct Pow : Arith {
  template <class T>
  static ACL_INLINE T f(T a, T b) {
    if constexpr (kInteger<T>) {
      if (b < 0) return a == 1 ? 1 : (a == -1 ? (b % 2 ? -1 : 1) : 0);
      uint64_t result = 1, base = static_cast<uint64_t>(a);
      for (uint64_t e = static_cast<uint64_t>(b); e; e >>= 1, base *= base) {
        if (e & 1) result *= base;
      }
      return static_cast<T>(result);
    } else {
      if (b == T(2)) return a * a;
      if constexpr (!std::is_same<T, c128>::value) {
        // pow(-0, 1/2) is +0 and pow(-inf, 1/2) is +inf (C17, F.10.4.4): no roots of those.
        if (b == T(0.5) && a > T(0)) return std::sqrt(a);
        if (b == T(-0.5) && a > T(0)) return T(1) / std::sqrt(a);
        if (b == T(3)) return a * a * a;
        if (b == T(-1)) return T(1) / a;
      }
      return std::pow(a, b);
    }
  }
};
ACL_FN(Maximum, Real, (T a, T b), a != a || a > b ? a : b)
ACL_FN(Minimum, Real, (T a, T b), a != a || a < b ? a : b)
// torch's clamp: NaN stays, and the upper bound wins where the bounds cross.
ACL_FN(ClampMin, Real, (T x, T low), low != low || x < low ? low : x)
ACL_FN(ClampMax, Real, (T x, T high), high != high || x > high ? high : x)
ACL_FN(Clamp, Real, (T x, T low, T high), ClampMax::f(ClampMin::f(x, low), high))
ACL_FN(Atan2, FloatingReal, (T a, T b), v_atan2(a, b))
// As torch: NaN is not above 0.
ACL_FN(Heaviside, Real, (T x, T at_zero), x == T(0) ? at_zero : T(x > T(0)))
ACL_FN(LogAddExp, FloatingReal, (T a, T b), v_logaddexp(a, b, 1.0))
ACL_FN(LogAddExp2, FloatingReal, (T a, T b), v_logaddexp(a, b, 0.693147180559945309417))
ACL_FN(XLogY, FloatingReal, (T a, T b), b != b ? b : (a == T(0) ? T(0) : a * std::log(b)))
struct XLog1pY : FloatingReal {
  template <class T>
  static ACL_INLINE T f(T a, T b) {
    return b != b ? b : (a == T(0) ? T(0) : a * std::log1p(b));
  }
};
struct Gcd : Computes<true, false> {
  template <class T>
  static ACL_INLINE T f(T a, T b) {
    return static_cast<T>(std::gcd(static_cast<int64_t>(a), static_cast<int64_t>(b)));
  }
};
ACL_FN(Select, Arith, (T condition, T a, T b), condition != T(0) ? a : b)
ACL_FN(MaskedFill, Arith, (T self, T mask, T value), mask != T(0) ? value : self)
ACL_FN(MaskedScale, FloatingReal, (T self, T mask, T scale), self * mask * scale)

namespace {

// (self, other, mode, out): 0 divides, 1 truncates, 2 floors.
template <int Out>
struct DivMod {
  template <class F>
  static auto choose(Call& c, F f) {
    using P = params::DivMod;

    switch (c.integer(P::mode)) {
      case 1: return f(Pointwise<TruncDiv, Out, 0, 1>{});
      case 2: return f(Pointwise<FloorDiv, Out, 0, 1>{});
      default: return f(Pointwise<TrueDiv, Out, 0, 1>{});
    }
  }
  static aclnnStatus check(Call& c) {
    using P = params::DivMod;

    if (c.integer(P::mode) < 0 || c.integer(P::mode) > 2) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "mode should be 0, 1 or 2, but is %lld.",
                    static_cast<long long>(c.integer(P::mode)));
    }
    return choose(c, [&](auto row) { return decltype(row)::check(c); });
  }
  static aclError run(Call& c) {
    return choose(c, [&](auto row) { return decltype(row)::run(c); });
  }
};

// Bounds may be missing, not both.
template <int Out>
struct ClampRow {
  template <class F>
  static auto choose(Call& c, F f) {
    using P = params::Clamp;

    if (c.null(P::clipValueMin)) return f(Pointwise<ClampMax, Out, 0, 2>{});
    if (c.null(P::clipValueMax)) return f(Pointwise<ClampMin, Out, 0, 1>{});
    return f(Pointwise<Clamp, Out, 0, 1, 2>{});
  }
  static aclnnStatus check(Call& c) {
    using P = params::Clamp;

    if (c.null(P::clipValueMin) && c.null(P::clipValueMax)) {
      return c.fail(ACLNN_ERR_PARAM_NULLPTR, "At least one of %s and %s must not be null.",
                    c.name(P::clipValueMin), c.name(P::clipValueMax));
    }
    return choose(c, [&](auto row) { return decltype(row)::check(c); });
  }
  static aclError run(Call& c) {
    return choose(c, [&](auto row) { return decltype(row)::run(c); });
  }
};

// The condition has no say in promotion. 64-bit integers and complex keep their own domain.
template <int Cond, int A, int B, int Out>
struct Where {
  static aclnnStatus check(Call& c) {
    const aclDataType d = c.tensor(Cond).dtype;
    if (d != ACL_BOOL && d != ACL_UINT8) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s not implemented for %s, should be bool or uint8.",
                    c.name(Cond), dtype_name(d));
    }
    return Pointwise<Select, Out, ~Cond, A, B>::check(c);
  }
  static aclError run(Call& c) { return Pointwise<Select, Out, ~Cond, A, B>::run(c); }
};
// (selfRef, mask, value): the result keeps self's dtype.
struct MaskedFillRow {
  using Row = Pointwise<MaskedFill, 0, 0, ~1, ~2>;
  static aclnnStatus check(Call& c) {
    using P = params::InplaceMaskedFillTensor;

    if (c.tensor(P::mask).dtype != ACL_BOOL && c.tensor(P::mask).dtype != ACL_UINT8) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "mask not implemented for %s, should be bool.",
                    dtype_name(c.tensor(P::mask).dtype));
    }
    if (c.args[P::value].kind == ArgKind::Tensor && c.tensor(P::value).numel() != 1) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "value should have one element, but its shape is %s.",
                    shape_text(c.tensor(P::value)));
    }
    return Row::check(c);
  }
};

}  // namespace
}  // namespace aclsim

ACLNN_BINARY_INPLACE(aclnnFloorDivide, aclnnInplaceFloorDivide, FloorDiv)
ACLNN_BINARY_INPLACE(aclnnFloorDivides, aclnnInplaceFloorDivides, FloorDiv)
ACLNN_OP(aclnnDivMod, DivMod<3>::check, DivMod<3>::run)
ACLNN_OP(aclnnDivMods, DivMod<3>::check, DivMod<3>::run)
ACLNN_OP(aclnnInplaceDivMod, DivMod<0>::check, DivMod<0>::run)
ACLNN_OP(aclnnInplaceDivMods, DivMod<0>::check, DivMod<0>::run)
ACLNN_BINARY_INPLACE(aclnnRemainderTensorTensor, aclnnInplaceRemainderTensorTensor, Remainder)
ACLNN_BINARY_INPLACE(aclnnRemainderTensorScalar, aclnnInplaceRemainderTensorScalar, Remainder)
ACLNN_BINARY(aclnnRemainderScalarTensor, Remainder)
ACLNN_BINARY_INPLACE(aclnnFmodTensor, aclnnInplaceFmodTensor, Fmod)
ACLNN_BINARY_INPLACE(aclnnFmodScalar, aclnnInplaceFmodScalar, Fmod)
ACLNN_BINARY_INPLACE(aclnnPowTensorTensor, aclnnInplacePowTensorTensor, Pow)
ACLNN_BINARY_INPLACE(aclnnPowTensorScalar, aclnnInplacePowTensorScalar, Pow)
ACLNN_BINARY(aclnnPowScalarTensor, Pow)
ACLNN_BINARY(aclnnMaximum, Maximum)
ACLNN_BINARY(aclnnMinimum, Minimum)
ACLNN_OP(aclnnClamp, ClampRow<3>::check, ClampRow<3>::run)
ACLNN_OP(aclnnClampTensor, ClampRow<3>::check, ClampRow<3>::run)
ACLNN_BINARY(aclnnClampMin, ClampMin)
ACLNN_BINARY_INPLACE(aclnnClampMax, aclnnInplaceClampMax, ClampMax)
ACLNN_BINARY_INPLACE(aclnnClampMinTensor, aclnnInplaceClampMinTensor, ClampMin)
ACLNN_BINARY_INPLACE(aclnnClampMaxTensor, aclnnInplaceClampMaxTensor, ClampMax)
ACLNN_BINARY_INPLACE(aclnnAtan2, aclnnInplaceAtan2, Atan2)
ACLNN_BINARY(aclnnHeaviside, Heaviside)
ACLNN_BINARY(aclnnLogAddExp, LogAddExp)
ACLNN_BINARY(aclnnLogAddExp2, LogAddExp2)
ACLNN_BINARY_INPLACE(aclnnXLogYTensor, aclnnInplaceXLogYTensor, XLogY)
ACLNN_BINARY_INPLACE(aclnnXLogYScalarOther, aclnnInplaceXLogYScalarOther, XLogY)
ACLNN_BINARY(aclnnXLogYScalarSelf, XLogY)
ACLNN_BINARY(aclnnXlog1py, XLog1pY)
ACLNN_BINARY(aclnnGcd, Gcd)
ACLNN_OP(aclnnSWhere, (Where<params::SWhere::condition, 1, 2, 3>::check),
         (Where<params::SWhere::condition, 1, 2, 3>::run))
ACLNN_OP(aclnnInplaceMaskedFillScalar, MaskedFillRow::check, MaskedFillRow::Row::run)
ACLNN_OP(aclnnInplaceMaskedFillTensor, MaskedFillRow::check, MaskedFillRow::Row::run)
ACLNN_POINTWISE(aclnnMaskedScale, MaskedScale, 3, 0, ~1, ~2)
