// Norms fused with what comes before and after: an addition, a scale and shift from elsewhere, a
// cast, static or dynamic quantisation. Formulas: the "npu_add_rms_norm_quant",
// "npu_add_rms_norm_dynamic_quant" and "npu_rms_norm_quant" pages of torch_npu; the operator
// documents of aclnnDeepNorm, aclnnAddLayerNorm, aclnnAdaLayerNorm and aclnnAdaLayerNormQuant.
#include "loops/values.h"

#include <cmath>
#include <cstring>

namespace aclsim {
namespace {

float pick(const Floats& f, int64_t i, float otherwise) {
  return f.empty() ? otherwise : f[f.size() == 1 ? 0 : static_cast<size_t>(i)];
}

// Phase 1: the elements of `gamma` are no whole row of `of`.
aclnnStatus refuse_width(const Call& c, int gamma, int of) {
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of %s doesn't fit the rows of %s.",
                shape_text(c.tensor(gamma)), c.name(gamma), shape_text(c.tensor(of)));
}

// Rows of `width` elements, normalised; mean stays empty for the root mean square.
struct Normed {
  Floats y, mean, rstd;
};
Normed normalise(const Floats& x, int64_t width, const Floats& gamma, const Floats& beta,
                 double eps, bool centred) {
  Normed n;
  n.y.resize(x.size());
  for (size_t begin = 0; width && begin < x.size(); begin += static_cast<size_t>(width)) {
    double mean = 0, square = 0;
    for (int64_t i = 0; centred && i < width; ++i) mean += x[begin + i];
    mean /= static_cast<double>(width);
    for (int64_t i = 0; i < width; ++i) square += (x[begin + i] - mean) * (x[begin + i] - mean);
    const double rstd = 1 / std::sqrt(square / static_cast<double>(width) + eps);
    for (int64_t i = 0; i < width; ++i) {
      const double v = (x[begin + i] - mean) * rstd;
      n.y[begin + i] = static_cast<float>(v * pick(gamma, i, 1) + pick(beta, i, 0));
    }
    if (centred) n.mean.push_back(static_cast<float>(mean));
    n.rstd.push_back(static_cast<float>(rstd));
  }
  return n;
}
Floats sum_of(const Floats& a, const Floats& b, double factor = 1) {
  Floats x(a.size());
  for (size_t i = 0; i < a.size(); ++i)
    x[i] = static_cast<float>(a[i] * factor + (b.empty() ? 0 : b[i]));
  return x;
}
// y scaled by columns, or divided, and shifted.
Floats affine(const Floats& y, int64_t width, const Floats& scale, const Floats& offset,
              bool divide) {
  Floats q(y.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t j = static_cast<int64_t>(i) % width;
    const float s = pick(scale, j, 1);
    q[i] = (divide ? y[i] / s : y[i] * s) + pick(offset, j, 0);
  }
  return q;
}
// One dynamically quantised output: y smooth / scale.
void write_dynamic(const Tensor* out, const Tensor* scale, const Floats& y, int64_t width,
                   const Floats& smooth) {
  const QuantizedRows q =
      quantize_rows(affine(y, width, smooth, {}, false), width, largest(out->dtype));
  write_quantized(out, q.values);
  write(scale, q.scales);
}

// Where the fused root-mean-square norms have their arguments.
struct Rms {
  int x2, gamma, beta, scale1, scale2, zero1, zero2, eps, divide, y1, y2, x_out, norm_out, s1, s2,
      mask, rstd;
  bool dynamic;
};
constexpr Rms kAddQuant = {1,  2,  kNone, 3,     4,     5,     6,     8,     9,
                           10, 11, 12,    kNone, kNone, kNone, kNone, kNone, false};
constexpr Rms kAddQuantV2 = {1,  2,  7,  3,  4,     5,     6,     9,     10,
                             11, 12, 13, 14, kNone, kNone, kNone, kNone, false};
constexpr Rms kAddDynamic = {1, 2, kNone, 3,     4, kNone, kNone, 5,     kNone,
                             6, 7, 8,     kNone, 9, 10,    kNone, kNone, true};
constexpr Rms kAddDynamicV2 = {1, 2, 5,  3,     4,  kNone, kNone, 6,     kNone,
                               8, 9, 10, kNone, 11, 12,    7,     kNone, true};
constexpr Rms kQuant = {kNone, 1,     2,     3,     kNone, 4,     kNone, 5,     kNone,
                        6,     kNone, kNone, kNone, kNone, kNone, kNone, kNone, false};
constexpr Rms kQuantV3 = {kNone, 1,     4,     2,     kNone, 3,     kNone, 5, 6,
                          8,     kNone, kNone, kNone, kNone, kNone, kNone, 9, false};
constexpr Rms kDynamic = {kNone, 1,     3,     2,     kNone, kNone, kNone, 4,     kNone,
                          6,     kNone, kNone, kNone, 7,     kNone, kNone, kNone, true};

bool second_asked(const Call& c, const Rms& at) {
  if (at.y2 == kNone) return false;
  if (at.mask != kNone && c.bools(at.mask).size == 2) return c.bools(at.mask)[1];
  return at.dynamic ? at_or_null(c, at.scale1) && at_or_null(c, at.scale2)
                    : at_or_null(c, at.scale2) != nullptr;
}
bool first_asked(const Call& c, const Rms& at) {
  return at.mask == kNone || c.bools(at.mask).size != 2 || c.bools(at.mask)[0];
}
template <const Rms& at>
aclnnStatus check_rms(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, at.gamma, at.y1}));
  if (at.x2 != kNone) {
    ACL_RETURN_IF_FAILED(expect_given(c, {at.x2, at.x_out}));
    ACL_RETURN_IF_FAILED(expect_same_shape(c, at.x2, 0));
    ACL_RETURN_IF_FAILED(expect_same_shape(c, at.x_out, 0));
  }
  if (!at.dynamic) ACL_RETURN_IF_FAILED(expect_given(c, {at.scale1}));
  const int64_t n = c.tensor(at.gamma).numel();
  if (n == 0 || c.tensor(0).numel() % n != 0) return refuse_width(c, at.gamma, 0);
  for (int arg : {at.scale1, at.scale2, at.zero1, at.zero2, at.beta}) {
    if (arg != kNone && at_or_null(c, arg) && c.tensor(arg).numel() != 1)
      ACL_RETURN_IF_FAILED(expect_numel(c, arg, n));
  }
  if (at.s1 != kNone) ACL_RETURN_IF_FAILED(expect_given(c, {at.s1}));
  if (second_asked(c, at)) ACL_RETURN_IF_FAILED(expect_given(c, {at.y2}));
  return first_asked(c, at) ? expect_quantized(c, at.y1, 0) : ACLNN_SUCCESS;
}
template <const Rms& at>
aclError run_rms(Call& c) {
  const Floats x = sum_of(floats(c.tensor(0)), at.x2 == kNone ? Floats() : floats(c.tensor(at.x2)));
  const int64_t n = c.tensor(at.gamma).numel();
  const Normed norm = normalise(x, n, floats(c.tensor(at.gamma)), floats(at_or_null(c, at.beta)),
                                c.number(at.eps), false);
  const bool divide = at.divide != kNone && c.flag(at.divide);
  if (first_asked(c, at)) {
    const Floats s = floats(at_or_null(c, at.scale1));
    if (at.dynamic)
      write_dynamic(c.maybe(at.y1), at_or_null(c, at.s1), norm.y, n, s);
    else
      write_quantized(c.maybe(at.y1),
                      affine(norm.y, n, s, floats(at_or_null(c, at.zero1)), divide));
  }
  if (second_asked(c, at)) {
    const Floats s = floats(at_or_null(c, at.scale2));
    if (at.dynamic)
      write_dynamic(c.maybe(at.y2), at_or_null(c, at.s2), norm.y, n, s);
    else
      write_quantized(c.maybe(at.y2),
                      affine(norm.y, n, s, floats(at_or_null(c, at.zero2)), divide));
  }
  write(at_or_null(c, at.x_out), x);
  write(at_or_null(c, at.norm_out), norm.y);
  if (at.rstd != kNone && c.flag(7)) write(at_or_null(c, at.rstd), norm.rstd);
  return ACL_SUCCESS;
}
// (x1, x2, gamma, eps, y in float32, y, rstd, x).
aclnnStatus check_cast(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 4, 5, 6, 7}));
  const int64_t n = c.tensor(2).numel();
  if (n == 0 || c.tensor(0).numel() % n != 0) return refuse_width(c, 2, 0);
  for (int i : {1, 4, 5, 7}) ACL_RETURN_IF_FAILED(expect_same_shape(c, i, 0));
  return expect_numel(c, 6, c.tensor(0).numel() / n);
}
aclError run_cast(Call& c) {
  const Floats x = sum_of(floats(c.tensor(0)), floats(c.tensor(1)));
  const Normed n = normalise(x, c.tensor(2).numel(), floats(c.tensor(2)), {}, c.number(3), false);
  write(c.tensor(4), n.y), write(c.tensor(5), n.y), write(c.tensor(6), n.rstd),
      write(c.tensor(7), x);
  return ACL_SUCCESS;
}

// Gradients of a norm of x by rows: g is dy gamma, xhat the normalised row.
struct NormGrad {
  Floats dx;
  Doubles dgamma, dbeta;
};
NormGrad differentiate(const Floats& dy, const Floats& x, int64_t width, const Floats& gamma,
                       const Floats& mean, const Floats& rstd) {
  NormGrad d = {Floats(x.size()), Doubles(static_cast<size_t>(width)),
                Doubles(static_cast<size_t>(width))};
  const bool centred = !mean.empty();
  for (size_t r = 0; width && r < x.size() / static_cast<size_t>(width); ++r) {
    double sum = 0, along = 0;
    const auto hat = [&](int64_t i) {
      return (static_cast<double>(x[r * width + i]) - (centred ? mean[r] : 0)) * rstd[r];
    };
    for (int64_t i = 0; i < width; ++i) {
      const double up = dy[r * width + i], g = up * pick(gamma, i, 1);
      sum += g, along += g * hat(i);
      d.dgamma[i] += up * hat(i), d.dbeta[i] += up;
    }
    const auto n = static_cast<double>(width);
    for (int64_t i = 0; i < width; ++i) {
      const double g = static_cast<double>(dy[r * width + i]) * pick(gamma, i, 1);
      d.dx[r * width + i] =
          static_cast<float>(rstd[r] * (g - (centred ? sum / n : 0) - hat(i) * along / n));
    }
  }
  return d;
}
// (dy, x, rstd, gamma, scalesX, offsetX, quantMode, divMode, dx, dgamma).
aclnnStatus check_rms_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 3, 4, 8, 9}));
  const int64_t n = c.tensor(3).numel();
  if (n == 0 || c.tensor(1).numel() % n != 0) return refuse_width(c, 3, 1);
  ACL_RETURN_IF_FAILED(expect_numel(c, 2, c.tensor(1).numel() / n));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 0, 1));
  return expect_same_shape(c, 8, 1);
}
aclError run_rms_grad(Call& c) {
  const int64_t n = c.tensor(3).numel();
  const NormGrad d = differentiate(floats(c.tensor(0)), floats(c.tensor(1)), n, floats(c.tensor(3)),
                                   {}, floats(c.tensor(2)));
  write_quantized(c.maybe(8),
                  affine(d.dx, n, floats(c.tensor(4)), floats(at_or_null(c, 5)), c.flag(7)));
  write(c.tensor(9), d.dgamma);
  return ACL_SUCCESS;
}

// (x, gx, beta, gamma, alpha, eps, mean, rstd, y): layer norm of alpha x + gx.
aclnnStatus check_deep(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 3, 6, 7, 8}));
  const int64_t n = c.tensor(3).numel();
  if (n == 0 || c.tensor(0).numel() % n != 0) return refuse_width(c, 3, 0);
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 2, 3));
  for (int i : {1, 8}) ACL_RETURN_IF_FAILED(expect_same_shape(c, i, 0));
  for (int i : {6, 7}) ACL_RETURN_IF_FAILED(expect_numel(c, i, c.tensor(0).numel() / n));
  return ACLNN_SUCCESS;
}
aclError run_deep(Call& c) {
  const Floats x = sum_of(floats(c.tensor(0)), floats(c.tensor(1)), c.number(4));
  const Normed n = normalise(x, c.tensor(3).numel(), floats(c.tensor(3)), floats(c.tensor(2)),
                             c.number(5), true);
  write(c.tensor(6), n.mean), write(c.tensor(7), n.rstd), write(c.tensor(8), n.y);
  return ACL_SUCCESS;
}
// (dy, x, gx, gamma, mean, rstd, alpha, dx, dgx, dbeta, dgamma).
aclnnStatus check_deep_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 3, 4, 5, 7, 8, 9, 10}));
  const int64_t n = c.tensor(3).numel();
  if (n == 0 || c.tensor(1).numel() % n != 0) return refuse_width(c, 3, 1);
  for (int i : {0, 2, 7, 8}) ACL_RETURN_IF_FAILED(expect_same_shape(c, i, 1));
  for (int i : {4, 5}) ACL_RETURN_IF_FAILED(expect_numel(c, i, c.tensor(1).numel() / n));
  for (int i : {9, 10}) ACL_RETURN_IF_FAILED(expect_numel(c, i, n));
  return ACLNN_SUCCESS;
}
aclError run_deep_grad(Call& c) {
  const Floats x = sum_of(floats(c.tensor(1)), floats(c.tensor(2)), c.number(6));
  const NormGrad d = differentiate(floats(c.tensor(0)), x, c.tensor(3).numel(), floats(c.tensor(3)),
                                   floats(c.tensor(4)), floats(c.tensor(5)));
  write(c.tensor(7), sum_of(d.dx, {}, c.number(6))), write(c.tensor(8), d.dx);
  write(c.tensor(9), d.dbeta), write(c.tensor(10), d.dgamma);
  return ACL_SUCCESS;
}

// x1 + x2 + bias, where the bias has x1's shape or that of its last dim.
Floats added(const Call& c) {
  Floats x = sum_of(floats(c.tensor(0)), floats(c.tensor(1)));
  const Floats bias = floats(at_or_null(c, 4));
  for (size_t i = 0; i < x.size() && !bias.empty(); ++i) x[i] += bias[i % bias.size()];
  return x;
}
aclnnStatus check_added(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 3}));
  const int64_t n = c.tensor(2).numel();
  if (n == 0 || c.tensor(0).numel() % n != 0) return refuse_width(c, 2, 0);
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 1, 0));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 3, 2));
  if (at_or_null(c, 4) && c.tensor(4).numel() != c.tensor(0).numel())
    return expect_numel(c, 4, width_of(c.tensor(0)));
  return ACLNN_SUCCESS;
}
// (x1, x2, gamma, beta, bias, eps, additionalOutput, y, mean, rstd, x).
aclnnStatus check_add_layer(Call& c) {
  ACL_RETURN_IF_FAILED(check_added(c));
  ACL_RETURN_IF_FAILED(expect_given(c, {7}));
  const int64_t rows = c.tensor(0).numel() / c.tensor(2).numel();
  for (int i : {8, 9}) ACL_RETURN_IF_FAILED(expect_numel(c, i, rows));
  if (c.flag(6)) ACL_RETURN_IF_FAILED(expect_given(c, {10}));
  return expect_same_shape(c, 7, 0);
}
aclError run_add_layer(Call& c) {
  const Floats x = added(c);
  const Normed n = normalise(x, c.tensor(2).numel(), floats(c.tensor(2)), floats(c.tensor(3)),
                             c.number(5), true);
  write(c.tensor(7), n.y), write(c.maybe(8), n.mean), write(c.maybe(9), n.rstd);
  if (c.flag(6)) write(c.maybe(10), x);
  return ACL_SUCCESS;
}
// (dy, x1, x2, rstd, mean, gamma, dsum, dx, dgamma, dbeta).
aclnnStatus check_add_layer_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 3, 4, 5, 7, 8, 9}));
  const int64_t n = c.tensor(5).numel();
  if (n == 0 || c.tensor(1).numel() % n != 0) return refuse_width(c, 5, 1);
  for (int i : {0, 2, 7}) ACL_RETURN_IF_FAILED(expect_same_shape(c, i, 1));
  for (int i : {3, 4}) ACL_RETURN_IF_FAILED(expect_numel(c, i, c.tensor(1).numel() / n));
  for (int i : {8, 9}) ACL_RETURN_IF_FAILED(expect_numel(c, i, n));
  return expect_numel(c, 6, c.tensor(1).numel());
}
aclError run_add_layer_grad(Call& c) {
  const Floats x = sum_of(floats(c.tensor(1)), floats(c.tensor(2)));
  const NormGrad d = differentiate(floats(c.tensor(0)), x, c.tensor(5).numel(), floats(c.tensor(5)),
                                   floats(c.tensor(4)), floats(c.tensor(3)));
  write(c.tensor(7), sum_of(d.dx, floats(at_or_null(c, 6))));
  write(c.tensor(8), d.dgamma), write(c.tensor(9), d.dbeta);
  return ACL_SUCCESS;
}
// (x1, x2, gamma, beta, bias, scales1, scales2, zeroPoints1, zeroPoints2, quantMode, eps,
// additionalOutput, divMode, y1, y2, x, [layernormRes,] outScales1, outScales2).
template <int S1>
aclnnStatus check_add_layer_quant(Call& c) {
  ACL_RETURN_IF_FAILED(check_added(c));
  ACL_RETURN_IF_FAILED(expect_given(c, {13}));
  const char* mode = c.text(9) ? c.text(9) : "";
  if (std::strcmp(mode, "static") != 0 && std::strcmp(mode, "dynamic") != 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "quantMode \"%s\" should be static or dynamic.", mode);
  }
  if (mode[0] == 's') ACL_RETURN_IF_FAILED(expect_given(c, {5}));
  return expect_same_shape(c, 13, 0);
}
template <int S1>
aclError run_add_layer_quant(Call& c) {
  const Floats x = added(c);
  const int64_t width = c.tensor(2).numel();
  const Normed n =
      normalise(x, width, floats(c.tensor(2)), floats(c.tensor(3)), c.number(10), true);
  const bool moving = c.text(9)[0] == 'd';
  for (int i : {0, 1}) {
    const Tensor* scale = at_or_null(c, 5 + i);
    if (i == 1 && !scale) continue;
    if (moving)
      write_dynamic(c.maybe(13 + i), at_or_null(c, S1 + i), n.y, width, floats(scale));
    else
      write_quantized(at_or_null(c, 13 + i),
                      affine(n.y, width, floats(scale), floats(at_or_null(c, 7 + i)), c.flag(12)));
  }
  if (c.flag(11)) write(at_or_null(c, 15), x);
  if (S1 == 17) write(at_or_null(c, 16), n.y);
  return ACL_SUCCESS;
}

// A tensor of x's leading dims, some of them one, and the last: element (row, column).
struct Conditional {
  Floats v;
  int64_t group = 1, width = 1;  // rows of x that share a row
  float at(int64_t row, int64_t column) const {
    return v.empty() ? 0 : v[row / group * width + column];
  }
};
bool conditions(const Tensor& t, const Tensor& x) {
  const int64_t h = width_of(x);
  return width_of(t) == h && (t.numel() == 0 || x.numel() % t.numel() == 0);
}
Conditional condition(const Tensor* t, const Tensor& x) {
  Conditional k = {floats(t)};
  if (!t) return k;
  k.width = width_of(x),
  k.group = std::max<int64_t>(1, rows_of(x) / std::max<int64_t>(1, rows_of(*t)));
  return k;
}
// (x, scale, shift, weight, bias, eps, out, [mean, rstd]): layer norm, times 1 + scale, plus shift;
// the quantised form has smoothScales, eps, quantMode, out, scale, offset.
template <bool Quant>
aclnnStatus check_ada(Call& c) {
  constexpr int kOut = Quant ? 8 : 6;
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, kOut}));
  for (int i : {1, 2}) {
    if (!conditions(c.tensor(i), c.tensor(0))) return refuse_fit(c, i, 0);
  }
  for (int i : {3, 4}) ACL_RETURN_IF_FAILED(expect_numel(c, i, width_of(c.tensor(0))));
  if (Quant) {
    ACL_RETURN_IF_FAILED(expect_numel(c, 5, width_of(c.tensor(0))));
    ACL_RETURN_IF_FAILED(expect_numel(c, 9, rows_of(c.tensor(0))));
    const char* mode = c.text(7) ? c.text(7) : "dynamic";
    if (std::strcmp(mode, "dynamic") != 0) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "quantMode \"%s\" should be dynamic.", mode);
    }
  }
  for (int i = 7; !Quant && i < c.count; ++i) {
    ACL_RETURN_IF_FAILED(expect_numel(c, i, rows_of(c.tensor(0))));
  }
  return expect_same_shape(c, kOut, 0);
}
template <bool Quant>
aclError run_ada(Call& c) {
  constexpr int kOut = Quant ? 8 : 6;
  const Tensor& x = c.tensor(0);
  const int64_t h = width_of(x);
  Normed n = normalise(floats(x), h, floats(at_or_null(c, 3)), floats(at_or_null(c, 4)),
                       c.number(Quant ? 6 : 5), true);
  const Conditional scale = condition(c.maybe(1), x), shift = condition(c.maybe(2), x);
  for (size_t i = 0; i < n.y.size(); ++i) {
    const int64_t r = static_cast<int64_t>(i) / h, j = static_cast<int64_t>(i) % h;
    n.y[i] = n.y[i] * (1 + scale.at(r, j)) + shift.at(r, j);
  }
  if (Quant) {
    write_dynamic(c.maybe(kOut), c.maybe(9), n.y, h, floats(at_or_null(c, 5)));
    return ACL_SUCCESS;
  }
  write(c.tensor(kOut), n.y);
  if (c.count > 7) write(at_or_null(c, 7), n.mean), write(at_or_null(c, 8), n.rstd);
  return ACL_SUCCESS;
}
// Sums over the rows that share a row of a conditional tensor.
Floats shared_sums(const Floats& v, const Tensor& out, const Tensor& x) {
  const Conditional k = condition(&out, x);
  Doubles sums(static_cast<size_t>(out.numel()));
  for (size_t i = 0; i < v.size(); ++i) {
    const int64_t r = static_cast<int64_t>(i) / k.width, j = static_cast<int64_t>(i) % k.width;
    sums[r / k.group * k.width + j] += v[i];
  }
  return Floats(sums.begin(), sums.end());
}
// (gradOut, input, normalizedShape, rstd, mean, scale, shift, weight, bias, gradInput, gradScale,
// gradShift, gradWeight, gradBias).
aclnnStatus check_ada_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 3, 4, 5, 6, 9, 10, 11}));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 0, 1));
  for (int i : {3, 4}) ACL_RETURN_IF_FAILED(expect_numel(c, i, rows_of(c.tensor(1))));
  for (int i : {5, 10, 11}) {
    if (!conditions(c.tensor(i), c.tensor(1))) return refuse_fit(c, i, 1);
  }
  for (int i : {7, 8, 12, 13})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, width_of(c.tensor(1))));
  return expect_same_shape(c, 9, 1);
}
aclError run_ada_grad(Call& c) {
  const Tensor& t = c.tensor(1);
  const int64_t h = width_of(t);
  const Floats dy = floats(c.tensor(0)), x = floats(t), rstd = floats(c.tensor(3)),
               mean = floats(c.tensor(4)), weight = floats(at_or_null(c, 7)),
               bias = floats(at_or_null(c, 8));
  const Conditional scale = condition(c.maybe(5), t);
  Floats up(dy.size()), by_scale(dy.size());
  for (size_t i = 0; i < dy.size(); ++i) {
    const int64_t r = static_cast<int64_t>(i) / h, j = static_cast<int64_t>(i) % h;
    up[i] = dy[i] * (1 + scale.at(r, j));
    by_scale[i] = dy[i] * ((x[i] - mean[r]) * rstd[r] * pick(weight, j, 1) + pick(bias, j, 0));
  }
  const NormGrad d = differentiate(up, x, h, weight, mean, rstd);
  write(c.tensor(9), d.dx);
  write(c.tensor(10), shared_sums(by_scale, c.tensor(10), t)),
      write(c.tensor(11), shared_sums(dy, c.tensor(11), t));
  write(at_or_null(c, 12), d.dgamma), write(at_or_null(c, 13), d.dbeta);
  return ACL_SUCCESS;
}
// (self, scale, shift, out): self (1 + scale) + shift.
aclnnStatus check_modulate(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 3}));
  for (int i : {1, 2}) {
    if (at_or_null(c, i) && !conditions(c.tensor(i), c.tensor(0)))
      return refuse_fit(c, i, 0);
  }
  return expect_same_shape(c, 3, 0);
}
aclError run_modulate(Call& c) {
  Floats x = floats(c.tensor(0));
  const Conditional scale = condition(at_or_null(c, 1), c.tensor(0)),
                    shift = condition(at_or_null(c, 2), c.tensor(0));
  const int64_t h = width_of(c.tensor(0));
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t r = static_cast<int64_t>(i) / h, j = static_cast<int64_t>(i) % h;
    x[i] = x[i] * (1 + scale.at(r, j)) + shift.at(r, j);
  }
  write(c.tensor(3), x);
  return ACL_SUCCESS;
}
// (grad, input, scale, shift, gradInput, gradScale, gradShift).
aclnnStatus check_modulate_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 4}));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 0, 1));
  for (int i : {2, 5, 6}) {
    if (at_or_null(c, i) && !conditions(c.tensor(i), c.tensor(1)))
      return refuse_fit(c, i, 1);
  }
  return expect_same_shape(c, 4, 1);
}
aclError run_modulate_grad(Call& c) {
  const Tensor& t = c.tensor(1);
  const Floats g = floats(c.tensor(0)), x = floats(t);
  const Conditional scale = condition(at_or_null(c, 2), t);
  Floats dx(g.size()), by_scale(g.size());
  for (size_t i = 0; i < g.size(); ++i) {
    const int64_t h = width_of(t), r = static_cast<int64_t>(i) / h, j = static_cast<int64_t>(i) % h;
    dx[i] = g[i] * (1 + scale.at(r, j)), by_scale[i] = g[i] * x[i];
  }
  write(c.tensor(4), dx);
  if (at_or_null(c, 5)) write(c.tensor(5), shared_sums(by_scale, c.tensor(5), t));
  if (at_or_null(c, 6)) write(c.tensor(6), shared_sums(g, c.tensor(6), t));
  return ACL_SUCCESS;
}

// (x, gamma, beta, groups, dataFormat, eps, activateSwish, swishScale, y, mean, rstd).
int64_t group_width(const Call& c, int x, int groups) {
  const Tensor& t = c.tensor(x);
  const int64_t n = t.rank > 1 ? t.dims[0] * c.integer(groups) : 0;
  return n ? t.numel() / n : 0;
}
aclnnStatus expect_channels(const Call& c, int x, int groups, std::initializer_list<int> params) {
  const Tensor& t = c.tensor(x);
  if (t.rank < 2 || c.integer(groups) < 1 || t.dims[1] % c.integer(groups) != 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "The channels of %s %s do not divide into %lld groups.",
                  c.name(x), shape_text(t), static_cast<long long>(c.integer(groups)));
  }
  for (int i : params) ACL_RETURN_IF_FAILED(expect_numel(c, i, t.dims[1]));
  return ACLNN_SUCCESS;
}
aclnnStatus check_swish(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 8, 9, 10}));
  ACL_RETURN_IF_FAILED(expect_channels(c, 0, 3, {1, 2}));
  for (int i : {9, 10})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, c.tensor(0).dims[0] * c.integer(3)));
  return expect_same_shape(c, 8, 0);
}
// Channel of each element of [N, C, ...].
struct Channels {
  int64_t count, inner;
  int64_t of(size_t i) const { return static_cast<int64_t>(i) / inner % count; }
};
Channels channels_of(const Tensor& t) {
  Channels k = {t.dims[1], 1};
  for (int i = 2; i < t.rank; ++i) k.inner *= t.dims[i];
  return k;
}
aclError run_swish(Call& c) {
  const Tensor& t = c.tensor(0);
  Normed n = normalise(floats(t), group_width(c, 0, 3), {}, {}, c.number(5), true);
  const Floats gamma = floats(at_or_null(c, 1)), beta = floats(at_or_null(c, 2));
  const Channels k = channels_of(t);
  const auto factor = static_cast<float>(c.number(7));
  for (size_t i = 0; i < n.y.size(); ++i) {
    const float v = n.y[i] * pick(gamma, k.of(i), 1) + pick(beta, k.of(i), 0);
    n.y[i] = c.flag(6) ? v / (1 + std::exp(-factor * v)) : v;
  }
  write(c.tensor(8), n.y), write(c.tensor(9), n.mean), write(c.tensor(10), n.rstd);
  return ACL_SUCCESS;
}
// (dy, mean, rstd, x, gamma, beta, groups, dataFormat, swishScale, dgamma?, dbeta?, dx, dgamma,
// dbeta).
aclnnStatus check_swish_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 3, 4, 5, 11}));
  ACL_RETURN_IF_FAILED(expect_channels(c, 3, 6, {4, 5}));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 0, 3));
  for (int i : {1, 2}) ACL_RETURN_IF_FAILED(expect_numel(c, i, c.tensor(3).dims[0] * c.integer(6)));
  return expect_same_shape(c, 11, 3);
}
aclError run_swish_grad(Call& c) {
  const Tensor& t = c.tensor(3);
  const Floats dy = floats(c.tensor(0)), mean = floats(c.tensor(1)), rstd = floats(c.tensor(2)),
               x = floats(t), gamma = floats(c.tensor(4)), beta = floats(c.tensor(5));
  const Channels k = channels_of(t);
  const int64_t width = group_width(c, 3, 6);
  const double factor = c.number(8);
  Floats up(dy.size());
  Doubles dgamma(gamma.size()), dbeta(gamma.size());
  for (size_t i = 0; i < dy.size(); ++i) {
    const size_t g = i / static_cast<size_t>(width);
    const int64_t ch = k.of(i);
    const double hat = (static_cast<double>(x[i]) - mean[g]) * rstd[g],
                 v = hat * gamma[ch] + beta[ch];
    const double s = 1 / (1 + std::exp(-factor * v)), dv = dy[i] * (s + factor * v * s * (1 - s));
    dgamma[ch] += dv * hat, dbeta[ch] += dv;
    up[i] = static_cast<float>(dv * gamma[ch]);
  }
  write(c.tensor(11), differentiate(up, x, width, {}, mean, rstd).dx);
  if (c.flag(9)) write(at_or_null(c, 12), dgamma);
  if (c.flag(10)) write(at_or_null(c, 13), dbeta);
  return ACL_SUCCESS;
}

// rstd is asked for whether it is written or not.
aclnnStatus check_rms_quant_v3(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {9}));
  return check_rms<kQuantV3>(c);
}

}  // namespace
}  // namespace aclsim

#define ACLNN_FUSED(op, ...) ACLNN_OP_FLAGS(op, __VA_ARGS__, kOwnNulls | kOwnLimits)
ACLNN_FUSED(aclnnAddRmsNormQuant, check_rms<kAddQuant>, run_rms<kAddQuant>)
ACLNN_FUSED(aclnnAddRmsNormQuantV2, check_rms<kAddQuantV2>, run_rms<kAddQuantV2>)
ACLNN_FUSED(aclnnAddRmsNormDynamicQuant, check_rms<kAddDynamic>, run_rms<kAddDynamic>)
ACLNN_FUSED(aclnnAddRmsNormDynamicQuantV2, check_rms<kAddDynamicV2>, run_rms<kAddDynamicV2>)
ACLNN_FUSED(aclnnRmsNormQuant, check_rms<kQuant>, run_rms<kQuant>)
ACLNN_FUSED(aclnnRmsNormQuantV3, check_rms_quant_v3, run_rms<kQuantV3>)
ACLNN_FUSED(aclnnRmsNormDynamicQuant, check_rms<kDynamic>, run_rms<kDynamic>)
ACLNN_FUSED(aclnnRmsNormGradQuant, check_rms_grad, run_rms_grad)
ACLNN_FUSED(aclnnAddRmsNormCast, check_cast, run_cast)
ACLNN_FUSED(aclnnDeepNorm, check_deep, run_deep)
ACLNN_FUSED(aclnnDeepNormGrad, check_deep_grad, run_deep_grad)
ACLNN_FUSED(aclnnAddLayerNorm, check_add_layer, run_add_layer)
ACLNN_FUSED(aclnnAddLayerNormGrad, check_add_layer_grad, run_add_layer_grad)
ACLNN_FUSED(aclnnAddLayerNormQuant, check_add_layer_quant<16>, run_add_layer_quant<16>)
ACLNN_FUSED(aclnnAddLayerNormQuantV2, check_add_layer_quant<17>, run_add_layer_quant<17>)
ACLNN_FUSED(aclnnAdaLayerNorm, check_ada<false>, run_ada<false>)
ACLNN_FUSED(aclnnAdaLayerNormV2, check_ada<false>, run_ada<false>)
ACLNN_FUSED(aclnnAdaLayerNormQuant, check_ada<true>, run_ada<true>)
ACLNN_FUSED(aclnnAdaLayerNormBackward, check_ada_grad, run_ada_grad)
ACLNN_FUSED(aclnnModulate, check_modulate, run_modulate)
ACLNN_FUSED(aclnnModulateBackward, check_modulate_grad, run_modulate_grad)
ACLNN_FUSED(aclnnGroupNormSwish, check_swish, run_swish)
ACLNN_FUSED(aclnnGroupNormSwishGrad, check_swish_grad, run_swish_grad)
