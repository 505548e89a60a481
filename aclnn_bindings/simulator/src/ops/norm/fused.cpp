// Norms fused with what comes before and after: an addition, a scale and shift from elsewhere, a
// cast, static or dynamic quantisation. Formulas: the "npu_add_rms_norm_quant",
// "npu_add_rms_norm_dynamic_quant" and "npu_rms_norm_quant" pages of torch_npu; the operator
// documents of aclnnDeepNorm, aclnnAddLayerNorm, aclnnAdaLayerNorm and aclnnAdaLayerNormQuant.
#include "params/norm.h"
#include "loops/values.h"
#include "loops/versions.h"

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
#define AT(name) ACLSIM_AT(P, name)
template <typename P>
constexpr Rms kAt = {
    AT(x2), P::gamma, either(AT(beta), AT(betaOptional)),
    either(either(AT(scales1), AT(smoothScale1Optional)), either(AT(scale), AT(smoothScalesOptional))),
    either(AT(scales2Optional), AT(smoothScale2Optional)),
    either(AT(zeroPoints1Optional), AT(offset)), AT(zeroPoints2Optional), P::epsilon, AT(divMode),
    either(AT(y1Out), either(AT(y), AT(yOut))), AT(y2Out), AT(xOut), AT(rmsNormOut),
    either(AT(scale1Out), AT(scaleOut)), AT(scale2Out), AT(outputMask), AT(rstd),
    either(AT(scale1Out), AT(scaleOut)) != kNone};
#undef AT

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
  using P = params::AddRmsNormQuant;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x1, at.gamma, at.y1}));
  if (at.x2 != kNone) {
    ACL_RETURN_IF_FAILED(expect_given(c, {at.x2, at.x_out}));
    ACL_RETURN_IF_FAILED(expect_same_shape(c, at.x2, P::x1));
    ACL_RETURN_IF_FAILED(expect_same_shape(c, at.x_out, P::x1));
  }
  if (!at.dynamic) ACL_RETURN_IF_FAILED(expect_given(c, {at.scale1}));
  const int64_t n = c.tensor(at.gamma).numel();
  if (n == 0 || c.tensor(P::x1).numel() % n != 0) return refuse_width(c, at.gamma, P::x1);
  for (int arg : {at.scale1, at.scale2, at.zero1, at.zero2, at.beta}) {
    if (arg != kNone && at_or_null(c, arg) && c.tensor(arg).numel() != 1)
      ACL_RETURN_IF_FAILED(expect_numel(c, arg, n));
  }
  if (at.s1 != kNone) ACL_RETURN_IF_FAILED(expect_given(c, {at.s1}));
  if (second_asked(c, at)) ACL_RETURN_IF_FAILED(expect_given(c, {at.y2}));
  return first_asked(c, at) ? expect_quantized(c, at.y1, P::x1) : ACLNN_SUCCESS;
}
template <const Rms& at>
void run_rms(Call& c) {
  using P = params::RmsNormQuantV3;

  const Floats x =
      sum_of(floats(c.tensor(P::x)), at.x2 == kNone ? Floats() : floats(c.tensor(at.x2)));
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
  if (at.rstd != kNone && c.flag(P::outputRstd)) write(at_or_null(c, at.rstd), norm.rstd);
}
aclnnStatus check_cast(Call& c) {
  using P = params::AddRmsNormCast;

  ACL_RETURN_IF_FAILED(
      expect_given(c, {P::x1, P::x2, P::gamma, P::y1Out, P::y2Out, P::rstdOut, P::xOut}));
  const int64_t n = c.tensor(P::gamma).numel();
  if (n == 0 || c.tensor(P::x1).numel() % n != 0) return refuse_width(c, P::gamma, P::x1);
  for (int i : {P::x2, P::y1Out, P::y2Out, P::xOut})
    ACL_RETURN_IF_FAILED(expect_same_shape(c, i, P::x1));
  return expect_numel(c, P::rstdOut, c.tensor(P::x1).numel() / n);
}
void run_cast(Call& c) {
  using P = params::AddRmsNormCast;

  const Floats x = sum_of(floats(c.tensor(P::x1)), floats(c.tensor(P::x2)));
  const Normed n = normalise(x, c.tensor(P::gamma).numel(), floats(c.tensor(P::gamma)), {},
                             c.number(P::epsilon), false);
  write(c.tensor(P::y1Out), n.y), write(c.tensor(P::y2Out), n.y),
      write(c.tensor(P::rstdOut), n.rstd), write(c.tensor(P::xOut), x);
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
aclnnStatus check_rms_grad(Call& c) {
  using P = params::RmsNormGradQuant;

  ACL_RETURN_IF_FAILED(
      expect_given(c, {P::dy, P::x, P::rstd, P::gamma, P::scalesX, P::dxOut, P::dgammaOut}));
  const int64_t n = c.tensor(P::gamma).numel();
  if (n == 0 || c.tensor(P::x).numel() % n != 0) return refuse_width(c, P::gamma, P::x);
  ACL_RETURN_IF_FAILED(expect_numel(c, P::rstd, c.tensor(P::x).numel() / n));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::dy, P::x));
  return expect_same_shape(c, P::dxOut, P::x);
}
void run_rms_grad(Call& c) {
  using P = params::RmsNormGradQuant;

  const int64_t n = c.tensor(P::gamma).numel();
  const NormGrad d = differentiate(floats(c.tensor(P::dy)), floats(c.tensor(P::x)), n,
                                   floats(c.tensor(P::gamma)), {}, floats(c.tensor(P::rstd)));
  write_quantized(c.maybe(P::dxOut),
                  affine(d.dx, n, floats(c.tensor(P::scalesX)),
                         floats(at_or_null(c, P::offsetXOptional)), c.flag(P::divMode)));
  write(c.tensor(P::dgammaOut), d.dgamma);
}

// (x, gx, beta, gamma, alpha, eps, mean, rstd, y): layer norm of alpha x + gx.
aclnnStatus check_deep(Call& c) {
  using P = params::DeepNorm;

  ACL_RETURN_IF_FAILED(
      expect_given(c, {P::x, P::gx, P::beta, P::gamma, P::meanOut, P::rstdOut, P::yOut}));
  const int64_t n = c.tensor(P::gamma).numel();
  if (n == 0 || c.tensor(P::x).numel() % n != 0) return refuse_width(c, P::gamma, P::x);
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::beta, P::gamma));
  for (int i : {P::gx, P::yOut}) ACL_RETURN_IF_FAILED(expect_same_shape(c, i, P::x));
  for (int i : {P::meanOut, P::rstdOut})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, c.tensor(P::x).numel() / n));
  return ACLNN_SUCCESS;
}
void run_deep(Call& c) {
  using P = params::DeepNorm;

  const Floats x = sum_of(floats(c.tensor(P::x)), floats(c.tensor(P::gx)), c.number(P::alpha));
  const Normed n = normalise(x, c.tensor(P::gamma).numel(), floats(c.tensor(P::gamma)),
                             floats(c.tensor(P::beta)), c.number(P::epsilon), true);
  write(c.tensor(P::meanOut), n.mean), write(c.tensor(P::rstdOut), n.rstd),
      write(c.tensor(P::yOut), n.y);
}
aclnnStatus check_deep_grad(Call& c) {
  using P = params::DeepNormGrad;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::dy, P::x, P::gx, P::gamma, P::mean, P::rstd, P::dxOut,
                                        P::dgxOut, P::dbetaOut, P::dgammaOut}));
  const int64_t n = c.tensor(P::gamma).numel();
  if (n == 0 || c.tensor(P::x).numel() % n != 0) return refuse_width(c, P::gamma, P::x);
  for (int i : {P::dy, P::gx, P::dxOut, P::dgxOut})
    ACL_RETURN_IF_FAILED(expect_same_shape(c, i, P::x));
  for (int i : {P::mean, P::rstd})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, c.tensor(P::x).numel() / n));
  for (int i : {P::dbetaOut, P::dgammaOut}) ACL_RETURN_IF_FAILED(expect_numel(c, i, n));
  return ACLNN_SUCCESS;
}
void run_deep_grad(Call& c) {
  using P = params::DeepNormGrad;

  const Floats x = sum_of(floats(c.tensor(P::x)), floats(c.tensor(P::gx)), c.number(P::alpha));
  const NormGrad d = differentiate(floats(c.tensor(P::dy)), x, c.tensor(P::gamma).numel(),
                                   floats(c.tensor(P::gamma)), floats(c.tensor(P::mean)),
                                   floats(c.tensor(P::rstd)));
  write(c.tensor(P::dxOut), sum_of(d.dx, {}, c.number(P::alpha))), write(c.tensor(P::dgxOut), d.dx);
  write(c.tensor(P::dbetaOut), d.dbeta), write(c.tensor(P::dgammaOut), d.dgamma);
}

// x1 + x2 + bias, where the bias has x1's shape or that of its last dim.
Floats added(const Call& c) {
  using P = params::AddLayerNorm;

  Floats x = sum_of(floats(c.tensor(P::x1)), floats(c.tensor(P::x2)));
  const Floats bias = floats(at_or_null(c, P::biasOptional));
  for (size_t i = 0; i < x.size() && !bias.empty(); ++i) x[i] += bias[i % bias.size()];
  return x;
}
aclnnStatus check_added(Call& c) {
  using P = params::AddLayerNorm;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x1, P::x2, P::gamma, P::beta}));
  const int64_t n = c.tensor(P::gamma).numel();
  if (n == 0 || c.tensor(P::x1).numel() % n != 0) return refuse_width(c, P::gamma, P::x1);
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::x2, P::x1));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::beta, P::gamma));
  if (at_or_null(c, P::biasOptional) &&
      c.tensor(P::biasOptional).numel() != c.tensor(P::x1).numel())
    return expect_numel(c, P::biasOptional, width_of(c.tensor(P::x1)));
  return ACLNN_SUCCESS;
}
aclnnStatus check_add_layer(Call& c) {
  using P = params::AddLayerNorm;

  ACL_RETURN_IF_FAILED(check_added(c));
  ACL_RETURN_IF_FAILED(expect_given(c, {P::yOut}));
  const int64_t rows = c.tensor(P::x1).numel() / c.tensor(P::gamma).numel();
  for (int i : {P::meanOut, P::rstdOut}) ACL_RETURN_IF_FAILED(expect_numel(c, i, rows));
  if (c.flag(P::additionalOutput)) ACL_RETURN_IF_FAILED(expect_given(c, {P::xOut}));
  return expect_same_shape(c, P::yOut, P::x1);
}
void run_add_layer(Call& c) {
  using P = params::AddLayerNorm;

  const Floats x = added(c);
  const Normed n = normalise(x, c.tensor(P::gamma).numel(), floats(c.tensor(P::gamma)),
                             floats(c.tensor(P::beta)), c.number(P::epsilon), true);
  write(c.tensor(P::yOut), n.y), write(c.maybe(P::meanOut), n.mean),
      write(c.maybe(P::rstdOut), n.rstd);
  if (c.flag(P::additionalOutput)) write(c.maybe(P::xOut), x);
}
aclnnStatus check_add_layer_grad(Call& c) {
  using P = params::AddLayerNormGrad;

  ACL_RETURN_IF_FAILED(expect_given(
      c, {P::dy, P::x1, P::x2, P::rstd, P::mean, P::gamma, P::dxOut, P::dgammaOut, P::dbetaOut}));
  const int64_t n = c.tensor(P::gamma).numel();
  if (n == 0 || c.tensor(P::x1).numel() % n != 0) return refuse_width(c, P::gamma, P::x1);
  for (int i : {P::dy, P::x2, P::dxOut}) ACL_RETURN_IF_FAILED(expect_same_shape(c, i, P::x1));
  for (int i : {P::rstd, P::mean})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, c.tensor(P::x1).numel() / n));
  for (int i : {P::dgammaOut, P::dbetaOut}) ACL_RETURN_IF_FAILED(expect_numel(c, i, n));
  return expect_numel(c, P::dsumOptional, c.tensor(P::x1).numel());
}
void run_add_layer_grad(Call& c) {
  using P = params::AddLayerNormGrad;

  const Floats x = sum_of(floats(c.tensor(P::x1)), floats(c.tensor(P::x2)));
  const NormGrad d = differentiate(floats(c.tensor(P::dy)), x, c.tensor(P::gamma).numel(),
                                   floats(c.tensor(P::gamma)), floats(c.tensor(P::mean)),
                                   floats(c.tensor(P::rstd)));
  write(c.tensor(P::dxOut), sum_of(d.dx, floats(at_or_null(c, P::dsumOptional))));
  write(c.tensor(P::dgammaOut), d.dgamma), write(c.tensor(P::dbetaOut), d.dbeta);
}
template <int S1>
aclnnStatus check_add_layer_quant(Call& c) {
  using P = params::AddLayerNormQuant;

  ACL_RETURN_IF_FAILED(check_added(c));
  ACL_RETURN_IF_FAILED(expect_given(c, {P::y1Out}));
  const char* mode = c.text(P::quantMode) ? c.text(P::quantMode) : "";
  if (std::strcmp(mode, "static") != 0 && std::strcmp(mode, "dynamic") != 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "quantMode \"%s\" should be static or dynamic.", mode);
  }
  if (mode[0] == 's') ACL_RETURN_IF_FAILED(expect_given(c, {P::scales1Optional}));
  return expect_same_shape(c, P::y1Out, P::x1);
}
template <int S1>
void run_add_layer_quant(Call& c) {
  using P = params::AddLayerNormQuant;

  const Floats x = added(c);
  const int64_t width = c.tensor(P::gamma).numel();
  const Normed n = normalise(x, width, floats(c.tensor(P::gamma)), floats(c.tensor(P::beta)),
                             c.number(P::epsilon), true);
  const bool moving = c.text(P::quantMode)[0] == 'd';
  for (int i : {0, 1}) {
    const Tensor* scale = at_or_null(c, P::scales1Optional + i);
    if (i == 1 && !scale) continue;
    if (moving)
      write_dynamic(c.maybe(P::y1Out + i), at_or_null(c, S1 + i), n.y, width, floats(scale));
    else
      write_quantized(
          at_or_null(c, P::y1Out + i),
          affine(n.y, width, floats(scale), floats(at_or_null(c, P::zeroPoints1Optional + i)),
                 c.flag(P::divMode)));
  }
  if (c.flag(P::additionalOutput)) write(at_or_null(c, P::xOut), x);
  if (S1 == 17) write(at_or_null(c, P::outScales1Out), n.y);
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
  using P = params::AdaLayerNormQuant;

  constexpr int kOut = Quant ? P::out : params::AdaLayerNorm::out;
  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::scale, P::shift, kOut}));
  for (int i : {P::scale, P::shift}) {
    if (!conditions(c.tensor(i), c.tensor(P::x))) return refuse_fit(c, i, P::x);
  }
  for (int i : {P::weightOptional, P::biasOptional})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, width_of(c.tensor(P::x))));
  if (Quant) {
    ACL_RETURN_IF_FAILED(expect_numel(c, P::smoothScalesOptional, width_of(c.tensor(P::x))));
    ACL_RETURN_IF_FAILED(expect_numel(c, P::quantScale, rows_of(c.tensor(P::x))));
    const char* mode = c.text(P::quantMode) ? c.text(P::quantMode) : "dynamic";
    if (std::strcmp(mode, "dynamic") != 0) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "quantMode \"%s\" should be dynamic.", mode);
    }
  }
  for (int i = params::AdaLayerNormV2::meanOutOptional; !Quant && i < c.count; ++i) {
    ACL_RETURN_IF_FAILED(expect_numel(c, i, rows_of(c.tensor(P::x))));
  }
  return expect_same_shape(c, kOut, P::x);
}
template <bool Quant>
void run_ada(Call& c) {
  using P = params::AdaLayerNormV2;

  constexpr int kOut = Quant ? P::rstdOutOptional : P::out;
  const Tensor& x = c.tensor(P::x);
  const int64_t h = width_of(x);
  Normed n = normalise(floats(x), h, floats(at_or_null(c, P::weightOptional)),
                       floats(at_or_null(c, P::biasOptional)),
                       c.number(Quant ? params::AdaLayerNormQuant::epsilon : P::epsilon), true);
  const Conditional scale = condition(c.maybe(P::scale), x),
                    shift = condition(c.maybe(P::shift), x);
  for (size_t i = 0; i < n.y.size(); ++i) {
    const int64_t r = static_cast<int64_t>(i) / h, j = static_cast<int64_t>(i) % h;
    n.y[i] = n.y[i] * (1 + scale.at(r, j)) + shift.at(r, j);
  }
  if (Quant) {
    write_dynamic(c.maybe(kOut), c.maybe(params::AdaLayerNormQuant::quantScale), n.y, h,
                  floats(at_or_null(c, params::AdaLayerNormQuant::smoothScalesOptional)));
    return;
  }
  write(c.tensor(kOut), n.y);
  if (c.count > 7)
    write(at_or_null(c, P::meanOutOptional), n.mean),
        write(at_or_null(c, P::rstdOutOptional), n.rstd);
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
aclnnStatus check_ada_grad(Call& c) {
  using P = params::AdaLayerNormBackward;

  ACL_RETURN_IF_FAILED(
      expect_given(c, {P::gradOut, P::input, P::normalizedShape, P::rstd, P::mean, P::scale,
                       P::shift, P::gradInputOut, P::gradScaleOut, P::gradShiftOut}));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::gradOut, P::input));
  for (int i : {P::rstd, P::mean})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, rows_of(c.tensor(P::input))));
  for (int i : {P::scale, P::gradScaleOut, P::gradShiftOut}) {
    if (!conditions(c.tensor(i), c.tensor(P::input))) return refuse_fit(c, i, P::input);
  }
  for (int i : {P::weightOptional, P::biasOptional, P::gradWeightOut, P::gradBiasOut})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, width_of(c.tensor(P::input))));
  return expect_same_shape(c, P::gradInputOut, P::input);
}
void run_ada_grad(Call& c) {
  using P = params::AdaLayerNormBackward;

  const Tensor& t = c.tensor(P::input);
  const int64_t h = width_of(t);
  const Floats dy = floats(c.tensor(P::gradOut)), x = floats(t), rstd = floats(c.tensor(P::rstd)),
               mean = floats(c.tensor(P::mean)), weight = floats(at_or_null(c, P::weightOptional)),
               bias = floats(at_or_null(c, P::biasOptional));
  const Conditional scale = condition(c.maybe(P::scale), t);
  Floats up(dy.size()), by_scale(dy.size());
  for (size_t i = 0; i < dy.size(); ++i) {
    const int64_t r = static_cast<int64_t>(i) / h, j = static_cast<int64_t>(i) % h;
    up[i] = dy[i] * (1 + scale.at(r, j));
    by_scale[i] = dy[i] * ((x[i] - mean[r]) * rstd[r] * pick(weight, j, 1) + pick(bias, j, 0));
  }
  const NormGrad d = differentiate(up, x, h, weight, mean, rstd);
  write(c.tensor(P::gradInputOut), d.dx);
  write(c.tensor(P::gradScaleOut), shared_sums(by_scale, c.tensor(P::gradScaleOut), t)),
      write(c.tensor(P::gradShiftOut), shared_sums(dy, c.tensor(P::gradShiftOut), t));
  write(at_or_null(c, P::gradWeightOut), d.dgamma), write(at_or_null(c, P::gradBiasOut), d.dbeta);
}
// (self, scale, shift, out): self (1 + scale) + shift.
aclnnStatus check_modulate(Call& c) {
  using P = params::Modulate;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::self, P::out}));
  for (int i : {P::scaleOptional, P::shiftOptional}) {
    if (at_or_null(c, i) && !conditions(c.tensor(i), c.tensor(P::self)))
      return refuse_fit(c, i, P::self);
  }
  return expect_same_shape(c, P::out, P::self);
}
void run_modulate(Call& c) {
  using P = params::Modulate;

  Floats x = floats(c.tensor(P::self));
  const Conditional scale = condition(at_or_null(c, P::scaleOptional), c.tensor(P::self)),
                    shift = condition(at_or_null(c, P::shiftOptional), c.tensor(P::self));
  const int64_t h = width_of(c.tensor(P::self));
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t r = static_cast<int64_t>(i) / h, j = static_cast<int64_t>(i) % h;
    x[i] = x[i] * (1 + scale.at(r, j)) + shift.at(r, j);
  }
  write(c.tensor(P::out), x);
}
aclnnStatus check_modulate_grad(Call& c) {
  using P = params::ModulateBackward;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::grad_output, P::input, P::grad_input}));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::grad_output, P::input));
  for (int i : {P::scale, P::grad_scale, P::grad_shift}) {
    if (at_or_null(c, i) && !conditions(c.tensor(i), c.tensor(P::input)))
      return refuse_fit(c, i, P::input);
  }
  return expect_same_shape(c, P::grad_input, P::input);
}
void run_modulate_grad(Call& c) {
  using P = params::ModulateBackward;

  const Tensor& t = c.tensor(P::input);
  const Floats g = floats(c.tensor(P::grad_output)), x = floats(t);
  const Conditional scale = condition(at_or_null(c, P::scale), t);
  Floats dx(g.size()), by_scale(g.size());
  for (size_t i = 0; i < g.size(); ++i) {
    const int64_t h = width_of(t), r = static_cast<int64_t>(i) / h, j = static_cast<int64_t>(i) % h;
    dx[i] = g[i] * (1 + scale.at(r, j)), by_scale[i] = g[i] * x[i];
  }
  write(c.tensor(P::grad_input), dx);
  if (at_or_null(c, P::grad_scale))
    write(c.tensor(P::grad_scale), shared_sums(by_scale, c.tensor(P::grad_scale), t));
  if (at_or_null(c, P::grad_shift))
    write(c.tensor(P::grad_shift), shared_sums(g, c.tensor(P::grad_shift), t));
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
  using P = params::GroupNormSwish;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::yOut, P::meanOut, P::rstdOut}));
  ACL_RETURN_IF_FAILED(expect_channels(c, P::x, P::numGroups, {P::gamma, P::beta}));
  for (int i : {P::meanOut, P::rstdOut})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, c.tensor(P::x).dims[0] * c.integer(P::numGroups)));
  return expect_same_shape(c, P::yOut, P::x);
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
void run_swish(Call& c) {
  using P = params::GroupNormSwish;

  const Tensor& t = c.tensor(P::x);
  Normed n =
      normalise(floats(t), group_width(c, P::x, P::numGroups), {}, {}, c.number(P::eps), true);
  const Floats gamma = floats(at_or_null(c, P::gamma)), beta = floats(at_or_null(c, P::beta));
  const Channels k = channels_of(t);
  const auto factor = static_cast<float>(c.number(P::swishScale));
  for (size_t i = 0; i < n.y.size(); ++i) {
    const float v = n.y[i] * pick(gamma, k.of(i), 1) + pick(beta, k.of(i), 0);
    n.y[i] = c.flag(P::activateSwish) ? v / (1 + std::exp(-factor * v)) : v;
  }
  write(c.tensor(P::yOut), n.y), write(c.tensor(P::meanOut), n.mean),
      write(c.tensor(P::rstdOut), n.rstd);
}
aclnnStatus check_swish_grad(Call& c) {
  using P = params::GroupNormSwishGrad;

  ACL_RETURN_IF_FAILED(
      expect_given(c, {P::dy, P::mean, P::rstd, P::x, P::gamma, P::beta, P::dxOut}));
  ACL_RETURN_IF_FAILED(expect_channels(c, P::x, P::numGroups, {P::gamma, P::beta}));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::dy, P::x));
  for (int i : {P::mean, P::rstd})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, c.tensor(P::x).dims[0] * c.integer(P::numGroups)));
  return expect_same_shape(c, P::dxOut, P::x);
}
void run_swish_grad(Call& c) {
  using P = params::GroupNormSwishGrad;

  const Tensor& t = c.tensor(P::x);
  const Floats dy = floats(c.tensor(P::dy)), mean = floats(c.tensor(P::mean)),
               rstd = floats(c.tensor(P::rstd)), x = floats(t), gamma = floats(c.tensor(P::gamma)),
               beta = floats(c.tensor(P::beta));
  const Channels k = channels_of(t);
  const int64_t width = group_width(c, P::x, P::numGroups);
  const double factor = c.number(P::swishScale);
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
  write(c.tensor(P::dxOut), differentiate(up, x, width, {}, mean, rstd).dx);
  if (c.flag(P::dgammaIsRequire)) write(at_or_null(c, P::dgammaOut), dgamma);
  if (c.flag(P::dbetaIsRequire)) write(at_or_null(c, P::dbetaOut), dbeta);
}

// rstd is asked for whether it is written or not.
aclnnStatus check_rms_quant_v3(Call& c) {
  using P = params::RmsNormQuantV3;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::rstd}));
  return check_rms<kAt<params::RmsNormQuantV3>>(c);
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnAddRmsNormQuant, check_rms<kAt<params::AddRmsNormQuant>>, run_rms<kAt<params::AddRmsNormQuant>>)
ACLNN_OWN(aclnnAddRmsNormQuantV2, check_rms<kAt<params::AddRmsNormQuantV2>>, run_rms<kAt<params::AddRmsNormQuantV2>>)
ACLNN_OWN(aclnnAddRmsNormDynamicQuant, check_rms<kAt<params::AddRmsNormDynamicQuant>>, run_rms<kAt<params::AddRmsNormDynamicQuant>>)
ACLNN_OWN(aclnnAddRmsNormDynamicQuantV2, check_rms<kAt<params::AddRmsNormDynamicQuantV2>>, run_rms<kAt<params::AddRmsNormDynamicQuantV2>>)
ACLNN_OWN(aclnnRmsNormQuant, check_rms<kAt<params::RmsNormQuant>>, run_rms<kAt<params::RmsNormQuant>>)
ACLNN_OWN(aclnnRmsNormQuantV3, check_rms_quant_v3, run_rms<kAt<params::RmsNormQuantV3>>)
ACLNN_OWN(aclnnRmsNormDynamicQuant, check_rms<kAt<params::RmsNormDynamicQuant>>, run_rms<kAt<params::RmsNormDynamicQuant>>)
ACLNN_OWN(aclnnRmsNormGradQuant, check_rms_grad, run_rms_grad)
ACLNN_OWN(aclnnAddRmsNormCast, check_cast, run_cast)
ACLNN_OWN(aclnnDeepNorm, check_deep, run_deep)
ACLNN_OWN(aclnnDeepNormGrad, check_deep_grad, run_deep_grad)
ACLNN_OWN(aclnnAddLayerNorm, check_add_layer, run_add_layer)
ACLNN_OWN(aclnnAddLayerNormGrad, check_add_layer_grad, run_add_layer_grad)
ACLNN_OWN(aclnnAddLayerNormQuant, check_add_layer_quant<16>,
            run_add_layer_quant<params::AddLayerNormQuant::outScales1Out>)
ACLNN_OWN(aclnnAddLayerNormQuantV2, check_add_layer_quant<17>,
            run_add_layer_quant<params::AddLayerNormQuantV2::outScales1Out>)
ACLNN_OWN(aclnnAdaLayerNorm, check_ada<false>, run_ada<false>)
ACLNN_OWN(aclnnAdaLayerNormV2, check_ada<false>, run_ada<false>)
ACLNN_OWN(aclnnAdaLayerNormQuant, check_ada<true>, run_ada<true>)
ACLNN_OWN(aclnnAdaLayerNormBackward, check_ada_grad, run_ada_grad)
ACLNN_OWN(aclnnModulate, check_modulate, run_modulate)
ACLNN_OWN(aclnnModulateBackward, check_modulate_grad, run_modulate_grad)
ACLNN_OWN(aclnnGroupNormSwish, check_swish, run_swish)
ACLNN_OWN(aclnnGroupNormSwishGrad, check_swish_grad, run_swish_grad)
