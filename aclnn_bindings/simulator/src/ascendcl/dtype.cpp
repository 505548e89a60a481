// Properties of dtypes, host scalars as numbers, and the half-precision conversions of ACL.
#include <cmath>
#include <cstdio>

#include "ascendcl/common.h"
#include "per_thread.h"

namespace aclsim {
namespace {

struct Facts {
  aclDataType dtype;
  const char* name;
  size_t size;
};
const Facts kFacts[] = {
    {ACL_FLOAT, "DT_FLOAT", 4},           {ACL_FLOAT16, "DT_FLOAT16", 2},
    {ACL_INT8, "DT_INT8", 1},             {ACL_INT32, "DT_INT32", 4},
    {ACL_UINT8, "DT_UINT8", 1},           {ACL_INT16, "DT_INT16", 2},
    {ACL_UINT16, "DT_UINT16", 2},         {ACL_UINT32, "DT_UINT32", 4},
    {ACL_INT64, "DT_INT64", 8},           {ACL_UINT64, "DT_UINT64", 8},
    {ACL_DOUBLE, "DT_DOUBLE", 8},         {ACL_BOOL, "DT_BOOL", 1},
    {ACL_STRING, "DT_STRING", 0},         {ACL_COMPLEX64, "DT_COMPLEX64", 8},
    {ACL_COMPLEX128, "DT_COMPLEX128", 16}, {ACL_BF16, "DT_BFLOAT16", 2},
    {ACL_INT4, "DT_INT4", 0},             {ACL_UINT1, "DT_UINT1", 0},
    {ACL_COMPLEX32, "DT_COMPLEX32", 4},   {ACL_HIFLOAT8, "DT_HIFLOAT8", 1},
    {ACL_FLOAT8_E5M2, "DT_FLOAT8_E5M2", 1}, {ACL_FLOAT8_E4M3FN, "DT_FLOAT8_E4M3FN", 1},
    {ACL_FLOAT8_E8M0, "DT_FLOAT8_E8M0", 1}, {ACL_FLOAT6_E3M2, "DT_FLOAT6_E3M2", 0},
    {ACL_FLOAT6_E2M3, "DT_FLOAT6_E2M3", 0}, {ACL_FLOAT4_E2M1, "DT_FLOAT4_E2M1", 0},
    {ACL_FLOAT4_E1M2, "DT_FLOAT4_E1M2", 0},
};

const Facts* facts(aclDataType dtype) {
  for (const Facts& f : kFacts) {
    if (f.dtype == dtype) return &f;
  }
  return nullptr;
}

// IEEE 754 binary16, round to nearest even.
float half_to_float(uint16_t half) {
  uint32_t sign = (half & 0x8000u) << 16, exponent = (half >> 10) & 31, mantissa = half & 0x3FF;
  uint32_t bits;
  if (exponent == 31) {
    bits = sign | 0x7F800000u | mantissa << 13;
  } else if (exponent) {
    bits = sign | (exponent + 112) << 23 | mantissa << 13;
  } else {
    float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -value : value;
  }
  float out;
  memcpy(&out, &bits, 4);
  return out;
}

uint16_t float_to_half(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  uint16_t sign = (bits >> 16) & 0x8000;
  uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude >= 0x7F800000) {
    return sign | 0x7C00 | (magnitude > 0x7F800000 ? 0x200 | ((magnitude >> 13) & 0x3FF) : 0);
  }
  if (magnitude >= 0x477FF000) return sign | 0x7C00;  // rounds beyond 65504
  if (magnitude < 0x38800000) {
    float scaled;
    memcpy(&scaled, &magnitude, 4);
    return sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(scaled, 24)));
  }
  uint32_t rounded = magnitude + 0xFFF + ((magnitude >> 13) & 1);
  return sign | static_cast<uint16_t>((rounded - 0x38000000) >> 13);
}

template <class T>
T load(const unsigned char* bytes) {
  T value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

float bfloat(const unsigned char* bytes) {
  uint32_t bits = static_cast<uint32_t>(load<uint16_t>(bytes)) << 16;
  float out;
  memcpy(&out, &bits, 4);
  return out;
}

bool is_integer(aclDataType dtype) {
  return dtype_bit(dtype) & (dtype_bit(ACL_INT8) | dtype_bit(ACL_INT16) | dtype_bit(ACL_INT32) |
                             dtype_bit(ACL_INT64) | dtype_bit(ACL_UINT8) | dtype_bit(ACL_UINT16) |
                             dtype_bit(ACL_UINT32) | dtype_bit(ACL_UINT64) | dtype_bit(ACL_BOOL));
}

int64_t load_integer(aclDataType dtype, const unsigned char* bytes) {
  switch (dtype) {
    case ACL_INT8: return load<int8_t>(bytes);
    case ACL_INT16: return load<int16_t>(bytes);
    case ACL_INT32: return load<int32_t>(bytes);
    case ACL_INT64: return load<int64_t>(bytes);
    case ACL_UINT8: return load<uint8_t>(bytes);
    case ACL_UINT16: return load<uint16_t>(bytes);
    case ACL_UINT32: return load<uint32_t>(bytes);
    case ACL_UINT64: return static_cast<int64_t>(load<uint64_t>(bytes));
    default: return load<uint8_t>(bytes) != 0;
  }
}

}  // namespace

const char* dtype_name(aclDataType dtype) {
  const Facts* f = facts(dtype);
  return f ? f->name : "DT_UNDEFINED";
}

size_t dtype_size(aclDataType dtype) {
  switch (dtype) {  // those that hot paths ask for
    case ACL_FLOAT: case ACL_INT32: return 4;
    case ACL_DOUBLE: case ACL_INT64: return 8;
    case ACL_FLOAT16: case ACL_BF16: return 2;
    case ACL_BOOL: return 1;
    default: break;
  }
  const Facts* f = facts(dtype);
  return f ? f->size : 0;
}

double Scalar::real() const {
  switch (dtype) {
    case ACL_FLOAT: case ACL_COMPLEX64: return load<float>(bytes);
    case ACL_DOUBLE: case ACL_COMPLEX128: return load<double>(bytes);
    case ACL_FLOAT16: case ACL_COMPLEX32: return half_to_float(load<uint16_t>(bytes));
    case ACL_BF16: return bfloat(bytes);
    case ACL_UINT64: return static_cast<double>(load<uint64_t>(bytes));
    default: return is_integer(dtype) ? static_cast<double>(load_integer(dtype, bytes)) : 0.0;
  }
}

double Scalar::imag() const {
  switch (dtype) {
    case ACL_COMPLEX64: return load<float>(bytes + 4);
    case ACL_COMPLEX128: return load<double>(bytes + 8);
    case ACL_COMPLEX32: return half_to_float(load<uint16_t>(bytes + 2));
    default: return 0.0;
  }
}

int64_t Scalar::integer() const {
  if (is_integer(dtype)) return load_integer(dtype, bytes);
  double value = real();
  if (!(value > -9.3e18)) return INT64_MIN;  // NaN too
  if (value >= 9.2233720368547758e18) return INT64_MAX;
  return static_cast<int64_t>(value);
}

bool Scalar::truth() const {
  return is_integer(dtype) ? load_integer(dtype, bytes) != 0 : real() != 0.0 || imag() != 0.0;
}

const char* shape_text(const int64_t* dims, int rank) {
  // On the heap: a library that is loaded late has few bytes for a thread's own data.
  struct Ring {
    char texts[4][256];
    int turn = 0;
  };
  Ring& ring = aclnn_bindings::per_thread<Ring>();
  char* text = ring.texts[ring.turn = (ring.turn + 1) % 4];
  size_t at = 0;
  text[at++] = '[';
  for (int i = 0; i < rank && at < 220; ++i) {
    at += snprintf(text + at, 24, i ? ",%lld" : "%lld", static_cast<long long>(dims[i]));
  }
  text[at++] = ']';
  text[at] = 0;
  return text;
}

}  // namespace aclsim

ACLSIM_API size_t aclDataTypeSize(aclDataType dataType) { return aclsim::dtype_size(dataType); }
ACLSIM_API float aclFloat16ToFloat(aclFloat16 value) { return aclsim::half_to_float(value); }
ACLSIM_API aclFloat16 aclFloatToFloat16(float value) { return aclsim::float_to_half(value); }
