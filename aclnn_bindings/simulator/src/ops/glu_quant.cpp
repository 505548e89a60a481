// Gated units with clamps, groups of rows, dequantisation before and quantisation after.
// Formulas: the "npu_swiglu_quant", "npu_dequant_swiglu_quant" and "npu_clipped_swiglu" pages of
// torch_npu and its tests of npu_gelu_quant and npu_swiglu_group_quant.
#include "loops/matrices.h"

#include <cmath>
#include <cstring>

namespace aclsim {
namespace {

const Tensor* at_or_null(const Call& c, int arg) {
  if (arg < 0 || c.null(arg) || c.tensor(arg).numel() == 0) return nullptr;
  return c.maybe(arg);
}
// A gated unit: out = a sigmoid(alpha a) (b + bias), a below the limit, b within it.
struct Gate {
  double limit = INFINITY, alpha = 1, bias = 0;
  double a_of(double a) const { return std::min(a, limit); }
  double b_of(double b) const { return std::min(std::max(b, -limit), limit); }
  double operator()(double a, double b) const {
    return a_of(a) / (1 + std::exp(-alpha * a_of(a))) * (b_of(b) + bias);
  }
  // By a and by b; zero where a clamp holds.
  void gradients(double a, double b, double up, double& da, double& db) const {
    const double s = 1 / (1 + std::exp(-alpha * a_of(a))), swish = a_of(a) * s;
    da = a > limit ? 0 : up * (b_of(b) + bias) * (s + alpha * a * s * (1 - s));
    db = b > limit || b < -limit ? 0 : up * swish;
  }
};
// Rows of 2h elements as pairs: halves, the left one gated or the right, or neighbours.
struct Pairs {
  int64_t h;
  bool left, interleaved;
  int64_t a(int64_t j) const { return interleaved ? 2 * j : left ? j : h + j; }
  int64_t b(int64_t j) const { return interleaved ? 2 * j + 1 : left ? h + j : j; }
};
Floats gated(const Floats& x, const Pairs& p, const Gate& gate) {
  Floats y(x.size() / 2);
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t r = static_cast<int64_t>(i) / p.h, j = static_cast<int64_t>(i) % p.h;
    const float* row = x.data() + r * 2 * p.h;
    y[i] = static_cast<float>(gate(row[p.a(j)], row[p.b(j)]));
  }
  return y;
}
// A parameter per group, or per group and column.
float grouped(const Floats& f, int64_t group, int64_t column, int64_t groups, int64_t h,
              float otherwise) {
  if (f.empty()) return otherwise;
  const auto n = static_cast<int64_t>(f.size());
  if (n == 1) return f[0];
  if (n == groups * h) return f[group * h + column];
  return n == h ? f[column] : f[group];
}
aclnnStatus expect_halves(const Call& c, int out) {
  const Tensor& x = c.tensor(0);
  if (x.rank < 1 || width_of(x) % 2 != 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "The last dim of x %s should be even.", shape_text(x));
  }
  return expect_numel(c, out,
                      c.tensor(out).dtype == ACL_INT32 ? x.numel() / 2 / kPacked : x.numel() / 2);
}
bool is_dynamic(const Call& c, int arg) {
  return c.text(arg) && std::strncmp(c.text(arg), "dynamic", 7) == 0;
}

// (x, smoothScales, offsets, groupIndex, activateLeft, quantMode, [groupListType, dstType,] y,
// scale).
template <int Y>
aclnnStatus check_swiglu(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, Y}));
  if (is_dynamic(c, 5)) ACL_RETURN_IF_FAILED(expect_given(c, {Y + 1}));
  if (!is_dynamic(c, 5)) ACL_RETURN_IF_FAILED(expect_given(c, {1}));
  return expect_halves(c, Y);
}
template <int Y>
aclError run_swiglu(Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t h = width_of(x) / 2, rows = rows_of(x);
  Floats y = gated(floats(x), {h, c.flag(4), false}, {});
  const Floats smooth = floats(at_or_null(c, 1)), offset = floats(at_or_null(c, 2));
  const Ints list = integers(at_or_null(c, 3));
  const auto groups = static_cast<int64_t>(std::max<size_t>(1, list.size()));
  const Ints group =
      list.empty() ? Ints(rows, 0) : groups_of_rows(list, rows, Y == 8 && c.integer(6) == 1);
  const bool moving = is_dynamic(c, 5);
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
    return ACL_SUCCESS;
  }
  const QuantizedRows q = quantize_rows(y, h, largest(c.tensor(Y).dtype));
  write_quantized(c.maybe(Y), q.values);
  write(c.maybe(Y + 1), q.scales);
  return ACL_SUCCESS;
}

// (x, weightScale, activationScale, bias, quantScale, quantOffset, groupIndex, activateLeft,
// quantMode, [dstType, roundMode, activateDim, swigluMode, clampLimit, gluAlpha, gluBias,] y,
// scale).
template <int Y>
aclnnStatus check_dequant(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, Y}));
  ACL_RETURN_IF_FAILED(expect_numel(c, 2, rows_of(c.tensor(0))));
  if (is_dynamic(c, 8)) ACL_RETURN_IF_FAILED(expect_given(c, {Y + 1}));
  if (Y == 16) {
    const int64_t axis = c.integer(11);
    if (axis != -1 && axis != c.tensor(0).rank - 1) {
      return c.fail(ACLNN_ERR_PARAM_INVALID,
                    "activateDim %lld is not supported by the simulator, only the last.",
                    static_cast<long long>(axis));
    }
  }
  return expect_halves(c, Y);
}
Floats dequantised(const Call& c, const Ints& group, int64_t groups) {
  const Tensor& t = c.tensor(0);
  Floats x = floats(t);
  if (t.dtype != ACL_INT32) return x;
  const int64_t n = width_of(t);
  const Floats weight = floats(at_or_null(c, 1)), token = floats(at_or_null(c, 2)),
               bias = floats(at_or_null(c, 3));
  const bool early = at_or_null(c, 3) && c.tensor(3).dtype == ACL_INT32;
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
aclError run_dequant(Call& c) {
  const Tensor& t = c.tensor(0);
  const int64_t h = width_of(t) / 2, rows = rows_of(t), mode = Y == 16 ? c.integer(12) : 0;
  const Ints list = integers(at_or_null(c, 6));
  const auto groups = static_cast<int64_t>(std::max<size_t>(1, list.size()));
  const Ints group = list.empty() ? Ints(rows, 0) : groups_of_rows(list, rows, true);
  Gate gate;
  if (mode != 0) gate = {c.number(13), c.number(14), c.number(15)};
  Floats y = gated(dequantised(c, group, groups), {h, c.flag(7), mode == 1}, gate);
  const Floats scale = floats(at_or_null(c, 4)), offset = floats(at_or_null(c, 5));
  const bool moving = is_dynamic(c, 8);
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t g = group[i / h], j = static_cast<int64_t>(i) % h;
    const float s = grouped(scale, std::max<int64_t>(g, 0), j, groups, h, 1);
    y[i] = g < 0 ? 0 : moving ? y[i] * s : y[i] / s + grouped(offset, g, j, groups, h, 0);
  }
  const Rounding rounding = Y == 16 ? rounding_of(c.text(10)) : Rounding::Even;
  if (!moving) {
    write_quantized(c.maybe(Y), y, rounding);
    return ACL_SUCCESS;
  }
  const QuantizedRows q = quantize_rows(y, h, largest(c.tensor(Y).dtype));
  write_quantized(c.maybe(Y), q.values, rounding);
  write(c.maybe(Y + 1), q.scales);
  return ACL_SUCCESS;
}

// (self, scale, offset, approximate, quantMode, roundMode, dstType, y, outScale).
aclnnStatus check_gelu(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 7}));
  ACL_RETURN_IF_FAILED(expect_given(c, {is_dynamic(c, 4) ? 8 : 1}));
  for (int i : {1, 2}) {
    if (at_or_null(c, i) && c.tensor(i).numel() != 1)
      ACL_RETURN_IF_FAILED(expect_numel(c, i, width_of(c.tensor(0))));
  }
  return expect_same_shape(c, 7, 0);
}
aclError run_gelu(Call& c) {
  Floats y = floats(c.tensor(0));
  const Floats scale = floats(at_or_null(c, 1)), offset = floats(at_or_null(c, 2));
  const bool tanh = c.text(3) && std::strcmp(c.text(3), "tanh") == 0, moving = is_dynamic(c, 4);
  const int64_t h = width_of(c.tensor(0));
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t j = static_cast<int64_t>(i) % h;
    y[i] = static_cast<float>(activated(y[i], tanh ? Activation::GeluTanh : Activation::GeluErf));
    y[i] = y[i] * grouped(scale, 0, j, 1, h, 1) + (moving ? 0 : grouped(offset, 0, j, 1, h, 0));
  }
  if (!moving) {
    write_quantized(c.maybe(7), y, rounding_of(c.text(5)));
    return ACL_SUCCESS;
  }
  const QuantizedRows q = quantize_rows(y, h, largest(c.tensor(7).dtype));
  write_quantized(c.maybe(7), q.values, rounding_of(c.text(5)));
  write(c.maybe(8), q.scales);
  return ACL_SUCCESS;
}

// x as [before, cut], cut including what follows `dim`; only the first rows of groups count.
struct Cut {
  int64_t rows, width, live;
};
Cut cut_at(const Call& c, int x, int group, int64_t dim) {
  const Tensor& t = c.tensor(x);
  Cut k = {1, 1, 0};
  if (dim < 0) dim += t.rank;
  for (int i = 0; i < t.rank; ++i) (i < dim ? k.rows : k.width) *= t.dims[i];
  k.live = k.rows;
  if (at_or_null(c, group)) {
    k.live = 0;
    for (int64_t n : integers(c.tensor(group))) k.live += n;
    k.live = std::min(k.live, k.rows);
  }
  return k;
}
// (x, groupIndex, dim, alpha, limit, bias, interleaved, out), and (gradY, x, ...).
template <int X>
aclnnStatus check_clipped(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, X, X + 7}));
  const Tensor& x = c.tensor(X);
  const int64_t dim = c.integer(X + 2) < 0 ? c.integer(X + 2) + x.rank : c.integer(X + 2);
  if (dim < 0 || dim >= x.rank || x.dims[dim] % 2 != 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "dim %lld of x %s can't be halved.",
                  static_cast<long long>(dim), shape_text(x));
  }
  return X ? expect_same_shape(c, X + 7, X) : expect_numel(c, 7, x.numel() / 2);
}
Gate gate_of(const Call& c, int x) { return {c.number(x + 4), c.number(x + 3), c.number(x + 5)}; }
aclError run_clipped(Call& c) {
  const Cut k = cut_at(c, 0, 1, c.integer(2));
  Floats y = gated(floats(c.tensor(0)), {k.width / 2, true, c.flag(6)}, gate_of(c, 0));
  std::fill(y.begin() + k.live * (k.width / 2), y.end(), 0.0f);
  write(c.tensor(7), y);
  return ACL_SUCCESS;
}
Floats gated_back(const Floats& up, const Floats& x, const Pairs& p, const Gate& gate,
                  int64_t live) {
  Floats dx(x.size());
  for (int64_t i = 0; i < live * p.h; ++i) {
    const int64_t row = i / p.h * 2 * p.h, j = i % p.h;
    double da, db;
    gate.gradients(x[row + p.a(j)], x[row + p.b(j)], up[i], da, db);
    dx[row + p.a(j)] = static_cast<float>(da), dx[row + p.b(j)] = static_cast<float>(db);
  }
  return dx;
}
aclError run_clipped_grad(Call& c) {
  const Cut k = cut_at(c, 1, 2, c.integer(3));
  write(c.tensor(8), gated_back(floats(c.tensor(0)), floats(c.tensor(1)),
                                {k.width / 2, true, c.flag(7)}, gate_of(c, 1), k.live));
  return ACL_SUCCESS;
}

// Swish of the left half, times the right, times a weight per row; a positive limit clamps.
Gate group_gate(double limit) { return {limit > 0 ? limit : INFINITY, 1, 0}; }
// (x, weight, groupIndex, clampLimit, out).
aclnnStatus check_group(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 4}));
  ACL_RETURN_IF_FAILED(expect_numel(c, 1, rows_of(c.tensor(0))));
  return expect_halves(c, 4);
}
Floats weighted(const Call& c, int x, int weight, int group, double limit) {
  const Tensor& t = c.tensor(x);
  const int64_t h = width_of(t) / 2;
  Floats y = gated(floats(t), {h, true, false}, group_gate(limit));
  const Floats w = floats(at_or_null(c, weight));
  const Cut k = cut_at(c, x, group, -1);
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t r = static_cast<int64_t>(i) / h;
    y[i] = r < k.live ? y[i] * (w.empty() ? 1 : w[r]) : 0;
  }
  return y;
}
aclError run_group(Call& c) {
  write(c.tensor(4), weighted(c, 0, 1, 2, c.number(3)));
  return ACL_SUCCESS;
}
// (gradY, x, weight, yOrigin, groupIndex, clampLimit, gradX, gradWeight).
aclnnStatus check_group_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 6}));
  if (at_or_null(c, 2)) ACL_RETURN_IF_FAILED(expect_given(c, {7}));
  ACL_RETURN_IF_FAILED(expect_numel(c, 2, rows_of(c.tensor(1))));
  ACL_RETURN_IF_FAILED(expect_numel(c, 0, c.tensor(1).numel() / 2));
  return expect_same_shape(c, 6, 1);
}
aclError run_group_grad(Call& c) {
  const Tensor& t = c.tensor(1);
  const int64_t h = width_of(t) / 2;
  const Cut k = cut_at(c, 1, 4, -1);
  const Floats x = floats(t), w = floats(at_or_null(c, 2));
  Floats up = floats(c.tensor(0));
  const Gate gate = group_gate(c.number(5));
  const Floats origin = floats(at_or_null(c, 3)),
               plain = origin.empty() ? gated(x, {h, true, false}, gate) : origin;
  Doubles dw(w.size());
  for (int64_t i = 0; i < k.live * h; ++i) {
    if (!w.empty()) dw[i / h] += static_cast<double>(up[i]) * plain[i], up[i] *= w[i / h];
  }
  write(c.tensor(6), gated_back(up, x, {h, true, false}, gate, k.live));
  if (!w.empty()) write(c.maybe(7), dw);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

#define ACLNN_GATED(op, ...) ACLNN_OP_FLAGS(op, __VA_ARGS__, kOwnNulls | kOwnLimits)
ACLNN_GATED(aclnnSwiGluQuant, check_swiglu<6>, run_swiglu<6>)
ACLNN_GATED(aclnnSwiGluQuantV2, check_swiglu<8>, run_swiglu<8>)
ACLNN_GATED(aclnnDequantSwigluQuant, check_dequant<9>, run_dequant<9>)
ACLNN_GATED(aclnnDequantSwigluQuantV2, check_dequant<16>, run_dequant<16>)
ACLNN_GATED(aclnnGeluQuant, check_gelu, run_gelu)
ACLNN_GATED(aclnnClippedSwiglu, check_clipped<0>, run_clipped)
ACLNN_GATED(aclnnClippedSwigluGrad, check_clipped<1>, run_clipped_grad)
ACLNN_GATED(aclnnSwigluGroup, check_group, run_group)
ACLNN_GATED(aclnnSwigluGroupGrad, check_group_grad, run_group_grad)
ACLNN_GATED(aclnnSwigluGroupQuantGrad, check_group_grad, run_group_grad)
