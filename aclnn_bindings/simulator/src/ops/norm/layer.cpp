// Norms over trailing dims: layer norm and RMS norm, their gradients and fused forms.
#include "params/norm.h"
#include "loops/given.h"
#include "loops/moments.h"
#include "loops/rows.h"
#include "loops/stage.h"

namespace aclsim {
namespace {

template <class C>
ACL_VECTOR double sum_of(const C* x, int64_t n) {
  return lane_sum<C>(n, [=](int64_t i) ACL_LAMBDA { return x[i]; });
}
template <class C>
ACL_VECTOR double squares_of(const C* x, C mean, int64_t n) {
  return lane_sum<C>(n, [=](int64_t i) ACL_LAMBDA { return (x[i] - mean) * (x[i] - mean); });
}
template <class C>
ACL_VECTOR double product_of(const C* a, const C* b, int64_t n) {
  return lane_sum<C>(n, [=](int64_t i) ACL_LAMBDA { return a[i] * b[i]; });
}
template <class C>
ACL_VECTOR void scaled_normal(C* out, const C* x, const C* w, C mean, C rstd, int64_t n) {
  if (w) {
    ACL_IVDEP
    for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * rstd * w[i];
  } else {
    ACL_IVDEP
    for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * rstd;
  }
}
// As torch's kernel has it (aten/src/ATen/native/cpu/layer_norm_kernel.cpp).
template <class C>
ACL_EXACT void affine_exact(C* out, const C* x, const C* w, const C* b, C mean, C rstd, int64_t n) {
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    out[i] = fused((x[i] - mean) * rstd, w ? w[i] : C(1), b ? b[i] : C(0));
  }
}
// The gradient by x: a g w + b x + c.
template <class C>
ACL_EXACT void back_exact(C* out, const C* g, const C* x, const C* w, C mean, C rstd, int64_t n) {
  constexpr int W = 32 / sizeof(C);
  C slope, shift;
  if (w) {
    slope = sum_in_lanes<W, C>(
        n, [=](int64_t i) ACL_LAMBDA { return (g[i] * x[i]) * w[i]; },
        [=](C sum, int64_t i) ACL_LAMBDA { return fused(g[i] * x[i], w[i], sum); });
    shift = row_product_of<W>(g, w, n);
  } else {
    slope = row_product_of<W>(g, x, n);
    shift = row_sum_of<W>(g, n);
  }
  const C share = C(1) / static_cast<C>(n);
  const C b = (((fused(shift, mean, -slope) * rstd) * rstd) * rstd) * share;
  const C c = fused(-b, mean, -((shift * rstd) * share));
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    out[i] = fused(b, x[i], w ? (rstd * g[i]) * w[i] : rstd * g[i]) + c;
  }
}
template <class C>
ACL_EXACT void add_products_exact(C* to, const C* g, const C* x, C mean, C rstd, int64_t n) {
  const C shift = -rstd * mean;
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) to[i] = fused(g[i], fused(rstd, x[i], shift), to[i]);
}
template <class C>
ACL_VECTOR void multiply(C* out, const C* a, const C* b, int64_t n) {
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] * b[i];
}
// out = rstd (g - shift - normal slope).
template <class C>
ACL_VECTOR void back_row(C* out, const C* g, const C* normal, C rstd, C shift, C slope, int64_t n) {
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) out[i] = rstd * (g[i] - shift - normal[i] * slope);
}
template <class C>
ACL_VECTOR void add_products(C* to, const C* g, const C* x, C mean, C rstd, int64_t n) {
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) to[i] += g[i] * ((x[i] - mean) * rstd);
}
template <class C>
ACL_VECTOR void add_to(C* to, const C* g, int64_t n) {
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) to[i] += g[i];
}
template <class C>
const C* none() {
  return nullptr;
}

// Rows of `width` elements.
struct LayerPlan {
  int64_t rows, width;
};

// The last `rank` dims of a tensor argument must be `dims`.
aclnnStatus check_trailing(Call& c, int arg, const int64_t* dims, int64_t rank, const char* what) {
  const Tensor& x = c.tensor(arg);
  LayerPlan& p = c.make<LayerPlan>();
  bool fits = rank >= 1 && rank <= x.rank;
  p.rows = p.width = 1;
  for (int64_t i = 0; fits && i < rank; ++i) {
    fits = dims[i] == x.dims[x.rank - rank + i];
    p.width *= dims[i];
  }
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "%s %s should be the last dims of %s, whose shape is %s.", what,
                  shape_text(dims, static_cast<int>(std::min<int64_t>(rank, kMaxRank))),
                  c.name(arg), shape_text(x));
  }
  for (int i = 0; i < x.rank - rank; ++i) p.rows *= x.dims[i];
  return ACLNN_SUCCESS;
}
// f(row) for every row, in threads.
template <class F>
void each_row(const LayerPlan& p, F f) {
  parallel_for(p.rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, p.width)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) f(i);
               });
}
// f(first column, columns) over pieces of a row.
template <class F>
void each_piece(const LayerPlan& p, F f) {
  constexpr int64_t kPiece = 256;
  parallel_for((p.width + kPiece - 1) / kPiece, std::max<int64_t>(1, 64 / (p.rows + 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t k = begin; k < end; ++k) {
                   f(k * kPiece, std::min(kPiece, p.width - k * kPiece));
                 }
               });
}

aclnnStatus check_layer_norm(Call& c) {
  using P = params::LayerNorm;

  const Span<const int64_t> dims = c.ints(P::normalizedShape);
  ACL_RETURN_IF_FAILED(check_trailing(c, P::input, dims.data, dims.size, "normalizedShape"));
  const LayerPlan& p = c.get<LayerPlan>();
  for (int arg : {P::weightOptional, P::biasOptional})
    ACL_RETURN_IF_FAILED(expect_numel(c, arg, p.width));
  for (int arg : {P::meanOutOptional, P::rstdOutOptional})
    ACL_RETURN_IF_FAILED(expect_numel(c, arg, p.rows));
  c.workspace_size = stage_bytes(c, compute_dtype(c.tensor(P::input)));
  return expect_same_shape(c, P::out, P::input);
}
template <class C>
void layer_norm(Call& c) {
  using P = params::LayerNorm;

  const LayerPlan& p = c.get<LayerPlan>();
  Stage<C> stage(c);
  const C *x = stage.in(c.tensor(P::input)), *w = stage.in(c.maybe(P::weightOptional)),
          *b = stage.in(c.maybe(P::biasOptional));
  C *y = stage.out(c.tensor(P::out)), *means = stage.out(c.maybe(P::meanOutOptional)),
    *rstds = stage.out(c.maybe(P::rstdOutOptional));
  const C eps = static_cast<C>(c.number(P::eps));
  each_row(p, [&](int64_t i) {
    const C* row = x + i * p.width;
    const auto [mean, var] = Moments<C>::of(row, p.width);
    const C rstd = C(1) / std::sqrt(var + eps);
    affine_exact(y + i * p.width, row, w, b, mean, rstd, p.width);
    if (means) means[i] = mean;
    if (rstds) rstds[i] = rstd;
  });
  stage.done();
}
void run_layer_norm(Call& c) {
  using P = params::LayerNorm;

  with_float(c.tensor(P::input).dtype,
             [&](auto tag) { layer_norm<typename decltype(tag)::type>(c); });
}

aclnnStatus check_layer_norm_grad(Call& c) {
  using P = params::LayerNormBackward;

  ACL_RETURN_IF_FAILED(
      expect_given(c, {P::gradOut, P::input, P::normalizedShape, P::mean, P::rstd, P::outputMask}));
  const Span<const int64_t> dims = c.ints(P::normalizedShape);
  ACL_RETURN_IF_FAILED(check_trailing(c, P::input, dims.data, dims.size, "normalizedShape"));
  const LayerPlan& p = c.get<LayerPlan>();
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::gradOut, P::input));
  ACL_RETURN_IF_FAILED(expect_masked(c, P::outputMask, 3, P::gradInputOut));
  for (int arg : {P::mean, P::rstd}) ACL_RETURN_IF_FAILED(expect_numel(c, arg, p.rows));
  for (int arg : {P::weightOptional, P::biasOptional, P::gradWeightOut, P::gradBiasOut})
    ACL_RETURN_IF_FAILED(expect_numel(c, arg, p.width));
  c.workspace_size = stage_bytes(c, compute_dtype(c.tensor(P::input)));
  return expect_numel(c, P::gradInputOut, c.tensor(P::input).numel());
}
// Gradients by weight and bias: sums over rows, in pieces of columns.
template <class C>
void weight_grads(const LayerPlan& p, C* gw, C* gb, const C* g, const C* x, const C* means,
                  const C* rstds) {
  each_piece(p, [&](int64_t first, int64_t n) {
    if (gw) std::fill_n(gw + first, n, C(0));
    if (gb) std::fill_n(gb + first, n, C(0));
    for (int64_t i = 0; i < p.rows; ++i) {
      const int64_t at = i * p.width + first;
      if (gw && means) {
        add_products_exact(gw + first, g + at, x + at, means[i], rstds[i], n);
      } else if (gw) {
        add_products(gw + first, g + at, x + at, C(0), rstds[i], n);
      }
      if (gb) add_to(gb + first, g + at, n);
    }
  });
}
// The gradient by the input; without means (RMS) nothing is centred.
template <class C>
void input_grad(const LayerPlan& p, C* gx, const C* g, const C* x, const C* means, const C* rstds,
                const C* w) {
  const double width = static_cast<double>(p.width);
  each_row(p, [&](int64_t i) {
    Buffer<C> normal(p.width), scaled(p.width);
    const C *up = g + i * p.width, *row = x + i * p.width;
    if (w) multiply(scaled.get(), up, w, p.width);
    if (w) up = scaled.get();
    scaled_normal(normal.get(), row, none<C>(), means ? means[i] : C(0), rstds[i], p.width);
    const C shift = means ? static_cast<C>(sum_of(up, p.width) / width) : C(0);
    const C slope =
        static_cast<C>(product_of(up, static_cast<const C*>(normal.get()), p.width) / width);
    back_row(gx + i * p.width, up, static_cast<const C*>(normal.get()), rstds[i], shift, slope,
             p.width);
  });
}
template <class C>
void layer_norm_grad(Call& c) {
  using P = params::LayerNormBackward;

  const LayerPlan& p = c.get<LayerPlan>();
  Stage<C> stage(c);
  const C *g = stage.in(c.tensor(P::gradOut)), *x = stage.in(c.tensor(P::input)),
          *means = stage.in(c.tensor(P::mean)), *rstds = stage.in(c.tensor(P::rstd)),
          *w = stage.in(c.maybe(P::weightOptional));
  C *gx = stage.out(masked(c, P::outputMask, 0, P::gradInputOut)),
    *gw = stage.out(masked(c, P::outputMask, 1, P::gradWeightOut)),
    *gb = stage.out(masked(c, P::outputMask, 2, P::gradBiasOut));
  if (gw || gb) weight_grads(p, gw, gb, g, x, means, rstds);
  const int64_t rows = gx ? p.rows : 0;
  each_row(LayerPlan{rows, p.width}, [&](int64_t i) {
    const int64_t at = i * p.width;
    back_exact(gx + at, g + at, x + at, w, means[i], rstds[i], p.width);
  });
  stage.done();
}
void run_layer_norm_grad(Call& c) {
  using P = params::LayerNormBackward;

  with_float(c.tensor(P::input).dtype,
             [&](auto tag) { layer_norm_grad<typename decltype(tag)::type>(c); });
}

// y = x rstd (gamma + Shift), where x may be a sum of two. Arguments by position; kNone: absent.
template <int Gamma, int Eps, int Y, int Rstd, int Other = kNone, int Sum = kNone, int Shift = 0>
struct RmsNorm {
  static aclnnStatus check(Call& c) {
    using P = params::RmsNorm;

    const Tensor& gamma = c.tensor(Gamma);
    ACL_RETURN_IF_FAILED(check_trailing(c, P::x, gamma.dims, gamma.rank, "The shape of gamma"));
    for (int arg : {Y, Other, Sum}) {
      if (arg != kNone && !c.null(arg)) ACL_RETURN_IF_FAILED(expect_same_shape(c, arg, P::x));
    }
    c.workspace_size = stage_bytes(c, compute_dtype(c.tensor(P::x)));
    if (Y == 0) c.workspace_size *= 2;  // in place: staged for reading and for writing
    return expect_numel(c, Rstd, c.get<LayerPlan>().rows);
  }
  static aclError run(Call& c) {
    using P = params::RmsNorm;

    with_float(c.tensor(P::x).dtype, [&](auto tag) { apply<typename decltype(tag)::type>(c); });
    return ACL_SUCCESS;
  }
  static const Tensor* at(const Call& c, int arg) { return arg == kNone ? nullptr : c.maybe(arg); }

  template <class C>
  static void apply(Call& c) {
    using P = params::RmsNorm;

    const LayerPlan& p = c.get<LayerPlan>();
    Stage<C> stage(c);
    const C *x = stage.in(c.tensor(P::x)), *gamma = stage.in(c.tensor(Gamma)),
            *other = stage.in(at(c, Other));
    C *y = stage.out(c.tensor(Y)), *rstds = stage.out(c.maybe(Rstd)), *sum = stage.out(at(c, Sum));
    const double eps = c.number(Eps), width = static_cast<double>(p.width);
    each_row(p, [&](int64_t i) {
      Buffer<C> total(other ? p.width : 1), weight(Shift ? p.width : 1);
      const C *row = x + i * p.width, *by = gamma;
      if (other) {
        std::copy_n(row, p.width, total.get());
        add_to(total.get(), other + i * p.width, p.width);
        row = total;
        if (sum) std::copy_n(row, p.width, sum + i * p.width);
      }
      if (Shift) {
        for (int64_t k = 0; k < p.width; ++k) weight[k] = gamma[k] + C(Shift);
        by = weight;
      }
      const C rstd = static_cast<C>(1 / std::sqrt(squares_of(row, C(0), p.width) / width + eps));
      scaled_normal(y + i * p.width, row, by, C(0), rstd, p.width);
      if (rstds) rstds[i] = rstd;
    });
    stage.done();
  }
};

aclnnStatus check_rms_norm_grad(Call& c) {
  using P = params::RmsNormGrad;

  const Tensor& gamma = c.tensor(P::gamma);
  ACL_RETURN_IF_FAILED(check_trailing(c, P::x, gamma.dims, gamma.rank, "The shape of gamma"));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::dy, P::x));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::rstd, c.get<LayerPlan>().rows));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::dxOut, P::x));
  c.workspace_size = stage_bytes(c, compute_dtype(c.tensor(P::x)));
  return expect_same_shape(c, P::dgammaOut, P::gamma);
}
template <class C>
void rms_norm_grad(Call& c) {
  using P = params::RmsNormGrad;

  const LayerPlan& p = c.get<LayerPlan>();
  Stage<C> stage(c);
  const C *g = stage.in(c.tensor(P::dy)), *x = stage.in(c.tensor(P::x)),
          *rstds = stage.in(c.tensor(P::rstd)), *gamma = stage.in(c.tensor(P::gamma));
  C *gx = stage.out(c.tensor(P::dxOut)), *gg = stage.out(c.tensor(P::dgammaOut)),
    *no_bias = nullptr;
  weight_grads(p, gg, no_bias, g, x, none<C>(), rstds);
  input_grad(p, gx, g, x, none<C>(), rstds, gamma);
  stage.done();
}
void run_rms_norm_grad(Call& c) {
  using P = params::RmsNormGrad;

  with_float(c.tensor(P::x).dtype,
             [&](auto tag) { rms_norm_grad<typename decltype(tag)::type>(c); });
}

}  // namespace
}  // namespace aclsim

#define ACLNN_RMS_NORM(op, ...) \
  ACLNN_OP(op, (RmsNorm<__VA_ARGS__>::check), (RmsNorm<__VA_ARGS__>::run))
ACLNN_OP(aclnnLayerNorm, check_layer_norm, run_layer_norm)
ACLNN_OP(aclnnLayerNormWithImplMode, check_layer_norm, run_layer_norm)
ACLNN_OP(aclnnFastLayerNorm, check_layer_norm, run_layer_norm)
ACLNN_OP_FLAGS(aclnnLayerNormBackward, check_layer_norm_grad, run_layer_norm_grad, kOwnNulls)
ACLNN_RMS_NORM(aclnnRmsNorm, params::RmsNorm::gamma, params::RmsNorm::epsilon,
               params::RmsNorm::yOut, params::RmsNorm::rstdOut)
ACLNN_RMS_NORM(aclnnAddRmsNorm, params::AddRmsNorm::gamma, params::AddRmsNorm::epsilon,
               params::AddRmsNorm::yOut, params::AddRmsNorm::rstdOut, params::AddRmsNorm::x2,
               params::AddRmsNorm::xOut)
ACLNN_RMS_NORM(aclnnInplaceAddRmsNorm, params::InplaceAddRmsNorm::gamma,
               params::InplaceAddRmsNorm::epsilon, params::InplaceAddRmsNorm::x1Ref,
               params::InplaceAddRmsNorm::rstdOut, params::InplaceAddRmsNorm::x2Ref,
               params::InplaceAddRmsNorm::x2Ref)
ACLNN_RMS_NORM(aclnnGemmaRmsNorm, params::GemmaRmsNorm::gamma, params::GemmaRmsNorm::epsilon,
               params::GemmaRmsNorm::yOut, params::GemmaRmsNorm::rstdOut, kNone, kNone, 1)
ACLNN_OP(aclnnRmsNormGrad, check_rms_norm_grad, run_rms_norm_grad)
