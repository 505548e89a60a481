// Packing and rounding of quantised values: see values.h.
#include "loops/values.h"

#include <cmath>
#include <cstring>

namespace aclsim {

Doubles unpacked(const Tensor& t, bool packs) {
  const bool wide = packs && (t.dtype == ACL_INT32 || t.dtype == ACL_FLOAT);
  if (!wide) return doubles(t);
  Tensor bits = t;
  bits.dtype = ACL_INT32;
  const Ints words = integers(bits);
  Doubles v(words.size() * kPacked);
  const aclDataType element = t.dtype == ACL_INT32 ? ACL_INT4 : ACL_FLOAT4_E2M1;
  for (size_t i = 0; i < words.size(); ++i) {
    const auto word = static_cast<uint32_t>(words[i]);
    for (int64_t k = 0; k < kPacked; ++k) v[i * kPacked + k] = load_narrow(&word, element, k);
  }
  return v;
}

Rounding rounding_of(const char* text) {
  if (!text || !*text || !std::strcmp(text, "round") || !std::strcmp(text, "rint")) {
    return Rounding::Even;
  }
  if (!std::strcmp(text, "floor")) return Rounding::Floor;
  if (!std::strcmp(text, "ceil")) return Rounding::Ceil;
  if (!std::strcmp(text, "trunc")) return Rounding::Trunc;
  return !std::strcmp(text, "hybrid") ? Rounding::Away : Rounding::Unknown;
}

float rounded(float value, Rounding rounding) {
  switch (rounding) {
    case Rounding::Floor: return std::floor(value);
    case Rounding::Ceil: return std::ceil(value);
    case Rounding::Trunc: return std::trunc(value);
    case Rounding::Away: return std::round(value);
    default: return std::nearbyint(value);
  }
}

namespace {

void write_nibbles(const Tensor& t, const Floats& v) {
  Ints words(v.size() / kPacked);
  for (size_t i = 0; i < words.size(); ++i) {
    uint32_t word = 0;
    for (int64_t k = 0; k < kPacked; ++k) {
      word |= (static_cast<uint32_t>(static_cast<int64_t>(v[i * kPacked + k])) & 15u) << (4 * k);
    }
    words[i] = static_cast<int32_t>(word);
  }
  write(t, words);
}

}  // namespace

void write_quantized(const Tensor* t, const Floats& v, Rounding rounding) {
  if (!given(t)) return;
  Floats q = v;
  const bool packs =
      t->dtype == ACL_INT32 && t->numel() * kPacked == static_cast<int64_t>(v.size());
  if (is_float(t->dtype)) {
    const float top = is_narrow_float(t->dtype) ? largest(t->dtype) : 0;
    for (float& x : q) x = top > 0 ? std::min(std::max(x, -top), top) : x;
    write(t, q);
    return;
  }
  double low = -2147483648.0, high = 2147483647.0;
  if (t->dtype == ACL_INT8) low = -128, high = 127;
  if (t->dtype == ACL_UINT8) low = 0, high = 255;
  if (t->dtype == ACL_INT4 || packs) low = -8, high = 7;
  for (float& x : q) {
    const double r = std::isnan(x) ? 0 : rounded(x, rounding);
    x = static_cast<float>(std::min(std::max(r, low), high));
  }
  if (packs) {
    write_nibbles(*t, q);
  } else {
    write(t, q);
  }
}

Ints groups_of_rows(const Ints& list, int64_t rows, bool sizes) {
  Ints group(static_cast<size_t>(rows), -1);
  int64_t end = 0, row = 0;
  for (size_t g = 0; g < list.size(); ++g) {
    end = sizes ? end + list[g] : list[g];
    for (; row < std::min(end, rows); ++row) group[row] = static_cast<int64_t>(g);
  }
  return group;
}

QuantizedRows quantize_rows(const Floats& x, int64_t width, float top) {
  QuantizedRows q;
  q.values.resize(x.size());
  const int64_t rows = width ? static_cast<int64_t>(x.size()) / width : 0;
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x.data() + r * width;
    float peak = 0;
    for (int64_t i = 0; i < width; ++i) peak = std::max(peak, std::fabs(row[i]));
    const float scale = peak / top;
    q.scales.push_back(scale);
    for (int64_t i = 0; i < width; ++i) {
      q.values[r * width + i] = scale > 0 ? row[i] / scale : 0;
    }
  }
  return q;
}

aclnnStatus expect_quantized(const Call& c, TensorAt out, TensorAt like) {
  if (c.null(out)) return ACLNN_SUCCESS;
  Shape shape = shape_of(c.tensor(like));
  if (c.tensor(out).dtype == ACL_INT32 && shape.rank > 0 &&
      !c.tensor(out).same_shape(c.tensor(like))) {
    shape.dims[shape.rank - 1] /= kPacked;
  }
  return expect_shape(c, out, shape);
}

}  // namespace aclsim
