// Elementary functions of float by torch's own formulas, so that results agree to the last bit.
//
// torch's vectors call SLEEF's functions of one unit in the last place; algorithms and coefficients
// are those of SLEEF's src/libm/sleefsimdsp.c and src/common/df.h (with fused multiply-add).
// Loops over these vectorise.
#pragma once

#include "loops/vmath.h"

namespace aclsim {

// For functions that call these: no product is fused with a sum but where `fused` says so.
#if defined(__GNUC__) && !defined(__clang__)
#define ACL_EXACT ACL_VECTOR __attribute__((optimize("fp-contract=off")))
#else
#define ACL_EXACT ACL_VECTOR
#endif

ACL_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
ACL_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

// An unevaluated sum.
struct Two {
  float hi, lo;
};
ACL_INLINE Two two_sum(float x, float y) {
  const float s = x + y, v = s - x;
  return {s, (x - (s - v)) + (y - v)};
}
ACL_INLINE Two plus(Two x, float y) {
  const Two s = two_sum(x.hi, y);
  return {s.hi, s.lo + x.lo};
}
ACL_INLINE Two plus(Two x, Two y) {
  const Two s = two_sum(x.hi, y.hi);
  return {s.hi, s.lo + (x.lo + y.lo)};
}
// The same where |x| >= |y|.
ACL_INLINE Two plus_smaller(float x, Two y) {
  const float s = x + y.hi;
  return {s, (x - s + y.hi) + y.lo};
}
ACL_INLINE Two plus_smaller(Two x, float y) {
  const float s = x.hi + y;
  return {s, (x.hi - s + y) + x.lo};
}
ACL_INLINE Two plus_smaller(Two x, Two y) {
  const float s = x.hi + y.hi;
  return {s, ((x.hi - s + y.hi) + x.lo) + y.lo};
}
ACL_INLINE Two minus_smaller(Two x, Two y) {
  const float s = x.hi - y.hi;
  return {s, ((x.hi - s - y.hi) + x.lo) - y.lo};
}
ACL_INLINE Two times(Two x, float y) {
  const float s = x.hi * y;
  return {s, fused(x.lo, y, fused(x.hi, y, -s))};
}
ACL_INLINE Two times(Two x, Two y) {
  const float s = x.hi * y.hi;
  return {s, fused(x.hi, y.lo, fused(x.lo, y.hi, fused(x.hi, y.hi, -s)))};
}
ACL_INLINE Two square(Two x) {
  const float s = x.hi * x.hi;
  return {s, fused(x.hi + x.hi, x.lo, fused(x.hi, x.hi, -s))};
}
ACL_INLINE Two over(Two n, Two d) {
  const float t = 1.0f / d.hi, s = n.hi * t;
  const float u = fused(t, n.hi, -s), v = fused(-d.lo, t, fused(-d.hi, t, 1.0f));
  return {s, fused(s, v, fused(n.lo, t, u))};
}
ACL_INLINE Two reciprocal(Two d) {
  const float s = 1.0f / d.hi;
  return {s, (s * fused(-d.lo, s, fused(-d.hi, s, 1.0f)))};
}
ACL_INLINE float value(Two x) { return x.hi + x.lo; }

// x 2^n for integral n in [-300, 300].
ACL_INLINE float scaled(float x, float n) {
  const float first = (n * 0.5f + kRound) - kRound;
  return x * exp2_integral(first) * exp2_integral(n - first);
}
ACL_INLINE float nearest(float x) { return (x + kRound) - kRound; }

constexpr float kLog2Hi = 0.693145751953125f, kLog2Lo = 1.428606765330187045e-06f;
constexpr float kLog2e = 1.442695040888963407f;

ACL_INLINE float exp_one(float given) {
  const float x = given < -105.0f ? -105.0f : (given > 101.0f ? 101.0f : given);
  const float q = nearest(x * kLog2e);
  const float s = fused(q, -kLog2Lo, fused(q, -kLog2Hi, x));
  float u = 0.000198527617612853646278381f;
  u = fused(u, s, 0.00139304355252534151077271f);
  u = fused(u, s, 0.00833336077630519866943359f);
  u = fused(u, s, 0.0416664853692054748535156f);
  u = fused(u, s, 0.166666671633720397949219f);
  u = fused(u, s, 0.5f);
  u = 1.0f + fused(s * s, u, s);
  u = scaled(u, q);
  u = given < -104.0f ? 0.0f : u;
  return given > 100.0f ? std::numeric_limits<float>::infinity() : u;
}

constexpr double kWide = 6755399441055744.0;  // 1.5 2^52: what is added to it is rounded to a whole number
ACL_INLINE double power_of_two(double n) {  // of whole n in [-1022, 1023]
  const double sum = n + kWide;
  uint64_t bits;
  __builtin_memcpy(&bits, &sum, sizeof bits);
  bits = (bits << 52) + (uint64_t{1023} << 52);
  double power;
  __builtin_memcpy(&power, &bits, sizeof bits);
  return power;
}
ACL_INLINE double exp_one(double given) {
  const double x = given < -746.0 ? -746.0 : (given > 710.0 ? 710.0 : given);
  const double q = (x * 1.44269504088896340736 + kWide) - kWide;
  const double s = fused(q, -0.28235290563031577122588448175e-12, fused(q, -0.69314718055966295651160180568, x));
  double u = 2.08860621107283687536341e-09;
  u = fused(u, s, 2.51112930892876518610661e-08);
  u = fused(u, s, 2.75573911234900471893338e-07);
  u = fused(u, s, 2.75572362911928827629423e-06);
  u = fused(u, s, 2.4801587159235472998791e-05);
  u = fused(u, s, 0.000198412698960509205564975);
  u = fused(u, s, 0.00138888888889774492207962);
  u = fused(u, s, 0.00833333333331652721664984);
  u = fused(u, s, 0.0416666666666665047591422);
  u = fused(u, s, 0.166666666666666851703837);
  u = fused(u, s, 0.5);
  u = 1.0 + fused(s * s, u, s);
  const double first = (q * 0.5 + kWide) - kWide;
  u = u * power_of_two(first) * power_of_two(q - first);
  return given > 709.782712893384 ? std::numeric_limits<double>::infinity() : u;
}

// exp(x) = (1 + r slope) 2^q of |r| <= log(2) / 2, in double by N terms of Taylor's series.
struct Nearby {
  float q;
  double r, slope;
};
template <int N>
ACL_INLINE Nearby near_power_of_two(float x) {
  constexpr double kTerms[] = {1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880};
  const float q = nearest(x * kLog2e);
  const double r = fused(static_cast<double>(q), -0.69314718055994530942, static_cast<double>(x));
  double slope = kTerms[N - 1];
#pragma GCC unroll 16
  for (int k = N - 2; k >= 0; --k) slope = fused(slope, r, kTerms[k]);
  return {q, r, slope};
}
// The float nearest to exp(x), but for one in some ten thousand.
ACL_INLINE float exp_nearest(float given) {
  const Nearby e = near_power_of_two<8>(given < -105.0f ? -105.0f : (given > 101.0f ? 101.0f : given));
  const float first = nearest(e.q * 0.5f);
  const double scale = static_cast<double>(exp2_integral(first)) * static_cast<double>(exp2_integral(e.q - first));
  const auto y = static_cast<float>(fused(e.slope, e.r, 1.0) * scale);
  return given > 89.0f ? std::numeric_limits<float>::infinity() : y;
}
ACL_INLINE double exp_nearest(double x) { return std::exp(x); }

// The logarithm's exponent and mantissa in [0.75, 1.5).
struct Split {
  float exponent, mantissa;
};
ACL_INLINE Split split_at_three_quarters(float given) {
  const bool small = given < 1.17549435e-38f;
  const float x = small ? given * 18446744073709551616.0f : given;
  const auto e = static_cast<int32_t>(bits_of(x * (1.0f / 0.75f)) >> 23 & 0xFFu) - 127;
  return {static_cast<float>(small ? e - 64 : e),
          float_of(bits_of(x) - (static_cast<uint32_t>(e) << 23))};
}
constexpr Two kLog2 = {0.69314718246459960938f, -1.904654323148236017e-09f};
// e log(2) + 2 atanh(x).
ACL_INLINE float log_of_ratio(float e, Two x) {
  const float z = x.hi * x.hi;
  float t = 0.3027294874f;
  t = fused(t, z, 0.3996108174f);
  t = fused(t, z, 0.6666694880f);
  Two s = times(kLog2, e);
  s = plus_smaller(s, Two{x.hi * 2.0f, x.lo * 2.0f});
  return value(plus_smaller(s, (z * x.hi) * t));
}
// A logarithm by its `ratio` of the exponent and (mantissa - 1) / (mantissa + 1).
template <class Ratio>
ACL_INLINE float logarithm(float x, Ratio ratio) {
  const Split p = split_at_three_quarters(x);
  float r = ratio(p.exponent, over(two_sum(-1.0f, p.mantissa), two_sum(1.0f, p.mantissa)));
  constexpr float kInf = std::numeric_limits<float>::infinity();
  r = x == kInf ? kInf : r;
  r = x >= 0.0f ? r : std::numeric_limits<float>::quiet_NaN();
  return x == 0.0f ? -kInf : r;
}
ACL_INLINE float log_one(float x) {
  return logarithm(x, [](float e, Two r) ACL_LAMBDA { return log_of_ratio(e, r); });
}
ACL_INLINE float log2_one(float x) {
  return logarithm(x, [](float e, Two r) ACL_LAMBDA {
    const float z = r.hi * r.hi;
    float t = 0.4374550283f;
    t = fused(t, z, 0.5764790177f);
    t = fused(t, z, 0.9618012905120f);
    const Two s = times(r, Two{2.8853900432586669922f, 3.2734474483568488616e-08f});
    const Two sum = two_sum(e, s.hi);
    return value(plus(Two{sum.hi, sum.lo + s.lo}, (z * r.hi) * t));
  });
}
ACL_INLINE double log2_one(double x) { return std::log2(x); }
ACL_INLINE float log10_one(float x) {
  return logarithm(x, [](float e, Two r) ACL_LAMBDA {
    const float z = r.hi * r.hi;
    float t = 0.1314289868f;
    t = fused(t, z, 0.1735493541f);
    t = fused(t, z, 0.2895309627f);
    const Two s = plus_smaller(times(Two{0.30103001f, -1.432098889e-08f}, e),
                               times(r, Two{0.868588984f, -2.170757285e-08f}));
    return value(plus_smaller(s, (z * r.hi) * t));
  });
}
ACL_INLINE double log10_one(double x) { return std::log10(x); }
ACL_INLINE double log_one(double x) { return std::log(x); }

// log(1 + x) of x in (-1, 1e38].
ACL_INLINE float log1p_common(float x) {
  const Split p = split_at_three_quarters(x + 1.0f);
  const float t = exp2_integral(-p.exponent), m = fused(x, t, t - 1.0f);
  const float sum = 2.0f + m;
  return log_of_ratio(p.exponent, over(Two{m, 0.0f}, Two{sum, (2.0f - sum) + m}));
}
ACL_INLINE double log1p_common(double x) { return std::log1p(x); }
ACL_INLINE float log1p_one(float x) {
  float r = x <= 1e+38f ? log1p_common(x) : log_one(x);
  r = x < -1.0f || x != x ? std::numeric_limits<float>::quiet_NaN() : r;
  r = x == -1.0f ? -std::numeric_limits<float>::infinity() : r;
  return x == 0.0f ? x : r;
}
ACL_INLINE double log1p_one(double x) { return std::log1p(x); }

// exp(x) as a pair, x at most 104.
ACL_INLINE Two exp_pair(float x) {
  const float q = nearest(x * kLog2e);
  Two s = plus(Two{x, 0.0f}, q * -kLog2Hi);
  s = plus(s, q * -kLog2Lo);
  float u = 0.1980960224e-3f;
  u = fused(u, s.hi, 0.1394256484e-2f);
  u = fused(u, s.hi, 0.8333456703e-2f);
  u = fused(u, s.hi, 0.4166637361e-1f);
  Two t = plus(times(s, u), 0.166666659414234244790680580464f);
  t = plus(times(s, t), 0.5f);
  t = plus_smaller(1.0f, plus(s, times(square(s), t)));
  return {scaled(t.hi, q), scaled(t.lo, q)};
}
ACL_INLINE float within(float x, float low, float high) {
  return x < low ? low : (x > high ? high : x);
}
ACL_INLINE float expm1_one(float x) {
  float r = value(plus(exp_pair(within(x, -20.0f, 90.0f)), -1.0f));
  r = x > 88.72283172607421875f ? std::numeric_limits<float>::infinity() : r;
  r = x < -16.635532333438687426f ? -1.0f : r;
  return x == 0.0f ? x : r;
}
ACL_INLINE double expm1_one(double x) { return std::expm1(x); }
// exp(x) / 2 where exp(x) may overflow and its half not.
ACL_INLINE float half_exp(float x) {
  const float root = value(exp_pair(x * 0.5f));
  return (0.5f * root) * root;
}
constexpr float kFarExp = 88.0f;
ACL_INLINE float sinh_one(float x) {
  const Two e = exp_pair(within(std::fabs(x), 0.0f, 89.5f));
  const float far = half_exp(within(std::fabs(x), 0.0f, 100.0f));
  const float near = value(minus_smaller(e, reciprocal(e))) * 0.5f;
  const float y = std::fabs(x) > kFarExp ? far : near;
  const float a = y == y ? y : std::fabs(x) + std::numeric_limits<float>::infinity();
  return x == 0.0f ? x : (x < 0.0f ? -a : a);
}
ACL_INLINE double sinh_one(double x) { return std::sinh(x); }
ACL_INLINE float cosh_one(float x) {
  const Two e = exp_pair(within(std::fabs(x), 0.0f, 89.5f));
  const float far = half_exp(within(std::fabs(x), 0.0f, 100.0f));
  const float near = value(plus_smaller(e, reciprocal(e))) * 0.5f;
  const float y = std::fabs(x) > kFarExp ? far : near;
  return y == y ? y : std::fabs(x) + std::numeric_limits<float>::infinity();
}
ACL_INLINE double cosh_one(double x) { return std::cosh(x); }
ACL_INLINE float tanh_one(float x) {
  const Two e = exp_pair(within(std::fabs(x), 0.0f, 89.5f)), r = reciprocal(e);
  const Two ratio = over(plus_smaller(e, Two{-r.hi, -r.lo}), plus_smaller(e, r));
  const float y = std::fabs(x) > 9.010913347f ? 1.0f : value(ratio);  // the nearest float is 1 from there
  return x == 0.0f ? x : (x < 0.0f ? -y : y);
}
ACL_INLINE double tanh_one(double x) { return std::tanh(x); }
// The float nearest to tanh(x), but for one in some ten thousand, as torch's tanh of whole tensors: by
// m / (m + 2) of m = exp(2|x|) - 1 in double.
ACL_INLINE float tanh_nearest(float x) {
  const float size = std::fabs(x);
  const Nearby e = near_power_of_two<9>(size > 10.0f ? 20.0f : size + size);
  const double scale = static_cast<double>(exp2_integral(e.q)), m = fused(scale * e.r, e.slope, scale - 1.0);
  return std::copysign(static_cast<float>(m / (m + 2.0)), x);
}
ACL_INLINE double tanh_nearest(double x) { return std::tanh(x); }
ACL_INLINE float exp2_one(float given) {
  const float x = within(given, -151.0f, 129.0f), q = nearest(x), s = x - q;
  float u = 0.1535920892e-3f;
  u = fused(u, s, 0.1339262701e-2f);
  u = fused(u, s, 0.9618384764e-2f);
  u = fused(u, s, 0.5550347269e-1f);
  u = fused(u, s, 0.2402264476f);
  u = fused(u, s, 0.6931471825f);
  u = scaled(fused(u, s, 1.0f), q);
  u = given < -150.0f ? 0.0f : u;
  return given >= 128.0f ? std::numeric_limits<float>::infinity() : u;
}
ACL_INLINE double exp2_one(double x) { return std::exp2(x); }

}  // namespace aclsim
