// Quantisation by blocks: a float for each block, or a power of two for each 32 elements (the
// "Microscaling Formats" of OCP), alone and after norms and gates; whole tensors with their peak;
// rows rotated first. Formulas: the "npu_dynamic_block_quant" and "npu_dynamic_dual_level_mx_quant"
// pages of torch_npu, its tests of npu_quant_max, npu_kronecker_quant and npu_rotate_quant, and the
// operator documents of aclnnDynamicMxQuant and aclnnGroupedDynamicMxQuant.
#include "params/quantization.h"
#include "loops/mx.h"

#include <cmath>

namespace aclsim {
namespace {

template <int Y>
aclnnStatus check_powers(Call& c) {
  using P = params::DynamicMxQuant;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, Y}));
  ACL_RETURN_IF_FAILED(expect_plain(c, P::roundModeOptional, P::scaleAlg, P::blocksize));
  ACL_RETURN_IF_FAILED(expect_axis_in(c, P::x, c.integer(P::axis)));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, Y, P::x));
  return expect_powers(c, Y, Y + 1, along(c.tensor(P::x), c.integer(P::axis)).scales());
}
template <int Y>
void run_powers(Call& c) {
  using P = params::DynamicMxQuant;

  write_scaled(c, Y, Y + 1, floats(c.tensor(P::x)), along(c.tensor(P::x), c.integer(P::axis)),
               c.integer(P::scaleAlg));
}
// (x, roundMode, dstType, scaleAlg, [dstTypeMax,] y1, mxscale1, y2, mxscale2): along the last dim
// and the one before.
template <int Y>
aclnnStatus check_both(Call& c) {
  using P = params::DynamicMxQuantWithDualAxis;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, Y, Y + 2}));
  ACL_RETURN_IF_FAILED(expect_plain(c, P::roundModeOptional, P::scaleAlg, -1));
  ACL_RETURN_IF_FAILED(expect_axis_in(c, P::x, -2));
  for (int i : {0, 1}) {
    ACL_RETURN_IF_FAILED(expect_same_shape(c, Y + 2 * i, P::x));
    ACL_RETURN_IF_FAILED(
        expect_powers(c, Y + 2 * i, Y + 2 * i + 1, along(c.tensor(P::x), -1 - i).scales()));
  }
  return ACLNN_SUCCESS;
}
template <int Y>
void run_both(Call& c) {
  using P = params::DynamicMxQuantWithDualAxis;

  const Floats x = floats(c.tensor(P::x));
  for (int i : {0, 1})
    write_scaled(c, Y + 2 * i, Y + 2 * i + 1, x, along(c.tensor(P::x), -1 - i),
                 c.integer(P::scaleAlg));
}
// (x, mxscale, axis, dstType, y): back again.
aclnnStatus check_back(Call& c) {
  using P = params::AntiMxQuant;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::mxscale, P::y}));
  ACL_RETURN_IF_FAILED(expect_axis_in(c, P::x, c.integer(P::axis)));
  ACL_RETURN_IF_FAILED(
      expect_numel(c, P::mxscale, along(c.tensor(P::x), c.integer(P::axis)).scales()));
  return expect_same_shape(c, P::y, P::x);
}
void run_back(Call& c) {
  using P = params::AntiMxQuant;

  Floats x = floats(c.tensor(P::x));
  const Floats scale = floats(c.tensor(P::mxscale));
  const Along a = along(c.tensor(P::x), c.integer(P::axis));
  for (size_t at = 0; at < x.size(); ++at) {
    const int64_t i = static_cast<int64_t>(at), j = i % a.after,
                  k = i / a.after % a.size / kBlockSize, b = i / a.after / a.size;
    x[at] *= scale[((b * a.pairs() + k / 2) * a.after + j) * 2 + k % 2];
  }
  write(c.tensor(P::y), x);
}
// (x, groupIndex: where groups of rows end, roundMode, dstType, blocksize, [scaleAlg, max,] y,
// scale [rows / 64 + groups, columns, 2]): blocks along rows begin anew in each group.
template <int Y>
aclnnStatus check_groups(Call& c) {
  using P = params::GroupedDynamicMxQuantV2;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::groupIndex, Y}));
  ACL_RETURN_IF_FAILED(expect_plain(c, P::roundMode, Y == 7 ? P::scaleAlg : -1, P::blocksize));
  if (c.tensor(P::x).rank != 2)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "x %s should have 2 dims.", shape_text(c.tensor(P::x)));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, Y, P::x));
  const int64_t lines = grouped_lines(c.tensor(P::x).dims[0], c.tensor(P::groupIndex).numel());
  return expect_powers(c, Y, Y + 1, lines * width_of(c.tensor(P::x)) * 2);
}
template <int Y>
aclError run_groups(Call& c) {
  using P = params::GroupedDynamicMxQuantV2;

  const Ints ends = integers(c.tensor(P::groupIndex));
  if (!ends_within(ends, rows_of(c.tensor(P::x)))) return c.trap(507015, "groupIndex ends past x.");
  const Scaled s =
      scale_groups(floats(c.tensor(P::x)), width_of(c.tensor(P::x)), ends, c.tensor(Y + 1).numel(),
                   c.tensor(Y).dtype, Y == 7 ? c.integer(P::scaleAlg) : 0);
  write_quantized(c.maybe(Y), s.values);
  write(c.tensor(Y + 1), s.scales);
  return ACL_SUCCESS;
}
// (x, roundMode, dstType, scaleAlg, max, y, scale1, scale2): squares of 32 by 32 share a power of two, which
// lies in both orders.
aclnnStatus expect_squares(const Call& c, int y) {
  using P = params::MxToBlockMxQuant;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, y, y + 1, y + 2}));
  ACL_RETURN_IF_FAILED(expect_axis_in(c, P::x, -2));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, y, P::x));
  for (int i : {0, 1})
    ACL_RETURN_IF_FAILED(expect_powers(c, y, y + 1 + i, along(c.tensor(P::x), -1 - i).scales()));
  return ACLNN_SUCCESS;
}
void write_squares(const Call& c, int y, Floats x, int64_t algorithm) {
  using P = params::MxToBlockMxQuant;

  const Tensor& t = c.tensor(P::x);
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
  using P = params::DynamicBlockMxQuant;

  ACL_RETURN_IF_FAILED(expect_plain(c, P::roundModeOptional, P::scaleAlg, -1));
  return expect_squares(c, P::yOut);
}
void run_squares(Call& c) {
  using P = params::DynamicBlockMxQuant;

  write_squares(c, P::yOut, floats(c.tensor(P::x)), c.integer(P::scaleAlg));
}
// (x, mxscale, dstType, y, scale1, scale2): from blocks of a row to squares.
aclnnStatus check_resquared(Call& c) {
  using P = params::MxToBlockMxQuant;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::mxscale}));
  ACL_RETURN_IF_FAILED(expect_axis_in(c, P::x, -2));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::mxscale, along(c.tensor(P::x), -1).scales()));
  return expect_squares(c, P::y);
}
void run_resquared(Call& c) {
  using P = params::MxToBlockMxQuant;

  Floats x = floats(c.tensor(P::x));
  const Floats scale = floats(c.tensor(P::mxscale));
  const Along a = along(c.tensor(P::x), -1);
  for (size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<int64_t>(i), row = at / a.size, k = at % a.size / kBlockSize;
    x[i] *= scale[row * a.pairs() * 2 + k];
  }
  write_squares(c, P::y, x, 0);
}

// (x, groupIndex, roundMode, scaleAlg, dstType, max, y1, scale1, y2, scale2): rows by blocks along them,
// columns by blocks within groups.
aclnnStatus check_grouped_both(Call& c) {
  using P = params::GroupedDynamicMxQuantWithDualAxis;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::groupIndex, P::y1Out, P::y2Out}));
  ACL_RETURN_IF_FAILED(expect_plain(c, P::roundModeOptional, P::scaleAlg, -1));
  if (c.tensor(P::x).rank != 2)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "x %s should have 2 dims.", shape_text(c.tensor(P::x)));
  for (int y : {P::y1Out, P::y2Out}) ACL_RETURN_IF_FAILED(expect_same_shape(c, y, P::x));
  ACL_RETURN_IF_FAILED(
      expect_powers(c, P::y1Out, P::y1ScaleOut, along(c.tensor(P::x), -1).scales()));
  const int64_t lines = grouped_lines(c.tensor(P::x).dims[0], c.tensor(P::groupIndex).numel());
  return expect_powers(c, P::y2Out, P::y2ScaleOut, lines * width_of(c.tensor(P::x)) * 2);
}
aclError run_grouped_both(Call& c) {
  using P = params::GroupedDynamicMxQuantWithDualAxis;

  const Ints ends = integers(c.tensor(P::groupIndex));
  if (!ends_within(ends, rows_of(c.tensor(P::x)))) return c.trap(507015, "groupIndex ends past x.");
  const Floats x = floats(c.tensor(P::x));
  write_scaled(c, P::y1Out, P::y1ScaleOut, x, along(c.tensor(P::x), -1), c.integer(P::scaleAlg));
  const Scaled s = scale_groups(x, width_of(c.tensor(P::x)), ends, c.tensor(P::y2ScaleOut).numel(),
                                c.tensor(P::y2Out).dtype, c.integer(P::scaleAlg));
  write_quantized(c.maybe(P::y2Out), s.values);
  write(c.tensor(P::y2ScaleOut), s.scales);
  return ACL_SUCCESS;
}

// (x, smoothScale, roundMode, 512, 32, y, a float for 512 elements, a power of two for 32).
constexpr int64_t kLarge = 512;
aclnnStatus check_levels(Call& c) {
  using P = params::DynamicDualLevelMxQuant;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::yOut, P::level0ScaleOut, P::level1ScaleOut}));
  ACL_RETURN_IF_FAILED(expect_plain(c, P::roundModeOptional, -1, P::level1BlockSize));
  if (c.integer(P::level0BlockSize) != kLarge || c.tensor(P::x).rank < 1) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "level0BlockSize %lld should be 512.",
                  static_cast<long long>(c.integer(P::level0BlockSize)));
  }
  const int64_t n = width_of(c.tensor(P::x));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::smoothScaleOptional, n));
  ACL_RETURN_IF_FAILED(
      expect_numel(c, P::level0ScaleOut, rows_of(c.tensor(P::x)) * ((n + kLarge - 1) / kLarge)));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::yOut, P::x));
  return expect_powers(c, P::yOut, P::level1ScaleOut, along(c.tensor(P::x), -1).scales());
}
void run_levels(Call& c) {
  using P = params::DynamicDualLevelMxQuant;

  const Tensor& t = c.tensor(P::x);
  Floats x = floats(t), scales;
  const Floats smooth = floats(at_or_null(c, P::smoothScaleOptional));
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
  write(c.tensor(P::level0ScaleOut), scales);
  write_scaled(c, P::yOut, P::level1ScaleOut, x, along(t, -1));
}

// (x, minScale, roundMode, dstType, rows, columns, [max,] y, scale): scale = peak / largest, at
// least minScale.
template <int Y>
aclnnStatus check_blocks(Call& c) {
  using P = params::DynamicBlockQuant;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, Y, Y + 1}));
  ACL_RETURN_IF_FAILED(expect_plain(c, P::roundModeOptional, -1, -1));
  const Tensor& x = c.tensor(P::x);
  if (x.rank < 2 || c.integer(P::rowBlockSize) < 1 || c.integer(P::colBlockSize) < 1 ||
      largest(c.tensor(Y).dtype) == 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "x %s, its blocks or the dtype of y do not fit.",
                  shape_text(x));
  }
  ACL_RETURN_IF_FAILED(expect_same_shape(c, Y, P::x));
  const int64_t m = x.dims[x.rank - 2], n = width_of(x),
                batch = m * n > 0 ? x.numel() / (m * n) : 0;
  return expect_numel(c, Y + 1,
                      batch * ((m + c.integer(P::rowBlockSize) - 1) / c.integer(P::rowBlockSize)) *
                          ((n + c.integer(P::colBlockSize) - 1) / c.integer(P::colBlockSize)));
}
template <int Y>
void run_blocks(Call& c) {
  using P = params::DynamicBlockQuantV2;

  const Tensor& t = c.tensor(P::x);
  Floats x = floats(t), scales;
  float top = largest(c.tensor(Y).dtype);
  if (Y == 7 && c.number(P::dstTypeMax) > 0) top = static_cast<float>(c.number(P::dstTypeMax));
  const int64_t m = t.dims[t.rank - 2], n = width_of(t), high = c.integer(P::rowBlockSize),
                wide = c.integer(P::colBlockSize);
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
        const float scale = std::max(peak / top, static_cast<float>(c.number(P::minScale)));
        scales.push_back(scale);
        each([&](float& v) { v = scale > 0 ? v / scale : 0; });
      }
    }
  }
  write_quantized(c.maybe(Y), x);
  write(c.tensor(Y + 1), scales);
}

// (x, scale, [groupList,] roundMode, dstType, y, amax): x / scale, and the peak of x.
template <bool Grouped>
aclnnStatus check_peak(Call& c) {
  using P = params::GroupedQuantMax;

  constexpr int kY = Grouped ? P::y : params::QuantMax::y;
  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::scale, kY, kY + 1}));
  if (Grouped) ACL_RETURN_IF_FAILED(expect_given(c, {P::groupList}));
  const int64_t groups = Grouped ? c.tensor(P::groupList).numel() : 1;
  for (int i : std::initializer_list<int>{P::scale, kY + 1})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, groups));
  return expect_same_shape(c, kY, P::x);
}
template <bool Grouped>
void run_peak(Call& c) {
  using P = params::QuantMax;

  constexpr int kY = Grouped ? P::amax : P::y;
  const Tensor& t = c.tensor(P::x);
  Floats x = floats(t);
  const Floats scale = floats(c.tensor(P::scale));
  Floats peaks(scale.size());
  const int64_t lines = t.rank ? t.dims[0] : 1, each = lines ? t.numel() / lines : 0;
  const Ints group =
      Grouped ? groups_of_rows(integers(c.tensor(params::GroupedQuantMax::groupList)), lines, false)
              : Ints(lines, 0);
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t g = group[i / static_cast<size_t>(each)];
    if (g < 0) continue;
    peaks[g] = std::max(peaks[g], std::fabs(x[i]));
    x[i] /= scale[g];
  }
  write_quantized(c.maybe(kY), x,
                  rounding_of(c.text(Grouped ? params::GroupedQuantMax::roundMode : P::roundMode)));
  write(c.tensor(kY + 1), peaks);
}

// (x [k, m, n], p1 [m, m], p2 [n, n], clipRatio, ..., out, scale [k]): p1 x p2, by its peak.
template <int Y>
aclnnStatus check_flat(Call& c) {
  using P = params::FlatQuantV3;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::kroneckerP1, P::kroneckerP2, Y, Y + 1}));
  const Tensor& x = c.tensor(P::x);
  if (x.rank != 3)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "x %s should have 3 dims.", shape_text(x));
  const aclDataType to = c.tensor(Y).dtype;
  if (to != ACL_INT4 && to != ACL_INT32) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "An output of %s is not supported by the simulator, only int4.", dtype_name(to));
  }
  if (Y == 7 && at_or_null(c, P::groupListOptional))
    return c.fail(ACLNN_ERR_PARAM_INVALID, "groupList is not supported by the simulator.");
  ACL_RETURN_IF_FAILED(expect_numel(c, P::kroneckerP1, x.dims[1] * x.dims[1]));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::kroneckerP2, x.dims[2] * x.dims[2]));
  ACL_RETURN_IF_FAILED(expect_numel(c, Y + 1, x.dims[0]));
  return expect_quantized(c, Y, P::x);
}
template <int Y>
void run_flat(Call& c) {
  using P = params::FlatQuantV2;

  const Tensor& t = c.tensor(P::x);
  const Floats x = floats(t), p1 = floats(c.tensor(P::kroneckerP1)),
               p2 = floats(c.tensor(P::kroneckerP2));
  const int64_t m = t.dims[1], n = t.dims[2];
  Floats y(x.size()), between(static_cast<size_t>(m * n)), scales;
  const double ratio = largest(ACL_INT4) * c.number(Y == 7 ? P::dstTypeMax : P::clipRatio);
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
}

// (x, rotation [n, n], alpha, axis, roundMode, scaleAlg, dstTypeMax, trans, y, scale): rows turned
// piece by piece, then quantised one by one.
aclnnStatus check_rotated(Call& c) {
  using P = params::RotateQuant;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::rotation, P::yOut, P::scaleOut}));
  const Tensor &x = c.tensor(P::x), &r = c.tensor(P::rotation);
  const aclDataType to = c.tensor(P::yOut).dtype;
  if (r.rank != 2 || r.dims[0] != r.dims[1] || r.dims[0] == 0 || width_of(x) % r.dims[0] != 0 ||
      c.flag(P::trans) || (to != ACL_INT8 && to != ACL_INT32) || at_or_null(c, P::alpha)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "x %s, rotation %s and an output of %s are not supported by the simulator: it "
                  "turns pieces of rows by a square and quantises to integers.",
                  shape_text(x), shape_text(r), dtype_name(to));
  }
  ACL_RETURN_IF_FAILED(expect_numel(c, P::scaleOut, rows_of(x)));
  return expect_quantized(c, P::yOut, P::x);
}
void run_rotated(Call& c) {
  using P = params::RotateQuant;

  const Floats x = floats(c.tensor(P::x)), r = floats(c.tensor(P::rotation));
  const int64_t n = c.tensor(P::rotation).dims[0];
  Floats y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t piece = i / static_cast<size_t>(n) * n, j = i % static_cast<size_t>(n);
    double sum = 0;
    for (int64_t k = 0; k < n; ++k) sum += static_cast<double>(x[piece + k]) * r[k * n + j];
    y[i] = static_cast<float>(sum);
  }
  round_to(y.data(), c.tensor(P::x).dtype, static_cast<int64_t>(y.size()));
  const QuantizedRows q =
      quantize_rows(y, width_of(c.tensor(P::x)), largest(c.tensor(P::yOut).dtype));
  write_quantized(c.maybe(P::yOut), q.values, rounding_of(c.text(P::roundMode)));
  write(c.tensor(P::scaleOut), q.scales);
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnDynamicMxQuant, check_powers<params::DynamicMxQuant::yOut>,
             run_powers<params::DynamicMxQuant::yOut>)
ACLNN_OWN(aclnnDynamicMxQuantV2, check_powers<params::DynamicMxQuantV2::yOut>,
             run_powers<params::DynamicMxQuantV2::yOut>)
ACLNN_OWN(aclnnDynamicMxQuantV3, check_powers<params::DynamicMxQuantV3::yOut>,
             run_powers<params::DynamicMxQuantV3::yOut>)
ACLNN_OWN(aclnnDynamicMxQuantWithDualAxis, check_both<params::DynamicMxQuantWithDualAxis::y1Out>,
             run_both<params::DynamicMxQuantWithDualAxis::y1Out>)
ACLNN_OWN(aclnnDynamicMxQuantWithDualAxisV2,
             check_both<params::DynamicMxQuantWithDualAxisV2::y1Out>,
             run_both<params::DynamicMxQuantWithDualAxisV2::y1Out>)
ACLNN_OWN(aclnnDynamicBlockMxQuant, check_squares, run_squares)
ACLNN_OWN(aclnnMxToBlockMxQuant, check_resquared, run_resquared)
ACLNN_OWN(aclnnGroupedDynamicMxQuantWithDualAxis, check_grouped_both, run_grouped_both)
ACLNN_OWN(aclnnAntiMxQuant, check_back, run_back)
ACLNN_OWN(aclnnGroupedDynamicMxQuant, check_groups<params::GroupedDynamicMxQuant::y>,
             run_groups<params::GroupedDynamicMxQuant::y>)
ACLNN_OWN(aclnnGroupedDynamicMxQuantV2, check_groups<params::GroupedDynamicMxQuantV2::y>,
             run_groups<params::GroupedDynamicMxQuantV2::y>)
ACLNN_OWN(aclnnDynamicDualLevelMxQuant, check_levels, run_levels)
ACLNN_OWN(aclnnDynamicBlockQuant, check_blocks<params::DynamicBlockQuant::yOut>,
             run_blocks<params::DynamicBlockQuant::yOut>)
ACLNN_OWN(aclnnDynamicBlockQuantV2, check_blocks<params::DynamicBlockQuantV2::yOut>,
             run_blocks<params::DynamicBlockQuantV2::yOut>)
ACLNN_OWN(aclnnQuantMax, check_peak<false>, run_peak<false>)
ACLNN_OWN(aclnnGroupedQuantMax, check_peak<true>, run_peak<true>)
ACLNN_OWN(aclnnFlatQuant, check_flat<params::FlatQuant::out>, run_flat<params::FlatQuant::out>)
ACLNN_OWN(aclnnFlatQuantV2, check_flat<params::FlatQuantV2::out>,
             run_flat<params::FlatQuantV2::out>)
ACLNN_OWN(aclnnFlatQuantV3, check_flat<params::FlatQuantV3::out>,
             run_flat<params::FlatQuantV3::out>)
ACLNN_OWN(aclnnRotateQuant, check_rotated, run_rotated)
