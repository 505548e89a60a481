// Sums over rows in the order of torch's vectors (aten/src/ATen/cpu/vec/functional_base.h), whose
// width some of its kernels take from the processor.
#pragma once

#include <algorithm>

#include "loops/elementary.h"

namespace aclsim {

// Whether torch would run kernels written for vectors of 64 bytes here; else they have 32.
inline bool wide_vectors() {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return wide;
#else
  return false;
#endif
}
template <class C>
int64_t lanes_of() {
  return (wide_vectors() ? 64 : 32) / static_cast<int64_t>(sizeof(C));
}

// The sum of W lanes: halves for float, one after the other for double.
template <int W, class C>
ACL_INLINE C joined(C* lanes) {
  if constexpr (std::is_same<C, float>::value) {
    for (int step = W / 2; step > 0; step /= 2) {
      for (int l = 0; l < step; ++l) lanes[l] += lanes[l + step];
    }
  } else {
    for (int l = 1; l < W; ++l) lanes[0] += lanes[l];
  }
  return lanes[0];
}
// The sum of term(i), i < n; `last(sum, i)` adds a term that no whole vector has, where torch's
// compiler fuses a product with the sum.
template <int W, class C, class Term, class Last>
ACL_INLINE C sum_in_lanes(int64_t n, Term term, Last last) {
  C lanes[W];
  if (n < W) {
    C sum = term(0);
    for (int64_t i = 1; i < n; ++i) sum += term(i);
    return sum;
  }
  for (int l = 0; l < W; ++l) lanes[l] = term(l);
  int64_t i = W;
  for (; i + W <= n; i += W) {
    for (int l = 0; l < W; ++l) lanes[l] += term(i + l);
  }
  for (int l = 0; i < n; ++i, ++l) lanes[l] = last(lanes[l], i);
  return joined<W>(lanes);
}
template <int W, class C>
ACL_EXACT C row_sum_of(const C* x, int64_t n) {
  return sum_in_lanes<W, C>(
      n, [=](int64_t i) ACL_LAMBDA { return x[i]; },
      [=](C sum, int64_t i) ACL_LAMBDA { return sum + x[i]; });
}
template <int W, class C>
ACL_EXACT C row_product_of(const C* x, const C* y, int64_t n) {
  return sum_in_lanes<W, C>(
      n, [=](int64_t i) ACL_LAMBDA { return x[i] * y[i]; },
      [=](C sum, int64_t i) ACL_LAMBDA { return fused(x[i], y[i], sum); });
}
// Sums of more are kept in double, here by parts: torch's own are hundreds of units off there. Up to
// it they are added in torch's order.
constexpr int64_t kLongSum = 4096, kPart = 512;
template <class F>
double sum_of_parts(int64_t n, F part) {
  double sum = 0;
  const int64_t step = n > kLongSum ? kPart : kLongSum;
  for (int64_t i = 0; i < n; i += step) sum += part(i, std::min(step, n - i));
  return sum;
}
template <class C>
C row_sum(const C* x, int64_t n) {
  constexpr int W = 64 / sizeof(C);
  if (n > kLongSum) {
    return static_cast<C>(sum_of_parts(n, [x](int64_t i, int64_t m) { return row_sum(x + i, m); }));
  }
  return wide_vectors() ? row_sum_of<W>(x, n) : row_sum_of<W / 2>(x, n);
}
template <class C>
C row_product(const C* x, const C* y, int64_t n) {
  constexpr int W = 64 / sizeof(C);
  if (n > kLongSum) {
    return static_cast<C>(sum_of_parts(
        n, [x, y](int64_t i, int64_t m) { return row_product(x + i, y + i, m); }));
  }
  return wide_vectors() ? row_product_of<W>(x, y, n) : row_product_of<W / 2>(x, y, n);
}

}  // namespace aclsim
