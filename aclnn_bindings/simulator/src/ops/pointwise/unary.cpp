// Elementary functions of one operand.
#include "params/pointwise.h"
#include "loops/pointwise.h"
#include "loops/elementary.h"
#include "loops/exponentials.h"
#include "loops/smooth.h"

namespace aclsim {

// Integers are their own rounding.
template <class T, class F>
ACL_INLINE T rounded(T x, F f) {
  if constexpr (std::is_same<T, int64_t>::value) {
    return x;
  } else {
    return f(x);
  }
}
// Half to even, as torch does.
ACL_FN(Round, Real, (T x), rounded(x, [](auto v) { return std::nearbyint(v); }))
ACL_FN(Floor, Real, (T x), rounded(x, [](auto v) { return std::floor(v); }))
ACL_FN(Ceil, Real, (T x), rounded(x, [](auto v) { return std::ceil(v); }))
ACL_FN(Trunc, Real, (T x), rounded(x, [](auto v) { return std::trunc(v); }))
ACL_FN(Frac, Real, (T x), x - rounded(x, [](auto v) { return std::trunc(v); }))
struct RoundDecimals : FloatingReal {
  template <class T>
  static ACL_INLINE T f(T x, T decimals) {
    const T scale = std::pow(T(10), std::fabs(decimals));
    return decimals < T(0) ? std::nearbyint(x / scale) * scale : std::nearbyint(x * scale) / scale;
  }
};
ACL_FN(Neg, Arith, (T x), -x)
ACL_FN(Abs, Real, (T x), x < T(0) ? -x : (x == T(0) ? T(0) : x))
struct Sign : Arith {  // of a complex number: the point of the unit circle in its direction
  template <class T>
  static ACL_INLINE T f(T x) {
    if constexpr (std::is_same<T, c128>::value) {
      return x == T(0) ? T(0) : x / std::abs(x);
    } else {
      return x != x ? T(0) : T((x > T(0)) - (x < T(0)));
    }
  }
};
ACL_FN(Square, Arith, (T x), x * x)
ACL_FN(Reciprocal, Floating, (T x), T(1) / x)
ACL_FN(Sqrt, Floating, (T x), std::sqrt(x))
template <>
void pointwise_body<Sqrt, float, 1>(int64_t n, float* out, const float* const* in) {
  square_roots(out, in[0], n);
}
ACL_FN(Rsqrt, Floating, (T x), T(1) / std::sqrt(x))
// A function of torch's vectors, of all elements.
#define ACL_FN_EXACT(name, rough, one, other)                     \
  struct name : Floating {                                        \
    using Rough = rough;                                          \
    using Tail = name;                                            \
    static constexpr bool wide = false;                           \
    template <class T>                                            \
    static ACL_INLINE T f(T x) {                                  \
      if constexpr (std::is_floating_point<T>::value) {           \
        return one(x);                                            \
      } else {                                                    \
        return other(x);                                          \
      }                                                           \
    }                                                             \
  };
ACL_FN(LogRough, FloatingReal, (T x), v_log(x))
ACL_FN_EXACT(Exp, void, exp_nearest, v_exp)
template <>
void pointwise_body<Exp, float, 1>(int64_t n, float* out, const float* const* in) {
  exponentials(out, in[0], n);
}
ACL_FN(Exp2End, FloatingReal, (T x), std::exp2(x))
ACL_FN(Exp2, Narrow<Exp2End>, (T x), exp2_one(x))
ACL_FN(Expm1, Narrow<Expm1>, (T x), expm1_one(x))
ACL_FN_EXACT(Log, LogRough, log_one, std::log)
ACL_INLINE c128 log_two(c128 x) { return std::log(x) / 0.693147180559945309417; }
ACL_FN_EXACT(Log2, void, log2_one, log_two)
ACL_FN_EXACT(Log10, void, log10_one, std::log10)
ACL_FN(Log1p, Narrow<Log1p>, (T x), log1p_one(x))
ACL_FN(SinNear, Floating, (T x), v_sin_near(x))
ACL_FN(CosNear, Floating, (T x), v_cos_near(x))
ACL_FN(TanNear, Floating, (T x), v_tan_near(x))
template <class Near>
struct Quickly : Floating {
  using Quick = Near;
};
ACL_FN(Sin, Quickly<SinNear>, (T x), std::sin(x))
ACL_FN(Cos, Quickly<CosNear>, (T x), std::cos(x))
ACL_FN(Tan, Quickly<TanNear>, (T x), std::tan(x))
ACL_FN(Asin, Floating, (T x), v_asin(x))
ACL_FN(Acos, Floating, (T x), v_acos(x))
ACL_FN(Atan, Floating, (T x), std::atan(x))
ACL_FN_EXACT(Sinh, void, sinh_one, std::sinh)
ACL_FN_EXACT(Cosh, void, cosh_one, std::cosh)
ACL_FN(Asinh, Floating, (T x), std::asinh(x))
ACL_FN(Acosh, Floating, (T x), std::acosh(x))
ACL_FN(Atanh, Floating, (T x), std::atanh(x))
ACL_FN(Erf, FloatingReal, (T x), v_erf(x))
ACL_FN(Erfc, FloatingReal, (T x), v_erfc(x))
ACL_FN(LgammaNear, FloatingReal, (T x), v_lgamma_near(x))
struct QuickLgamma : FloatingReal {
  using Quick = LgammaNear;
};
ACL_FN(Lgamma, QuickLgamma, (T x), std::lgamma(x))
struct Sinc : FloatingReal {
  template <class T>
  static ACL_INLINE T f(T x) {
    const T p = x * static_cast<T>(3.14159265358979323846);
    return x == T(0) ? T(1) : std::sin(p) / p;
  }
};

// Newton's method on erf from Giles' single precision start: three steps reach double precision.
struct Erfinv : FloatingReal {
  template <class T>
  static ACL_INLINE T f(T value) {
    if constexpr (std::is_same<T, float>::value) return v_erfinv(value);
    const double y = static_cast<double>(value);
    if (!(y > -1 && y < 1)) {
      const T inf = std::numeric_limits<T>::infinity();
      return y == 1 ? inf : (y == -1 ? -inf : std::numeric_limits<T>::quiet_NaN());
    }
    const double a = 0.147, l = std::log1p(-y * y), t = 2 / (3.14159265358979323846 * a) + l / 2;
    double x = std::copysign(std::sqrt(std::sqrt(t * t - l / a) - t), y);
    for (int i = 0; i < 4; ++i) {
      const double error = y < 0 ? std::erfc(-x) - (1 + y) : (1 - y) - std::erfc(x);
      const double slope = 1.12837916709551257390 * std::exp(-x * x);
      x -= error / slope;
    }
    return static_cast<T>(x);
  }
};
ACL_FN(Digamma, FloatingReal, (T x), digamma(x))

ACL_FN(IsFinite, TestReal, (T x), x - x == T(0))
struct IsInf : TestReal {
  template <class T>
  static ACL_INLINE T f(T x) {
    return x == x && !(x - x == T(0));
  }
};
ACL_FN(IsPosInf, TestReal, (T x), x > T(0) && !(x - x == T(0)))
ACL_FN(IsNegInf, TestReal, (T x), x < T(0) && !(x - x == T(0)))
ACL_FN(Signbit, TestReal, (T x), std::signbit(static_cast<double>(x)))
struct NanToNum : Real {
  template <class T>
  static ACL_INLINE T f(T x, T nan, T high, T low) {
    return x != x ? nan : (x - x == T(0) ? x : (x > T(0) ? high : low));
  }
};

// The absolute value of complex numbers is real: the one unary op that leaves its domain.
aclnnStatus check_abs(Call& c) {
  using P = params::Abs;

  const aclDataType self = c.tensor(P::self).dtype;
  if (!is_complex(self)) return Pointwise<Abs, 1, 0>::check(c);
  ACL_RETURN_IF_FAILED(expect_castable(c, self == ACL_COMPLEX128 ? ACL_DOUBLE : ACL_FLOAT, P::out));
  return expect_same_shape(c, P::out, P::self);
}
aclError run_abs(Call& c) {
  using P = params::Abs;

  if (!is_complex(c.tensor(P::self).dtype)) return Pointwise<Abs, 1, 0>::run(c);
  Loop loop = loop_over(c.tensor(P::out));
  loop.add(c.tensor(P::self));
  loop.coalesce();
  run_loop<c128>(loop, [](int64_t n, c128* out, const c128* const* in) {
    for (int64_t i = 0; i < n; ++i) out[i] = std::abs(in[0][i]);
  });
  return ACL_SUCCESS;
}

}  // namespace aclsim

ACLNN_UNARY_INPLACE(aclnnRound, aclnnInplaceRound, Round)
ACLNN_POINTWISE(aclnnRoundDecimals, RoundDecimals, 2, 0, ~1)
ACLNN_POINTWISE(aclnnInplaceRoundDecimals, RoundDecimals, 0, 0, ~1)
ACLNN_UNARY_INPLACE(aclnnFloor, aclnnInplaceFloor, Floor)
ACLNN_UNARY_INPLACE(aclnnCeil, aclnnInplaceCeil, Ceil)
ACLNN_UNARY_INPLACE(aclnnTrunc, aclnnInplaceTrunc, Trunc)
ACLNN_UNARY_INPLACE(aclnnFrac, aclnnInplaceFrac, Frac)
ACLNN_UNARY_INPLACE(aclnnNeg, aclnnInplaceNeg, Neg)
ACLNN_OP(aclnnAbs, check_abs, run_abs)
ACLNN_UNARY(aclnnSign, Sign)
ACLNN_UNARY(aclnnSquare, Square)
ACLNN_UNARY_INPLACE(aclnnReciprocal, aclnnInplaceReciprocal, Reciprocal)
ACLNN_UNARY_INPLACE(aclnnSqrt, aclnnInplaceSqrt, Sqrt)
ACLNN_UNARY_INPLACE(aclnnRsqrt, aclnnInplaceRsqrt, Rsqrt)
ACLNN_UNARY_INPLACE(aclnnExp, aclnnInplaceExp, Exp)
ACLNN_UNARY_INPLACE(aclnnExp2, aclnnInplaceExp2, Exp2)
ACLNN_UNARY_INPLACE(aclnnExpm1, aclnnInplaceExpm1, Expm1)
ACLNN_UNARY_INPLACE(aclnnLog, aclnnInplaceLog, Log)
ACLNN_UNARY_INPLACE(aclnnLog2, aclnnInplaceLog2, Log2)
ACLNN_UNARY_INPLACE(aclnnLog10, aclnnInplaceLog10, Log10)
ACLNN_UNARY_INPLACE(aclnnLog1p, aclnnInplaceLog1p, Log1p)
ACLNN_UNARY_INPLACE(aclnnSin, aclnnInplaceSin, Sin)
ACLNN_UNARY_INPLACE(aclnnCos, aclnnInplaceCos, Cos)
ACLNN_UNARY_INPLACE(aclnnTan, aclnnInplaceTan, Tan)
ACLNN_UNARY_INPLACE(aclnnAsin, aclnnInplaceAsin, Asin)
ACLNN_UNARY_INPLACE(aclnnAcos, aclnnInplaceAcos, Acos)
ACLNN_UNARY_INPLACE(aclnnAtan, aclnnInplaceAtan, Atan)
ACLNN_UNARY_INPLACE(aclnnSinh, aclnnInplaceSinh, Sinh)
ACLNN_UNARY_INPLACE(aclnnCosh, aclnnInplaceCosh, Cosh)
ACLNN_UNARY_INPLACE(aclnnAsinh, aclnnInplaceAsinh, Asinh)
ACLNN_UNARY_INPLACE(aclnnAcosh, aclnnInplaceAcosh, Acosh)
ACLNN_UNARY_INPLACE(aclnnAtanh, aclnnInplaceAtanh, Atanh)
ACLNN_UNARY_INPLACE(aclnnErf, aclnnInplaceErf, Erf)
ACLNN_UNARY_INPLACE(aclnnErfc, aclnnInplaceErfc, Erfc)
ACLNN_UNARY_INPLACE(aclnnErfinv, aclnnInplaceErfinv, Erfinv)
ACLNN_UNARY_INPLACE(aclnnSinc, aclnnInplaceSinc, Sinc)
ACLNN_UNARY(aclnnLgamma, Lgamma)
ACLNN_UNARY(aclnnDigamma, Digamma)
ACLNN_UNARY(aclnnIsFinite, IsFinite)
ACLNN_UNARY(aclnnIsInf, IsInf)
ACLNN_UNARY(aclnnIsPosInf, IsPosInf)
ACLNN_UNARY(aclnnIsNegInf, IsNegInf)
ACLNN_UNARY(aclnnSignbit, Signbit)
ACLNN_POINTWISE(aclnnNanToNum, NanToNum, 4, 0, ~1, ~2, ~3)
ACLNN_POINTWISE(aclnnInplaceNanToNum, NanToNum, 0, 0, ~1, ~2, ~3)
