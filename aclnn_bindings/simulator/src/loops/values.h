// Whole tensors as dense host arrays, for kernels whose formulas speak of tables, groups and caches
// rather than of elements; and what quantising kernels share. Layout, dtype and packing are dealt
// with here, so that such a kernel only sees row-major floats or integers.
#pragma once

#include "loops/given.h"
#include "loops/iterate.h"
#include "loops/narrow.h"

#include <algorithm>
#include <vector>

namespace aclsim {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Ints = std::vector<int64_t>;

// Row-major elements; none for an absent tensor.
template <class C>
std::vector<C> values_of(const Tensor* t) {
  if (!t) return {};
  std::vector<C> v(static_cast<size_t>(t->numel()));
  copy_tensor(dense(v.data(), dtype_of<C>(), t->dims, t->rank), *t);
  return v;
}
inline Floats floats(const Tensor* t) { return values_of<float>(t); }
inline Floats floats(const Tensor& t) { return values_of<float>(&t); }
inline Doubles doubles(const Tensor* t) { return values_of<double>(t); }
inline Doubles doubles(const Tensor& t) { return values_of<double>(&t); }
inline Ints integers(const Tensor* t) { return values_of<int64_t>(t); }
inline Ints integers(const Tensor& t) { return values_of<int64_t>(&t); }

// Absent outputs are left alone.
template <class C>
void write(const Tensor* t, const std::vector<C>& v) {
  if (!t || t->numel() == 0) return;
  copy_tensor(*t, dense(const_cast<C*>(v.data()), dtype_of<C>(), t->dims, t->rank));
}
template <class C>
void write(const Tensor& t, const std::vector<C>& v) {
  write(&t, v);
}
// As many elements as the output has: the op's caller sizes it for the worst case.
template <class C>
void write_head(const Tensor* t, std::vector<C> v) {
  if (!t) return;
  v.resize(static_cast<size_t>(t->numel()));
  write(t, v);
}
inline bool given(const Tensor* t) { return t && t->numel() > 0; }
// The elements of the last dim, and how many such rows there are.
inline int64_t width_of(const Tensor& t) { return t.rank ? t.dims[t.rank - 1] : 1; }
inline int64_t rows_of(const Tensor& t) {
  int64_t n = 1;
  for (int i = 0; i + 1 < t.rank; ++i) n *= t.dims[i];
  return n;
}

// Elements of a tensor that may pack eight of four bits into one INT32 (int4) or FLOAT (float4).
constexpr int64_t kPacked = 8;
Doubles unpacked(const Tensor& t, bool packs);

// "round", "rint" and null round half to even; also "floor", "ceil", "trunc", "hybrid" (half away).
enum class Rounding : uint8_t { Even, Floor, Ceil, Trunc, Away, Unknown };
Rounding rounding_of(const char* text);
float rounded(float value, Rounding rounding);
// Rounds and saturates to the output's dtype; INT32 that holds an eighth of `v` packs int4. NaN
// becomes 0 in integers.
void write_quantized(const Tensor* t, const Floats& v, Rounding rounding = Rounding::Even);

// Which group each of `rows` rows is in, -1 for none: from the groups' sizes, or where each ends.
Ints groups_of_rows(const Ints& list, int64_t rows, bool sizes);

// Rows of `width` elements quantised one by one: scale = max |x| / top, y = x / scale.
struct QuantizedRows {
  Floats values, scales, offsets;
};
QuantizedRows quantize_rows(const Floats& x, int64_t width, float top);

// Phase 1: is the shape of `out` that of `like`, but for packing?
aclnnStatus expect_quantized(const Call& c, TensorAt out, TensorAt like);

}  // namespace aclsim
