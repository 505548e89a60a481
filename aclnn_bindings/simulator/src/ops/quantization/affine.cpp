// Quantisation and its inverse: static, dynamic per token, grouped, and the packed parameters of
// quantised matrix products. Formulas: the "npu_quantize", "npu_anti_quant", "npu_group_quant",
// "npu_dynamic_quant", "npu_dynamic_quant_asymmetric", "npu_trans_quant_param" and
// "npu_dynamic_block_quant" pages of torch_npu, and the operator documents of CANN 9.1.
#include "params/quantization.h"
#include "loops/values.h"

#include <cmath>
#include <cstring>

namespace aclsim {
namespace {

// How a scale of one element, of one axis, or of x's own rank lies over x.
struct Over {
  Floats v;
  int64_t strides[kMaxRank] = {};
  float at(const Walker& w) const { return v.empty() ? 0 : v[w.offset(strides)]; }
};
bool lies_over(const Tensor& scale, const Tensor& x, int64_t axis) {
  if (scale.numel() == 1) return true;
  if (scale.rank == 1 && axis >= 0 && axis < x.rank && scale.dims[0] == x.dims[axis]) return true;
  Shape s = shape_of(x);
  return broadcast(s, scale) && s.rank == x.rank && std::equal(s.dims, s.dims + s.rank, x.dims);
}
Over over(const Tensor* scale, const Tensor& x, int64_t axis) {
  Over o{floats(scale)};
  if (!scale || o.v.size() <= 1) return o;
  if (scale->rank == 1 && scale->dims[0] == x.dims[axis]) {
    o.strides[axis] = 1;
    return o;
  }
  int64_t step = 1;
  for (int i = scale->rank - 1; i >= 0; --i) {
    o.strides[x.rank - scale->rank + i] = scale->dims[i] == 1 ? 0 : step;
    step *= scale->dims[i];
  }
  return o;
}
int64_t axis_in(const Tensor& x, int64_t axis) {
  return axis < 0 ? axis + std::max(x.rank, 1) : axis;
}
aclnnStatus expect_over(const Call& c, int arg, int x, int64_t axis) {
  if (c.null(arg) || lies_over(c.tensor(arg), c.tensor(x), axis_in(c.tensor(x), axis))) {
    return ACLNN_SUCCESS;
  }
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of %s fits no axis of %s of %s.",
                shape_text(c.tensor(arg)), c.name(arg), shape_text(c.tensor(x)), c.name(x));
}
// f(x, scale, offset) elementwise over x.
template <class F>
Floats scaled(const Tensor& t, const Tensor* scale, const Tensor* offset, int64_t axis, F f) {
  Floats x = floats(t);
  axis = axis_in(t, axis);
  const Over s = over(scale, t, axis), o = over(offset, t, axis);
  Walker w(t.rank, t.dims);
  for (size_t i = 0; i < x.size(); ++i, w.next()) x[i] = f(x[i], s.at(w), o.at(w));
  return x;
}

aclnnStatus expect_rounding(const Call& c, int arg) {
  if (rounding_of(c.text(arg)) != Rounding::Unknown) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID,
                "%s is \"%s\", should be round, rint, floor, ceil, trunc or "
                "hybrid.",
                c.name(arg), c.text(arg));
}

// (x, scale, offset, sqrtMode, roundMode, dstType, [axis,] y): y = round(x scale + offset).
template <int Out>
int64_t quant_axis(const Call& c) {
  using P = params::AscendQuantV3;

  return Out == 7 ? c.integer(P::axis) : -1;
}
template <int Out>
aclnnStatus check_ascend_quant(Call& c) {
  using P = params::AscendQuant;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::scale, Out}));
  ACL_RETURN_IF_FAILED(expect_rounding(c, P::roundMode));
  ACL_RETURN_IF_FAILED(expect_dtype(c, Out, static_cast<aclDataType>(c.integer(P::dstType))));
  for (int i : {P::scale, P::offset})
    ACL_RETURN_IF_FAILED(expect_over(c, i, P::x, quant_axis<Out>(c)));
  return expect_quantized(c, Out, P::x);
}
template <int Out>
void run_ascend_quant(Call& c) {
  using P = params::AscendQuant;

  const bool twice = c.flag(P::sqrtMode);
  write_quantized(
      c.maybe(Out),
      scaled(c.tensor(P::x), c.maybe(P::scale), c.maybe(P::offset), quant_axis<Out>(c),
             [&](float x, float s, float o) { return (twice ? x * s * s : x * s) + o; }),
      rounding_of(c.text(P::roundMode)));
}

// (x, scale, offset, dstType, sqrtMode, y): y = (x + offset) scale; x may hold eight int4.
Tensor spread_view(const Tensor& t, const Doubles& values) {
  Tensor v = dense(const_cast<double*>(values.data()), ACL_DOUBLE, t.dims, t.rank);
  const bool packed = static_cast<int64_t>(values.size()) != t.numel();
  if (!packed || t.rank == 0) return v;
  int64_t dims[kMaxRank];
  std::copy(t.dims, t.dims + t.rank, dims);
  dims[t.rank - 1] *= kPacked;
  return dense(const_cast<double*>(values.data()), ACL_DOUBLE, dims, t.rank);
}
aclnnStatus check_anti_quant(Call& c) {
  using P = params::AscendAntiQuant;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::scale, P::y}));
  Shape shape = shape_of(c.tensor(P::x));
  if (c.tensor(P::x).dtype == ACL_INT32 && shape.rank) shape.dims[shape.rank - 1] *= kPacked;
  for (int i : {P::scale, P::offset}) ACL_RETURN_IF_FAILED(expect_over(c, i, P::y, -1));
  ACL_RETURN_IF_FAILED(expect_dtype(c, P::y, static_cast<aclDataType>(c.integer(P::dstType))));
  return expect_shape(c, P::y, shape);
}
void run_anti_quant(Call& c) {
  using P = params::AscendAntiQuant;

  const Doubles x = unpacked(c.tensor(P::x), true);
  const bool twice = c.flag(P::sqrtMode);
  write(c.tensor(P::y),
        scaled(spread_view(c.tensor(P::x), x), c.maybe(P::scale), c.maybe(P::offset), -1,
               [&](float v, float s, float o) { return twice ? (v + o) * s * s : (v + o) * s; }));
}

// (x, scales, zeroPoints, dtype, axis, out): out = round(x / scales + zeroPoints).
aclnnStatus check_quantize(Call& c) {
  using P = params::Quantize;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::scales, P::out}));
  ACL_RETURN_IF_FAILED(expect_dtype(c, P::out, static_cast<aclDataType>(c.integer(P::dtype))));
  for (int i : {P::scales, P::zeroPoints})
    ACL_RETURN_IF_FAILED(expect_over(c, i, P::x, c.integer(P::axis)));
  return expect_same_shape(c, P::out, P::x);
}
void run_quantize(Call& c) {
  using P = params::Quantize;

  write_quantized(c.maybe(P::out),
                  scaled(c.tensor(P::x), c.maybe(P::scales), c.maybe(P::zeroPoints),
                         c.integer(P::axis), [](float x, float s, float o) { return x / s + o; }));
}

// (x, weightScale, activateScale, bias, outputDtype, out): rows of int32 products.
aclnnStatus check_dequant_bias(Call& c) {
  using P = params::DequantBias;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::weightScale, P::out}));
  const Tensor& x = c.tensor(P::x);
  ACL_RETURN_IF_FAILED(expect_numel(c, P::weightScale, width_of(x)));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::activateScaleOptional, rows_of(x)));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::biasOptional, width_of(x)));
  ACL_RETURN_IF_FAILED(
      expect_dtype(c, P::out, static_cast<aclDataType>(c.integer(P::outputDtype))));
  return expect_same_shape(c, P::out, P::x);
}
void run_dequant_bias(Call& c) {
  using P = params::DequantBias;

  const Ints x = integers(c.tensor(P::x));
  const Floats weight = floats(c.tensor(P::weightScale)),
               activate = floats(c.maybe(P::activateScaleOptional)),
               bias = floats(c.maybe(P::biasOptional));
  const bool first = !c.null(P::biasOptional) && c.tensor(P::biasOptional).dtype == ACL_INT32;
  Floats y(x.size());
  const int64_t n = width_of(c.tensor(P::x));
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t column = static_cast<int64_t>(i) % n, row = static_cast<int64_t>(i) / n;
    const float b = bias.empty() ? 0 : bias[column];
    float v = static_cast<float>(x[i]) + (first ? b : 0);
    v *= weight[column] * (activate.empty() ? 1 : activate[row]);
    y[i] = v + (first ? 0 : b);
  }
  write(c.tensor(P::out), y);
}

// (x, scale [groups, h], groupIndex: where groups end, offset, dstType, y): round(x scale +
// offset).
aclnnStatus check_group_quant(Call& c) {
  using P = params::GroupQuant;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::scale, P::groupIndex, P::y}));
  ACL_RETURN_IF_FAILED(
      expect_numel(c, P::scale, c.tensor(P::groupIndex).numel() * width_of(c.tensor(P::x))));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::offsetOptional, 1));
  ACL_RETURN_IF_FAILED(expect_dtype(c, P::y, static_cast<aclDataType>(c.integer(P::dstType))));
  return expect_quantized(c, P::y, P::x);
}
aclError run_group_quant(Call& c) {
  using P = params::GroupQuant;

  Floats x = floats(c.tensor(P::x));
  const Floats scale = floats(c.tensor(P::scale)), offset = floats(c.maybe(P::offsetOptional));
  const int64_t h = width_of(c.tensor(P::x));
  const Ints group =
      groups_of_rows(integers(c.tensor(P::groupIndex)), rows_of(c.tensor(P::x)), false);
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t g = group[i / h];
    if (g < 0) return c.trap(507015, "groupIndex ends before the rows of x do.");
    x[i] = x[i] * scale[g * h + i % h] + (offset.empty() ? 0 : offset[0]);
  }
  write_quantized(c.maybe(P::y), x);
  return ACL_SUCCESS;
}

// Dynamic quantisation: (x, smooth, [groupIndex, dstType, [isSymmetrical, quantMode,
// [dstTypeMax,]]] y, scale, [offset]).
struct Dynamic {
  int group = -1, type = -1, symmetrical = -1, mode = -1, top = -1, y = 2, scale = 3, offset = -1;
};
constexpr Dynamic kDynamic = {};
constexpr Dynamic kDynamicV2 = [] {
  using P = params::DynamicQuantV2;
  return Dynamic{P::groupIndexOptional, P::dstType, -1, -1, -1, P::yOut, P::scaleOut, P::offsetOut};
}();
constexpr Dynamic kDynamicV3 = [] {
  using P = params::DynamicQuantV3;
  return Dynamic{P::groupIndexOptional, P::dstType,  P::isSymmetrical, P::quantMode, -1, P::yOut,
                 P::scaleOut,           P::offsetOut};
}();
constexpr Dynamic kDynamicV4 = [] {
  using P = params::DynamicQuantV4;
  return Dynamic{P::groupIndexOptional, P::dstType, P::isSymmetrical, P::quantMode,
                 P::dstTypeMax,         P::yOut,    P::scaleOut,      P::offsetOut};
}();

// How many elements share a scale, in x's order, but for "perchannel", which reduces the next to
// last dim.
enum class Share : uint8_t { Token, Tensor, Channel, Unknown };
Share share_of(const Call& c, const Dynamic& at) {
  const char* text = at.mode < 0 ? nullptr : c.text(at.mode);
  if (!text || !*text || !std::strcmp(text, "pertoken")) return Share::Token;
  if (!std::strcmp(text, "pertensor")) return Share::Tensor;
  return !std::strcmp(text, "perchannel") ? Share::Channel : Share::Unknown;
}
bool symmetrical(const Call& c, const Dynamic& at) {
  return at.symmetrical >= 0 ? c.flag(at.symmetrical) : at.offset < 0 || c.null(at.offset);
}
Shape scale_shape(const Tensor& x, Share share) {
  Shape s = shape_of(x);
  if (share == Share::Tensor) {
    s.rank = 1, s.dims[0] = 1;
    return s;
  }
  if (share == Share::Channel) s.dims[s.rank - 2] = s.dims[s.rank - 1];
  --s.rank;
  return s;
}
template <const Dynamic& at>
aclnnStatus check_dynamic(Call& c) {
  using P = params::DynamicQuant;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, at.y, at.scale}));
  const Tensor& x = c.tensor(P::x);
  const Share share = share_of(c, at);
  if (share == Share::Unknown || x.rank < 2) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "x %s or its quantMode is not supported; the modes are "
                  "pertoken, pertensor and perchannel.",
                  shape_text(x));
  }
  if (at.type >= 0) {
    ACL_RETURN_IF_FAILED(expect_dtype(c, at.y, static_cast<aclDataType>(c.integer(at.type))));
  }
  if (!symmetrical(c, at)) ACL_RETURN_IF_FAILED(expect_given(c, {at.offset}));
  const int64_t groups = at.group >= 0 && !c.null(at.group) ? c.tensor(at.group).numel() : 1;
  ACL_RETURN_IF_FAILED(expect_numel(c, P::smoothScalesOptional, groups * width_of(x)));
  ACL_RETURN_IF_FAILED(expect_quantized(c, at.y, P::x));
  return expect_shape(c, at.scale, scale_shape(x, share));
}
// Runs of elements with a stride that share a scale.
struct Run {
  int64_t start, step, count;
};
std::vector<Run> runs_of(const Tensor& x, Share share) {
  const int64_t n = width_of(x), all = x.numel();
  if (share == Share::Tensor) return {{0, 1, all}};
  std::vector<Run> runs;
  if (share == Share::Token) {
    for (int64_t i = 0; i < all; i += n) runs.push_back({i, 1, n});
    return runs;
  }
  const int64_t m = x.dims[x.rank - 2];
  for (int64_t b = 0; b < all; b += m * n) {
    for (int64_t j = 0; j < n; ++j) runs.push_back({b + j, n, m});
  }
  return runs;
}
Floats smoothed(const Call& c, const Dynamic& at) {
  using P = params::DynamicQuant;

  Floats x = floats(c.tensor(P::x));
  if (c.null(P::smoothScalesOptional)) return x;
  const Floats smooth = floats(c.tensor(P::smoothScalesOptional));
  const int64_t n = width_of(c.tensor(P::x));
  Ints group(rows_of(c.tensor(P::x)), 0);
  if (at.group >= 0 && !c.null(at.group)) {
    group = groups_of_rows(integers(c.tensor(at.group)), rows_of(c.tensor(P::x)), false);
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t g = group[i / n];
    x[i] *= g < 0 ? 1 : smooth[g * n + i % n];
  }
  return x;
}
template <const Dynamic& at>
void run_dynamic(Call& c) {
  using P = params::DynamicQuant;

  Floats x = smoothed(c, at), scales, offsets;
  float top = largest(c.tensor(at.y).dtype);
  const bool even = symmetrical(c, at);
  if (at.top >= 0 && c.number(at.top) > 0) top = static_cast<float>(c.number(at.top));
  for (const Run& run : runs_of(c.tensor(P::x), share_of(c, at))) {
    float low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < run.count; ++i) {
      const float v = x[run.start + i * run.step];
      low = std::min(low, v), high = std::max(high, v);
    }
    const float wide = is_float(c.tensor(at.y).dtype) ? 2 * top : 2 * top + 1;
    const float scale = even ? std::max(-low, high) / top : (high - low) / wide;
    const float offset = even ? 0 : top - high / scale;
    scales.push_back(scale), offsets.push_back(offset);
    for (int64_t i = 0; i < run.count; ++i) {
      float& v = x[run.start + i * run.step];
      v = scale == 0 ? 0 : v / scale + offset;
    }
  }
  write_quantized(c.maybe(at.y), x);
  write(c.tensor(at.scale), scales);
  if (!even) write(c.maybe(at.offset), offsets);
}

// (scale, offset, [roundMode,] out): float32 cut to 19 bits, bit 46 set, a 9-bit offset at bit 37.
template <int Out>
aclnnStatus check_quant_param(Call& c) {
  using P = params::TransQuantParamV2;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::scale, Out}));
  const int64_t n = c.tensor(P::scale).numel(),
                m = c.null(P::offset) ? 1 : c.tensor(P::offset).numel();
  if (n != m && n != 1 && m != 1) return refuse_fit(c, P::offset, P::scale);
  return expect_numel(c, Out, std::max(n, m));
}
template <int Out>
void run_quant_param(Call& c) {
  using P = params::TransQuantParamV3;

  const Floats scale = floats(c.tensor(P::scale)), offset = floats(c.maybe(P::offset));
  Ints out(static_cast<size_t>(c.tensor(Out).numel()));
  for (size_t i = 0; i < out.size(); ++i) {
    uint32_t bits = bits_of(scale[scale.size() == 1 ? 0 : i]);
    if (Out == 3 && c.integer(P::roundMode) == 1)
      bits += 0xFFFu + (bits >> 13 & 1u);  // to the nearest 19 bits
    uint64_t word = (bits & 0xFFFFE000u) | uint64_t{1} << 46;
    if (!offset.empty()) {
      const float o = std::nearbyint(offset[offset.size() == 1 ? 0 : i]);
      const auto cut = static_cast<int64_t>(std::max(std::min(o, 255.0f), -256.0f));
      word |= (static_cast<uint64_t>(cut) & 0x1FF) << 37;
    }
    out[i] = static_cast<int64_t>(word);
  }
  write(c.tensor(Out), out);
}

// (self, scale, zeroPoint, axis or enabled, quantMin, quantMax, out, mask) of torch's
// fake_quantize_per_{tensor,channel}_affine_cachemask.
template <bool Channel>
aclnnStatus check_fake_quant(Call& c) {
  using P = params::FakeQuantPerChannelAffineCachemask;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::self, P::scale, P::zeroPoint, P::out, P::mask}));
  int64_t n = 1;
  if (Channel) {
    const int64_t axis = axis_in(c.tensor(P::self), c.integer(P::axis));
    if (axis < 0 || axis >= c.tensor(P::self).rank) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "axis %lld is not one of self's %d.",
                    static_cast<long long>(c.integer(P::axis)), c.tensor(P::self).rank);
    }
    n = c.tensor(P::self).dims[axis];
  }
  for (int i : {P::scale, P::zeroPoint}) ACL_RETURN_IF_FAILED(expect_numel(c, i, n));
  for (int i : {P::out, P::mask}) ACL_RETURN_IF_FAILED(expect_same_shape(c, i, P::self));
  return ACLNN_SUCCESS;
}
template <bool Channel>
void run_fake_quant(Call& c) {
  using P = params::FakeQuantPerTensorAffineCachemask;

  const double low = static_cast<double>(c.integer(P::quantMin)),
               high = static_cast<double>(c.integer(P::quantMax));
  const bool enabled = Channel || c.number(P::fakeQuantEnabled) >= 1;
  Ints mask;
  write(c.tensor(P::out),
        scaled(c.tensor(P::self), c.maybe(P::scale), c.maybe(P::zeroPoint),
               Channel ? c.integer(params::FakeQuantPerChannelAffineCachemask::axis) : -1,
               [&](float x, float s, float z) {
                 const double q = std::nearbyint(x * (1.0f / s)) + z;
                 mask.push_back(!enabled || (q >= low && q <= high));
                 const double kept = std::min(std::max(q, low), high);
                 return enabled ? static_cast<float>((kept - z) * s) : x;
               }));
  write(c.tensor(P::mask), mask);
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnAscendQuant, check_ascend_quant<params::AscendQuant::y>,
            run_ascend_quant<params::AscendQuant::y>)
ACLNN_OWN(aclnnAscendQuantV3, check_ascend_quant<params::AscendQuantV3::y>,
            run_ascend_quant<params::AscendQuantV3::y>)
ACLNN_OWN(aclnnAscendAntiQuant, check_anti_quant, run_anti_quant)
ACLNN_OWN(aclnnQuantize, check_quantize, run_quantize)
ACLNN_OWN(aclnnDequantBias, check_dequant_bias, run_dequant_bias)
ACLNN_OWN(aclnnGroupQuant, check_group_quant, run_group_quant)
ACLNN_OWN(aclnnDynamicQuant, check_dynamic<kDynamic>, run_dynamic<kDynamic>)
ACLNN_OP_FLAGS(aclnnDynamicQuantV2, check_dynamic<kDynamicV2>, run_dynamic<kDynamicV2>,
               kOwnNulls | kOwnLimits |
                   kOwnDtypes)  // the document gives groupIndex the dtypes of x
ACLNN_OWN(aclnnDynamicQuantV3, check_dynamic<kDynamicV3>, run_dynamic<kDynamicV3>)
ACLNN_OWN(aclnnDynamicQuantV4, check_dynamic<kDynamicV4>, run_dynamic<kDynamicV4>)
ACLNN_OWN(aclnnTransQuantParamV2, check_quant_param<params::TransQuantParamV2::out>,
            run_quant_param<params::TransQuantParamV2::out>)
ACLNN_OWN(aclnnTransQuantParamV3, check_quant_param<params::TransQuantParamV3::out>,
            run_quant_param<params::TransQuantParamV3::out>)
ACLNN_OWN(aclnnFakeQuantPerChannelAffineCachemask, check_fake_quant<true>, run_fake_quant<true>)
ACLNN_OWN(aclnnFakeQuantPerTensorAffineCachemask, check_fake_quant<false>, run_fake_quant<false>)
