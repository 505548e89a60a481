// Loads, stores and casts of element runs: see block.h.
#include "loops/block.h"
#include "loops/narrow.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define ACL_F16C 1
#endif

namespace aclsim {
namespace {

#ifdef ACL_F16C
bool has_f16c() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  return has;
}
// Eight at a time by the instruction; how many. A NaN keeps its sign alone, as by to_half.
__attribute__((target("avx2,f16c"))) int64_t to_halves(half* out, const float* in, int64_t n) {
  const __m256 sign = _mm256_set1_ps(-0.0f), nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FC00000));
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 x = _mm256_loadu_ps(in + i);
    const __m256 quiet = _mm256_or_ps(_mm256_and_ps(x, sign), nan);
    const __m256 y = _mm256_blendv_ps(x, quiet, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm256_cvtps_ph(y, _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}
#endif

template <class To, class From>
ACL_VECTOR void convert_each(To* __restrict out, const From* __restrict in, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = Convert<To>::of(in[i]);
}
template <class To, class From>
void convert_run(To* out, const From* in, int64_t n) {
  int64_t done = 0;
#ifdef ACL_F16C
  if constexpr (std::is_same<To, half>::value && std::is_same<From, float>::value) {
    if (has_f16c()) done = to_halves(out, in, n);
  }
#endif
  convert_each(out + done, in + done, n - done);
}
template <class To, class From>
void convert_strided(To* out, int64_t so, const From* in, int64_t si, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i * so] = Convert<To>::of(in[i * si]);
}

// Elements in the opposite order, as `flip` reads them.
template <class T>
ACL_VECTOR void copy_reversed(T* out, const T* last, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = last[-i];
}
template <class T>
void copy_as(void* out, int64_t so, const void* in, int64_t si, int64_t n) {
  if (so == 1 && si == -1) return copy_reversed(static_cast<T*>(out), static_cast<const T*>(in), n);
  T* to = static_cast<T*>(out);
  const T* from = static_cast<const T*>(in);
  for (int64_t i = 0; i < n; ++i) to[i * so] = from[i * si];
}

struct Widest {
  uint64_t words[2];
};

}  // namespace

template <class C>
void load(C* out, const void* data, aclDataType dtype, int64_t offset, int64_t stride, int64_t n) {
  if (n <= 0) return;
  const bool known = visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = static_cast<const T*>(data) + offset;
    if (stride == 0) {
      const C value = Convert<C>::of(*in);
      for (int64_t i = 0; i < n; ++i) out[i] = value;
    } else if (stride != 1) {
      convert_strided(out, 1, in, stride, n);
    } else if constexpr (std::is_same<C, T>::value) {
      std::memcpy(out, in, sizeof(C) * n);
    } else {
      convert_run(out, in, n);
    }
  });
  if (known) return;
  for (int64_t i = 0; i < n; ++i) {
    out[i] = Convert<C>::of(load_narrow(data, dtype, offset + i * stride));
  }
}

template <class C>
void store(const C* in, void* data, aclDataType dtype, int64_t offset, int64_t stride, int64_t n) {
  const bool known = visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = static_cast<T*>(data) + offset;
    if (stride != 1) {
      convert_strided(out, stride, in, 1, n);
    } else if constexpr (std::is_same<C, T>::value) {
      if (n > 0) std::memcpy(out, in, sizeof(C) * n);
    } else {
      convert_run(out, in, n);
    }
  });
  if (known) return;
  for (int64_t i = 0; i < n; ++i) {
    store_narrow(Convert<float>::of(in[i]), data, dtype, offset + i * stride);
  }
}

void round_to(float* values, aclDataType dtype, int64_t n) {
  if (dtype == ACL_FLOAT16) {
    for (int64_t i = 0; i < n; ++i) values[i] = to_float(to_half(values[i]));
  } else if (dtype == ACL_BF16) {
    for (int64_t i = 0; i < n; ++i) values[i] = to_float(to_bfloat(values[i]));
  }
}

void copy_elements(void* out, int64_t so, const void* in, int64_t si, int64_t n, size_t bytes) {
  if (n <= 0) return;
  if (so == 1 && si == 1) {
    std::memmove(out, in, bytes * n);
    return;
  }
  switch (bytes) {
    case 1: copy_as<uint8_t>(out, so, in, si, n); break;
    case 2: copy_as<uint16_t>(out, so, in, si, n); break;
    case 4: copy_as<uint32_t>(out, so, in, si, n); break;
    case 8: copy_as<uint64_t>(out, so, in, si, n); break;
    default: copy_as<Widest>(out, so, in, si, n);
  }
}

template void load(float*, const void*, aclDataType, int64_t, int64_t, int64_t);
template void load(double*, const void*, aclDataType, int64_t, int64_t, int64_t);
template void load(int64_t*, const void*, aclDataType, int64_t, int64_t, int64_t);
template void load(c128*, const void*, aclDataType, int64_t, int64_t, int64_t);
template void store(const float*, void*, aclDataType, int64_t, int64_t, int64_t);
template void store(const double*, void*, aclDataType, int64_t, int64_t, int64_t);
template void store(const int64_t*, void*, aclDataType, int64_t, int64_t, int64_t);
template void store(const c128*, void*, aclDataType, int64_t, int64_t, int64_t);

}  // namespace aclsim
