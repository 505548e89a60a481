// Inner loops of numpy's universal functions: smooth functions of floats that vectorise.
//
// Elementary ones are torch's where its formula is known; the others give the nearest float, as those
// of MKL nearly always do.
// Coefficients of Bessel functions are those of Cephes (S. L. Moshier, netlib.org/cephes), in the order
// of torch's operations, so that results have its bits.
#include <cstring>

#include "loops/elementary.h"
#include "loops/exponentials.h"
#include "loops/smooth.h"
#include "universal.h"

namespace {

using namespace aclsim;
constexpr intptr_t CHUNK = 256;

// Chebyshev series, Clenshaw's recurrence from the highest term.
template <int N>
ACL_INLINE float chebyshev(const float (&terms)[N], float x) {
  float now = terms[0], last = 0, before = 0;
#pragma GCC unroll 32
  for (int k = 1; k < N; ++k) {
    before = last;
    last = now;
    now = x * last - before + terms[k];
  }
  return 0.5f * (now - before);
}

// exp(-x) I(x), for arguments up to 8 and beyond; of order 1 the first over x.
constexpr float I0_NEAR[] = {
    9.67580903537323691224E-11f, -5.18979560163526290666E-10f, 2.65982372468238665035E-9f,
    -1.30002500998624804212E-8f, 6.04699502254191894932E-8f, -2.67079385394061173391E-7f,
    1.11738753912010371815E-6f, -4.41673835845875056359E-6f, 1.64484480707288970893E-5f,
    -5.75419501008210370398E-5f, 1.88502885095841655729E-4f, -5.76375574538582365885E-4f,
    1.63947561694133579842E-3f, -4.32430999505057594430E-3f, 1.05464603945949983183E-2f,
    -2.37374148058994688156E-2f, 4.93052842396707084878E-2f, -9.49010970480476444210E-2f,
    1.71620901522208775349E-1f, -3.04682672343198398683E-1f, 6.76795274409476084995E-1f};
constexpr float I0_FAR[] = {
    -3.14991652796324136454E-11f, 1.18891471078464383424E-11f, 4.94060238822496958910E-10f,
    3.39623202570838634515E-9f, 2.26666899049817806459E-8f, 2.04891858946906374183E-7f,
    2.89137052083475648297E-6f, 6.88975834691682398426E-5f, 3.36911647825569408990E-3f,
    8.04490411014108831608E-1f};
constexpr float I1_NEAR[] = {
    9.38153738649577178388E-9f, -4.44505912879632808065E-8f, 2.00329475355213526229E-7f,
    -8.56872026469545474066E-7f, 3.47025130813767847674E-6f, -1.32731636560394358279E-5f,
    4.78156510755005422638E-5f, -1.61760815825896745588E-4f, 5.12285956168575772895E-4f,
    -1.51357245063125314899E-3f, 4.15642294431288815669E-3f, -1.05640848946261981558E-2f,
    2.47264490306265168283E-2f, -5.29459812080949914269E-2f, 1.02643658689847095384E-1f,
    -1.76416518357834055153E-1f, 2.52587186443633654823E-1f};
constexpr float I1_FAR[] = {
    -3.83538038596423702205E-9f, -2.63146884688951950684E-8f, -2.51223623787020892529E-7f,
    -3.88256480887769039346E-6f, -1.10588938762623716291E-4f, -9.76109749136146840777E-3f,
    7.78576235018280120474E-1f};

template <int ORDER, bool SCALED>
ACL_INLINE float bessel(float value) {
  const float x = std::fabs(value), growth = SCALED ? 1.0f : static_cast<float>(w_exp(x));
  const float least = x < 8.0f ? 8.0f : x;
  float near, far;
  if constexpr (ORDER == 0) {
    near = growth * chebyshev(I0_NEAR, x / 2.0f - 2.0f);
    far = growth * chebyshev(I0_FAR, 32.0f / least - 2.0f) / std::sqrt(least);
  } else {
    near = SCALED ? chebyshev(I1_NEAR, x / 2.0f - 2.0f) * x : growth * x * chebyshev(I1_NEAR, x / 2.0f - 2.0f);
    far = growth * chebyshev(I1_FAR, 32.0f / least - 2.0f) / std::sqrt(least);
  }
  const float size = x <= 8.0f ? near : far;
  return ORDER == 1 && value < 0.0f ? -size : size;
}

ACL_INLINE float erfcx(float value) {
  const double x = value, size = w_erfcx(std::fabs(x));
  return static_cast<float>(x < 0.0 ? 2.0 * w_exp(x * x) - size : size);
}
ACL_INLINE float ndtr(float x) { return static_cast<float>(0.5 * w_erfc(x * -0.707106781186547524401)); }
ACL_INLINE float log_ndtr(float value) {
  const double x = value * 0.707106781186547524401, tail = w_erfcx(std::fabs(x)), fall = w_exp(-x * x);
  const double left = w_log(tail * 0.5) - x * x;
  const double right = w_log1p(-0.5 * fall * tail);
  return static_cast<float>(value < 0.0f ? left : right);
}

ACL_INLINE float ndtri(float value) {
  const double p = value;
  return static_cast<float>(w_quantile(p - 0.5, p > 0.5 ? 1.0 - p : p));
}
ACL_INLINE float hypotenuse(float a, float b) {
  const double x = a, y = b, infinite = std::numeric_limits<double>::infinity();
  const double size = std::sqrt(x * x + y * y);
  return static_cast<float>(std::fabs(x) == infinite || std::fabs(y) == infinite ? infinite : size);
}
ACL_INLINE float next_after(float a, float b) {
  const float moved = float_of(bits_of(a) + ((b > a) == (a > 0.0f) ? 1u : ~0u));
  const float least = float_of(b < 0.0f ? 0x80000001u : 1u);
  return a != a || b != b ? a + b : a == b ? b : a == 0.0f ? least : moved;
}

void read(float* to, const char* from, intptr_t step, intptr_t n) {
  if (step == sizeof(float)) {
    memcpy(to, from, n * sizeof(float));
  } else {
    for (intptr_t i = 0; i < n; ++i) to[i] = *reinterpret_cast<const float*>(from + i * step);
  }
}

using Body = void (*)(float*, const float*, const float*, intptr_t);
template <Body BODY, int OPERANDS>
void loop(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  for (intptr_t at = 0; at < sizes[0]; at += CHUNK) {
    const intptr_t n = sizes[0] - at < CHUNK ? sizes[0] - at : CHUNK;
    float in[2][CHUNK], out[CHUNK];
    for (int k = 0; k < OPERANDS; ++k) read(in[k], args[k] + at * steps[k], steps[k], n);
    BODY(out, in[0], in[1], n);
    char* to = args[OPERANDS] + at * steps[OPERANDS];
    if (steps[OPERANDS] == sizeof(float)) {
      memcpy(to, out, n * sizeof(float));
    } else {
      for (intptr_t i = 0; i < n; ++i) *reinterpret_cast<float*>(to + i * steps[OPERANDS]) = out[i];
    }
  }
}

#define BODY(NAME, ...)                                                              \
  ACL_VECTOR void NAME(float* out, const float* a, const float* b, intptr_t n) {     \
    (void)b;                                                                         \
    ACL_IVDEP                                                                        \
    for (intptr_t i = 0; i < n; ++i) out[i] = __VA_ARGS__;                           \
  }
#define EXACT(NAME, ...)                                                             \
  ACL_EXACT void NAME(float* out, const float* a, const float* b, intptr_t n) {      \
    (void)b;                                                                         \
    ACL_IVDEP                                                                        \
    for (intptr_t i = 0; i < n; ++i) out[i] = __VA_ARGS__;                           \
  }
EXACT(each_expm1, expm1_one(a[i]))
EXACT(each_exp2, exp2_one(a[i]))
EXACT(each_log, log_one(a[i]))
EXACT(each_log1p, log1p_one(a[i]))
EXACT(each_log2, log2_one(a[i]))
EXACT(each_log10, log10_one(a[i]))
EXACT(each_sinh, sinh_one(a[i]))
EXACT(each_cosh, cosh_one(a[i]))
EXACT(each_tanh, tanh_nearest(a[i]))
BODY(near_sines, v_sin_near(a[i]))
BODY(near_cosines, v_cos_near(a[i]))
BODY(near_powers, static_cast<float>(w_exp(static_cast<double>(b[i]) * w_log(a[i]))))

using OfOne = float (*)(float);
// What vectors give no number for, one by one.
template <Body NEAR, OfOne FAR>
void each_angle_function(float* out, const float* a, const float* b, intptr_t n) {
  NEAR(out, a, b, n);
  for (intptr_t i = 0; i < n; ++i)
    if (out[i] != out[i]) out[i] = FAR(a[i]);
}
void each_exp(float* out, const float* a, const float*, intptr_t n) { exponentials(out, a, n); }
void each_root(float* out, const float* a, const float*, intptr_t n) { square_roots(out, a, n); }
float sin_far(float x) { return std::sin(x); }
float cos_far(float x) { return std::cos(x); }
void each_power(float* out, const float* a, const float* b, intptr_t n) {
  constexpr float INFINITE = std::numeric_limits<float>::infinity();
  near_powers(out, a, b, n);
  for (intptr_t i = 0; i < n; ++i)
    if (!(a[i] > 0.0f && a[i] < INFINITE && std::fabs(b[i]) < INFINITE)) out[i] = std::pow(a[i], b[i]);
}

// Of one exponent in double, which torch's vectors round first and the elements after them do not.
void powers_of_number(char** args, const intptr_t* sizes, const intptr_t* steps, void* data) {
  const double exponent = *reinterpret_cast<double*>(args[1]);
  float rounded = static_cast<float>(exponent);
  const bool dense = steps[0] == sizeof(float) && steps[1] == 0 && steps[2] == sizeof(float);
  const intptr_t whole = dense ? sizes[0] / 32 * 32 : 0;
  char* places[] = {args[0], reinterpret_cast<char*>(&rounded), args[2]};
  loop<each_power, 2>(places, &whole, steps, data);
  for (intptr_t i = whole; i < sizes[0]; ++i)
    *reinterpret_cast<float*>(args[2] + i * steps[2]) = static_cast<float>(
        std::pow(static_cast<double>(*reinterpret_cast<float*>(args[0] + i * steps[0])),
                 *reinterpret_cast<double*>(args[1] + i * steps[1])));
}

// torch computes what is left of two vectors of 16 elements, and what does not lie densely, by the C library.
template <Body VECTORS, OfOne REST>
void with_rest(char** args, const intptr_t* sizes, const intptr_t* steps, void* data) {
  const bool dense = steps[0] == sizeof(float) && steps[1] == sizeof(float);
  const intptr_t whole = dense ? sizes[0] / 32 * 32 : 0;
  loop<VECTORS, 1>(args, &whole, steps, data);
  for (intptr_t i = whole; i < sizes[0]; ++i)
    *reinterpret_cast<float*>(args[1] + i * steps[1]) = REST(*reinterpret_cast<float*>(args[0] + i * steps[0]));
}
float exp2_rest(float x) { return std::exp2(x); }
float sinh_rest(float x) { return std::sinh(x); }
float cosh_rest(float x) { return std::cosh(x); }

void each_polar_real(float* out, const float* a, const float* b, intptr_t n) {
  for (intptr_t i = 0; i < n; ++i) out[i] = a[i] * std::cos(b[i]);
}
void each_polar_imaginary(float* out, const float* a, const float* b, intptr_t n) {
  for (intptr_t i = 0; i < n; ++i) out[i] = a[i] * std::sin(b[i]);
}
BODY(each_i0, bessel<0, false>(a[i]))
BODY(each_i0e, bessel<0, true>(a[i]))
BODY(each_i1, bessel<1, false>(a[i]))
BODY(each_i1e, bessel<1, true>(a[i]))
BODY(each_erfcx, erfcx(a[i]))
BODY(each_ndtr, ndtr(a[i]))
BODY(each_log_ndtr, log_ndtr(a[i]))
BODY(each_ndtri, ndtri(a[i]))
BODY(each_angle, a[i] < 0.0f ? 3.14159265358979323846f : a[i] == a[i] ? 0.0f : a[i])
BODY(each_prelu, a[i] > 0.0f ? a[i] : a[i] * b[i])
BODY(each_hypot, hypotenuse(a[i], b[i]))
BODY(each_nextafter, next_after(a[i], b[i]))

}  // namespace

#define UNARY(NAME, BODY) {NAME, nullptr, 1, 1, 1, {11, 11}, {loop<BODY, 1>}}
#define BINARY(NAME, BODY) {NAME, nullptr, 2, 1, 1, {11, 11, 11}, {loop<BODY, 2>}}
#define RESTED(NAME, BODY, REST) {NAME, nullptr, 1, 1, 1, {11, 11}, {with_rest<BODY, REST>}}
extern const Universal SMOOTH[] = {
    UNARY("exp", each_exp),
    UNARY("expm1", each_expm1),
    RESTED("exp2", each_exp2, exp2_rest),
    UNARY("log", each_log),
    UNARY("log1p", each_log1p),
    UNARY("log2", each_log2),
    UNARY("log10", each_log10),
    RESTED("sinh", each_sinh, sinh_rest),
    RESTED("cosh", each_cosh, cosh_rest),
    UNARY("tanh", each_tanh),
    UNARY("sqrt", each_root),
    UNARY("sin", (each_angle_function<near_sines, sin_far>)),
    UNARY("cos", (each_angle_function<near_cosines, cos_far>)),
    BINARY("power", each_power),
    {"power_of_number", nullptr, 2, 1, 1, {11, 12, 11}, {powers_of_number}},
    BINARY("polar.real", each_polar_real),
    BINARY("polar.imag", each_polar_imaginary),
    UNARY("special_i0", each_i0),
    UNARY("special_i0e", each_i0e),
    UNARY("special_i1", each_i1),
    UNARY("special_i1e", each_i1e),
    UNARY("special_modified_bessel_i0", each_i0),
    UNARY("special_modified_bessel_i1", each_i1),
    UNARY("special_erfcx", each_erfcx),
    UNARY("special_ndtr", each_ndtr),
    UNARY("special_log_ndtr", each_log_ndtr),
    UNARY("special_ndtri", each_ndtri),
    UNARY("angle", each_angle),
    BINARY("_prelu_kernel", each_prelu),
    BINARY("hypot", each_hypot),
    BINARY("nextafter", each_nextafter),
    {}};
