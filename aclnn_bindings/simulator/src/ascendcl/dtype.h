// The storage types behind aclDataType values, their conversion to the types kernels compute in,
// and the one dtype switch. It knows nothing of tensors.
#pragma once

#include "nnopbase/op.h"

#include <cmath>
#include <limits>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__x86_64__) || \
    !defined(__gnu_linux__) || defined(__clang__)
#define ACL_VECTOR  // ifunc resolvers run before a sanitizer is up; other targets need no clones
#elif defined(ACL_WITHOUT_AVX512)
#define ACL_VECTOR __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define ACL_VECTOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#define ACL_INLINE inline __attribute__((always_inline))
#define ACL_LAMBDA __attribute__((always_inline))
#define ACL_IVDEP _Pragma("GCC ivdep")

namespace aclsim {

struct half {
  uint16_t bits;
};
struct bfloat {
  uint16_t bits;
};
using c64 = std::complex<float>;
using c128 = std::complex<double>;

ACL_INLINE float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
ACL_INLINE uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

// Without branches, so that loops over them vectorise. The products rescale the exponent, which
// also rounds subnormals right.
ACL_INLINE float to_float(half h) {
  const uint32_t w = uint32_t{h.bits} << 16, twice = w + w;
  const float normal = float_of((twice >> 4) + (0xE0u << 23)) * float_of(0x7800000u);
  const float subnormal = float_of((twice >> 17) | (126u << 23)) - 0.5f;
  const uint32_t magnitude = twice < (1u << 27) ? bits_of(subnormal) : bits_of(normal);
  return float_of((w & 0x80000000u) | magnitude);
}
ACL_INLINE half to_half(float f) {
  const uint32_t w = bits_of(f), twice = w + w, sign = w & 0x80000000u;
  float base = (float_of(w & 0x7FFFFFFFu) * float_of(0x77800000u)) * float_of(0x08800000u);
  uint32_t bias = twice & 0xFF000000u;
  bias = bias < 0x71000000u ? 0x71000000u : bias;
  base = float_of((bias >> 1) + 0x07800000u) + base;
  const uint32_t bits = bits_of(base);
  const uint32_t nonsign = ((bits >> 13) & 0x7C00u) + (bits & 0x0FFFu);
  return {static_cast<uint16_t>((sign >> 16) | (twice > 0xFF000000u ? 0x7E00u : nonsign))};
}
// A double on its way to half: cut off, its last bit says whether anything was. The one rounding that
// follows is then the right one. (To bfloat16 torch and ml_dtypes go through float and round twice.)
ACL_INLINE float to_odd(double x) {
  const auto f = static_cast<float>(x);
  const uint32_t w = bits_of(f), cut = w - (std::fabs(static_cast<double>(f)) > std::fabs(x));
  return static_cast<double>(f) == x ? f : float_of(cut | 1u);
}
ACL_INLINE float to_float(bfloat b) { return float_of(uint32_t{b.bits} << 16); }
ACL_INLINE bfloat to_bfloat(float f) {
  const uint32_t w = bits_of(f);
  const uint32_t rounded = (w + 0x7FFFu + ((w >> 16) & 1u)) >> 16;
  return {static_cast<uint16_t>((w & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC0u : rounded)};
}

// Any storage or compute type to any other; complex to real takes the real part, anything to bool
// asks for nonzero, as torch's `to` does.
template <class To>
struct Convert {
  template <class From>
  static ACL_INLINE To of(From x) {
    return static_cast<To>(x);
  }
  static ACL_INLINE To of(float x) { return narrow(x); }
  static ACL_INLINE To of(double x) { return narrow(x); }
  static ACL_INLINE To of(half x) { return of(to_float(x)); }
  static ACL_INLINE To of(bfloat x) { return of(to_float(x)); }
  static ACL_INLINE To of(c64 x) { return of(x.real()); }
  static ACL_INLINE To of(c128 x) { return of(x.real()); }

 private:
  // Small integers go through int64, so that values out of range wrap as torch's do on x86-64.
  template <class From>
  static ACL_INLINE To narrow(From x) {
    if constexpr (std::is_integral<To>::value && sizeof(To) < 8) {
      return static_cast<To>(static_cast<int64_t>(x));
    } else {
      return static_cast<To>(x);
    }
  }
};
template <>
struct Convert<bool> {
  template <class From>
  static ACL_INLINE bool of(From x) {
    return x != From(0);
  }
  static ACL_INLINE bool of(half x) { return (x.bits & 0x7FFF) != 0; }
  static ACL_INLINE bool of(bfloat x) { return (x.bits & 0x7FFF) != 0; }
};
template <>
struct Convert<half> {
  template <class From>
  static ACL_INLINE half of(From x) {
    return to_half(Convert<float>::of(x));
  }
  static ACL_INLINE half of(double x) { return to_half(to_odd(x)); }
  static ACL_INLINE half of(c128 x) { return of(x.real()); }
};
template <>
struct Convert<bfloat> {
  template <class From>
  static ACL_INLINE bfloat of(From x) {
    return to_bfloat(Convert<float>::of(x));
  }
};
template <class R>
struct Convert<std::complex<R>> {
  template <class From>
  static ACL_INLINE std::complex<R> of(From x) {
    return {Convert<R>::of(x), R(0)};
  }
  static ACL_INLINE std::complex<R> of(c64 x) { return {R(x.real()), R(x.imag())}; }
  static ACL_INLINE std::complex<R> of(c128 x) { return {R(x.real()), R(x.imag())}; }
};

template <class T>
struct Tag {
  using type = T;
};

// The dtype switch. Calls f(Tag<T>{}) with the storage type; false for a dtype without one.
template <class F>
bool visit(aclDataType dtype, F&& f) {
  switch (dtype) {
    case ACL_FLOAT: f(Tag<float>{}); return true;
    case ACL_FLOAT16: f(Tag<half>{}); return true;
    case ACL_BF16: f(Tag<bfloat>{}); return true;
    case ACL_DOUBLE: f(Tag<double>{}); return true;
    case ACL_INT8: f(Tag<int8_t>{}); return true;
    case ACL_INT16: f(Tag<int16_t>{}); return true;
    case ACL_INT32: f(Tag<int32_t>{}); return true;
    case ACL_INT64: f(Tag<int64_t>{}); return true;
    case ACL_UINT8: f(Tag<uint8_t>{}); return true;
    case ACL_UINT16: f(Tag<uint16_t>{}); return true;
    case ACL_UINT32: f(Tag<uint32_t>{}); return true;
    case ACL_UINT64: f(Tag<uint64_t>{}); return true;
    case ACL_BOOL: f(Tag<bool>{}); return true;
    case ACL_COMPLEX64: f(Tag<c64>{}); return true;
    case ACL_COMPLEX128: f(Tag<c128>{}); return true;
    default: return false;
  }
}

// What a kernel computes in: float for the small floats, int64 for integers and bool.
enum class Domain : uint8_t { Float, Double, Integer, Complex };

inline bool is_complex(aclDataType d) { return d == ACL_COMPLEX64 || d == ACL_COMPLEX128; }
// Floats of eight or four bits: see narrow.h.
inline bool is_narrow_float(aclDataType d) {
  return d == ACL_HIFLOAT8 || d == ACL_FLOAT8_E5M2 || d == ACL_FLOAT8_E4M3FN ||
         d == ACL_FLOAT8_E8M0 || d == ACL_FLOAT4_E2M1 || d == ACL_FLOAT4_E1M2;
}
inline bool is_float(aclDataType d) {
  return d == ACL_FLOAT || d == ACL_FLOAT16 || d == ACL_BF16 || d == ACL_DOUBLE ||
         is_narrow_float(d);
}
inline bool is_integer(aclDataType d) { return !is_float(d) && !is_complex(d) && d != ACL_BOOL; }

inline Domain domain_of(aclDataType d) {
  if (is_complex(d)) return Domain::Complex;
  if (d == ACL_DOUBLE) return Domain::Double;
  return is_float(d) ? Domain::Float : Domain::Integer;
}
template <class C>
constexpr aclDataType dtype_of() {
  if (std::is_same<C, float>::value) return ACL_FLOAT;
  if (std::is_same<C, double>::value) return ACL_DOUBLE;
  if (std::is_same<C, c128>::value) return ACL_COMPLEX128;
  if (std::is_same<C, bfloat>::value) return ACL_BF16;
  return ACL_INT64;
}

}  // namespace aclsim
