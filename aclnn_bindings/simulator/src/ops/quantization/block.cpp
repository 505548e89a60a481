// Quantisation by blocks: a float for each block, or a power of two for each 32 elements (the
// "Microscaling Formats" of OCP), alone and after norms and gates; whole tensors with their peak;
// rows rotated first. Formulas: the "npu_dynamic_block_quant" and "npu_dynamic_dual_level_mx_quant"
// pages of torch_npu, its tests of npu_quant_max, npu_kronecker_quant and npu_rotate_quant, and the
// operator documents of aclnnDynamicMxQuant and aclnnGroupedDynamicMxQuant.
#include "loops/mx.h"

#include <cmath>
#include <cstring>

namespace aclsim {
namespace {

// (x, axis, roundMode, dstType, blocksize, scaleAlg, [more,] y, mxscale).
template <int Y>
aclnnStatus check_powers(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, Y}));
  ACL_RETURN_IF_FAILED(expect_plain(c, 2, 5, 4));
  ACL_RETURN_IF_FAILED(expect_axis_in(c, 0, c.integer(1)));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, Y, 0));
  return expect_powers(c, Y, Y + 1, along(c.tensor(0), c.integer(1)).scales());
}
template <int Y>
aclError run_powers(Call& c) {
  write_scaled(c, Y, Y + 1, floats(c.tensor(0)), along(c.tensor(0), c.integer(1)), c.integer(5));
  return ACL_SUCCESS;
}
// (x, roundMode, dstType, scaleAlg, [dstTypeMax,] y1, mxscale1, y2, mxscale2): along the last dim
// and the one before.
template <int Y>
aclnnStatus check_both(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, Y, Y + 2}));
  ACL_RETURN_IF_FAILED(expect_plain(c, 1, 3, -1));
  ACL_RETURN_IF_FAILED(expect_axis_in(c, 0, -2));
  for (int i : {0, 1}) {
    ACL_RETURN_IF_FAILED(expect_same_shape(c, Y + 2 * i, 0));
    ACL_RETURN_IF_FAILED(
        expect_powers(c, Y + 2 * i, Y + 2 * i + 1, along(c.tensor(0), -1 - i).scales()));
  }
  return ACLNN_SUCCESS;
}
template <int Y>
aclError run_both(Call& c) {
  const Floats x = floats(c.tensor(0));
  for (int i : {0, 1})
    write_scaled(c, Y + 2 * i, Y + 2 * i + 1, x, along(c.tensor(0), -1 - i), c.integer(3));
  return ACL_SUCCESS;
}
// (x, mxscale, axis, dstType, y): back again.
aclnnStatus check_back(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 4}));
  ACL_RETURN_IF_FAILED(expect_axis_in(c, 0, c.integer(2)));
  ACL_RETURN_IF_FAILED(expect_numel(c, 1, along(c.tensor(0), c.integer(2)).scales()));
  return expect_same_shape(c, 4, 0);
}
aclError run_back(Call& c) {
  Floats x = floats(c.tensor(0));
  const Floats scale = floats(c.tensor(1));
  const Along a = along(c.tensor(0), c.integer(2));
  for (size_t at = 0; at < x.size(); ++at) {
    const int64_t i = static_cast<int64_t>(at), j = i % a.after,
                  k = i / a.after % a.size / kBlockSize, b = i / a.after / a.size;
    x[at] *= scale[((b * a.pairs() + k / 2) * a.after + j) * 2 + k % 2];
  }
  write(c.tensor(4), x);
  return ACL_SUCCESS;
}
// (x, groupIndex: where groups of rows end, roundMode, dstType, blocksize, [scaleAlg, max,] y,
// scale [rows / 64 + groups, columns, 2]): blocks along rows begin anew in each group.
template <int Y>
aclnnStatus check_groups(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, Y}));
  ACL_RETURN_IF_FAILED(expect_plain(c, 2, Y == 7 ? 5 : -1, 4));
  if (c.tensor(0).rank != 2)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "x %s should have 2 dims.", shape_text(c.tensor(0)));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, Y, 0));
  const int64_t lines = grouped_lines(c.tensor(0).dims[0], c.tensor(1).numel());
  return expect_powers(c, Y, Y + 1, lines * width_of(c.tensor(0)) * 2);
}
template <int Y>
aclError run_groups(Call& c) {
  const Ints ends = integers(c.tensor(1));
  if (!ends_within(ends, rows_of(c.tensor(0)))) return c.trap(507015, "groupIndex ends past x.");
  const Scaled s = scale_groups(floats(c.tensor(0)), width_of(c.tensor(0)), ends,
                                c.tensor(Y + 1).numel(), c.tensor(Y).dtype, Y == 7 ? c.integer(5) : 0);
  write_quantized(c.maybe(Y), s.values);
  write(c.tensor(Y + 1), s.scales);
  return ACL_SUCCESS;
}
// (x, roundMode, dstType, scaleAlg, max, y, scale1, scale2): squares of 32 by 32 share a power of two, which
// lies in both orders.
aclnnStatus expect_squares(const Call& c, int y) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, y, y + 1, y + 2}));
  ACL_RETURN_IF_FAILED(expect_axis_in(c, 0, -2));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, y, 0));
  for (int i : {0, 1})
    ACL_RETURN_IF_FAILED(expect_powers(c, y, y + 1 + i, along(c.tensor(0), -1 - i).scales()));
  return ACLNN_SUCCESS;
}
void write_squares(const Call& c, int y, Floats x, int64_t algorithm) {
  const Tensor& t = c.tensor(0);
  const Along wide = along(t, -1), high = along(t, -2);
  const int64_t n = wide.size, m = high.size;
  Floats across(static_cast<size_t>(wide.scales()), std::ldexp(1.0f, -127)),
      down(static_cast<size_t>(high.scales()), std::ldexp(1.0f, -127));
  for (int64_t b = 0; b < high.before; ++b) {
    for (int64_t square = 0; square < high.blocks() * wide.blocks(); ++square) {
      const int64_t r = square / wide.blocks(), k = square % wide.blocks(), r0 = r * kBlockSize,
                    k0 = k * kBlockSize, r1 = std::min(m, r0 + kBlockSize),
                    k1 = std::min(n, k0 + kBlockSize);
      float peak = 0;
      for (int64_t i = r0; i < r1; ++i) {
        for (int64_t j = k0; j < k1; ++j) peak = std::max(peak, std::fabs(x[(b * m + i) * n + j]));
      }
      const float scale = shared_scale(peak, c.tensor(y).dtype, algorithm);
      for (int64_t i = r0; i < r1; ++i) {
        across[((b * m + i) * wide.pairs() + k / 2) * 2 + k % 2] = scale;
        for (int64_t j = k0; j < k1; ++j) x[(b * m + i) * n + j] /= scale;
      }
      for (int64_t j = k0; j < k1; ++j) down[((b * high.pairs() + r / 2) * n + j) * 2 + r % 2] = scale;
    }
  }
  write_quantized(c.maybe(y), x);
  write(c.tensor(y + 1), across);
  write(c.tensor(y + 2), down);
}
aclnnStatus check_squares(Call& c) {
  ACL_RETURN_IF_FAILED(expect_plain(c, 1, 3, -1));
  return expect_squares(c, 5);
}
aclError run_squares(Call& c) {
  write_squares(c, 5, floats(c.tensor(0)), c.integer(3));
  return ACL_SUCCESS;
}
// (x, mxscale, dstType, y, scale1, scale2): from blocks of a row to squares.
aclnnStatus check_resquared(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1}));
  ACL_RETURN_IF_FAILED(expect_axis_in(c, 0, -2));
  ACL_RETURN_IF_FAILED(expect_numel(c, 1, along(c.tensor(0), -1).scales()));
  return expect_squares(c, 3);
}
aclError run_resquared(Call& c) {
  Floats x = floats(c.tensor(0));
  const Floats scale = floats(c.tensor(1));
  const Along a = along(c.tensor(0), -1);
  for (size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<int64_t>(i), row = at / a.size, k = at % a.size / kBlockSize;
    x[i] *= scale[row * a.pairs() * 2 + k];
  }
  write_squares(c, 3, x, 0);
  return ACL_SUCCESS;
}

// (x, groupIndex, roundMode, scaleAlg, dstType, max, y1, scale1, y2, scale2): rows by blocks along them,
// columns by blocks within groups.
aclnnStatus check_grouped_both(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 6, 8}));
  ACL_RETURN_IF_FAILED(expect_plain(c, 2, 3, -1));
  if (c.tensor(0).rank != 2)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "x %s should have 2 dims.", shape_text(c.tensor(0)));
  for (int y : {6, 8}) ACL_RETURN_IF_FAILED(expect_same_shape(c, y, 0));
  ACL_RETURN_IF_FAILED(expect_powers(c, 6, 7, along(c.tensor(0), -1).scales()));
  const int64_t lines = grouped_lines(c.tensor(0).dims[0], c.tensor(1).numel());
  return expect_powers(c, 8, 9, lines * width_of(c.tensor(0)) * 2);
}
aclError run_grouped_both(Call& c) {
  const Ints ends = integers(c.tensor(1));
  if (!ends_within(ends, rows_of(c.tensor(0)))) return c.trap(507015, "groupIndex ends past x.");
  const Floats x = floats(c.tensor(0));
  write_scaled(c, 6, 7, x, along(c.tensor(0), -1), c.integer(3));
  const Scaled s = scale_groups(x, width_of(c.tensor(0)), ends, c.tensor(9).numel(), c.tensor(8).dtype,
                                c.integer(3));
  write_quantized(c.maybe(8), s.values);
  write(c.tensor(9), s.scales);
  return ACL_SUCCESS;
}

// (x, smoothScale, roundMode, 512, 32, y, a float for 512 elements, a power of two for 32).
constexpr int64_t kLarge = 512;
aclnnStatus check_levels(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 5, 6, 7}));
  ACL_RETURN_IF_FAILED(expect_plain(c, 2, -1, 4));
  if (c.integer(3) != kLarge || c.tensor(0).rank < 1) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "level0BlockSize %lld should be 512.",
                  static_cast<long long>(c.integer(3)));
  }
  const int64_t n = width_of(c.tensor(0));
  ACL_RETURN_IF_FAILED(expect_numel(c, 1, n));
  ACL_RETURN_IF_FAILED(expect_numel(c, 6, rows_of(c.tensor(0)) * ((n + kLarge - 1) / kLarge)));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 5, 0));
  return expect_powers(c, 5, 7, along(c.tensor(0), -1).scales());
}
aclError run_levels(Call& c) {
  const Tensor& t = c.tensor(0);
  Floats x = floats(t), scales;
  const Floats smooth = floats(at_or_null(c, 1));
  const int64_t n = width_of(t);
  for (int64_t row = 0; row < rows_of(t); ++row) {
    for (int64_t first = 0; first < n; first += kLarge) {
      float peak = 0;
      for (int64_t i = first; i < std::min(n, first + kLarge); ++i) {
        x[row * n + i] *= smooth.empty() ? 1 : smooth[i];
        peak = std::max(peak, std::fabs(x[row * n + i]));
      }
      const float scale = peak / largest(ACL_FLOAT4_E2M1);
      scales.push_back(scale);
      for (int64_t i = first; i < std::min(n, first + kLarge); ++i)
        x[row * n + i] = scale > 0 ? x[row * n + i] / scale : 0;
    }
  }
  round_to(x.data(), t.dtype, static_cast<int64_t>(x.size()));
  write(c.tensor(6), scales);
  write_scaled(c, 5, 7, x, along(t, -1));
  return ACL_SUCCESS;
}

// (x, minScale, roundMode, dstType, rows, columns, [max,] y, scale): scale = peak / largest, at
// least minScale.
template <int Y>
aclnnStatus check_blocks(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, Y, Y + 1}));
  ACL_RETURN_IF_FAILED(expect_plain(c, 2, -1, -1));
  const Tensor& x = c.tensor(0);
  if (x.rank < 2 || c.integer(4) < 1 || c.integer(5) < 1 || largest(c.tensor(Y).dtype) == 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "x %s, its blocks or the dtype of y do not fit.",
                  shape_text(x));
  }
  ACL_RETURN_IF_FAILED(expect_same_shape(c, Y, 0));
  const int64_t m = x.dims[x.rank - 2], n = width_of(x),
                batch = m * n > 0 ? x.numel() / (m * n) : 0;
  return expect_numel(
      c, Y + 1,
      batch * ((m + c.integer(4) - 1) / c.integer(4)) * ((n + c.integer(5) - 1) / c.integer(5)));
}
template <int Y>
aclError run_blocks(Call& c) {
  const Tensor& t = c.tensor(0);
  Floats x = floats(t), scales;
  float top = largest(c.tensor(Y).dtype);
  if (Y == 7 && c.number(6) > 0) top = static_cast<float>(c.number(6));
  const int64_t m = t.dims[t.rank - 2], n = width_of(t), high = c.integer(4), wide = c.integer(5);
  for (int64_t base = 0; base < t.numel(); base += m * n) {
    for (int64_t r = 0; r < m; r += high) {
      for (int64_t k = 0; k < n; k += wide) {
        float peak = 0;
        const auto each = [&](auto f) {
          for (int64_t i = r; i < std::min(m, r + high); ++i) {
            for (int64_t j = k; j < std::min(n, k + wide); ++j) f(x[base + i * n + j]);
          }
        };
        each([&](float v) { peak = std::max(peak, std::fabs(v)); });
        const float scale = std::max(peak / top, static_cast<float>(c.number(1)));
        scales.push_back(scale);
        each([&](float& v) { v = scale > 0 ? v / scale : 0; });
      }
    }
  }
  write_quantized(c.maybe(Y), x);
  write(c.tensor(Y + 1), scales);
  return ACL_SUCCESS;
}

// (x, scale, [groupList,] roundMode, dstType, y, amax): x / scale, and the peak of x.
template <bool Grouped>
aclnnStatus check_peak(Call& c) {
  constexpr int kY = Grouped ? 5 : 4;
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, kY, kY + 1}));
  if (Grouped) ACL_RETURN_IF_FAILED(expect_given(c, {2}));
  const int64_t groups = Grouped ? c.tensor(2).numel() : 1;
  for (int i : {1, kY + 1}) ACL_RETURN_IF_FAILED(expect_numel(c, i, groups));
  return expect_same_shape(c, kY, 0);
}
template <bool Grouped>
aclError run_peak(Call& c) {
  constexpr int kY = Grouped ? 5 : 4;
  const Tensor& t = c.tensor(0);
  Floats x = floats(t);
  const Floats scale = floats(c.tensor(1));
  Floats peaks(scale.size());
  const int64_t lines = t.rank ? t.dims[0] : 1, each = lines ? t.numel() / lines : 0;
  const Ints group = Grouped ? groups_of_rows(integers(c.tensor(2)), lines, false) : Ints(lines, 0);
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t g = group[i / static_cast<size_t>(each)];
    if (g < 0) continue;
    peaks[g] = std::max(peaks[g], std::fabs(x[i]));
    x[i] /= scale[g];
  }
  write_quantized(c.maybe(kY), x, rounding_of(c.text(Grouped ? 3 : 2)));
  write(c.tensor(kY + 1), peaks);
  return ACL_SUCCESS;
}

// (x [k, m, n], p1 [m, m], p2 [n, n], clipRatio, ..., out, scale [k]): p1 x p2, by its peak.
template <int Y>
aclnnStatus check_flat(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, Y, Y + 1}));
  const Tensor& x = c.tensor(0);
  if (x.rank != 3)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "x %s should have 3 dims.", shape_text(x));
  const aclDataType to = c.tensor(Y).dtype;
  if (to != ACL_INT4 && to != ACL_INT32) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "An output of %s is not supported by the simulator, only int4.", dtype_name(to));
  }
  if (Y == 7 && at_or_null(c, 3))
    return c.fail(ACLNN_ERR_PARAM_INVALID, "groupList is not supported by the simulator.");
  ACL_RETURN_IF_FAILED(expect_numel(c, 1, x.dims[1] * x.dims[1]));
  ACL_RETURN_IF_FAILED(expect_numel(c, 2, x.dims[2] * x.dims[2]));
  ACL_RETURN_IF_FAILED(expect_numel(c, Y + 1, x.dims[0]));
  return expect_quantized(c, Y, 0);
}
template <int Y>
aclError run_flat(Call& c) {
  const Tensor& t = c.tensor(0);
  const Floats x = floats(t), p1 = floats(c.tensor(1)), p2 = floats(c.tensor(2));
  const int64_t m = t.dims[1], n = t.dims[2];
  Floats y(x.size()), between(static_cast<size_t>(m * n)), scales;
  const double ratio = largest(ACL_INT4) * c.number(Y == 7 ? 4 : 3);
  for (int64_t k = 0; k < t.dims[0]; ++k) {
    float peak = 0;
    const auto dot = [](const float* a, int64_t sa, const float* b, int64_t sb, int64_t count) {
      double sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i * sa]) * b[i * sb];
      return static_cast<float>(sum);
    };
    for (int64_t i = 0; i < m * n; ++i)
      between[i] = dot(&x[(k * m + i / n) * n], 1, &p2[i % n], n, n);
    round_to(between.data(), t.dtype, m * n);
    for (int64_t i = 0; i < m * n; ++i)
      y[k * m * n + i] = dot(&p1[i / n * m], 1, &between[i % n], n, m);
    round_to(y.data() + k * m * n, t.dtype, m * n);
    for (int64_t i = 0; i < m * n; ++i) peak = std::max(peak, std::fabs(y[k * m * n + i]));
    scales.push_back(static_cast<float>(peak / ratio));
    for (int64_t i = 0; i < m * n; ++i)
      y[k * m * n + i] = peak > 0 ? static_cast<float>(y[k * m * n + i] * (ratio / peak)) : 0;
  }
  write_quantized(c.maybe(Y), y);
  write(c.tensor(Y + 1), scales);
  return ACL_SUCCESS;
}

// (x, rotation [n, n], alpha, axis, roundMode, scaleAlg, dstTypeMax, trans, y, scale): rows turned
// piece by piece, then quantised one by one.
aclnnStatus check_rotated(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 8, 9}));
  const Tensor &x = c.tensor(0), &r = c.tensor(1);
  const aclDataType to = c.tensor(8).dtype;
  if (r.rank != 2 || r.dims[0] != r.dims[1] || r.dims[0] == 0 || width_of(x) % r.dims[0] != 0 ||
      c.flag(7) || (to != ACL_INT8 && to != ACL_INT32) || at_or_null(c, 2)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "x %s, rotation %s and an output of %s are not supported by the simulator: it "
                  "turns pieces of rows by a square and quantises to integers.",
                  shape_text(x), shape_text(r), dtype_name(to));
  }
  ACL_RETURN_IF_FAILED(expect_numel(c, 9, rows_of(x)));
  return expect_quantized(c, 8, 0);
}
aclError run_rotated(Call& c) {
  const Floats x = floats(c.tensor(0)), r = floats(c.tensor(1));
  const int64_t n = c.tensor(1).dims[0];
  Floats y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t piece = i / static_cast<size_t>(n) * n, j = i % static_cast<size_t>(n);
    double sum = 0;
    for (int64_t k = 0; k < n; ++k) sum += static_cast<double>(x[piece + k]) * r[k * n + j];
    y[i] = static_cast<float>(sum);
  }
  round_to(y.data(), c.tensor(0).dtype, static_cast<int64_t>(y.size()));
  const QuantizedRows q = quantize_rows(y, width_of(c.tensor(0)), largest(c.tensor(8).dtype));
  write_quantized(c.maybe(8), q.values, rounding_of(c.text(4)));
  write(c.tensor(9), q.scales);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

#define ACLNN_BLOCKS(op, ...) ACLNN_OP_FLAGS(op, __VA_ARGS__, kOwnNulls | kOwnLimits)
ACLNN_BLOCKS(aclnnDynamicMxQuant, check_powers<6>, run_powers<6>)
ACLNN_BLOCKS(aclnnDynamicMxQuantV2, check_powers<7>, run_powers<7>)
ACLNN_BLOCKS(aclnnDynamicMxQuantV3, check_powers<8>, run_powers<8>)
ACLNN_BLOCKS(aclnnDynamicMxQuantWithDualAxis, check_both<4>, run_both<4>)
ACLNN_BLOCKS(aclnnDynamicMxQuantWithDualAxisV2, check_both<5>, run_both<5>)
ACLNN_BLOCKS(aclnnDynamicBlockMxQuant, check_squares, run_squares)
ACLNN_BLOCKS(aclnnMxToBlockMxQuant, check_resquared, run_resquared)
ACLNN_BLOCKS(aclnnGroupedDynamicMxQuantWithDualAxis, check_grouped_both, run_grouped_both)
ACLNN_BLOCKS(aclnnAntiMxQuant, check_back, run_back)
ACLNN_BLOCKS(aclnnGroupedDynamicMxQuant, check_groups<5>, run_groups<5>)
ACLNN_BLOCKS(aclnnGroupedDynamicMxQuantV2, check_groups<7>, run_groups<7>)
ACLNN_BLOCKS(aclnnDynamicDualLevelMxQuant, check_levels, run_levels)
ACLNN_BLOCKS(aclnnDynamicBlockQuant, check_blocks<6>, run_blocks<6>)
ACLNN_BLOCKS(aclnnDynamicBlockQuantV2, check_blocks<7>, run_blocks<7>)
ACLNN_BLOCKS(aclnnQuantMax, check_peak<false>, run_peak<false>)
ACLNN_BLOCKS(aclnnGroupedQuantMax, check_peak<true>, run_peak<true>)
ACLNN_BLOCKS(aclnnFlatQuant, check_flat<4>, run_flat<4>)
ACLNN_BLOCKS(aclnnFlatQuantV2, check_flat<5>, run_flat<5>)
ACLNN_BLOCKS(aclnnFlatQuantV3, check_flat<7>, run_flat<7>)
ACLNN_BLOCKS(aclnnRotateQuant, check_rotated, run_rotated)
