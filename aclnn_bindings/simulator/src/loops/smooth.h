// Functions of floats that are computed in double by polynomials, so that loops over them vectorise
// and results are nearly always the nearest float. Doubles and complex go to the C++ library.
//
// Polynomials are fitted at Chebyshev nodes, with relative errors below 2e-11; erfcx in the variable
// of Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x" (1981).
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <limits>

#include "loops/vmath.h"

namespace aclsim {

ACL_INLINE uint64_t bits_of_double(double x) {
  uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
ACL_INLINE double double_of(uint64_t bits) {
  double x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

template <int N>
ACL_INLINE double polynomial_of(const double (&terms)[N], double x) {
  double sum = terms[N - 1];
#pragma GCC unroll 32
  for (int k = N - 2; k >= 0; --k) sum = sum * x + terms[k];
  return sum;
}

constexpr double kNearestWhole = 6755399441055744.0;  // adding it leaves the nearest integer

// Beyond ±700, where floats end long before, it is that of ±700.
ACL_INLINE double w_exp(double x) {
  x = x > 700.0 ? 700.0 : x;
  x = x < -700.0 ? -700.0 : x;
  const double shifted = x * 1.44269504088896340736 + kNearestWhole, n = shifted - kNearestWhole;
  const double r = (x - n * 6.93147180369123816490e-1) - n * 1.90821492927058770002e-10;
  constexpr double kTerms[] = {1.0,        1.0,         1.0 / 2,     1.0 / 6,      1.0 / 24,     1.0 / 120,
                               1.0 / 720.0, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800};
  return polynomial_of(kTerms, r) * double_of((bits_of_double(shifted) << 52) + 0x3FF0000000000000u);
}

// Of normal numbers above zero.
ACL_INLINE double w_log(double x) {
  constexpr uint64_t kRootHalf = 0x3FE6A09E667F3BCDu;
  const uint64_t bits = bits_of_double(x) - kRootHalf + 0x3FF0000000000000u;
  const double n = double_of((bits >> 52) | 0x4330000000000000u) - (4503599627370496.0 + 1023.0);
  const double m = double_of((bits & 0xFFFFFFFFFFFFFu) + kRootHalf);
  const double s = (m - 1.0) / (m + 1.0);
  constexpr double kTerms[] = {2.0, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15};
  return n * 0.693147180559945309417 + s * polynomial_of(kTerms, s * s);
}
// log(1 + x), for x of any size above -1.
ACL_INLINE double w_log1p(double x) {
  const double y = 1.0 + x;
  return y == 1.0 ? x : w_log(y) + (x - (y - 1.0)) / y;
}

// exp(x^2) erfc(x) for x >= 0.
ACL_INLINE double w_erfcx(double x) {
  constexpr double kTerms[] = {
      1.2375126308368e+00,  -1.4024059858820e-01, 3.5854156488822e-03,  8.2276738608793e-02,
      -1.0880393454625e-01, 9.2304319656378e-02,  -5.8693352739999e-02, 2.8362285507293e-02,
      -9.7468197928666e-03, 1.7556055652157e-03,  2.9442623987464e-04,  -2.9013582863870e-04,
      5.0390455230449e-05,  2.2403782872465e-05,  -1.0112602873147e-05, -1.0351561877282e-06,
      9.4004986290979e-07};
  return polynomial_of(kTerms, 1.0 - 7.5 / (x + 3.75)) / (1.0 + 2.0 * x);
}
ACL_INLINE double w_erfc(double x) {
  const double tail = w_erfcx(std::fabs(x)) * w_exp(-x * x);
  return x < 0.0 ? 2.0 - tail : tail;
}

// The angle of (x, y), as of std::atan2.
ACL_INLINE double w_atan2(double y, double x) {
  const double a = std::fabs(y), b = std::fabs(x);
  const double low = a < b ? a : b, high = a < b ? b : a;
  double r = low / high;
  r = high == 0.0 ? 0.0 : r;
  r = low == high && high != 0.0 ? 1.0 : r;  // of infinities, too
  const bool far = r > 0.41421356237309503;
  const double t = far ? (r - 1.0) / (r + 1.0) : r;
  constexpr double kTerms[] = {9.9999999999927e-01, -3.3333333278382e-01, 1.9999993188660e-01,
                               -1.4285391251598e-01, 1.1103534783403e-01, -8.9932161079527e-02,
                               6.9770000759725e-02, -3.7701648577996e-02};
  double angle = t * polynomial_of(kTerms, t * t) + (far ? 0.785398163397448309616 : 0.0);
  angle = a > b ? 1.57079632679489661923 - angle : angle;
  angle = std::copysign(1.0, x) < 0.0 ? 3.14159265358979323846 - angle : angle;
  return x != x || y != y ? x + y : std::copysign(angle, y);
}

// Where the normal distribution's cumulative function is gap + 1/2, `tail` the smaller of this and what
// it lacks to 1. Coefficients are those of ndtri in Cephes (S. L. Moshier, netlib.org/cephes).
ACL_INLINE double w_quantile(double gap, double tail) {
  constexpr double kMiddle[] = {
      -1.23916583867381258016E0, 1.39312609387279679503E1, -5.66762857469070293439E1,
      9.80010754185999661536E1, -5.99633501014107895267E1};
  constexpr double kUnderMiddle[] = {
      -1.18331621121330003142E0, 1.59056225126211695515E1, -8.20372256168333339912E1,
      2.00260212380060660359E2, -2.25462687854119370527E2, 8.63602421390890590575E1, 4.67627912898881538453E0,
      1.95448858338141759834E0, 1.00000000000000000000E0};
  constexpr double kOuter[] = {
      -8.57456785154685413611E-4, -3.50424626827848203418E-2, -1.40256079171354495875E-1,
      2.18663306850790267539E0, 1.46849561928858024014E1, 4.40805073893200834700E1, 5.71628192246421288162E1,
      3.15251094599893866154E1, 4.05544892305962419923E0};
  constexpr double kUnderOuter[] = {
      -9.33259480895457427372E-4, -3.80806407691578277194E-2, -1.42182922854787788574E-1,
      2.50464946208309415979E0, 1.50425385692907503408E1, 4.13172038254672030440E1, 4.53907635128879210584E1,
      1.57799883256466749731E1, 1.00000000000000000000E0};
  constexpr double kOutmost[] = {
      6.23974539184983293730E-9, 2.65806974686737550832E-6, 3.01581553508235416007E-4,
      1.23716634817820021358E-2, 2.01485389549179081538E-1, 1.33303460815807542389E0,
      3.93881025292474443415E0, 6.91522889068984211695E0, 3.23774891776946035970E0};
  constexpr double kUnderOutmost[] = {
      6.79019408009981274425E-9, 2.89247864745380683936E-6, 3.28014464682127739104E-4,
      1.34204006088543189037E-2, 2.16236993594496635890E-1, 1.37702099489081330271E0,
      3.67983563856160859403E0, 6.02427039364742014255E0, 1.00000000000000000000E0};
  const double square = gap * gap, x = std::sqrt(-2.0 * w_log(tail)), z = 1.0 / x;
  const double middle = gap + gap * (square * polynomial_of(kMiddle, square) / polynomial_of(kUnderMiddle, square));
  const double outer = polynomial_of(kOuter, z) / polynomial_of(kUnderOuter, z);
  const double outmost = polynomial_of(kOutmost, z) / polynomial_of(kUnderOutmost, z);
  const double size = x - w_log(x) / x - z * (x < 8.0 ? outer : outmost);
  const double far = tail == 0.0 ? std::numeric_limits<double>::infinity() : size;
  const double result = tail > 0.13533528323661269189 ? middle * 2.50662827463100050242 : std::copysign(far, gap);
  return tail >= 0.0 ? result : std::numeric_limits<double>::quiet_NaN();
}

ACL_INLINE float v_erfinv(float value) {
  const double y = value, tail = 0.5 - 0.5 * std::fabs(y);
  return static_cast<float>(0.707106781186547524401 * w_quantile(0.5 * y, tail));
}
ACL_INLINE float v_erfc(float x) { return static_cast<float>(w_erfc(x)); }
ACL_INLINE double v_erfc(double x) { return std::erfc(x); }
ACL_INLINE float v_atan2(float y, float x) { return static_cast<float>(w_atan2(y, x)); }
ACL_INLINE double v_atan2(double y, double x) { return std::atan2(y, x); }
ACL_INLINE float v_asin(float value) {
  const double x = value;
  return static_cast<float>(w_atan2(x, std::sqrt((1.0 - x) * (1.0 + x))));
}
template <class T>
ACL_INLINE T v_asin(T x) {
  return std::asin(x);
}
ACL_INLINE float v_acos(float value) {
  const double x = value;
  return static_cast<float>(w_atan2(std::sqrt((1.0 - x) * (1.0 + x)), x));
}
template <class T>
ACL_INLINE T v_acos(T x) {
  return std::acos(x);
}

// Of angles below a million.
struct Turned {
  double sine, cosine;  // of what is left of a quarter turn
  uint64_t quarters;
};
ACL_INLINE Turned turned(double x) {
  const double shifted = x * 0.636619772367581343076 + kNearestWhole, n = shifted - kNearestWhole;
  const double r = (x - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11;
  constexpr double kSine[] = {1.0, -1.6666666666616e-01, 8.3333333238425e-03, -1.9841263284527e-04,
                              2.7555269644353e-06, -2.4756428632134e-08};
  constexpr double kCosine[] = {9.9999999999994e-01, -4.9999999999351e-01, 4.1666666543904e-02,
                                -1.3888880393551e-03, 2.4798928735996e-05, -2.7173429867525e-07};
  return {r * polynomial_of(kSine, r * r), polynomial_of(kCosine, r * r), bits_of_double(shifted)};
}
// NaN beyond a million.
ACL_INLINE float v_tan_near(float x) {
  const Turned t = turned(x);
  const bool odd = (t.quarters & 1) != 0;
  const double tangent = (odd ? -t.cosine : t.sine) / (odd ? t.sine : t.cosine);
  return static_cast<float>(std::fabs(x) < 1e6f ? tangent : std::numeric_limits<double>::quiet_NaN());
}

// The sine of x + half turns / 2; NaN beyond 10000. torch's sines are MKL's, which are of double there:
// x plus an odd polynomial of degree 9 on [-pi / 2, pi / 2]. Its coefficients are found from 13,711,420
// of their results, of which nine have another bit.
ACL_INLINE float sine_near(float given, double half) {
  const double x = given, shifted = (x * 0.318309886183790671538 + half) + kNearestWhole;
  const double n = (shifted - kNearestWhole) - half;
  const double r = (x - n * 3.141592653589793116) - n * 1.2246467991473532072e-16;
  constexpr double kTerms[] = {1.0, -0.1666665955048099, 0.008333066247536944, -0.0001980960301205099,
                               2.6057808870398177e-06};
  const float size = static_cast<float>(r * polynomial_of(kTerms, r * r));
  const float turned = float_of(bits_of(size) ^ static_cast<uint32_t>(bits_of_double(shifted) << 31));
  return std::fabs(given) <= 10000.0f ? turned : std::numeric_limits<float>::quiet_NaN();
}
ACL_INLINE float v_sin_near(float x) { return sine_near(x, 0.0); }
ACL_INLINE float v_cos_near(float x) { return sine_near(x, 0.5); }

// NaN below -32 and at poles.
ACL_INLINE float v_lgamma_near(float value) {
  const double x = value, y = x < 0.0 ? 1.0 - x : x;
  // Of [1, 3) by a polynomial whose zeros are those of the function.
  const double z = y < 1.0 ? y + 1.0 : y, u = z < 3.0 ? z - 2.0 : 0.0;
  constexpr double kTerms[] = {
      4.2278433509832e-01,  -1.0031730168551e-01, 3.2965000651019e-02,  -1.2384191533925e-02,
      4.9986401944733e-03,  -2.1081422263406e-03, 9.1538910917239e-04,  -4.0561838435260e-04,
      1.8247538477341e-04,  -8.3469079175837e-05, 3.8448146726926e-05,  -1.6749527433974e-05,
      7.6150701447673e-06,  -5.1652829607109e-06, 2.6080859332289e-06,  2.3430511267164e-07,
      -2.0727910326310e-07, -6.3389551890563e-07, 3.2313512404335e-07};
  const double near = (u + 1.0) * u * polynomial_of(kTerms, u) + 0.0;  // no -0
  // Elsewhere by Stirling's series of y + 4 (DLMF 5.11.1).
  const double w = y + 4.0, square = 1.0 / (w * w);
  const double series = (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680))) / w;
  const double product = y < 3.0 ? y : y * (y + 1.0) * (y + 2.0) * (y + 3.0);
  const double lowered = y < 1.0 || y >= 3.0 ? w_log(product) : 0.0;
  const double far = (w - 0.5) * w_log(w) - w + 0.918938533204672741780 + series;
  const double size = (y < 3.0 ? near : far) - lowered;
  const double r = x - ((x + kNearestWhole) - kNearestWhole);
  constexpr double kSine[] = {3.1415926535896e+00, -5.1677127799880e+00, 2.5501640359086e+00,
                              -5.9926443397685e-01, 8.2144795034037e-02, -7.3640068760142e-03,
                              4.4749407097697e-04};
  const double sine = std::fabs(r * polynomial_of(kSine, r * r));
  const double mirrored = 1.14472988584940017414 - w_log(sine > 0.0 ? sine : 1.0) - size;
  const bool outside = !(x > -32.0 && x < 1e30) || x == 0.0 || (x < 0.0 && sine == 0.0);
  const double result = x < 0.0 ? mirrored : size;
  return static_cast<float>(outside ? std::numeric_limits<double>::quiet_NaN() : result);
}

// torch's roots of float are MKL's: on x86-64 processors of other makers than Intel, Goldschmidt's
// iteration from the processor's estimate, each operation rounded (M. J. Flynn, "On division by functional
// iteration", 1970); those of subnormal numbers are the nearest.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target("avx"))) inline void eight_roots(float* out, const float* in) {
  const __m256 given = _mm256_loadu_ps(in), one_half = _mm256_set1_ps(0.5f);
  const __m256 least = _mm256_set1_ps(std::numeric_limits<float>::min());
  const __m256 most = _mm256_set1_ps(std::numeric_limits<float>::max());
  const __m256 holds = _mm256_and_ps(_mm256_cmp_ps(given, least, _CMP_GE_OQ), _mm256_cmp_ps(given, most, _CMP_LE_OQ));
  const __m256 x = _mm256_blendv_ps(one_half, given, holds), y = _mm256_rsqrt_ps(x);
  __m256 root = _mm256_mul_ps(x, y), half = _mm256_mul_ps(one_half, y);
  const __m256 rest = _mm256_sub_ps(one_half, _mm256_mul_ps(root, half));
  root = _mm256_add_ps(root, _mm256_mul_ps(root, rest));
  half = _mm256_add_ps(half, _mm256_mul_ps(half, rest));
  root = _mm256_add_ps(root, _mm256_mul_ps(_mm256_sub_ps(x, _mm256_mul_ps(root, root)), half));
  if (_mm256_movemask_ps(holds) != 0xFF) root = _mm256_blendv_ps(_mm256_sqrt_ps(given), root, holds);
  _mm256_storeu_ps(out, root);
}
__attribute__((target("avx"))) inline void estimated_roots(float* out, const float* in, int64_t n) {
  for (; n >= 8; n -= 8, in += 8, out += 8) eight_roots(out, in);
  float rest[8] = {};
  std::copy_n(in, n, rest);
  eight_roots(rest, rest);
  std::copy_n(rest, n, out);
}
#endif
inline void square_roots(float* out, const float* in, int64_t n) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  static const bool estimated = __builtin_cpu_supports("avx") && !__builtin_cpu_is("intel");
  if (estimated) return estimated_roots(out, in, n);
#endif
  for (int64_t i = 0; i < n; ++i) out[i] = std::sqrt(in[i]);
}

// log(exp(a) + exp(b)); by powers of two where `scale` is log(2).
ACL_INLINE float v_logaddexp(float a, float b, double scale) {
  const double gap = std::fabs(static_cast<double>(a) - b);
  const double sum = (a > b ? a : b) + w_log1p(w_exp(-gap * scale)) * (1.0 / scale);
  return a == b && !(a - a == 0.0f) ? a : static_cast<float>(sum);
}
template <class T>
ACL_INLINE T v_logaddexp(T a, T b, double scale) {
  if (a == b && !(a - a == T(0))) return a;
  return (a > b ? a : b) + static_cast<T>(std::log1p(std::exp(-std::fabs(a - b) * scale)) / scale);
}

// Recurrence up to 10, then the asymptotic series; reflection below zero.
inline double digamma(double x) {
  constexpr double kPi = 3.14159265358979323846;
  double sum = 0;
  if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
  if (x < 0) {
    if (x == std::floor(x)) return std::numeric_limits<double>::quiet_NaN();
    sum = -kPi / std::tan(kPi * (x - std::floor(x)));
    x = 1 - x;
  }
  for (; x < 10; x += 1) sum -= 1 / x;
  const double z = 1 / (x * x);
  const double series =
      z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z / 132))));
  return sum + std::log(x) - 0.5 / x - series;
}

}  // namespace aclsim
