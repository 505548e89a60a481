// Hyper-connections: several residual streams mixed before and after a layer. Formulas: the "npu_mhc_pre",
// "npu_mhc_post" and "npu_mhc_sinkhorn" pages of torch_npu.
#include "params/residual.h"
#include "loops/values.h"

#include <cmath>

namespace aclsim {
namespace {

// Hyper-connections: n streams of width D per token.
// (x, hRes, hOut, hPost, out): out_i = sum over j of hRes_ji x_j + hPost_i hOut; the document writes
// a product, op-plugin's tests sum over the rows of hRes.
aclnnStatus check_post(Call& c) {
  using P = params::MhcPost;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::hOut, P::hPost, P::out}));
  const Tensor& x = c.tensor(P::x);
  if (x.rank < 3)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "x %s should have 3 or 4 dims.", shape_text(x));
  const int64_t n = x.dims[x.rank - 2], tokens = rows_of(x) / std::max<int64_t>(1, n);
  ACL_RETURN_IF_FAILED(expect_numel(c, P::hRes, tokens * n * n));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::hOut, tokens * width_of(x)));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::hPost, tokens * n));
  return expect_same_shape(c, P::out, P::x);
}
void run_post(Call& c) {
  using P = params::MhcPost;

  const Tensor& t = c.tensor(P::x);
  const Floats x = floats(t), res = floats(at_or_null(c, P::hRes)), h = floats(c.tensor(P::hOut)),
               post = floats(c.tensor(P::hPost));
  const int64_t n = t.dims[t.rank - 2], d = width_of(t);
  Floats out(x.size());
  for (size_t at = 0; at < x.size(); ++at) {
    const int64_t row = static_cast<int64_t>(at) / d, token = row / n,
                  col = static_cast<int64_t>(at) % d;
    double sum = static_cast<double>(post[row]) * h[token * d + col];
    if (res.empty()) sum += x[at];
    for (int64_t j = 0; j < n && !res.empty(); ++j)
      sum += static_cast<double>(res[(token * n + j) * n + row % n]) * x[(token * n + j) * d + col];
    out[at] = static_cast<float>(sum);
  }
  write(c.tensor(P::out), out);
}
aclnnStatus check_post_grad(Call& c) {
  using P = params::MhcPostBackward;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::gradOutput, P::x, P::hRes, P::hOut, P::hPost, P::gradX,
                                        P::gradHRes, P::gradHOut, P::gradHPost}));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::gradOutput, P::x));
  for (int i : {P::gradX, P::gradHRes, P::gradHOut, P::gradHPost})
    ACL_RETURN_IF_FAILED(expect_same_shape(c, i, i - 4));
  const Tensor& x = c.tensor(P::x);
  const int64_t n = x.rank > 1 ? x.dims[x.rank - 2] : 0;
  return expect_numel(c, P::hPost, rows_of(x)) != ACLNN_SUCCESS
             ? expect_numel(c, P::hPost, rows_of(x))
             : expect_numel(c, P::hRes, rows_of(x) * n);
}
void run_post_grad(Call& c) {
  using P = params::MhcPostBackward;

  const Tensor& t = c.tensor(P::x);
  const Floats g = floats(c.tensor(P::gradOutput)), x = floats(t), res = floats(c.tensor(P::hRes)),
               h = floats(c.tensor(P::hOut)), post = floats(c.tensor(P::hPost));
  const int64_t n = t.dims[t.rank - 2], d = width_of(t), rows = rows_of(t);
  Doubles dx(x.size()), dres(res.size()), dh(h.size()), dpost(post.size());
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t token = row / n;
    for (int64_t k = 0; k < d; ++k) {
      const double up = g[row * d + k];
      dpost[row] += up * h[token * d + k], dh[token * d + k] += up * post[row];
      for (int64_t j = 0; j < n; ++j) {
        const int64_t from = (token * n + j) * d + k, share = (token * n + j) * n + row % n;
        dres[share] += up * x[from], dx[from] += up * res[share];
      }
    }
  }
  write(c.tensor(P::gradX), dx), write(c.tensor(P::gradHRes), dres),
      write(c.tensor(P::gradHOut), dh), write(c.tensor(P::gradHPost), dpost);
}
aclnnStatus check_pre(Call& c) {
  using P = params::MhcPre;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::phi, P::alpha, P::bias, P::hIn, P::hPost}));
  const Tensor& x = c.tensor(P::x);
  if (x.rank < 3)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "x %s should have 3 or 4 dims.", shape_text(x));
  const int64_t n = x.dims[x.rank - 2], wide = n * width_of(x),
                tokens = wide ? x.numel() / wide : 0;
  const int64_t mixes = c.tensor(P::alpha).numel() == 3 ? n * n + 2 * n : 2 * n;
  if (c.tensor(P::alpha).numel() == 3) ACL_RETURN_IF_FAILED(expect_given(c, {P::hRes}));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::phi, mixes * wide));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::bias, mixes));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::gammaOptional, wide));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::hPost, tokens * n));
  return expect_numel(c, P::hIn, tokens * width_of(x));
}
void run_pre(Call& c) {
  using P = params::MhcPre;

  const Tensor& t = c.tensor(P::x);
  const Floats x = floats(t), phi = floats(c.tensor(P::phi)), alpha = floats(c.tensor(P::alpha)),
               bias = floats(c.tensor(P::bias)), gamma = floats(at_or_null(c, P::gammaOptional));
  const int64_t n = t.dims[t.rank - 2], d = width_of(t), wide = n * d,
                mixes = c.tensor(P::bias).numel(), tokens = t.numel() / wide;
  Floats in(static_cast<size_t>(tokens * d)), post, res, inv, mix, pre;
  for (int64_t token = 0; token < tokens; ++token) {
    const float* row = x.data() + token * wide;
    double square = 0;
    for (int64_t i = 0; i < wide; ++i) square += static_cast<double>(row[i]) * row[i];
    const double rstd = 1 / std::sqrt(square / static_cast<double>(wide) + c.number(P::normEps));
    inv.push_back(static_cast<float>(rstd));
    for (int64_t m = 0; m < mixes; ++m) {
      double sum = 0;
      for (int64_t i = 0; i < wide; ++i)
        sum += static_cast<double>(row[i]) * (gamma.empty() ? 1 : gamma[i]) * phi[m * wide + i];
      mix.push_back(static_cast<float>(sum));
      const int64_t kind = m < n ? 0 : m < 2 * n ? 1 : 2;
      const double v = sum * rstd * alpha[kind] + bias[m], s = 1 / (1 + std::exp(-v));
      (kind == 0   ? pre
       : kind == 1 ? post
                   : res)
          .push_back(static_cast<float>(kind == 0   ? s + c.number(P::hcEps)
                                        : kind == 1 ? 2 * s
                                                    : v));
    }
    for (int64_t i = 0; i < wide; ++i) in[token * d + i % d] += pre[token * n + i / d] * row[i];
  }
  res.resize(c.null(P::hRes) ? 0 : static_cast<size_t>(c.tensor(P::hRes).numel()));
  write(c.tensor(P::hIn), in), write(c.tensor(P::hPost), post), write(at_or_null(c, P::hRes), res);
  write(at_or_null(c, P::invRmsOptional), inv), write(at_or_null(c, P::hMixOptional), mix),
      write(at_or_null(c, P::hPreOptional), pre);
}
// (x, eps, numIters, output, normOut [2 iters, n, n, tokens], sumOut [2 iters, n, tokens]).
aclnnStatus check_sinkhorn(Call& c) {
  using P = params::MhcSinkhorn;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::output}));
  const Tensor& x = c.tensor(P::x);
  if (x.rank < 2 || x.dims[x.rank - 1] != x.dims[x.rank - 2] || c.integer(P::numIters) < 1) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "x %s should hold square matrices, and numIters be positive.", shape_text(x));
  }
  if (at_or_null(c, P::normOut))
    ACL_RETURN_IF_FAILED(expect_numel(c, P::normOut, 2 * c.integer(P::numIters) * x.numel()));
  if (at_or_null(c, P::sumOut))
    ACL_RETURN_IF_FAILED(expect_numel(c, P::sumOut, 2 * c.integer(P::numIters) * rows_of(x)));
  return expect_same_shape(c, P::output, P::x);
}
// Divides by sums over rows (or columns); what they were goes to `sums`.
void scale_lines(Doubles& y, int64_t n, bool rows, double eps, Doubles& sums) {
  sums.assign(static_cast<size_t>(n), eps);
  for (int64_t i = 0; i < n * n; ++i) sums[rows ? i / n : i % n] += y[i];
  for (int64_t i = 0; i < n * n; ++i) y[i] /= sums[rows ? i / n : i % n];
}
void run_sinkhorn(Call& c) {
  using P = params::MhcSinkhorn;

  const Tensor& t = c.tensor(P::x);
  const Floats x = floats(t);
  const int64_t n = width_of(t), each = n * n, tokens = each ? t.numel() / each : 0,
                iterations = c.integer(P::numIters);
  const double eps = c.number(P::eps);
  Floats out(x.size()), norms(static_cast<size_t>(2 * iterations * t.numel())),
      all(static_cast<size_t>(2 * iterations * tokens * n));
  for (int64_t b = 0; b < tokens; ++b) {
    Doubles y(x.begin() + b * each, x.begin() + (b + 1) * each), sums;
    const auto keep = [&](int64_t step) {
      for (int64_t i = 0; i < each; ++i)
        norms[(step * each + i) * tokens + b] = static_cast<float>(y[i]);
      for (size_t i = 0; i < sums.size(); ++i)
        all[(step * n + static_cast<int64_t>(i)) * tokens + b] = static_cast<float>(sums[i]);
    };
    for (int64_t r = 0; r < n; ++r) {
      const double top = *std::max_element(y.begin() + r * n, y.begin() + (r + 1) * n);
      for (int64_t i = r * n; i < (r + 1) * n; ++i) y[i] = std::exp(y[i] - top);
    }
    scale_lines(y, n, true, 0, sums);
    for (double& v : y) v += eps;
    keep(0);
    for (int64_t step = 1; step < 2 * iterations; ++step) {
      scale_lines(y, n, step % 2 == 0, eps, sums);
      keep(step);
    }
    std::copy(y.begin(), y.end(), out.begin() + b * each);
  }
  write(c.tensor(P::output), out), write(at_or_null(c, P::normOut), norms),
      write(at_or_null(c, P::sumOut), all);
}
// (gradOutput, normOut, sumOut, out): back through the divisions, then through softmax.
aclnnStatus check_sinkhorn_grad(Call& c) {
  using P = params::MhcSinkhornBackward;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::gradOutput, P::normOut, P::sumOut, P::out}));
  const int64_t each = c.tensor(P::gradOutput).numel();
  if (each == 0 || c.tensor(P::normOut).numel() % (2 * each) != 0)
    return refuse_fit(c, P::normOut, P::gradOutput);
  ACL_RETURN_IF_FAILED(
      expect_numel(c, P::sumOut, c.tensor(P::normOut).numel() / width_of(c.tensor(P::gradOutput))));
  return expect_same_shape(c, P::out, P::gradOutput);
}
void run_sinkhorn_grad(Call& c) {
  using P = params::MhcSinkhornBackward;

  const Tensor& t = c.tensor(P::gradOutput);
  const Floats up = floats(t), norms = floats(c.tensor(P::normOut)),
               sums = floats(c.tensor(P::sumOut));
  const int64_t n = width_of(t), each = n * n, tokens = t.numel() / each,
                steps = c.tensor(P::normOut).numel() / t.numel();
  Floats dx(up.size());
  for (int64_t b = 0; b < tokens; ++b) {
    Doubles g(up.begin() + b * each, up.begin() + (b + 1) * each);
    const auto norm = [&](int64_t step, int64_t i) {
      return static_cast<double>(norms[(step * each + i) * tokens + b]);
    };
    for (int64_t step = steps - 1; step >= 1;
         --step) {  // y = z / sum(z): dz = (g - sum(g y)) / sum
      Doubles along(static_cast<size_t>(n));
      const bool rows = step % 2 == 0;
      for (int64_t i = 0; i < each; ++i) along[rows ? i / n : i % n] += g[i] * norm(step, i);
      for (int64_t i = 0; i < each; ++i) {
        const int64_t line = rows ? i / n : i % n;
        g[i] = (g[i] - along[line]) / sums[(step * n + line) * tokens + b];
      }
    }
    for (int64_t r = 0; r < n;
         ++r) {  // softmax; the eps added after it is a few parts in a million
      double inner = 0, total = 0;
      for (int64_t i = r * n; i < (r + 1) * n; ++i) total += norm(0, i);
      const double eps = (total - 1) / static_cast<double>(n);
      for (int64_t i = r * n; i < (r + 1) * n; ++i) inner += g[i] * (norm(0, i) - eps);
      for (int64_t i = r * n; i < (r + 1) * n; ++i)
        dx[b * each + i] = static_cast<float>((norm(0, i) - eps) * (g[i] - inner));
    }
  }
  write(c.tensor(P::out), dx);
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnMhcPost, check_post, run_post)
ACLNN_OWN(aclnnMhcPostBackward, check_post_grad, run_post_grad)
ACLNN_OWN(aclnnMhcPre, check_pre, run_pre)
ACLNN_OWN(aclnnMhcSinkhorn, check_sinkhorn, run_sinkhorn)
ACLNN_OWN(aclnnMhcSinkhornBackward, check_sinkhorn_grad, run_sinkhorn_grad)
