// Blocks of 32 elements that share a power of two (the "Microscaling Formats" of OCP), along one axis of a
// tensor or within the groups of its rows.
#pragma once

#include <cmath>

#include "loops/values.h"

namespace aclsim {

constexpr int64_t kBlockSize = 32;

// Exponent of the largest normal value.
inline int largest_exponent(aclDataType d) {
  switch (d) {
    case ACL_FLOAT8_E4M3FN: return 8;
    case ACL_FLOAT8_E5M2: return 15;
    case ACL_FLOAT4_E2M1: return 2;
    default: return 0;
  }
}
inline bool scaled_by_powers(aclDataType d) {
  return d == ACL_FLOAT8_E4M3FN || d == ACL_FLOAT8_E5M2 || d == ACL_FLOAT4_E2M1 ||
         d == ACL_FLOAT4_E1M2;
}
// Powers of two that a block shares, within float8_e8m0. Algorithm 0: the floor of log2 of the peak, less
// the type's largest exponent; 1: the least that brings the peak within the type's values.
inline float shared_scale(float peak, aclDataType to, int64_t algorithm = 0) {
  if (peak == 0) return std::ldexp(1.0f, -127);
  int exponent = 0;
  if (algorithm == 1) {
    if (std::frexp(static_cast<double>(peak) / largest(to), &exponent) == 0.5) --exponent;
  } else {
    exponent = static_cast<int>(std::floor(std::log2(peak))) - largest_exponent(to);
  }
  return std::ldexp(1.0f, std::min(std::max(exponent, -127), 127));
}
// x as [before, axis, after], in blocks along the axis; scales lie [before, pairs, after, 2].
struct Along {
  int64_t before = 1, size = 1, after = 1;
  int64_t blocks() const { return (size + kBlockSize - 1) / kBlockSize; }
  int64_t pairs() const { return (blocks() + 1) / 2; }
  int64_t scales() const { return before * pairs() * after * 2; }
};
inline Along along(const Tensor& t, int64_t axis) {
  Along a;
  if (axis < 0) axis += t.rank;
  for (int i = 0; i < t.rank; ++i) {
    int64_t& part = i < axis ? a.before : i == axis ? a.size : a.after;
    part *= t.dims[i];
  }
  return a;
}
struct Scaled {
  Floats values, scales;
};
inline Scaled scale_by_powers(const Floats& x, const Along& a, aclDataType to,
                              int64_t algorithm = 0) {
  Scaled s = {Floats(x.size()), Floats(static_cast<size_t>(a.scales()), std::ldexp(1.0f, -127))};
  for (int64_t b = 0; b < a.before; ++b) {
    for (int64_t k = 0; k < a.blocks(); ++k) {
      const int64_t first = k * kBlockSize, last = std::min(first + kBlockSize, a.size);
      for (int64_t j = 0; j < a.after; ++j) {
        float peak = 0;
        for (int64_t i = first; i < last; ++i)
          peak = std::max(peak, std::fabs(x[(b * a.size + i) * a.after + j]));
        const float scale = shared_scale(peak, to, algorithm);
        s.scales[((b * a.pairs() + k / 2) * a.after + j) * 2 + k % 2] = scale;
        for (int64_t i = first; i < last; ++i) {
          const int64_t at = (b * a.size + i) * a.after + j;
          s.values[at] = x[at] / scale;
        }
      }
    }
  }
  return s;
}
inline aclnnStatus expect_plain(const Call& c, int round, int algorithm, int block) {
  if (round >= 0 && rounding_of(c.text(round)) != Rounding::Even) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "%s \"%s\" is not supported by the simulator, only rint.", c.name(round),
                  c.text(round));
  }
  if (algorithm >= 0 && c.integer(algorithm) != 0 && c.integer(algorithm) != 1) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s %lld is not supported by the simulator, only 0 and 1.",
                  c.name(algorithm), static_cast<long long>(c.integer(algorithm)));
  }
  if (block >= 0 && c.integer(block) != kBlockSize) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s %lld is not supported by the simulator, only 32.",
                  c.name(block), static_cast<long long>(c.integer(block)));
  }
  return ACLNN_SUCCESS;
}
inline aclnnStatus expect_powers(const Call& c, int y, int scale, int64_t count) {
  ACL_RETURN_IF_FAILED(expect_given(c, {y, scale}));
  if (!scaled_by_powers(c.tensor(y).dtype)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s has the dtype %s, which has no shared exponents.",
                  c.name(y), dtype_name(c.tensor(y).dtype));
  }
  return expect_numel(c, scale, count);
}
inline void write_scaled(const Call& c, int y, int scale, const Floats& x, const Along& a,
                         int64_t algorithm = 0) {
  const Scaled s = scale_by_powers(x, a, c.tensor(y).dtype, algorithm);
  write_quantized(c.maybe(y), s.values);
  write(c.tensor(scale), s.scales);
}
inline aclnnStatus expect_axis_in(const Call& c, int x, int64_t axis) {
  const int rank = c.tensor(x).rank;
  if (axis >= -rank && axis < rank) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "axis %lld is not one of the %d of %s.",
                static_cast<long long>(axis), rank, c.name(x));
}

// Blocks along rows begin anew in each group of them; group g's scales begin at line
// (rows before) / 64 + g of [rows / 64 + groups, columns, 2].
inline int64_t grouped_lines(int64_t rows, int64_t groups) { return rows / (2 * kBlockSize) + groups; }
inline Scaled scale_groups(const Floats& x, int64_t n, const Ints& ends, int64_t scales, aclDataType to,
                           int64_t algorithm) {
  Scaled all = {Floats(x.size()), Floats(static_cast<size_t>(scales), std::ldexp(1.0f, -127))};
  int64_t begin = 0;
  for (size_t g = 0; g < ends.size(); begin = ends[g++]) {
    const Along a = {1, ends[g] - begin, n};
    const Scaled s =
        scale_by_powers(Floats(x.begin() + begin * n, x.begin() + ends[g] * n), a, to, algorithm);
    std::copy(s.values.begin(), s.values.end(), all.values.begin() + begin * n);
    const int64_t line = begin / (2 * kBlockSize) + static_cast<int64_t>(g);
    const auto room = scales - line * n * 2;
    std::copy_n(s.scales.begin(), std::min<int64_t>(room, static_cast<int64_t>(s.scales.size())),
                all.scales.begin() + line * n * 2);
  }
  return all;
}
// Where groups end, ascending and within `rows`.
inline bool ends_within(const Ints& ends, int64_t rows) {
  int64_t begin = 0;
  for (int64_t end : ends) {
    if (end < begin || end > rows) return false;
    begin = end;
  }
  return true;
}

}  // namespace aclsim
