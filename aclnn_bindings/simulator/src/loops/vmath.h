// Elementary functions that vectorise inside a loop: float versions by polynomial, within 2 ulp of
// the exact value; double and complex go to the C++ library.
#pragma once

#include "ascendcl/dtype.h"

namespace aclsim {

// 2^n for integral n in [-126, 127], held in a float.
ACL_INLINE float exp2_integral(float n) {
  return float_of(static_cast<uint32_t>(static_cast<int32_t>(n) + 127) << 23);
}

constexpr float kRound = 12582912.0f;  // adding it leaves the nearest integer

// exp(x) = result * 2^n.
ACL_INLINE float exp_reduced(float x, float& n) {
  n = (x * 1.44269504f + kRound) - kRound;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return p * (r * r) + r + 1.0f;
}
ACL_INLINE float v_exp(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  float n;
  const float p = exp_reduced(x, n);
  // Two factors, so that subnormal results and the last binade come out right.
  const float first = (n * 0.5f + kRound) - kRound;
  return p * exp2_integral(first) * exp2_integral(n - first);
}
// For |x| below 87, where no result is subnormal or overflows.
ACL_INLINE float v_exp_small(float x) {
  float n;
  const float p = exp_reduced(x, n);
  return p * exp2_integral(n);
}
ACL_INLINE double v_exp(double x) { return std::exp(x); }
ACL_INLINE c128 v_exp(c128 x) { return std::exp(x); }

// Fitted by least squares on Chebyshev nodes: x P(x^2) below 1, 1 - exp(-Q(x - 1)) above.
ACL_INLINE float v_erf(float x) {
  const float a = std::fabs(x), z = x * x;
  float p = 7.933493907e-5f;
  p = p * z - 8.034846396e-4f;
  p = p * z + 5.191218574e-3f;
  p = p * z - 2.685539983e-2f;
  p = p * z + 1.128362566e-1f;
  p = p * z - 3.761262894e-1f;
  p = p * z + 1.128379226f;
  const float s = (a > 4.0f ? 4.0f : a) - 1.0f;
  float q = -1.572768815e-4f;
  q = q * s + 1.710366341e-3f;
  q = q * s - 9.723219089e-3f;
  q = q * s + 4.139582813e-2f;
  q = q * s + 8.431458473e-1f;
  q = q * s + 2.638964415f;
  q = q * s + 1.849605560f;
  const float tail = 1.0f - v_exp_small(-q);
  const float signed_tail = x < 0.0f ? -tail : tail;
  return a < 1.0f ? x * p : (x != x ? x : signed_tail);
}
ACL_INLINE double v_erf(double x) { return std::erf(x); }

// The normal distribution's cumulative function: exp(-Q(|x|)) is the tail, to 4e-8 of 1.
ACL_INLINE float v_phi(float x) {
  const float a = std::fabs(x);
  float q = -2.226386187e-07f;
  q = q * a + 4.703210834e-06f;
  q = q * a - 4.065983376e-05f;
  q = q * a + 1.622059935e-04f;
  q = q * a + 5.056984810e-05f;
  q = q * a - 4.864994437e-03f;
  q = q * a + 3.637791798e-02f;
  q = q * a + 3.182993829e-01f;
  q = q * a + 7.978855371e-01f;
  q = q * a + 6.931471825e-01f;
  const float tail = a > 5.6f ? 0.0f : v_exp_small(-q);
  return x < 0.0f ? tail : 1.0f - tail;
}
ACL_INLINE double v_phi(double x) { return 0.5 * std::erfc(x * -0.70710678118654752440); }

ACL_INLINE float v_tanh(float x) {
  const float a = std::fabs(x), z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float near = p * z * x + x;
  const float far = 1.0f - 2.0f / (v_exp_small(a > 20.0f ? 40.0f : a + a) + 1.0f);
  const float signed_far = x < 0.0f ? -far : far;
  return a == 0.0f ? x : a < 0.625f ? near : (x != x ? x : signed_far);
}
ACL_INLINE double v_tanh(double x) { return std::tanh(x); }
ACL_INLINE c128 v_tanh(c128 x) { return std::tanh(x); }

template <class T>
ACL_INLINE T v_sigmoid(T x) {
  return T(1) / (T(1) + v_exp(-x));
}

// Cephes' logf scheme on the mantissa in [sqrt(1/2), sqrt(2)).
ACL_INLINE float v_log(float x) {
  const float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x;
  const float shift = x < 1.17549435e-38f ? -23.0f : 0.0f;
  const uint32_t bits = bits_of(scaled);
  const int32_t up = ((bits & 0x7FFFFFu) > 0x3504F3u) ? 1 : 0;
  const float e = static_cast<float>(static_cast<int32_t>(bits >> 23) - 127 + up) + shift;
  const float m = float_of((bits & 0x7FFFFFu) | (up ? 0x3F000000u : 0x3F800000u)) - 1.0f;
  const float z = m * m;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  float y = p * m * z - 2.12194440e-4f * e - 0.5f * z;
  y = (m + y) + 0.693359375f * e;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  y = x == kInf ? kInf : y;
  y = x == 0.0f ? -kInf : y;
  return x >= 0.0f ? y : std::numeric_limits<float>::quiet_NaN();
}
ACL_INLINE double v_log(double x) { return std::log(x); }
ACL_INLINE c128 v_log(c128 x) { return std::log(x); }

template <class T>
ACL_INLINE bool is_nan(T x) {
  return x != x;
}

}  // namespace aclsim
