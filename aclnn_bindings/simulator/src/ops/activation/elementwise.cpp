// Activations and their gradients, as torch defines them.
#include "params/activation.h"
#include "loops/given.h"
#include "loops/pointwise.h"
#include "loops/elementary.h"
#include "loops/gelu.h"

namespace aclsim {

template <class T>
ACL_INLINE T clamped(T x, T low, T high) {
  return x != x ? x : (x < low ? low : (x > high ? high : x));
}
// T made of a literal, exact in both float types.
template <class T>
ACL_INLINE T lit(double x) {
  return static_cast<T>(x);
}

ACL_FN(Relu, Real, (T x), x < T(0) ? T(0) : x)
// What ends a row, by the C library, then what torch's vectors compute
// (aten/src/ATen/native/cpu/Activation.cpp, UnaryOpsKernel.cpp and Gelu.h).
template <class T>
ACL_INLINE T sigmoid_one(T x) {
  return T(1) / (T(1) + exp_one(-x));
}
ACL_FN(SigmoidEnd, FloatingReal, (T x), T(1) / (T(1) + std::exp(-x)))
struct Sigmoid : Floating {
  using Tail = SigmoidEnd;
  static constexpr bool wide = true;
  template <class T>
  static ACL_INLINE T f(T x) {
    if constexpr (std::is_floating_point<T>::value) return sigmoid_one(x);
    else return v_sigmoid(x);
  }
};
ACL_FN(SigmoidGrad, Floating, (T g, T y), g * (T(1) - y) * y)
struct Tanh : Floating {
  using Tail = Tanh;
  static constexpr bool wide = false;
  template <class T>
  static ACL_INLINE T f(T x) {
    if constexpr (std::is_floating_point<T>::value) return tanh_nearest(x);
    else return v_tanh(x);
  }
};
ACL_FN(TanhGrad, Floating, (T g, T y), g * (T(1) - y * y))
ACL_FN(SiluEnd, FloatingReal, (T x), x / (T(1) + std::exp(-x)))
ACL_FN(Silu, Widest<SiluEnd>, (T x), x / (T(1) + exp_one(-x)))
template <class T>
ACL_INLINE T silu_slope(T g, T x, T s) {
  return (g * s) * fused(x, T(1) - s, T(1));
}
ACL_FN(SiluGradEnd, FloatingReal, (T g, T x), silu_slope(g, x, T(1) / (T(1) + std::exp(-x))))
ACL_FN(SiluGrad, Widest<SiluGradEnd>, (T g, T x), silu_slope(g, x, sigmoid_one(x)))
ACL_FN(Swish, FloatingReal, (T x, T beta), x / (T(1) + v_exp(-beta * x)))
ACL_FN(SwishGrad, FloatingReal, (T g, T x, T beta),
       g * v_sigmoid(beta * x) * (T(1) + beta * x * (T(1) - v_sigmoid(beta * x))))
struct Gelu : Narrow<Gelu> {
  static ACL_INLINE float f(float x) { return gelu_one(x); }
  static ACL_INLINE double f(double x) { return x * v_phi(x); }
};
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
template <>
void pointwise_body<Gelu, float, 1>(int64_t n, float* out, const float* const* in) {
  if (wide_vectors()) return gelus(out, in[0], n);
  body_with_tail<Gelu, float, 1>(n, out, in, 0);
}
#endif
struct GeluGrad : Narrow<GeluGrad> {
  static ACL_INLINE float f(float g, float x) { return g * gelu_slope_one(x); }
  static ACL_INLINE double f(double g, double x) {
    return g * (v_phi(x) + x * 0.39894228040143267794 * v_exp(-0.5 * x * x));
  }
};
template <class T>
ACL_INLINE T gelu_inner(T x) {
  return lit<T>(0.79788456080286535588) * fused(lit<T>(0.044715), (x * x) * x, x);
}
ACL_FN(GeluTanhEnd, FloatingReal, (T x), (T(0.5) * x) * (T(1) + std::tanh(gelu_inner(x))))
ACL_FN(GeluTanh, Widest<GeluTanhEnd>, (T x), (T(0.5) * x) * (T(1) + tanh_one(gelu_inner(x))))
template <class T>
ACL_INLINE T gelu_tanh_slope(T g, T x, T t) {
  const T slope = lit<T>(0.79788456080286535588) * fused(T(3) * lit<T>(0.044715), x * x, T(1));
  return g * fused(T(0.5), T(1) + t, ((T(0.5) * x) * fused(-t, t, T(1))) * slope);
}
ACL_FN(GeluTanhGradEnd, FloatingReal, (T g, T x),
       gelu_tanh_slope(g, x, std::tanh(gelu_inner(x))))
ACL_FN(GeluTanhGrad, Widest<GeluTanhGradEnd>, (T g, T x),
       gelu_tanh_slope(g, x, tanh_one(gelu_inner(x))))
// x * sigmoid(1.702 x)
ACL_FN(FastGelu, FloatingReal, (T x), x / (T(1) + v_exp(lit<T>(-1.702) * x)))
struct FastGeluGrad : FloatingReal {
  template <class T>
  static ACL_INLINE T f(T g, T x) {
    const T s = v_sigmoid(lit<T>(1.702) * x);
    return g * s * (T(1) + lit<T>(1.702) * x * (T(1) - s));
  }
};
ACL_FN(LeakyRelu, FloatingReal, (T x, T slope), x > T(0) ? x : x * slope)
ACL_FN(LeakyReluGrad, FloatingReal, (T g, T x, T slope), x > T(0) ? g : g * slope)
ACL_FN(EluEnd, FloatingReal, (T x, T alpha, T scale, T input_scale),
       x < T(0) ? std::expm1(x * input_scale) * (alpha * scale) : x * scale)
ACL_FN(Elu, Widest<EluEnd>, (T x, T alpha, T scale, T input_scale),
       x < T(0) ? expm1_one(x * input_scale) * (alpha * scale) : x * scale)
template <class T>
ACL_INLINE T elu_slope(T g, T negative, T scale, T input_scale, T is_result, T x, T power) {
  const T low = g * input_scale, kept = is_result != T(0) ? low * (x + negative) : low * negative * power;
  return x > T(0) ? g * scale : kept;
}
ACL_FN(EluGradEnd, FloatingReal, (T g, T alpha, T scale, T input_scale, T is_result, T x),
       elu_slope(g, alpha * scale, scale, input_scale, is_result, x, std::exp(x * input_scale)))
ACL_FN(EluGrad, Widest<EluGradEnd>, (T g, T alpha, T scale, T input_scale, T is_result, T x),
       elu_slope(g, alpha * scale, scale, input_scale, is_result, x, exp_one(x * input_scale)))
ACL_FN(CeluEnd, FloatingReal, (T x, T alpha),
       x < T(0) ? std::expm1(x * (T(1) / alpha)) * alpha : x)
ACL_FN(Celu, Widest<CeluEnd>, (T x, T alpha),
       x < T(0) ? expm1_one(x * (T(1) / alpha)) * alpha : x)
template <class T>
constexpr T kSeluAlpha = T(1.6732632423543772848170429916717);
template <class T>
constexpr T kSeluScale = T(1.0507009873554804934193349852946);
ACL_FN(SeluEnd, FloatingReal, (T x),
       x < T(0) ? std::expm1(x) * (kSeluAlpha<T> * kSeluScale<T>) : x * kSeluScale<T>)
ACL_FN(Selu, Widest<SeluEnd>, (T x),
       x < T(0) ? expm1_one(x) * (kSeluAlpha<T> * kSeluScale<T>) : x * kSeluScale<T>)
ACL_FN(SeluGrad, FloatingReal, (T g, T y),
       y > T(0) ? g * kSeluScale<T> : g * (y + kSeluAlpha<T> * kSeluScale<T>))
ACL_FN(Hardsigmoid, FloatingReal, (T x), clamped(x + T(3), T(0), T(6)) / T(6))
ACL_FN(HardsigmoidGrad, FloatingReal, (T g, T x), x > T(-3) && x < T(3) ? g * lit<T>(1.0 / 6) : T(0))
ACL_FN(Hardswish, FloatingReal, (T x), x * clamped(x + T(3), T(0), T(6)) / T(6))
ACL_FN(HardswishGrad, FloatingReal, (T g, T x),
       x <= T(-3) ? T(0) : (x >= T(3) ? g : g * (x / T(3) + lit<T>(0.5))))
ACL_FN(Hardtanh, Real, (T x, T low, T high), clamped(x, low, high))
ACL_FN(HardtanhGrad, FloatingReal, (T g, T x, T low, T high),
       x > low && x < high ? g : T(0))
ACL_FN(Hardshrink, FloatingReal, (T x, T lambda), x >= -lambda && x <= lambda ? T(0) : x)
ACL_FN(HardshrinkGrad, FloatingReal, (T g, T x, T lambda),
       x < -lambda || x > lambda ? g : T(0))
ACL_FN(Softshrink, FloatingReal, (T x, T lambda),
       x > lambda ? x - lambda : (x < -lambda ? x + lambda : x * T(0)))
ACL_FN(Shrink, FloatingReal, (T x, T lambda, T bias),
       x < -lambda ? x + bias : (x > lambda ? x - bias : T(0)))
ACL_FN(SoftplusEnd, FloatingReal, (T x, T beta, T threshold),
       x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta)
ACL_FN(Softplus, Widest<SoftplusEnd>, (T x, T beta, T threshold),
       x * beta > threshold ? x : log1p_common(exp_one(x * beta)) / beta)
template <class T>
ACL_INLINE T softplus_slope(T g, T z) {
  const T plain = g * z / (z + T(1)), apart = g * (z / (z + T(1)));
  return z > T(1e20) ? g : (std::isinf(plain) ? apart : plain);  // where a product overflows
}
ACL_FN(SoftplusGradEnd, FloatingReal, (T g, T x, T beta, T threshold),
       x * beta > threshold ? g : softplus_slope(g, std::exp(x * beta)))
ACL_FN(SoftplusGrad, Widest<SoftplusGradEnd>, (T g, T x, T beta, T threshold),
       x * beta > threshold ? g : softplus_slope(g, exp_one(x * beta)))
struct LogSigmoidFn : FloatingReal {
  using Tail = LogSigmoidFn;
  static constexpr bool wide = true;
  template <class T>
  static ACL_INLINE T f(T x) {
    return (x > T(0) ? T(0) : x) - log1p_common(exp_one(-std::fabs(x)));
  }
};
struct LogSigmoidGrad : FloatingReal {
  using Tail = LogSigmoidGrad;
  static constexpr bool wide = true;
  template <class T>
  static ACL_INLINE T f(T g, T x) {
    const T e = exp_one(-std::fabs(x)), share = e / (T(1) + e);
    return (x < T(0) ? T(1) - share : share) * g;
  }
};
ACL_FN(MishEnd, FloatingReal, (T x), x * std::tanh(std::log1p(std::exp(x))))
// tanh(log(1 + exp(x))), which is 1 from 20 on.
template <class T>
ACL_INLINE T mish_share(T x) {
  return tanh_one(log1p_common(exp_one(x > T(80) ? T(80) : x)));
}
ACL_FN(Mish, Widest<MishEnd>, (T x), x * mish_share(x))
template <class T>
ACL_INLINE T mish_slope(T g, T x, T s, T t) {
  return g * fused(x * s, fused(-t, t, T(1)), t);
}
ACL_FN(MishGradEnd, FloatingReal, (T g, T x),
       mish_slope(g, x, T(1) / (T(1) + std::exp(-x)), std::tanh(std::log1p(std::exp(x)))))
ACL_FN(MishGrad, Widest<MishGradEnd>, (T g, T x), mish_slope(g, x, sigmoid_one(x), mish_share(x)))
ACL_FN(Threshold, Real, (T x, T threshold, T value), x <= threshold ? value : x)
ACL_FN(ThresholdGrad, Real, (T g, T x, T threshold), x <= threshold ? T(0) : g)
// eps < 0: none. Inside, x is clamped to [eps, 1 - eps] first.
struct Logit : FloatingReal {
  template <class T>
  static ACL_INLINE T f(T x, T eps) {
    const T z = eps < T(0) ? x : clamped(x, eps, T(1) - eps);
    return std::log(z / (T(1) - z));
  }
};
struct LogitGrad : FloatingReal {
  template <class T>
  static ACL_INLINE T f(T x, T g, T eps) {
    if (eps < T(0)) {
      return x < T(0) || x > T(1) ? std::numeric_limits<T>::quiet_NaN() : g / (x * (T(1) - x));
    }
    return x < eps || x > T(1) - eps ? T(0) : g / (x * (T(1) - x));
  }
};
ACL_FN(SquaredRelu, Real, (T x), x > T(0) || x != x ? x * x : T(0))

namespace {

// GeluV2 and its gradient choose the formula by an argument: number or text.
bool wants_tanh(const Call& c, int arg) {
  if (c.args[arg].kind != ArgKind::String) return c.integer(arg) == 1;
  return c.text(arg) && std::strcmp(c.text(arg), "tanh") == 0;
}
template <class Exact, class Tanh, int Choice>
struct Either {
  static aclnnStatus check(Call& c) {
    if (c.args[Choice].kind == ArgKind::String && c.text(Choice) &&
        std::strcmp(c.text(Choice), "none") != 0 && std::strcmp(c.text(Choice), "tanh") != 0) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should be none or tanh, but is %s.",
                    c.name(Choice), c.text(Choice));
    }
    return Exact::check(c);
  }
  static aclError run(Call& c) { return wants_tanh(c, Choice) ? Tanh::run(c) : Exact::run(c); }
};
using GeluV2 = Either<Pointwise<Gelu, 2, 0>, Pointwise<GeluTanh, 2, 0>, 1>;
using GeluGradV2 = Either<Pointwise<GeluGrad, 3, 0, 1>, Pointwise<GeluTanhGrad, 3, 0, 1>, 2>;

// A missing beta is 1.
template <class WithBeta, class Without, int Beta>
struct MaybeBeta {
  static aclnnStatus check(Call& c) {
    return c.null(Beta) ? Without::check(c) : WithBeta::check(c);
  }
  static aclError run(Call& c) { return c.null(Beta) ? Without::run(c) : WithBeta::run(c); }
};
using SwishRow = MaybeBeta<Pointwise<Swish, 2, 0, ~1>, Pointwise<Silu, 2, 0>, 1>;
using SwishGradRow = MaybeBeta<Pointwise<SwishGrad, 3, 0, 1, ~2>, Pointwise<SiluGrad, 3, 0, 1>, 2>;

// (self, out, buffer): the buffer holds exp(-|x|) where it has elements; the gradient here
// recomputes it.
ACL_FN(ExpMinusAbs, FloatingReal, (T x), v_exp(-std::fabs(x)))
void run_log_sigmoid(Call& c) {
  using P = params::LogSigmoidForward;

  Pointwise<LogSigmoidFn, 1, 0>::run(c);
  const Tensor& buffer = c.tensor(P::buffer);
  if (!buffer.same_shape(c.tensor(P::self))) return;
  Loop loop = loop_over(buffer);
  loop.add(c.tensor(P::self));
  loop.coalesce();
  static constexpr Bodies bodies = bodies_of<ExpMinusAbs, 1>();
  run_bodies(loop, c.tensor(P::self).dtype, bodies);
}

aclnnStatus check_softshrink(Call& c) {
  using P = params::Softshrink;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::lambd}));
  if (c.scalar(P::lambd).real() >= 0) return Pointwise<Softshrink, 2, 0, ~1>::check(c);
  return c.fail(ACLNN_ERR_PARAM_INVALID, "lambd should be 0 or more, but is %g.",
                c.scalar(P::lambd).real());
}

}  // namespace
}  // namespace aclsim

ACLNN_UNARY_INPLACE(aclnnRelu, aclnnInplaceRelu, Relu)
ACLNN_UNARY_INPLACE(aclnnSigmoid, aclnnInplaceSigmoid, Sigmoid)
ACLNN_BINARY(aclnnSigmoidBackward, SigmoidGrad)
ACLNN_UNARY_INPLACE(aclnnTanh, aclnnInplaceTanh, Tanh)
ACLNN_BINARY(aclnnTanhBackward, TanhGrad)
ACLNN_UNARY(aclnnSilu, Silu)
ACLNN_BINARY(aclnnSiluBackward, SiluGrad)
ACLNN_OP(aclnnSwish, SwishRow::check, SwishRow::run)
ACLNN_OP(aclnnSwishBackward, SwishGradRow::check, SwishGradRow::run)
// The tanh form, by the operators' documents; V2 says which.
ACLNN_UNARY(aclnnGelu, GeluTanh)
ACLNN_BINARY(aclnnGeluBackward, GeluTanhGrad)
ACLNN_OP(aclnnGeluV2, GeluV2::check, GeluV2::run)
ACLNN_OP(aclnnGeluBackwardV2, GeluGradV2::check, GeluGradV2::run)
ACLNN_UNARY(aclnnFastGelu, FastGelu)
ACLNN_BINARY(aclnnFastGeluBackward, FastGeluGrad)
ACLNN_POINTWISE(aclnnLeakyRelu, LeakyRelu, 2, 0, ~1)
ACLNN_POINTWISE(aclnnInplaceLeakyRelu, LeakyRelu, 0, 0, ~1)
ACLNN_POINTWISE(aclnnLeakyReluBackward, LeakyReluGrad, 4, 0, 1, ~2)
ACLNN_POINTWISE(aclnnElu, Elu, 4, 0, ~1, ~2, ~3)
ACLNN_POINTWISE(aclnnInplaceElu, Elu, 0, 0, ~1, ~2, ~3)
ACLNN_POINTWISE(aclnnEluBackward, EluGrad, 6, 0, ~1, ~2, ~3, ~4, 5)
ACLNN_POINTWISE(aclnnCelu, Celu, 2, 0, ~1)
ACLNN_POINTWISE(aclnnInplaceCelu, Celu, 0, 0, ~1)
ACLNN_UNARY_INPLACE(aclnnSelu, aclnnInplaceSelu, Selu)
ACLNN_BINARY(aclnnSeluBackward, SeluGrad)
ACLNN_UNARY_INPLACE(aclnnHardsigmoid, aclnnInplaceHardsigmoid, Hardsigmoid)
ACLNN_BINARY(aclnnHardsigmoidBackward, HardsigmoidGrad)
ACLNN_UNARY_INPLACE(aclnnHardswish, aclnnInplaceHardswish, Hardswish)
ACLNN_BINARY(aclnnHardswishBackward, HardswishGrad)
ACLNN_BINARY(aclnnHardswishBackwardV2, HardswishGrad)
ACLNN_POINTWISE(aclnnHardtanh, Hardtanh, 3, 0, ~1, ~2)
ACLNN_POINTWISE(aclnnInplaceHardtanh, Hardtanh, 0, 0, ~1, ~2)
ACLNN_POINTWISE(aclnnHardtanhBackward, HardtanhGrad, 4, 0, 1, ~2, ~3)
ACLNN_POINTWISE(aclnnHardshrink, Hardshrink, 2, 0, ~1)
ACLNN_POINTWISE(aclnnHardshrinkBackward, HardshrinkGrad, 3, 0, 1, ~2)
ACLNN_OP(aclnnSoftshrink, check_softshrink, (Pointwise<Softshrink, 2, 0, ~1>::run))
ACLNN_POINTWISE(aclnnSoftshrinkBackward, HardshrinkGrad, 3, 0, 1, ~2)
ACLNN_POINTWISE(aclnnShrink, Shrink, 3, 0, ~1, ~2)
ACLNN_POINTWISE(aclnnSoftplus, Softplus, 3, 0, ~1, ~2)
ACLNN_POINTWISE(aclnnSoftplusBackward, SoftplusGrad, 4, 0, 1, ~2, ~3)
ACLNN_UNARY(aclnnLogSigmoid, LogSigmoidFn)
ACLNN_OP(aclnnLogSigmoidForward, (Pointwise<LogSigmoidFn, 1, 0>::check), run_log_sigmoid)
ACLNN_POINTWISE(aclnnLogSigmoidBackward, LogSigmoidGrad, 3, 0, 1)
ACLNN_UNARY_INPLACE(aclnnMish, aclnnInplaceMish, Mish)
ACLNN_BINARY(aclnnMishBackward, MishGrad)
ACLNN_POINTWISE(aclnnThreshold, Threshold, 3, 0, ~1, ~2)
ACLNN_POINTWISE(aclnnInplaceThreshold, Threshold, 0, 0, ~1, ~2)
ACLNN_POINTWISE(aclnnThresholdBackward, ThresholdGrad, 3, 0, 1, ~2)
ACLNN_UNARY(aclnnSquaredRelu, SquaredRelu)
ACLNN_POINTWISE(aclnnLogit, Logit, 2, 0, ~1)
ACLNN_POINTWISE(aclnnLogitGrad, LogitGrad, 3, 0, 1, ~2)
