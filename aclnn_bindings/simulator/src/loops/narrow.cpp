// Tables of the small element types: see narrow.h.
#include "loops/narrow.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace aclsim {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// sign, exponent and mantissa fields with gradual underflow; no special codes.
float plain(int code, int exponent_bits, int mantissa_bits, int bias) {
  const int mantissa = code & ((1 << mantissa_bits) - 1);
  const int exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1);
  const bool negative = code >> (exponent_bits + mantissa_bits) & 1;
  const float whole = std::ldexp(1.0f, mantissa_bits);
  const float value = exponent ? std::ldexp(1 + mantissa / whole, exponent - bias)
                               : std::ldexp(mantissa / whole, 1 - bias);
  return negative ? -value : value;
}

float hifloat8(int code) {
  if (code == 0x80) return kNaN;
  const bool negative = code >> 7;
  const int low = code & 0x7F;
  float value;
  if (low == 0x6F) {
    value = kInfinity;
  } else if (low < 8) {  // dot field 0000: denormal
    value = low == 0 ? 0 : std::ldexp(1.0f, low - 23);
  } else {
    // The dot field says how many bits the exponent has: 11, 10, 01, 001, 0001 for 4 down to 0.
    const int width = low >= 0x60 ? 4 : low >= 0x40 ? 3 : low >= 0x20 ? 2 : low >= 0x10 ? 1 : 0;
    const int dot_bits = width >= 2 ? 2 : width == 1 ? 3 : 4;
    const int mantissa_bits = 7 - dot_bits - width;
    const int field = low >> mantissa_bits & ((1 << width) - 1);
    int exponent = 0;
    if (width > 0) {
      const int magnitude = (1 << (width - 1)) | (field & ((1 << (width - 1)) - 1));
      exponent = field >> (width - 1) ? -magnitude : magnitude;
    }
    const int mantissa = low & ((1 << mantissa_bits) - 1);
    value = std::ldexp(1 + mantissa / std::ldexp(1.0f, mantissa_bits), exponent);
  }
  return negative ? -value : value;
}

float decode(aclDataType dtype, int code) {
  switch (dtype) {
    case ACL_FLOAT8_E4M3FN: return (code & 0x7F) == 0x7F ? kNaN : plain(code, 4, 3, 7);
    case ACL_FLOAT8_E5M2:
      if ((code & 0x7F) > 0x7C) return kNaN;
      if ((code & 0x7F) == 0x7C) return code >> 7 ? -kInfinity : kInfinity;
      return plain(code, 5, 2, 15);
    case ACL_FLOAT8_E8M0: return code == 0xFF ? kNaN : std::ldexp(1.0f, code - 127);
    case ACL_FLOAT4_E2M1: return plain(code, 2, 1, 1);
    case ACL_FLOAT4_E1M2: return plain(code, 1, 2, 1);
    case ACL_INT4: return static_cast<float>(code < 8 ? code : code - 16);
    default: return hifloat8(code);
  }
}

struct Table {
  float values[256];
  int size = 0;  // finite values that are not negative, ascending
  float ascending[256];
  uint8_t codes[256];
  uint8_t overflow = 0;     // code of what rounds beyond the largest
  float limit = kInfinity;  // values from here on overflow; at it, where `ties_overflow`
  uint8_t nan = 0;
  uint8_t sign = 0;
  bool away = false, ties_overflow = false;
};

Table table_of(aclDataType dtype) {
  Table t;
  const int count =
      dtype == ACL_INT4 || dtype == ACL_FLOAT4_E2M1 || dtype == ACL_FLOAT4_E1M2 ? 16 : 256;
  for (int i = 0; i < count; ++i) t.values[i] = decode(dtype, i);
  t.sign = dtype == ACL_FLOAT8_E8M0 ? 0 : static_cast<uint8_t>(count / 2);
  const int positive = t.sign ? count / 2 : count;
  for (int i = 0; i < positive; ++i) {
    if (std::isfinite(t.values[i])) t.codes[t.size++] = static_cast<uint8_t>(i);
  }
  std::sort(t.codes, t.codes + t.size, [&](int a, int b) { return t.values[a] < t.values[b]; });
  for (int i = 0; i < t.size; ++i) t.ascending[i] = t.values[t.codes[i]];
  t.overflow = t.codes[t.size - 1];
  switch (dtype) {
    case ACL_FLOAT8_E4M3FN:
      t.overflow = t.nan = 0x7F;
      t.limit = 464;
      break;
    case ACL_FLOAT8_E5M2:
      t.overflow = 0x7C, t.nan = 0x7E, t.limit = 61440, t.ties_overflow = true;
      break;
    case ACL_HIFLOAT8:
      t.overflow = 0x6F, t.nan = 0x80, t.limit = 40960, t.ties_overflow = t.away = true;
      break;
    case ACL_FLOAT8_E8M0: t.nan = 0xFF; break;
    default: break;
  }
  return t;
}

const Table& table(aclDataType dtype) {
  static const Table hif8 = table_of(ACL_HIFLOAT8), e5m2 = table_of(ACL_FLOAT8_E5M2),
                     e4m3 = table_of(ACL_FLOAT8_E4M3FN), e8m0 = table_of(ACL_FLOAT8_E8M0),
                     e2m1 = table_of(ACL_FLOAT4_E2M1), e1m2 = table_of(ACL_FLOAT4_E1M2),
                     int4 = table_of(ACL_INT4);
  switch (dtype) {
    case ACL_HIFLOAT8: return hif8;
    case ACL_FLOAT8_E5M2: return e5m2;
    case ACL_FLOAT8_E4M3FN: return e4m3;
    case ACL_FLOAT8_E8M0: return e8m0;
    case ACL_FLOAT4_E2M1: return e2m1;
    case ACL_FLOAT4_E1M2: return e1m2;
    default: return int4;
  }
}

bool half_byte(aclDataType dtype) {
  return dtype == ACL_INT4 || dtype == ACL_FLOAT4_E2M1 || dtype == ACL_FLOAT4_E1M2;
}

int encode(aclDataType dtype, float value) {
  if (dtype == ACL_INT4) return static_cast<int>(static_cast<int64_t>(value)) & 15;
  const Table& t = table(dtype);
  if (std::isnan(value)) return t.nan;
  const float magnitude = t.sign ? std::fabs(value) : value;
  const bool negative = t.sign && std::signbit(value);
  if (magnitude > t.limit || (magnitude == t.limit && t.ties_overflow)) {
    return t.overflow | (negative ? t.sign : 0);
  }
  const float* above = std::lower_bound(t.ascending, t.ascending + t.size, magnitude);
  int at = static_cast<int>(above - t.ascending);
  if (at == t.size) {
    at = t.size - 1;
  } else if (at > 0 && *above != magnitude) {
    const double middle = (static_cast<double>(t.ascending[at - 1]) + *above) / 2;
    const bool even_below = (t.codes[at - 1] & 1) == 0;
    if (magnitude < middle || (magnitude == middle && !t.away && even_below)) --at;
  }
  const int code = t.codes[at];
  const bool bare_zero = dtype == ACL_HIFLOAT8 && code == 0;  // 0x80 is NaN there
  return code | (negative && !bare_zero ? t.sign : 0);
}

}  // namespace

float load_narrow(const void* data, aclDataType dtype, int64_t at) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  if (!half_byte(dtype)) return table(dtype).values[bytes[at]];
  return table(dtype).values[bytes[at / 2] >> (at % 2 * 4) & 15];
}

void store_narrow(float value, void* data, aclDataType dtype, int64_t at) {
  auto* bytes = static_cast<uint8_t*>(data);
  const auto code = static_cast<uint8_t>(encode(dtype, value));
  if (!half_byte(dtype)) {
    bytes[at] = code;
    return;
  }
  // Another thread may write the other half of the byte.
  const int shift = static_cast<int>(at % 2) * 4;
  __atomic_fetch_and(bytes + at / 2, static_cast<uint8_t>(~(15 << shift)), __ATOMIC_RELAXED);
  __atomic_fetch_or(bytes + at / 2, static_cast<uint8_t>(code << shift), __ATOMIC_RELAXED);
}

float largest(aclDataType dtype) {
  switch (dtype) {
    case ACL_INT8: return 127;
    case ACL_UINT8: return 255;
    case ACL_INT4:
    case ACL_INT32: return 7;  // INT32: eight int4
    case ACL_HIFLOAT8: return 32768;
    case ACL_FLOAT8_E5M2: return 57344;
    case ACL_FLOAT8_E4M3FN: return 448;
    case ACL_FLOAT4_E2M1: return 6;
    case ACL_FLOAT4_E1M2: return 1.75f;
    default: return 0;
  }
}

}  // namespace aclsim
