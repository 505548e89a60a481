// Gated units with dequantisation before and quantisation after. Formulas: the "npu_swiglu_quant" and
// "npu_dequant_swiglu_quant" pages of torch_npu and its tests of npu_gelu_quant and npu_swiglu_group_quant.
#include "params/quantization.h"
#include <cmath>
#include <cstring>

#include "loops/group.h"
#include "loops/matrices.h"
#include "loops/mx.h"
#include "loops/numbers.h"
#include "loops/gate.h"

namespace aclsim {
namespace {

// A parameter per group, or per group and column.
float grouped(const Floats& f, int64_t group, int64_t column, int64_t groups, int64_t h,
              float otherwise) {
  if (f.empty()) return otherwise;
  const auto n = static_cast<int64_t>(f.size());
  if (n == 1) return f[0];
  if (n == groups * h) return f[group * h + column];
  return n == h ? f[column] : f[group];
}
// Phase 1 of `grouped`: one element, one per group, per column, or per group and column.
aclnnStatus expect_grouped(const Call& c, int arg, int64_t groups, int64_t h) {
  const Tensor* t = at_or_null(c, arg);
  if (!t) return ACLNN_SUCCESS;
  const int64_t n = t->numel();
  if (n == 1 || n == h || n == groups || n == groups * h) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID,
                "%s %s should have 1, %lld, %lld or %lld elements: of %lld groups and %lld columns.",
                c.name(arg), shape_text(*t), static_cast<long long>(groups), static_cast<long long>(h),
                static_cast<long long>(groups * h), static_cast<long long>(groups),
                static_cast<long long>(h));
}
int64_t groups_in(const Call& c, int arg) {
  const Tensor* t = at_or_null(c, arg);
  return t ? t->numel() : 1;
}
bool is_dynamic(const Call& c, int arg) {
  return c.text(arg) && std::strncmp(c.text(arg), "dynamic", 7) == 0;
}

template <int Y>
aclnnStatus check_swiglu(Call& c) {
  using P = params::SwiGluQuant;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, Y}));
  if (is_dynamic(c, P::quantModeOptional)) ACL_RETURN_IF_FAILED(expect_given(c, {Y + 1}));
  if (!is_dynamic(c, P::quantModeOptional))
    ACL_RETURN_IF_FAILED(expect_given(c, {P::smoothScalesOptional}));
  ACL_RETURN_IF_FAILED(expect_halves(c, P::x, Y));
  for (int i : {P::smoothScalesOptional, P::offsetsOptional})
    ACL_RETURN_IF_FAILED(
        expect_grouped(c, i, groups_in(c, P::groupIndexOptional), width_of(c.tensor(P::x)) / 2));
  return is_dynamic(c, P::quantModeOptional) ? expect_numel(c, Y + 1, rows_of(c.tensor(P::x)))
                                             : ACLNN_SUCCESS;
}
template <int Y>
void run_swiglu(Call& c) {
  using P = params::SwiGluQuantV2;

  const Tensor& x = c.tensor(P::x);
  const int64_t h = width_of(x) / 2, rows = rows_of(x);
  Floats y = gated(floats(x), {h, c.flag(P::activateLeft), false}, {});
  const Floats smooth = floats(at_or_null(c, P::smoothScalesOptional)),
               offset = floats(at_or_null(c, P::offsetsOptional));
  const Ints list = integers(at_or_null(c, P::groupIndexOptional));
  const auto groups = static_cast<int64_t>(std::max<size_t>(1, list.size()));
  const Ints group = list.empty()
                         ? Ints(rows, 0)
                         : groups_of_rows(list, rows, Y == 8 && c.integer(P::groupListType) == 1);
  const bool moving = is_dynamic(c, P::quantModeOptional);
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t g = group[i / h], j = static_cast<int64_t>(i) % h;
    if (g < 0)
      y[i] = 0;
    else
      y[i] = y[i] * grouped(smooth, g, j, groups, h, 1) +
             (moving ? 0 : grouped(offset, g, j, groups, h, 0));
  }
  if (!moving) {
    write_quantized(c.maybe(Y), y);
    return;
  }
  const QuantizedRows q = quantize_rows(y, h, largest(c.tensor(Y).dtype));
  write_quantized(c.maybe(Y), q.values);
  // What rows are multiplied by, not what brings them back (CANN 8.3's document on, and op-plugin's
  // test of npu_swiglu_quant; earlier documents have the inverse).
  Floats factors = q.scales;
  for (float& f : factors) f = 1 / f;
  write(c.maybe(Y + 1), factors);
}

template <int Y>
aclnnStatus check_dequant(Call& c) {
  using P = params::DequantSwigluQuantV2;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, Y}));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::activationScaleOptional, rows_of(c.tensor(P::x))));
  if (is_dynamic(c, P::quantModeOptional)) ACL_RETURN_IF_FAILED(expect_given(c, {Y + 1}));
  if (Y == 16) {
    const int64_t axis = c.integer(P::activateDim);
    if (axis != -1 && axis != c.tensor(P::x).rank - 1) {
      return c.fail(ACLNN_ERR_PARAM_INVALID,
                    "activateDim %lld is not supported by the simulator, only the last.",
                    static_cast<long long>(axis));
    }
  }
  ACL_RETURN_IF_FAILED(expect_halves(c, P::x, Y));
  const int64_t n = width_of(c.tensor(P::x)), groups = groups_in(c, P::groupIndexOptional);
  for (int i : {P::weightScaleOptional, P::biasOptional})
    ACL_RETURN_IF_FAILED(expect_grouped(c, i, groups, n));
  for (int i : {P::quantScaleOptional, P::quantOffsetOptional})
    ACL_RETURN_IF_FAILED(expect_grouped(c, i, groups, n / 2));
  return is_dynamic(c, P::quantModeOptional) ? expect_numel(c, Y + 1, rows_of(c.tensor(P::x)))
                                             : ACLNN_SUCCESS;
}
Floats dequantised(const Call& c, const Ints& group, int64_t groups) {
  using P = params::DequantSwigluQuant;

  const Tensor& t = c.tensor(P::x);
  Floats x = floats(t);
  if (t.dtype != ACL_INT32) return x;
  const int64_t n = width_of(t);
  const Floats weight = floats(at_or_null(c, P::weightScaleOptional)),
               token = floats(at_or_null(c, P::activationScaleOptional)),
               bias = floats(at_or_null(c, P::biasOptional));
  const bool early = at_or_null(c, P::biasOptional) && c.tensor(P::biasOptional).dtype == ACL_INT32;
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t r = static_cast<int64_t>(i) / n, j = static_cast<int64_t>(i) % n,
                  g = std::max<int64_t>(0, group[r]);
    const float b = grouped(bias, g, j, groups, n, 0);
    x[i] = (x[i] + (early ? b : 0)) * grouped(weight, g, j, groups, n, 1) *
           (token.empty() ? 1 : token[r]);
    x[i] += early ? 0 : b;
  }
  return x;
}
template <int Y>
void run_dequant(Call& c) {
  using P = params::DequantSwigluQuantV2;

  const Tensor& t = c.tensor(P::x);
  const int64_t h = width_of(t) / 2, rows = rows_of(t),
                mode = Y == 16 ? c.integer(P::swigluMode) : 0;
  const Ints list = integers(at_or_null(c, P::groupIndexOptional));
  const auto groups = static_cast<int64_t>(std::max<size_t>(1, list.size()));
  const Ints group = list.empty() ? Ints(rows, 0) : groups_of_rows(list, rows, true);
  Gate gate;
  if (mode != 0) gate = {c.number(P::clampLimit), c.number(P::gluAlpha), c.number(P::gluBias)};
  Floats y = gated(dequantised(c, group, groups), {h, c.flag(P::activateLeft), mode == 1}, gate);
  const Floats scale = floats(at_or_null(c, P::quantScaleOptional)),
               offset = floats(at_or_null(c, P::quantOffsetOptional));
  const bool moving = is_dynamic(c, P::quantModeOptional);
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t g = group[i / h], j = static_cast<int64_t>(i) % h;
    const float s = grouped(scale, std::max<int64_t>(g, 0), j, groups, h, 1);
    y[i] = g < 0 ? 0 : moving ? y[i] * s : y[i] / s + grouped(offset, g, j, groups, h, 0);
  }
  const Rounding rounding = Y == 16 ? rounding_of(c.text(P::roundModeOptional)) : Rounding::Even;
  if (!moving) {
    write_quantized(c.maybe(Y), y, rounding);
    return;
  }
  const QuantizedRows q = quantize_rows(y, h, largest(c.tensor(Y).dtype));
  write_quantized(c.maybe(Y), q.values, rounding);
  write(c.maybe(Y + 1), q.scales);
}

aclnnStatus check_gelu(Call& c) {
  using P = params::GeluQuant;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::self, P::y}));
  ACL_RETURN_IF_FAILED(
      expect_given(c, {is_dynamic(c, P::quantMode) ? P::outScaleOptional : P::inputScaleOptional}));
  for (int i : {P::inputScaleOptional, P::inputOffsetOptional}) {
    if (at_or_null(c, i) && c.tensor(i).numel() != 1)
      ACL_RETURN_IF_FAILED(expect_numel(c, i, width_of(c.tensor(P::self))));
  }
  if (is_dynamic(c, P::quantMode))
    ACL_RETURN_IF_FAILED(expect_numel(c, P::outScaleOptional, rows_of(c.tensor(P::self))));
  return expect_same_shape(c, P::y, P::self);
}
void run_gelu(Call& c) {
  using P = params::GeluQuant;

  Floats y = floats(c.tensor(P::self));
  const Floats scale = floats(at_or_null(c, P::inputScaleOptional)),
               offset = floats(at_or_null(c, P::inputOffsetOptional));
  const bool tanh = c.text(P::approximate) && std::strcmp(c.text(P::approximate), "tanh") == 0,
             moving = is_dynamic(c, P::quantMode);
  const int64_t h = width_of(c.tensor(P::self));
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t j = static_cast<int64_t>(i) % h;
    y[i] = static_cast<float>(activated(y[i], tanh ? Activation::GeluTanh : Activation::GeluErf));
    y[i] = y[i] * grouped(scale, 0, j, 1, h, 1) + (moving ? 0 : grouped(offset, 0, j, 1, h, 0));
  }
  if (!moving) {
    write_quantized(c.maybe(P::y), y, rounding_of(c.text(P::roundMode)));
    return;
  }
  const QuantizedRows q = quantize_rows(y, h, largest(c.tensor(P::y).dtype));
  write_quantized(c.maybe(P::y), q.values, rounding_of(c.text(P::roundMode)));
  write(c.maybe(P::outScaleOptional), q.scales);
}

// Gated units whose results share powers of two, and a group's peak. Formulas: torch_npu's tests of
// npu_swiglu_mx_quant, npu_swiglu_mx_quant_with_dual_axis and npu_swiglu_group_quant.
int64_t whole(const Call& c, const char* name) { return c.integer(named(c, name)); }
// The gate of `swigluMode` 1 is clamped, slanted and shifted, and takes every other column.
struct Halves {
  Pairs pairs;
  Gate gate;
};
Halves halves_of(const Call& c, int64_t h) {
  const bool left = c.flag(named(c, "activateLeft")), own = named(c, "swigluMode") != kNone;
  if (own && whole(c, "swigluMode") == 1) {
    return {{h, true, true},
            {c.number(named(c, "clampLimit")), c.number(named(c, "gluAlpha")), c.number(named(c, "gluBias"))}};
  }
  return {{h, left, false}, group_gate(0)};
}
aclnnStatus expect_rounding(const Call& c) {
  const int round = named(c, "roundMode"), algorithm = named(c, "scaleAlg");
  return expect_plain(c, round, algorithm, -1);
}
aclnnStatus check_swiglu_mx(Call& c) {
  using P = params::SwigluMxQuant;

  const int y = named(c, "y"), group = named(c, "groupIndex");
  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, y}));
  ACL_RETURN_IF_FAILED(expect_rounding(c));
  const Tensor &x = c.tensor(P::x), &out = c.tensor(y);
  const int64_t dim = whole(c, "activateDim"), axis = whole(c, "axis");
  const bool plain = (dim == -1 || dim == x.rank - 1) && whole(c, "swigluMode") >= 0 &&
                     whole(c, "swigluMode") <= 1 && (!at_or_null(c, group) || axis == -1);
  if (x.rank < 1 || !plain || axis < -x.rank || axis >= x.rank) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "activateDim %lld, swigluMode %lld and axis %lld of x %s are not supported by the "
                  "simulator: it halves the last dim, and groups need axis -1.",
                  static_cast<long long>(dim), static_cast<long long>(whole(c, "swigluMode")),
                  static_cast<long long>(axis), shape_text(x));
  }
  ACL_RETURN_IF_FAILED(expect_halves(c, P::x, y));
  return expect_powers(c, y, y + 1, along(out, axis).scales());
}
void run_swiglu_mx(Call& c) {
  using P = params::SwigluMxQuant;

  const int y = named(c, "y");
  const Halves h = halves_of(c, width_of(c.tensor(P::x)) / 2);
  Floats v = gated(floats(c.tensor(P::x)), h.pairs, h.gate);
  const Cut k = cut_at(c, P::x, named(c, "groupIndex"), -1);
  std::fill(v.begin() + k.live * h.pairs.h, v.end(), 0.0f);
  write_scaled(c, y, y + 1, v, along(c.tensor(y), whole(c, "axis")), whole(c, "scaleAlg"));
}

// Both axes: y1 by blocks along rows, y2 by blocks along columns, within groups where there are some.
aclnnStatus expect_two(const Call& c, int y1, int64_t rows, int64_t n) {
  using P = params::SwigluMxQuantWithDualAxis;

  const Tensor* group = at_or_null(c, named(c, "groupIndex"));
  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, y1, y1 + 2}));
  ACL_RETURN_IF_FAILED(expect_rounding(c));
  for (int y : {y1, y1 + 2}) ACL_RETURN_IF_FAILED(expect_dims(c, y, {rows, n}));
  ACL_RETURN_IF_FAILED(expect_powers(c, y1, y1 + 1, along(c.tensor(y1), -1).scales()));
  const int64_t lines = group ? grouped_lines(rows, group->numel()) * n * 2 : along(c.tensor(y1), -2).scales();
  return expect_powers(c, y1 + 2, y1 + 3, lines);
}
aclError write_two(const Call& c, int y1, const Floats& v) {
  const Tensor& t = c.tensor(y1);
  const int64_t algorithm = whole(c, "scaleAlg");
  write_scaled(c, y1, y1 + 1, v, along(t, -1), algorithm);
  const Tensor* group = at_or_null(c, named(c, "groupIndex"));
  if (!group) {
    write_scaled(c, y1 + 2, y1 + 3, v, along(t, -2), algorithm);
    return ACL_SUCCESS;
  }
  const Ints ends = integers(group);
  if (!ends_within(ends, t.dims[0])) return c.trap(507015, "groupIndex ends past x.");
  const Scaled s = scale_groups(v, width_of(t), ends, c.tensor(y1 + 3).numel(), t.dtype, algorithm);
  write_quantized(c.maybe(y1 + 2), s.values);
  write(c.tensor(y1 + 3), s.scales);
  return ACL_SUCCESS;
}
aclnnStatus expect_matrix(const Call& c) {
  using P = params::SwigluMxQuantWithDualAxis;

  if (c.tensor(P::x).rank == 2 && c.tensor(P::x).dims[1] % 2 == 0) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "x %s should be of 2 dims, the last even.",
                shape_text(c.tensor(P::x)));
}
aclnnStatus check_swiglu_two(Call& c) {
  using P = params::SwigluMxQuantWithDualAxis;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x}));
  ACL_RETURN_IF_FAILED(expect_matrix(c));
  return expect_two(c, named(c, "y1"), c.tensor(P::x).dims[0], c.tensor(P::x).dims[1] / 2);
}
aclError run_swiglu_two(Call& c) {
  using P = params::SwigluMxQuantWithDualAxis;

  const Halves h = halves_of(c, width_of(c.tensor(P::x)) / 2);
  return write_two(c, named(c, "y1"), gated(floats(c.tensor(P::x)), h.pairs, h.gate));
}
aclnnStatus check_swiglu_back(Call& c) {
  using P = params::SwigluBackwardMxQuantWithDualAxis;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::yGrad}));
  ACL_RETURN_IF_FAILED(expect_matrix(c));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::yGrad, c.tensor(P::x).numel() / 2));
  return expect_two(c, named(c, "y1"), c.tensor(P::x).dims[0], c.tensor(P::x).dims[1]);
}
aclError run_swiglu_back(Call& c) {
  using P = params::SwigluBackwardMxQuantWithDualAxis;

  const Halves h = halves_of(c, width_of(c.tensor(P::x)) / 2);
  return write_two(c, named(c, "y1"),
                   gated_back(floats(c.tensor(P::yGrad)), floats(c.tensor(P::x)), h.pairs, h.gate,
                              rows_of(c.tensor(P::x))));
}

// (x, weight, groupIndex, scale, dstType, quantMode 3, ..., y, scales, origin): a group by its peak.
constexpr int64_t kByGroup = 3;
aclnnStatus check_group_quant(Call& c) {
  using P = params::SwigluGroupQuant;

  const int y = named(c, "y"), origin = named(c, "yOrigin");
  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, y, y + 1}));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::weightOptional, rows_of(c.tensor(P::x))));
  if (whole(c, "quantMode") != kByGroup || largest(c.tensor(y).dtype) == 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "quantMode %lld to %s is not supported by the simulator, only 3.",
                  static_cast<long long>(whole(c, "quantMode")), dtype_name(c.tensor(y).dtype));
  }
  const Tensor* group = at_or_null(c, named(c, "groupIndex"));
  ACL_RETURN_IF_FAILED(expect_numel(c, y + 1, group ? group->numel() : 1));
  ACL_RETURN_IF_FAILED(expect_halves(c, P::x, y));
  if (!c.flag(named(c, "outputOrigin"))) return ACLNN_SUCCESS;
  ACL_RETURN_IF_FAILED(expect_given(c, {origin}));
  return expect_halves(c, P::x, origin);
}
void run_group_quant(Call& c) {
  using P = params::SwigluGroupQuant;

  const int y = named(c, "y"), group = named(c, "groupIndex");
  Floats v = weighted(c, P::x, P::weightOptional, group, c.number(named(c, "clampLimit")));
  if (c.flag(named(c, "outputOrigin"))) write(c.maybe(named(c, "yOrigin")), v);
  const double most = c.number(named(c, "dstTypeMax"));
  const double top = most > 0 ? most : largest(c.tensor(y).dtype);
  const int64_t h = width_of(c.tensor(P::x)) / 2, rows = rows_of(c.tensor(P::x));
  const Ints sizes = at_or_null(c, group) ? integers(c.tensor(group)) : Ints{rows};
  Floats scales;
  int64_t begin = 0;
  for (int64_t size : sizes) {
    const int64_t end = std::min(rows, begin + std::max<int64_t>(0, size));
    float peak = 1e-8f;
    for (int64_t i = begin * h; i < end * h; ++i) peak = std::max(peak, std::fabs(v[i]));
    scales.push_back(static_cast<float>(peak / top));
    for (int64_t i = begin * h; i < end * h; ++i) v[i] /= scales.back();
    begin = end;
  }
  write_quantized(c.maybe(y), v);
  write(c.tensor(y + 1), scales);
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnSwiGluQuant, check_swiglu<params::SwiGluQuant::yOut>,
            run_swiglu<params::SwiGluQuant::yOut>)
ACLNN_OWN(aclnnSwiGluQuantV2, check_swiglu<params::SwiGluQuantV2::yOut>,
            run_swiglu<params::SwiGluQuantV2::yOut>)
ACLNN_OWN(aclnnDequantSwigluQuant, check_dequant<params::DequantSwigluQuant::yOut>,
            run_dequant<params::DequantSwigluQuant::yOut>)
ACLNN_OWN(aclnnDequantSwigluQuantV2, check_dequant<params::DequantSwigluQuantV2::yOut>,
            run_dequant<params::DequantSwigluQuantV2::yOut>)
ACLNN_OWN(aclnnGeluQuant, check_gelu, run_gelu)
ACLNN_OWN(aclnnSwigluGroupQuant, check_group_quant, run_group_quant)
ACLNN_OWN(aclnnSwigluMxQuant, check_swiglu_mx, run_swiglu_mx)
ACLNN_OWN(aclnnSwigluMxQuantWithDualAxis, check_swiglu_two, run_swiglu_two)
ACLNN_OWN(aclnnSwigluBackwardMxQuantWithDualAxis, check_swiglu_back, run_swiglu_back)
