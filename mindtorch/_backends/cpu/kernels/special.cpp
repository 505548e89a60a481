// Inner loops of numpy's universal functions: orthogonal polynomials, zeta, polygamma and fused
// sums of products.
//
// Recurrences: Abramowitz and Stegun, "Handbook of Mathematical Functions" (1964), table 22.7; zeta
// by the Euler-Maclaurin formula (23.2.9), polygamma by zeta (6.4.10). All is computed in double.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>

#include "entry.h"
#include "loops/elementary.h"
#include "loops/smooth.h"
#include "universal.h"

namespace {

const double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();
const double INFINITE = std::numeric_limits<double>::infinity();
const double HIGHEST_DEGREE = 1024;

// P(k) = (scale(k) x + shift(k)) P(k - 1) - weight(k) P(k - 2).
struct Recurrence {
  double first_scale, first_shift;
  double (*factor)(double k, double x);
  double (*weight)(double k);
};

double twice(double, double x) { return x * 2; }
double once(double, double x) { return x; }
double of_laguerre(double k, double x) { return (2 * k - 1 - x) / k; }
double of_legendre(double k, double x) { return x * ((2 * k - 1) / k); }
double one(double) { return 1; }
double less_one(double k) { return k - 1; }
double twice_less_one(double k) { return 2 * (k - 1); }
double ratio(double k) { return (k - 1) / k; }

constexpr Recurrence CHEBYSHEV_T{1, 0, twice, one}, CHEBYSHEV_U{2, 0, twice, one},
    CHEBYSHEV_V{2, -1, twice, one}, CHEBYSHEV_W{2, 1, twice, one},
    HERMITE_H{2, 0, twice, twice_less_one}, HERMITE_HE{1, 0, once, less_one},
    LAGUERRE{-1, 1, of_laguerre, ratio}, LEGENDRE{1, 0, of_legendre, ratio};

// Degrees are cut to whole numbers; of negative ones, and those that are none, it is 0.
template <const Recurrence& R, bool SHIFTED>
double polynomial(double x, double degree, double) {
  const double n = std::trunc(degree);
  if (SHIFTED) x = x * 2 - 1;
  if (n == 0) return 1;
  if (!(n > 0 && n <= HIGHEST_DEGREE)) return 0;
  double before = 1, now = R.first_scale * x + R.first_shift;
  for (double k = 2; k <= n; ++k) {
    const double next = R.factor(k, x) * now - R.weight(k) * before;
    before = now;
    now = next;
  }
  return now;
}

// base^-x; small whole powers by products, which take a quarter of the time.
double inverse_power(double base, double x) {
  if (x != std::floor(x) || x > 32) return std::pow(base, -x);
  double product = 1;
  for (int n = static_cast<int>(x); n; n >>= 1, base *= base)
    if (n & 1) product *= base;
  return 1 / product;
}

// The sum of (q + k)^-x over k = 0, 1, …, of q > 0 and x > 1.
double hurwitz(double x, double q) {
  static const double BERNOULLI[] = {12.0, -720.0, 30240.0, -1209600.0, 47900160.0,
                                     -1307674368000.0 / 691};
  if (std::isinf(x)) return q < 1 ? INFINITE : q == 1 ? 1 : NOT_A_NUMBER;
  const int terms = 12;
  double total = 0;
  for (int k = 0; k < terms; ++k) total += inverse_power(q + k, x);
  const double w = q + terms;
  double power = inverse_power(w, x);
  total += power * w / (x - 1) + power / 2;
  double product = x / w;
  for (int k = 0; k < 6; ++k) {
    total += power * product / BERNOULLI[k];
    product *= (x + 2 * k + 1) / w * ((x + 2 * k + 2) / w);
  }
  return total;
}

double zeta(double x, double q, double = 0) {
  if (x == 1) return INFINITE;
  if (!(x > 1) || std::isnan(q) || q == INFINITE) return NOT_A_NUMBER;
  if (q > 0) return hurwitz(x, q);
  if (q == std::floor(q)) return INFINITE;
  if (x != std::floor(x)) return NOT_A_NUMBER;
  const double rest = -q - std::floor(-q), sign = std::fmod(x, 2) != 0 ? -1 : 1;
  // In this order halves cancel exactly.
  return hurwitz(x, 1 - rest) + sign * hurwitz(x, rest) - sign * hurwitz(x, 1 - q);
}

// The digamma function where `n` is 0.
double polygamma(double n, double x, double largest) {
  if (n == 0) return aclsim::digamma(x);
  if (n == 1 && x == INFINITE) return 0;
  const double factorial = std::tgamma(n + 1);
  double sum = zeta(n + 1, x);
  if (largest <= std::numeric_limits<float>::max()) sum = static_cast<float>(sum);
  return sum * (factorial <= largest ? factorial : INFINITE) * (std::fmod(n, 2) != 0 ? 1 : -1);
}

constexpr intptr_t CHUNK = 64;
constexpr float LOWEST = -32;

// The sums of (x + k)^-s over k = 0, 1, …, or for s = 1 the digamma function's negative: term by term
// up to where all are beyond `TERMS`, in double, for results in float.
ACL_VECTOR void sums(double* total, const double* x, int s, int terms, intptr_t n) {
  constexpr double BERNOULLI[] = {1 / 12.0,      -1 / 720.0,     1 / 30240.0,
                                  -1 / 1209600.0, 1 / 47900160.0, -691 / 1307674368000.0};
  double rising[6];
  for (int k = 0; k < 6; ++k) rising[k] = (s + 2 * k + 1) * (s + 2.0 * k + 2);
  double base[2 * CHUNK], power[2 * CHUNK];
  const auto raise = [&](intptr_t count) __attribute__((always_inline)) {
    for (intptr_t i = 0; i < count; ++i) power[i] = 1;
    for (int m = s; m; m >>= 1) {
      if (m & 1) {
        for (intptr_t i = 0; i < count; ++i) power[i] *= base[i];
      }
      for (intptr_t i = 0; i < count; ++i) base[i] *= base[i];
    }
  };
  for (intptr_t i = 0; i < n; ++i) total[i] = 0;
  for (int k = 0; k < terms; k += 2) {  // two by one division
    for (intptr_t i = 0; i < n; ++i) {
      const double first = x[i] + k, second = first + 1, inverse = 1 / (first * second);
      base[i] = inverse * second, base[n + i] = inverse * first;
    }
    raise(2 * n);
    for (intptr_t i = 0; i < n; ++i) total[i] += power[i] + power[n + i];
  }
  for (intptr_t i = 0; i < n; ++i) base[i] = 1 / (x[i] + terms);
  raise(n);
  for (intptr_t i = 0; i < n; ++i) {
    const double w = x[i] + terms, once = 1 / w, inverse = once * once;
    double factor = s * once, sum = power[i] * 0.5 + (s > 1 ? power[i] * w / (s - 1) : -aclsim::w_log(w));
#pragma GCC unroll 6
    for (int k = 0; k < 6; ++k) {
      sum += power[i] * factor * BERNOULLI[k];
      factor *= inverse * rising[k];
    }
    total[i] += sum;
  }
}

// Which arguments are left to `polygamma`, and the rest in double; the whole part of the least.
ACL_VECTOR int near_ones(double* x, int* far, const float* in, intptr_t n) {
  int least = 1;
  for (intptr_t i = 0; i < n; ++i) {
    const float v = in[i], whole = std::floor(v);
    far[i] = (!(v > LOWEST)) | (!(v < 1e15f)) | ((v <= 0) & (v == whole));
    x[i] = far[i] ? 1 : v;
    const int below = far[i] | (v > 1) ? 1 : static_cast<int>(whole);
    least = below < least ? below : least;
  }
  return least;
}

void polygammas(float* out, const float* in, int n, intptr_t count) {
  constexpr float largest = std::numeric_limits<float>::max();
  const double factorial = std::tgamma(n + 1.0);
  const double factor = (factorial <= largest ? factorial : INFINITE) * (n % 2 ? 1 : -1);
  double x[CHUNK], total[CHUNK];
  int far[CHUNK];
  const int terms = 5 - near_ones(x, far, in, count);  // beyond 5 six terms are of 10 digits
  sums(total, x, n + 1, terms + terms % 2, count);
  for (intptr_t i = 0; i < count; ++i)
    out[i] = far[i] ? static_cast<float>(polygamma(n, in[i], largest))
                        : static_cast<float>(static_cast<float>(total[i]) * factor);
}

using Function = double (*)(double, double, double);

template <typename T, Function F>
void loop(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  char *a = args[0], *b = args[1], *out = args[2];
  for (intptr_t i = 0; i < sizes[0]; ++i, a += steps[0], b += steps[1], out += steps[2]) {
    const double largest = static_cast<double>(std::numeric_limits<T>::max());
    const T first = *reinterpret_cast<T*>(a), second = *reinterpret_cast<T*>(b);
    *reinterpret_cast<T*>(out) = static_cast<T>(F(first, second, largest));
  }
}

// Of one small order for all elements by chunks.
void polygamma_of_floats(char** args, const intptr_t* sizes, const intptr_t* steps, void* data) {
  const float order = *reinterpret_cast<float*>(args[0]);
  if (steps[0] || sizes[0] == 0 || !(order >= 0 && order < 31)) {
    return loop<float, polygamma>(args, sizes, steps, data);
  }
  for (intptr_t at = 0; at < sizes[0]; at += CHUNK) {
    const intptr_t n = std::min(CHUNK, sizes[0] - at);
    float in[CHUNK], out[CHUNK];
    for (intptr_t i = 0; i < n; ++i) in[i] = *reinterpret_cast<float*>(args[1] + (at + i) * steps[1]);
    polygammas(out, in, static_cast<int>(order), n);
    for (intptr_t i = 0; i < n; ++i) *reinterpret_cast<float*>(args[2] + (at + i) * steps[2]) = out[i];
  }
}

template <class T>
ACL_VECTOR void fused_line(T* out, const T* a, T factor, const T* c, intptr_t n) {
  ACL_IVDEP
  for (intptr_t i = 0; i < n; ++i) out[i] = aclsim::fused(a[i], factor, c[i]);
}
template <class T>
ACL_VECTOR void fused_places(char** args, intptr_t n, const intptr_t* steps) {
  char *a = args[0], *b = args[1], *c = args[2], *out = args[3];
  for (; n > 0; --n, a += steps[0], b += steps[1], c += steps[2], out += steps[3])
    *reinterpret_cast<T*>(out) = aclsim::fused(
        *reinterpret_cast<T*>(a), *reinterpret_cast<T*>(b), *reinterpret_cast<T*>(c));
}

// `a b + c`, rounded once, as torch's vectors compute sums with a factor.
template <class T>
void fused(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t size = sizeof(T);
  if (steps[1] || steps[0] != size || steps[2] != size || steps[3] != size) {
    return fused_places<T>(args, sizes[0], steps);
  }
  fused_line(reinterpret_cast<T*>(args[3]), reinterpret_cast<T*>(args[0]), *reinterpret_cast<T*>(args[1]),
             reinterpret_cast<T*>(args[2]), sizes[0]);
}

}  // namespace

#define ROW(NAME, ...)                                      \
  {NAME, nullptr, 2, 1, 2, {11, 11, 11, 12, 12, 12}, {loop<float, __VA_ARGS__>, loop<double, __VA_ARGS__>}}
extern const Universal ELEMENTS[] = {
    ROW("special_chebyshev_polynomial_t", polynomial<CHEBYSHEV_T, false>),
    ROW("special_chebyshev_polynomial_u", polynomial<CHEBYSHEV_U, false>),
    ROW("special_chebyshev_polynomial_v", polynomial<CHEBYSHEV_V, false>),
    ROW("special_chebyshev_polynomial_w", polynomial<CHEBYSHEV_W, false>),
    ROW("special_shifted_chebyshev_polynomial_t", polynomial<CHEBYSHEV_T, true>),
    ROW("special_shifted_chebyshev_polynomial_u", polynomial<CHEBYSHEV_U, true>),
    ROW("special_shifted_chebyshev_polynomial_v", polynomial<CHEBYSHEV_V, true>),
    ROW("special_shifted_chebyshev_polynomial_w", polynomial<CHEBYSHEV_W, true>),
    ROW("special_hermite_polynomial_h", polynomial<HERMITE_H, false>),
    ROW("special_hermite_polynomial_he", polynomial<HERMITE_HE, false>),
    ROW("special_laguerre_polynomial_l", polynomial<LAGUERRE, false>),
    ROW("special_legendre_polynomial_p", polynomial<LEGENDRE, false>),
    ROW("special_zeta", zeta),
    {"fused", nullptr, 3, 1, 2, {11, 11, 11, 11, 12, 12, 12, 12}, {fused<float>, fused<double>}},
    {"polygamma", nullptr, 2, 1, 2, {11, 11, 11, 12, 12, 12}, {polygamma_of_floats, loop<double, polygamma>}},
    {}};

extern "C" int mtk_function(const char* name, mtk_loops* found) {
  for (const Universal* list : {ELEMENTS, FACTORS, GATES, LINES, ORDERS, PRODUCTS, SMOOTH})
    for (const Universal* row = list; row->name; ++row) {
      if (strcmp(row->name, name)) continue;
      *found = {row->signature, row->operands, row->results, row->kinds, row->types,
                reinterpret_cast<void* const*>(row->loops)};
      return 1;
    }
  return 0;
}
