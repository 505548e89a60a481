// Moves runs of elements between storage of any dtype and the four compute types. Every cast on
// load and on store in the simulator happens here.
#pragma once

#include "ascendcl/dtype.h"

namespace aclsim {

// Elements per block of an inner loop: four operands of float stay in the first-level cache.
constexpr int64_t kBlock = 1024;

// out[i] = data[offset + i * stride], i < n. Stride 0 repeats one element.
template <class C>
void load(C* out, const void* data, aclDataType dtype, int64_t offset, int64_t stride, int64_t n);
// data[offset + i * stride] = in[i].
template <class C>
void store(const C* in, void* data, aclDataType dtype, int64_t offset, int64_t stride, int64_t n);
// Rounds values to a smaller float dtype in place; no effect for other dtypes.
void round_to(float* values, aclDataType dtype, int64_t n);
// Same-width moves without a look at the value: data_out[i*so] = data_in[i*si], element bytes 1..16.
void copy_elements(void* out, int64_t so, const void* in, int64_t si, int64_t n, size_t bytes);

template <class C>
C load_one(const void* data, aclDataType dtype, int64_t offset) {
  C value;
  load(&value, data, dtype, offset, 1, 1);
  return value;
}
template <class C>
void store_one(C value, void* data, aclDataType dtype, int64_t offset) {
  store(&value, data, dtype, offset, 1, 1);
}
template <class C>
C scalar_as(const Scalar& s) {
  return load_one<C>(s.bytes, s.dtype, 0);
}

extern template void load(float*, const void*, aclDataType, int64_t, int64_t, int64_t);
extern template void load(double*, const void*, aclDataType, int64_t, int64_t, int64_t);
extern template void load(int64_t*, const void*, aclDataType, int64_t, int64_t, int64_t);
extern template void load(c128*, const void*, aclDataType, int64_t, int64_t, int64_t);
extern template void store(const float*, void*, aclDataType, int64_t, int64_t, int64_t);
extern template void store(const double*, void*, aclDataType, int64_t, int64_t, int64_t);
extern template void store(const int64_t*, void*, aclDataType, int64_t, int64_t, int64_t);
extern template void store(const c128*, void*, aclDataType, int64_t, int64_t, int64_t);

}  // namespace aclsim
