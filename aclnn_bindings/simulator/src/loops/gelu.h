// gelu and its slope as oneDNN computes them, which torch calls for floats (gelu_erf in oneDNN's
// src/cpu/x64/injectors/jit_uni_eltwise_injector.cpp, whence the coefficients): with vectors of 64 bytes
// erf(x / sqrt(2)) is one of 25 polynomials, else, and for the slope, formula 7.1.26 of Abramowitz and
// Stegun, "Handbook of Mathematical Functions".
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#endif

#include <algorithm>

#include "loops/lanes.h"

namespace aclsim {

ACL_INLINE float exp_of_negative(float given) {
  const float x = given < -87.33654f ? -87.33654f : given;
  const float n = std::floor(x * kLog2e + 0.5f), r = fused(-n, 0.693147182f, x);
  float p = 0.00828929059f;
  p = fused(p, r, 0.0418978221f);
  p = fused(p, r, 0.166676521f);
  p = fused(p, r, 0.499991506f);
  p = fused(p, r, 0.999999701f);
  return given < -87.33654f ? 0.0f : fused(p, r, 1.0f) * exp2_integral(n - 1.0f) * 2.0f;
}
// erf(r) of fall = exp(-r r).
ACL_INLINE float erf_of_fall(float r, float fall) {
  const float t = 1.0f / fused(0.3275911f, std::fabs(r), 1.0f);
  float p = 1.061405429f;
  p = fused(p, t, -1.453152027f);
  p = fused(p, t, 1.421413741f);
  p = fused(p, t, -0.284496736f);
  p = fused(p, t, 0.254829592f);
  const float size = fused(-fall * t, p, 1.0f);
  return r < 0.0f ? -size : size;
}
constexpr float kRootHalf = 0.70710678118654752440f;
ACL_INLINE float gelu_one(float x) {
  const float r = x * kRootHalf, half = x * 0.5f;
  return fused(erf_of_fall(r, exp_of_negative(-(r * r))), half, half);
}
ACL_INLINE float gelu_slope_one(float x) {
  const float r = x * kRootHalf, fall = exp_of_negative(-(r * r));
  return fused(erf_of_fall(r, fall), 0.5f, (r * 0.564189565f) * fall + 0.5f);
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
// Coefficients by degree, of |x| in quarters of octaves from 2^-15/4 on; the last two are of |x| that give 1, and of none.
alignas(64) constexpr float kErfTerms[6][32] = {
    {-1.68473032e-15f, 1.51883661e-08f, 6.04414652e-08f, 1.95800709e-07f, 5.76551258e-07f,
     1.81367886e-06f, 7.10810536e-06f, 2.20107522e-05f, 5.52256352e-05f, 0.000183117503f,
     0.000649841328f, 0.00173450669f, 0.00378662022f, 0.00834305119f, 0.0127789555f,
     -0.00317682093f, -0.0691192001f, -0.270972043f, -0.547266126f, -0.399804354f, 0.147876456f,
     0.777551234f, 0.979418278f, 1.0f, 0.0f},
    {0.797884583f, 0.797883928f, 0.797882497f, 0.797878921f, 0.797870338f, 0.797846615f,
     0.797762811f, 0.79756546f, 0.797186494f, 0.795948088f, 0.792244673f, 0.785046518f,
     0.773357809f, 0.751190603f, 0.73278898f, 0.784667194f, 0.971467674f, 1.4611516f,
     2.02515841f, 1.79073596f, 1.00937247f, 0.230981886f, 0.0186735205f, 0.0f, 1.0f},
    {-2.40583631e-06f, 1.08417144e-05f, 2.89676409e-05f, 6.68237772e-05f, 0.00014431536f,
     0.000326474663f, 0.000858230225f, 0.00190524384f, 0.00363663235f, 0.00844163168f,
     0.0202229246f, 0.0393608548f, 0.0660244524f, 0.109234571f, 0.139799759f, 0.0722661838f,
     -0.139640495f, -0.615581691f, -1.07700634f, -0.928109586f, -0.481687307f, -0.0961773992f,
     -0.00678683911f, 0.0f, 0.0f},
    {-0.132912055f, -0.133077383f, -0.133192465f, -0.133393154f, -0.13374342f, -0.134443596f,
     -0.136134386f, -0.138916165f, -0.142875552f, -0.15221408f, -0.1709968f, -0.196478829f,
     -0.226927698f, -0.269114465f, -0.294523537f, -0.250523865f, -0.130191594f, 0.101483591f,
     0.290589511f, 0.243363842f, 0.11568559f, 0.0200678855f, 0.0012350094f, 0.0f, 0.0f},
    {-0.000722435943f, 0.000458893453f, 0.000825015595f, 0.00135785958f, 0.00215051882f,
     0.00349776214f, 0.00619186787f, 0.0098931957f, 0.0144253373f, 0.0235171374f, 0.0385247208f,
     0.055516649f, 0.0729237124f, 0.0935536623f, 0.104124852f, 0.0897768661f, 0.0555713102f,
     -0.000911210198f, -0.0397323705f, -0.0322541632f, -0.0139745874f, -0.00209773751f,
     -0.000112510286f, 0.0f, 0.0f},
    {0.0224418864f, 0.0189668238f, 0.0184998829f, 0.0179330409f, 0.0172145572f, 0.0161763802f,
     0.014455351f, 0.0124822361f, 0.0104048746f, 0.00685734302f, 0.00204954576f, -0.00249000336f,
     -0.0064754039f, -0.0105179306f, -0.012278704f, -0.0104052182f, -0.00651133247f,
     -0.000993563561f, 0.00219980814f, 0.00172694004f, 0.000678890501f, 8.78636856e-05f,
     4.10472876e-06f, 0.0f, 0.0f},
};
__attribute__((target("avx512f"))) inline void sixteen_gelus(float* out, const float* in) {
  const __m512 x = _mm512_loadu_ps(in), size = _mm512_abs_ps(x), one = _mm512_set1_ps(1.0f);
  const __m512 most = _mm512_set1_ps(5.54259014f);
  __v16si at = ((__v16si)size + static_cast<int>(0xC21FFFFFu)) >> 21;
  at = at < 1 ? __v16si{} + 1 : at > 24 ? __v16si{} + 24 : at;
  const __mmask16 far = _mm512_cmp_ps_mask(size, most, _CMP_GT_OQ);
  const __m512i place = _mm512_mask_mov_epi32((__m512i)at, far, _mm512_set1_epi32(23));
  __m512 sum = _mm512_setzero_ps();
  for (int k = 5; k >= 0; --k) {
    const __m512 low = _mm512_load_ps(kErfTerms[k]), high = _mm512_load_ps(kErfTerms[k] + 16);
    sum = _mm512_fmadd_ps(sum, size, _mm512_permutex2var_ps(low, place, high));
  }
  const __m512i sign = _mm512_and_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MIN));
  sum = _mm512_castsi512_ps(_mm512_xor_epi32(_mm512_castps_si512(sum), sign));
  const __m512 result = _mm512_mul_ps(_mm512_mul_ps(x, _mm512_add_ps(sum, one)), _mm512_set1_ps(0.5f));
  _mm512_storeu_ps(out, _mm512_mask_mov_ps(result, _mm512_cmp_ps_mask(x, most, _CMP_GT_OQ), x));  // infinity, too
}
__attribute__((target("avx512f"))) inline void gelus(float* out, const float* in, int64_t n) {
  for (; n >= 16; n -= 16, in += 16, out += 16) sixteen_gelus(out, in);
  float rest[16] = {};
  std::copy_n(in, n, rest);
  sixteen_gelus(rest, rest);
  std::copy_n(rest, n, out);
}
#endif

}  // namespace aclsim
