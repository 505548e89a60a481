// exp of whole tensors of floats as torch's, which is MKL's: on processors of other makers than Intel
// exp(x) = 2^(k / 128) (1 + r + r^2 / 2) with each operation rounded. The constants are found from its results, of
// which none of a million in [-4, 4] has another bit; subnormal results and those above 1e37 may.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#endif

#include <algorithm>

#include "loops/lanes.h"

namespace aclsim {

// 2^(k / 128) as unevaluated sums of floats.
struct Powers {
  float high[128] = {}, low[128] = {};
  constexpr Powers() {
    for (int k = 0; k < 128; ++k) {
      const double x = k * (0.69314718055994530942 / 128);
      double sum = 1;
      for (int term = 24; term > 0; --term) sum = 1 + sum * x / term;
      high[k] = static_cast<float>(sum);
      low[k] = static_cast<float>(sum - high[k]);
    }
  }
};
alignas(64) constexpr Powers kPowers;

ACL_EXACT inline void nearest_exponentials(float* out, const float* in, int64_t n) {
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) out[i] = exp_nearest(in[i]);
}
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ACL_SIXTEEN __attribute__((target("avx512f,avx512dq"), optimize("fp-contract=off")))
// The elements of a table of 128 at the lowest seven bits of `at`.
ACL_SIXTEEN ACL_INLINE __m512 looked_up(const float* table, __m512i at) {
  __m512 quarters[4];
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    const float* from = table + 32 * k;
    quarters[k] = _mm512_permutex2var_ps(_mm512_load_ps(from), at, _mm512_load_ps(from + 16));
  }
  const __mmask16 second = _mm512_test_epi32_mask(at, _mm512_set1_epi32(32));
  const __mmask16 later = _mm512_test_epi32_mask(at, _mm512_set1_epi32(64));
  return _mm512_mask_mov_ps(_mm512_mask_mov_ps(quarters[0], second, quarters[1]), later,
                            _mm512_mask_mov_ps(quarters[2], second, quarters[3]));
}
ACL_SIXTEEN ACL_INLINE void sixteen_exponentials(float* out, const float* in) {
  using Floats = __m512;
  const Floats given = _mm512_loadu_ps(in);
  Floats x = given < -105.0f ? Floats{} - 105.0f : given;
  x = x > 101.0f ? Floats{} + 101.0f : x;
  const Floats shifted = x * 184.66496658325195f + kRound, k = shifted - kRound;
  const Floats r = (x - k * 0.0054168701171875f) - k * -1.65776906e-06f, p = r + (r * r) * 0.5f;
  const __m512i at = _mm512_castps_si512(shifted);
  const Floats high = looked_up(kPowers.high, at), low = looked_up(kPowers.low, at);
  const __v16si place = (__v16si)at & 127, power = ((__v16si)at - place - static_cast<int>(bits_of(kRound))) >> 7;
  const Floats y = high + (high * p + low);
  const __v16si first = power >> 1, second = power - first;
  const Floats size = y * (Floats)((first + 127) << 23) * (Floats)((second + 127) << 23);
  _mm512_storeu_ps(out, given > 89.0f ? Floats{} + std::numeric_limits<float>::infinity() : size);
}
ACL_SIXTEEN inline void exponentials_by_table(float* out, const float* in, int64_t n) {
  for (; n >= 16; n -= 16, in += 16, out += 16) sixteen_exponentials(out, in);
  float rest[16] = {};
  std::copy_n(in, n, rest);
  sixteen_exponentials(rest, rest);
  std::copy_n(rest, n, out);
}
#endif
inline void exponentials(float* out, const float* in, int64_t n) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  if (wide_vectors()) return exponentials_by_table(out, in, n);
#endif
  nearest_exponentials(out, in, n);
}

}  // namespace aclsim
