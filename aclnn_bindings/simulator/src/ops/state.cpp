// Recurrences over tokens and what joins partial results: gated delta rules, hyper-connections,
// attention from several devices, steps of a decoding loop. Formulas: the
// "npu_recurrent_gated_delta_rule", "npu_chunk_gated_delta_rule", "npu_mhc_pre", "npu_mhc_post",
// "npu_mhc_sinkhorn", "npu_attention_update" and "npu_advance_step_flashattn" pages of torch_npu
// and its test of npu_ring_attention_update.
#include "loops/values.h"

#include <cmath>
#include <cstring>

namespace aclsim {
namespace {

const Tensor* at_or_null(const Call& c, int arg) {
  if (arg < 0 || c.null(arg) || c.tensor(arg).numel() == 0) return nullptr;
  return c.maybe(arg);
}

// (query, key, value, beta, stateRef, lengths, stateIndices, g, gk, accepted, scale, out): tokens
// [tokens, heads, width], a state [value width, key width] for each value head.
aclnnStatus check_sizes(const Call& c, int state, int g) {
  const Tensor &q = c.tensor(0), &k = c.tensor(1), &v = c.tensor(2), &s = c.tensor(state);
  const bool fits = q.rank == 3 && v.rank == 3 && s.rank == 4 && q.same_shape(k) &&
                    q.dims[0] == v.dims[0] && s.dims[1] == v.dims[1] && s.dims[2] == v.dims[2] &&
                    s.dims[3] == k.dims[2] && q.dims[1] > 0 && v.dims[1] % q.dims[1] == 0;
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "query %s, key %s, value %s and state %s do not fit.",
                  shape_text(q), shape_text(k), shape_text(v), shape_text(s));
  }
  for (int i : {3, g}) ACL_RETURN_IF_FAILED(expect_numel(c, i, v.dims[0] * v.dims[1]));
  return ACLNN_SUCCESS;
}
aclnnStatus check_recurrent(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 4, 5, 6, 11}));
  ACL_RETURN_IF_FAILED(check_sizes(c, 4, 7));
  ACL_RETURN_IF_FAILED(expect_numel(c, 6, c.tensor(2).dims[0]));
  ACL_RETURN_IF_FAILED(
      expect_numel(c, 8, c.tensor(2).dims[0] * c.tensor(2).dims[1] * c.tensor(1).dims[2]));
  ACL_RETURN_IF_FAILED(expect_numel(c, 9, c.tensor(5).numel()));
  return expect_same_shape(c, 11, 2);
}
// One token of one head: S = decay S, then S += beta (v - S k) k', out = scale S q.
struct Delta {
  int64_t dv, dk;
  void step(double* s, const float* q, const float* k, const float* v, double beta, double scale,
            float* out) const {
    for (int64_t i = 0; i < dv; ++i) {
      double* row = s + i * dk;
      double along = 0, value = 0;
      for (int64_t j = 0; j < dk; ++j) along += row[j] * k[j];
      for (int64_t j = 0; j < dk; ++j) {
        row[j] += beta * (v[i] - along) * k[j];
        value += row[j] * q[j];
      }
      out[i] = static_cast<float>(value * scale);
    }
  }
};
struct Tokens {
  Floats q, k, v, beta, g;
  int64_t heads_k, heads, group;
  Delta d;
};
Tokens tokens_of(const Call& c, int g) {
  const Tensor &k = c.tensor(1), &v = c.tensor(2);
  return {floats(c.tensor(0)),      floats(k), floats(v), floats(at_or_null(c, 3)),
          floats(at_or_null(c, g)), k.dims[1], v.dims[1], v.dims[1] / k.dims[1],
          {v.dims[2], k.dims[2]}};
}
void advance(const Tokens& t, int64_t token, int64_t head, const float* channel_decay, double scale,
             double* s, float* out) {
  const int64_t at = token * t.heads + head, of_key = (token * t.heads_k + head / t.group) * t.d.dk;
  const double decay = t.g.empty() ? 1 : std::exp(t.g[at]);
  for (int64_t i = 0; i < t.d.dv * t.d.dk; ++i) {
    s[i] *= decay * (channel_decay ? std::exp(channel_decay[at * t.d.dk + i % t.d.dk]) : 1);
  }
  t.d.step(s, &t.q[of_key], &t.k[of_key], &t.v[at * t.d.dv], t.beta.empty() ? 1 : t.beta[at], scale,
           out + at * t.d.dv);
}
aclError run_recurrent(Call& c) {
  const Tokens t = tokens_of(c, 7);
  const Floats gk = floats(at_or_null(c, 8));
  const Ints lengths = integers(c.tensor(5)), places = integers(c.tensor(6)),
             accepted = integers(at_or_null(c, 9));
  Doubles state = doubles(c.tensor(4));
  const int64_t each = t.d.dv * t.d.dk, blocks = c.tensor(4).dims[0];
  for (int64_t p : places) {
    if (p < 0 || p >= blocks) return c.trap(507015, "A state index lies outside of the states.");
  }
  Floats out(t.v.size());
  int64_t first = 0;
  for (size_t b = 0; b < lengths.size(); ++b) {
    const int64_t from = places[first + (accepted.empty() ? 0 : accepted[b] - 1)];
    for (int64_t n = 0; n < t.heads && lengths[b] > 0; ++n) {
      const auto begin = state.begin() + (from * t.heads + n) * each;
      Doubles s(begin, begin + each);
      for (int64_t i = first; i < first + lengths[b]; ++i) {
        advance(t, i, n, gk.empty() ? nullptr : gk.data(), c.number(10), s.data(), out.data());
        std::copy(s.begin(), s.end(), state.begin() + (places[i] * t.heads + n) * each);
      }
    }
    first += lengths[b];
  }
  write(c.tensor(4), state), write(c.tensor(11), out);
  return ACL_SUCCESS;
}
// (query, key, value, beta, initialState, lengths, g, scale, out, finalState).
aclnnStatus check_chunk(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 3, 4, 5, 8, 9}));
  ACL_RETURN_IF_FAILED(check_sizes(c, 4, 6));
  ACL_RETURN_IF_FAILED(expect_numel(c, 5, c.tensor(4).dims[0]));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 9, 4));
  return expect_same_shape(c, 8, 2);
}
aclError run_chunk(Call& c) {
  const Tokens t = tokens_of(c, 6);
  const Ints lengths = integers(c.tensor(5));
  Doubles state = doubles(c.tensor(4));
  Floats out(t.v.size());
  int64_t first = 0;
  for (size_t b = 0; b < lengths.size(); first += lengths[b++]) {
    for (int64_t n = 0; n < t.heads; ++n) {
      double* s = state.data() + (static_cast<int64_t>(b) * t.heads + n) * t.d.dv * t.d.dk;
      for (int64_t i = first; i < first + lengths[b]; ++i)
        advance(t, i, n, nullptr, c.number(7), s, out.data());
    }
  }
  write(c.tensor(8), out), write(c.tensor(9), state);
  return ACL_SUCCESS;
}

// Hyper-connections: n streams of width D per token.
// (x, hRes, hOut, hPost, out): out_i = sum over j of hRes_ji x_j + hPost_i hOut; the document writes
// a product, op-plugin's tests sum over the rows of hRes.
aclnnStatus check_post(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 2, 3, 4}));
  const Tensor& x = c.tensor(0);
  if (x.rank < 3)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "x %s should have 3 or 4 dims.", shape_text(x));
  const int64_t n = x.dims[x.rank - 2], tokens = rows_of(x) / std::max<int64_t>(1, n);
  ACL_RETURN_IF_FAILED(expect_numel(c, 1, tokens * n * n));
  ACL_RETURN_IF_FAILED(expect_numel(c, 2, tokens * width_of(x)));
  ACL_RETURN_IF_FAILED(expect_numel(c, 3, tokens * n));
  return expect_same_shape(c, 4, 0);
}
aclError run_post(Call& c) {
  const Tensor& t = c.tensor(0);
  const Floats x = floats(t), res = floats(at_or_null(c, 1)), h = floats(c.tensor(2)),
               post = floats(c.tensor(3));
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
  write(c.tensor(4), out);
  return ACL_SUCCESS;
}
// (gradOutput, x, hRes, hOut, hPost, gradX, gradHRes, gradHOut, gradHPost).
aclnnStatus check_post_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 3, 4, 5, 6, 7, 8}));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, 0, 1));
  for (int i : {5, 6, 7, 8}) ACL_RETURN_IF_FAILED(expect_same_shape(c, i, i - 4));
  const Tensor& x = c.tensor(1);
  const int64_t n = x.rank > 1 ? x.dims[x.rank - 2] : 0;
  return expect_numel(c, 4, rows_of(x)) != ACLNN_SUCCESS ? expect_numel(c, 4, rows_of(x))
                                                         : expect_numel(c, 2, rows_of(x) * n);
}
aclError run_post_grad(Call& c) {
  const Tensor& t = c.tensor(1);
  const Floats g = floats(c.tensor(0)), x = floats(t), res = floats(c.tensor(2)),
               h = floats(c.tensor(3)), post = floats(c.tensor(4));
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
  write(c.tensor(5), dx), write(c.tensor(6), dres), write(c.tensor(7), dh),
      write(c.tensor(8), dpost);
  return ACL_SUCCESS;
}
// (x, phi, alpha, bias, gamma, normEps, hcEps, hIn, hPost, hRes, invRms, hMix, hPre).
aclnnStatus check_pre(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 3, 7, 8}));
  const Tensor& x = c.tensor(0);
  if (x.rank < 3)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "x %s should have 3 or 4 dims.", shape_text(x));
  const int64_t n = x.dims[x.rank - 2], wide = n * width_of(x),
                tokens = wide ? x.numel() / wide : 0;
  const int64_t mixes = c.tensor(2).numel() == 3 ? n * n + 2 * n : 2 * n;
  if (c.tensor(2).numel() == 3) ACL_RETURN_IF_FAILED(expect_given(c, {9}));
  ACL_RETURN_IF_FAILED(expect_numel(c, 1, mixes * wide));
  ACL_RETURN_IF_FAILED(expect_numel(c, 3, mixes));
  ACL_RETURN_IF_FAILED(expect_numel(c, 4, wide));
  ACL_RETURN_IF_FAILED(expect_numel(c, 8, tokens * n));
  return expect_numel(c, 7, tokens * width_of(x));
}
aclError run_pre(Call& c) {
  const Tensor& t = c.tensor(0);
  const Floats x = floats(t), phi = floats(c.tensor(1)), alpha = floats(c.tensor(2)),
               bias = floats(c.tensor(3)), gamma = floats(at_or_null(c, 4));
  const int64_t n = t.dims[t.rank - 2], d = width_of(t), wide = n * d, mixes = c.tensor(3).numel(),
                tokens = t.numel() / wide;
  Floats in(static_cast<size_t>(tokens * d)), post, res, inv, mix, pre;
  for (int64_t token = 0; token < tokens; ++token) {
    const float* row = x.data() + token * wide;
    double square = 0;
    for (int64_t i = 0; i < wide; ++i) square += static_cast<double>(row[i]) * row[i];
    const double rstd = 1 / std::sqrt(square / static_cast<double>(wide) + c.number(5));
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
          .push_back(static_cast<float>(kind == 0   ? s + c.number(6)
                                        : kind == 1 ? 2 * s
                                                    : v));
    }
    for (int64_t i = 0; i < wide; ++i) in[token * d + i % d] += pre[token * n + i / d] * row[i];
  }
  res.resize(c.null(9) ? 0 : static_cast<size_t>(c.tensor(9).numel()));
  write(c.tensor(7), in), write(c.tensor(8), post), write(at_or_null(c, 9), res);
  write(at_or_null(c, 10), inv), write(at_or_null(c, 11), mix), write(at_or_null(c, 12), pre);
  return ACL_SUCCESS;
}
// (x, eps, numIters, output, normOut [2 iters, n, n, tokens], sumOut [2 iters, n, tokens]).
aclnnStatus check_sinkhorn(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 3}));
  const Tensor& x = c.tensor(0);
  if (x.rank < 2 || x.dims[x.rank - 1] != x.dims[x.rank - 2] || c.integer(2) < 1) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "x %s should hold square matrices, and numIters be positive.", shape_text(x));
  }
  if (at_or_null(c, 4)) ACL_RETURN_IF_FAILED(expect_numel(c, 4, 2 * c.integer(2) * x.numel()));
  if (at_or_null(c, 5)) ACL_RETURN_IF_FAILED(expect_numel(c, 5, 2 * c.integer(2) * rows_of(x)));
  return expect_same_shape(c, 3, 0);
}
// Divides by sums over rows (or columns); what they were goes to `sums`.
void scale_lines(Doubles& y, int64_t n, bool rows, double eps, Doubles& sums) {
  sums.assign(static_cast<size_t>(n), eps);
  for (int64_t i = 0; i < n * n; ++i) sums[rows ? i / n : i % n] += y[i];
  for (int64_t i = 0; i < n * n; ++i) y[i] /= sums[rows ? i / n : i % n];
}
aclError run_sinkhorn(Call& c) {
  const Tensor& t = c.tensor(0);
  const Floats x = floats(t);
  const int64_t n = width_of(t), each = n * n, tokens = each ? t.numel() / each : 0,
                iterations = c.integer(2);
  const double eps = c.number(1);
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
  write(c.tensor(3), out), write(at_or_null(c, 4), norms), write(at_or_null(c, 5), all);
  return ACL_SUCCESS;
}
// (gradOutput, normOut, sumOut, out): back through the divisions, then through softmax.
aclnnStatus check_sinkhorn_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 3}));
  const int64_t each = c.tensor(0).numel();
  if (each == 0 || c.tensor(1).numel() % (2 * each) != 0) return refuse_fit(c, 1, 0);
  ACL_RETURN_IF_FAILED(expect_numel(c, 2, c.tensor(1).numel() / width_of(c.tensor(0))));
  return expect_same_shape(c, 3, 0);
}
aclError run_sinkhorn_grad(Call& c) {
  const Tensor& t = c.tensor(0);
  const Floats up = floats(t), norms = floats(c.tensor(1)), sums = floats(c.tensor(2));
  const int64_t n = width_of(t), each = n * n, tokens = t.numel() / each,
                steps = c.tensor(1).numel() / t.numel();
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
  write(c.tensor(3), dx);
  return ACL_SUCCESS;
}

// (lse list, out list, updateType, out, lseOut): partial attentions weighed by their sums.
aclnnStatus check_update(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 3}));
  const Span<Tensor*> lse = c.tensors(0), parts = c.tensors(1);
  bool fits = lse.size > 0 && lse.size == parts.size;
  for (int64_t i = 0; fits && i < lse.size; ++i)
    fits = lse[i] && parts[i] && rows_of(*parts[i]) == lse[0]->numel() &&
           parts[i]->same_shape(*parts[0]);
  if (!fits)
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "lse and localOut should have as many members of matching shapes.");
  if (c.integer(2) == 1) {
    ACL_RETURN_IF_FAILED(expect_given(c, {4}));
    ACL_RETURN_IF_FAILED(expect_numel(c, 4, lse[0]->numel()));
  }
  return expect_numel(c, 3, parts[0]->numel());
}
aclError run_update(Call& c) {
  const Span<Tensor*> lse = c.tensors(0), parts = c.tensors(1);
  const int64_t rows = lse[0]->numel(), h = width_of(*parts[0]);
  std::vector<Floats> sums, values;
  for (int64_t i = 0; i < lse.size; ++i)
    sums.push_back(floats(lse[i])), values.push_back(floats(parts[i]));
  Floats out(static_cast<size_t>(rows * h)), joined;
  for (int64_t r = 0; r < rows; ++r) {
    double top = -INFINITY, total = 0;
    // An infinite sum marks a part that saw nothing.
    for (const Floats& s : sums) top = s[r] == INFINITY ? top : std::max<double>(top, s[r]);
    for (const Floats& s : sums) total += s[r] == INFINITY ? 0 : std::exp(s[r] - top);
    const double whole = top + std::log(total);
    joined.push_back(total > 0 ? static_cast<float>(whole) : INFINITY);
    for (size_t i = 0; i < sums.size(); ++i) {
      const double w = sums[i][r] == INFINITY ? 0 : std::exp(sums[i][r] - whole);
      for (int64_t j = 0; j < h; ++j)
        out[r * h + j] += static_cast<float>(w * values[i][r * h + j]);
    }
  }
  write(c.tensor(3), out);
  if (c.integer(2) == 1) write(c.maybe(4), joined);
  return ACL_SUCCESS;
}
// (prevOut, prevMax, prevSum, curOut, curMax, curSum, lengths, layout, [softmaxLayout,] out, max,
// sum); statistics have eight equal elements a row.
template <int Out>
aclnnStatus check_ring(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 3, 4, 5, Out, Out + 1, Out + 2}));
  for (int i : {2, 4, 5, Out + 1, Out + 2}) ACL_RETURN_IF_FAILED(expect_same_shape(c, i, 1));
  for (int i : {3, Out}) ACL_RETURN_IF_FAILED(expect_same_shape(c, i, 0));
  const char* layout = c.text(7) ? c.text(7) : "SBH";
  const Tensor &x = c.tensor(0), &s = c.tensor(1);
  const bool packed = std::strcmp(layout, "TND") == 0;
  const bool fits = (packed || std::strcmp(layout, "SBH") == 0) && x.rank == 3 &&
                    s.numel() % 8 == 0 && s.rank >= 3 &&
                    (packed ? s.numel() == x.dims[0] * x.dims[1] * 8
                            : s.rank == 4 && s.numel() == x.dims[0] * x.dims[1] * s.dims[1] * 8);
  if (fits) return ACLNN_SUCCESS;
  return c.fail(
      ACLNN_ERR_PARAM_INVALID,
      "The attention %s and its statistics %s do not fit the layout %s; SBH and TND are known.",
      shape_text(x), shape_text(s), layout);
}
template <int Out>
aclError run_ring(Call& c) {
  const Tensor &x = c.tensor(0), &s = c.tensor(1);
  Floats a = floats(x), top = floats(s), sum = floats(c.tensor(2));
  const Floats b = floats(c.tensor(3)), top_b = floats(c.tensor(4)), sum_b = floats(c.tensor(5));
  const bool packed = c.text(7) && std::strcmp(c.text(7), "TND") == 0;
  const int64_t heads = packed ? x.dims[1] : s.dims[1], d = packed ? x.dims[2] : x.dims[2] / heads;
  for (int64_t at = 0; at * d < static_cast<int64_t>(a.size()); ++at) {
    const int64_t n = at % heads, row = at / heads;
    // Of SBH statistics lie [batch, heads, rows].
    const int64_t place =
        packed ? at : ((row % x.dims[1]) * heads + n) * x.dims[0] + row / x.dims[1];
    const double most = std::max(top[place * 8], top_b[place * 8]);
    const double wa = sum[place * 8] * std::exp(top[place * 8] - most),
                 wb = sum_b[place * 8] * std::exp(top_b[place * 8] - most);
    for (int64_t j = at * d; j < (at + 1) * d; ++j)
      a[j] = static_cast<float>((a[j] * wa + b[j] * wb) / (wa + wb));
    for (int64_t j = place * 8; j < (place + 1) * 8; ++j)
      top[j] = static_cast<float>(most), sum[j] = static_cast<float>(wa + wb);
  }
  write(c.tensor(Out), a), write(c.tensor(Out + 1), top), write(c.tensor(Out + 2), sum);
  return ACL_SUCCESS;
}

// (inputTokens, sampledTokenIds, inputPositions, seqLens, slotMapping, blockTables, numSeqs,
// numQueries, blockSize): all but the samples and tables move on by a token.
aclnnStatus check_advance(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 3, 4, 5}));
  const int64_t seqs = c.integer(6), queries = c.integer(7);
  if (queries > seqs || queries < 0 || c.integer(8) < 1 || c.tensor(5).rank != 2 ||
      c.tensor(5).dims[0] < queries) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "numSeqs %lld, numQueries %lld and blockSize %lld do not fit.",
                  static_cast<long long>(seqs), static_cast<long long>(queries),
                  static_cast<long long>(c.integer(8)));
  }
  ACL_RETURN_IF_FAILED(expect_numel(c, 1, queries));
  for (int i : {0, 2, 3, 4}) ACL_RETURN_IF_FAILED(expect_numel(c, i, seqs));
  return ACLNN_SUCCESS;
}
aclError run_advance(Call& c) {
  Ints tokens = integers(c.tensor(0)), positions = integers(c.tensor(2)),
       lengths = integers(c.tensor(3)), slots = integers(c.tensor(4));
  const Ints samples = integers(c.tensor(1)), table = integers(c.tensor(5));
  const int64_t size = c.integer(8), per = width_of(c.tensor(5)), queries = c.integer(7);
  for (int64_t i = 0; i < c.integer(6); ++i) {
    if (i >= queries) {  // padding
      tokens[i] = 0, positions[i] = 0, slots[i] = -1;
      continue;
    }
    const int64_t next = lengths[i];
    if (next / size >= per) return c.trap(507015, "A sequence is longer than its block table.");
    tokens[i] = samples[i], lengths[i] = next + 1, positions[i] = next;
    slots[i] = table[i * per + next / size] * size + next % size;
  }
  write(c.tensor(0), tokens), write(c.tensor(2), positions), write(c.tensor(3), lengths),
      write(c.tensor(4), slots);
  return ACL_SUCCESS;
}
// With speculation: (inputTokens, sampledTokenIds, inputPositions, seqLens, slotMapping,
// blockTables, specToken, acceptedNum, numSeqs, numQueries, blockSize).
aclnnStatus check_advance_spec(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 3, 4, 5, 6, 7}));
  const int64_t seqs = c.integer(8), each = 1 + width_of(c.tensor(6));
  ACL_RETURN_IF_FAILED(expect_numel(c, 7, seqs));
  ACL_RETURN_IF_FAILED(expect_numel(c, 6, seqs * (each - 1)));
  for (int i : {0, 2, 3, 4}) ACL_RETURN_IF_FAILED(expect_numel(c, i, seqs * each));
  return c.integer(10) < 1 || rows_of(c.tensor(1)) != seqs || rows_of(c.tensor(5)) < seqs
             ? expect_numel(c, 1, seqs)
             : ACLNN_SUCCESS;
}
aclError run_advance_spec(Call& c) {
  Ints tokens = integers(c.tensor(0)), positions = integers(c.tensor(2)), slots(positions.size()),
       lengths(positions.size());
  const Ints samples = integers(c.tensor(1)), table = integers(c.tensor(5)),
             spec = integers(c.tensor(6)), accepted = integers(c.tensor(7));
  const int64_t size = c.integer(10), per = width_of(c.tensor(5)), wide = width_of(c.tensor(1)),
                each = 1 + width_of(c.tensor(6));
  for (int64_t s = 0; s < c.integer(8); ++s) {
    int64_t last = 0;  // the sample before the first that is -1
    while (last + 1 < wide && samples[s * wide + last + 1] != -1) ++last;
    for (int64_t j = 0; j < each; ++j) {
      const int64_t at = s * each + j;
      positions[at] += accepted[s] + 1, lengths[at] = positions[at] + 1;
      tokens[at] = j == 0 ? samples[s * wide + last] : spec[s * (each - 1) + j - 1];
      if (positions[at] / size >= per)
        return c.trap(507015, "A sequence is longer than its block table.");
      slots[at] = table[s * per + positions[at] / size] * size + positions[at] % size;
    }
  }
  write(c.tensor(0), tokens), write(c.tensor(2), positions), write(c.tensor(3), lengths),
      write(c.tensor(4), slots);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

#define ACLNN_STATE(op, ...) ACLNN_OP_FLAGS(op, __VA_ARGS__, kOwnNulls | kOwnLimits)
ACLNN_STATE(aclnnRecurrentGatedDeltaRule, check_recurrent, run_recurrent)
ACLNN_STATE(aclnnChunkGatedDeltaRule, check_chunk, run_chunk)
ACLNN_STATE(aclnnMhcPost, check_post, run_post)
ACLNN_STATE(aclnnMhcPostBackward, check_post_grad, run_post_grad)
ACLNN_STATE(aclnnMhcPre, check_pre, run_pre)
ACLNN_STATE(aclnnMhcSinkhorn, check_sinkhorn, run_sinkhorn)
ACLNN_STATE(aclnnMhcSinkhornBackward, check_sinkhorn_grad, run_sinkhorn_grad)
ACLNN_STATE(aclnnAttentionUpdate, check_update, run_update)
ACLNN_STATE(aclnnRingAttentionUpdate, check_ring<8>, run_ring<8>)
ACLNN_STATE(aclnnRingAttentionUpdateV2, check_ring<9>, run_ring<9>)
ACLNN_STATE(aclnnAdvanceStep, check_advance, run_advance)
ACLNN_STATE(aclnnAdvanceStepV2, check_advance_spec, run_advance_spec)
