// Attention of shifted windows in eight bits: norm, quantisation and product of the input, and scores.
// Formulas: the operator documents of aclnnSwinTransformerLnQkvQuant and aclnnSwinAttentionScoreQuant;
// Liu et al., "Swin Transformer", arXiv 2103.14030. Choices are listed in docs/unspecified_ops.md.
#include "params/attention.h"
#include <cmath>

#include "loops/matrices.h"

namespace aclsim {
namespace {

const Tensor* maybe(const Call& c, int arg) {
  return c.null(arg) || c.tensor(arg).numel() == 0 ? nullptr : c.maybe(arg);
}
float eight_bits(double x) {
  return static_cast<float>(std::min(std::max(std::nearbyint(x), -128.0), 127.0));
}

// (query, key, value, scaleQuant, scaleDequant1, scaleDequant2, biasQuant, biasDequant1, biasDequant2,
// mask1, mask2, queryTranspose, keyTranspose, valueTranspose, softmaxAxes, out), all [B, N, S, D].
struct Scores {
  int64_t batch, heads, queries, keys, depth, wide;
};
Scores scores_of(const Call& c) {
  using P = params::SwinAttentionScoreQuant;

  const Tensor &q = c.tensor(P::query), &k = c.tensor(P::key), &v = c.tensor(P::value);
  const int turned = c.flag(P::keyTranspose) ? 2 : 3;  // where the key's depth is
  return {q.dims[0], q.dims[1], q.dims[2], k.dims[5 - turned], q.dims[3], v.dims[3]};
}
// A mask over [batch, heads, queries, keys], whose dims may be 1 or missing; windows repeat.
aclnnStatus expect_mask(const Call& c, int arg, const Scores& s) {
  const Tensor* t = maybe(c, arg);
  if (!t) return ACLNN_SUCCESS;
  const int64_t dims[4] = {s.batch, s.heads, s.queries, s.keys};
  bool fits = t->rank >= 2 && t->rank <= 4;
  for (int i = 0; fits && i < t->rank; ++i) {
    const int64_t given = t->dims[t->rank - 1 - i], whole = dims[3 - i];
    fits = given == 1 || given == whole || (i == 3 && whole % given == 0);
  }
  return fits ? ACLNN_SUCCESS
              : c.fail(ACLNN_ERR_PARAM_INVALID, "%s %s should spread over the scores.", c.name(arg),
                       shape_text(*t));
}
aclnnStatus check_scores(Call& c) {
  using P = params::SwinAttentionScoreQuant;

  for (int i : {P::query, P::key, P::value, P::out}) {
    if (c.tensor(i).rank != 4 || c.tensor(i).numel() == 0)
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have the shape [B, N, S, D].", c.name(i));
  }
  const Scores s = scores_of(c);
  const Tensor &k = c.tensor(P::key), &v = c.tensor(P::value);
  const bool fits = k.dims[0] == s.batch && v.dims[0] == s.batch && k.dims[1] == s.heads &&
                    v.dims[1] == s.heads && k.dims[c.flag(P::keyTranspose) ? 2 : 3] == s.depth &&
                    v.dims[2] == s.keys && !c.flag(P::queryTranspose) &&
                    !c.flag(P::valueTranspose) &&
                    (c.integer(P::softmaxAxes) == -1 || c.integer(P::softmaxAxes) == 3);
  if (!fits)
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "query, key and value do not fit, or query or value is transposed, or softmaxAxes "
                  "is not the last.");
  for (int i : {P::scaleQuant, P::scaleDequant1, P::biasQuantOptional, P::biasDequant1Optional}) {
    if (maybe(c, i) && c.tensor(i).numel() != 1) ACL_RETURN_IF_FAILED(expect_numel(c, i, s.keys));
  }
  for (int i : {P::scaleDequant2, P::biasDequant2Optional}) {
    if (maybe(c, i) && c.tensor(i).numel() != 1) ACL_RETURN_IF_FAILED(expect_numel(c, i, s.wide));
  }
  for (int i : {P::paddingMask1Optional, P::paddingMask2Optional})
    ACL_RETURN_IF_FAILED(expect_mask(c, i, s));
  return expect_numel(c, P::out, s.batch * s.heads * s.queries * s.wide);
}
void add_mask(Floats& score, const Tensor* t, const Scores& s) {
  if (!t) return;
  const Floats m = floats(t);
  int64_t dims[4] = {1, 1, 1, 1};
  for (int i = 0; i < t->rank; ++i) dims[4 - t->rank + i] = t->dims[i];
  for (size_t i = 0; i < score.size(); ++i) {
    auto left = static_cast<int64_t>(i);
    const int64_t k = left % s.keys, q = (left /= s.keys) % s.queries, n = (left /= s.queries) % s.heads,
                  b = left / s.heads;
    score[i] += m[((b % dims[0] * dims[1] + n % dims[1]) * dims[2] + q % dims[2]) * dims[3] + k % dims[3]];
  }
}
Matrices by_heads(const Tensor& t, bool turned) {
  Tensor flat = t;
  Matrices m = matrices_of(flat, turned, false);
  return m;
}
void run_scores(Call& c) {
  using P = params::SwinAttentionScoreQuant;

  const Scores s = scores_of(c);
  const auto one = [](const Floats& v, int64_t i, float other) {
    return v.empty() ? other : v[v.size() == 1 ? 0 : i];
  };
  const Matrices products = product(by_heads(c.tensor(P::query), false),
                                    by_heads(c.tensor(P::key), !c.flag(P::keyTranspose)));
  const Floats scale1 = packed_scales(maybe(c, P::scaleDequant1)),
               bias1 = floats(maybe(c, P::biasDequant1Optional)),
               scale2 = packed_scales(maybe(c, P::scaleDequant2)),
               bias2 = floats(maybe(c, P::biasDequant2Optional)),
               quant = floats(maybe(c, P::scaleQuant)),
               shift = floats(maybe(c, P::biasQuantOptional));
  Floats score(products.v.size());
  for (size_t i = 0; i < score.size(); ++i) {
    const auto k = static_cast<int64_t>(i) % s.keys;
    score[i] = static_cast<float>((products.v[i] + one(bias1, k, 0)) * one(scale1, k, 1));
  }
  add_mask(score, maybe(c, P::paddingMask1Optional), s);
  add_mask(score, maybe(c, P::paddingMask2Optional), s);
  Matrices share = {Doubles(score.size()), s.batch * s.heads, s.queries, s.keys};
  for (size_t row = 0; row < score.size(); row += static_cast<size_t>(s.keys)) {
    float top = score[row];
    for (int64_t k = 0; k < s.keys; ++k) top = std::max(top, score[row + k]);
    double sum = 0;
    for (int64_t k = 0; k < s.keys; ++k) sum += std::exp(static_cast<double>(score[row + k]) - top);
    for (int64_t k = 0; k < s.keys; ++k) {
      const double p = std::exp(static_cast<double>(score[row + k]) - top) / sum;
      share.v[row + k] = eight_bits(p * one(quant, k, 1) + one(shift, k, 0));
    }
  }
  Matrices out = product(share, by_heads(c.tensor(P::value), false));
  for (size_t i = 0; i < out.v.size(); ++i) {
    const auto j = static_cast<int64_t>(i) % s.wide;
    out.v[i] = (out.v[i] + one(bias2, j, 0)) * one(scale2, j, 1);
  }
  write(c.tensor(P::out), out.v);
}

// (x [B, S, H], gamma, beta, weight, bias, quantScale, quantOffset, dequantScale, headNum, seqLength,
// eps, height, width, window height, window width, weightTranspose, q, k, v [windows, N, S, D]).
aclnnStatus check_projection(Call& c) {
  using P = params::SwinTransformerLnQkvQuant;

  const Tensor& x = c.tensor(P::x);
  const int64_t heads = c.integer(P::headNum), depth = c.integer(P::seqLength),
                height = c.integer(P::oriHeight), width = c.integer(P::oriWeight),
                high = c.integer(P::hWinSize), wide = c.integer(P::wWinSize);
  if (x.rank != 3 || heads < 1 || depth < 1 || x.dims[2] != heads * depth || high < 1 || wide < 1 ||
      height % high != 0 || width % wide != 0 || x.dims[1] != height * width) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "x %s does not fit headNum, seqLength, oriHeight, oriWeight and the windows.",
                  shape_text(x));
  }
  const int64_t h = x.dims[2];
  const Matrices w = matrices_like(c.tensor(P::weight), c.flag(P::weightTranspose), false);
  if (w.batch != 1 || w.rows != h || w.cols != 3 * h)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "weight %s should be [%lld, %lld]%s.",
                  shape_text(c.tensor(P::weight)), static_cast<long long>(h),
                  static_cast<long long>(3 * h), c.flag(P::weightTranspose) ? ", transposed" : "");
  for (int i : {P::gamma, P::beta}) ACL_RETURN_IF_FAILED(expect_numel(c, i, h));
  for (int i : {P::quantScale, P::quantOffset}) {
    if (c.tensor(i).numel() != 1) ACL_RETURN_IF_FAILED(expect_numel(c, i, h));
  }
  for (int i : {P::bias, P::dequantScale}) ACL_RETURN_IF_FAILED(expect_numel(c, i, 3 * h));
  for (int i : {P::queryOutputOut, P::keyOutputOut, P::valueOutputOut})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, x.numel()));
  return ACLNN_SUCCESS;
}
void run_projection(Call& c) {
  using P = params::SwinTransformerLnQkvQuant;

  const Tensor& t = c.tensor(P::x);
  const int64_t h = t.dims[2], pixels = t.dims[1], heads = c.integer(P::headNum),
                depth = c.integer(P::seqLength), width = c.integer(P::oriWeight),
                high = c.integer(P::hWinSize), wide = c.integer(P::wWinSize), across = width / wide,
                down = c.integer(P::oriHeight) / high, area = high * wide;
  const Floats x = floats(t), gamma = floats(c.tensor(P::gamma)), beta = floats(c.tensor(P::beta)),
               scale = floats(c.tensor(P::quantScale)), shift = floats(c.tensor(P::quantOffset)),
               back = packed_scales(c.maybe(P::dequantScale)), bias = floats(c.tensor(P::bias));
  Matrices q = {Doubles(x.size()), 1, t.dims[0] * pixels, h};
  for (int64_t row = 0; row < q.rows; ++row) {
    const float* in = x.data() + row * h;
    double mean = 0, square = 0;
    for (int64_t i = 0; i < h; ++i) mean += in[i];
    mean /= static_cast<double>(h);
    for (int64_t i = 0; i < h; ++i) square += (in[i] - mean) * (in[i] - mean);
    const double rstd = 1 / std::sqrt(square / static_cast<double>(h) + c.number(P::epsilon));
    for (int64_t i = 0; i < h; ++i) {
      const double y = (in[i] - mean) * rstd * gamma[i] + beta[i];
      q.v[row * h + i] = eight_bits(y * scale[scale.size() == 1 ? 0 : i] + shift[shift.size() == 1 ? 0 : i]);
    }
  }
  const Matrices m =
      product(q, matrices_of(c.tensor(P::weight), c.flag(P::weightTranspose), false));
  for (int part = 0; part < 3; ++part) {
    Floats out(x.size());
    for (int64_t row = 0; row < m.rows; ++row) {
      const int64_t b = row / pixels, y = row % pixels / width, z = row % width,
                    window = (b * down + y / high) * across + z / wide,
                    at = y % high * wide + z % wide;
      for (int64_t i = 0; i < h; ++i) {
        const int64_t j = part * h + i;
        out[((window * heads + i / depth) * area + at) * depth + i % depth] =
            static_cast<float>((m.v[row * 3 * h + j] + bias[j]) * back[j]);
      }
    }
    write(c.tensor(P::queryOutputOut + part), out);
  }
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnSwinAttentionScoreQuant, check_scores, run_scores)
ACLNN_OP(aclnnSwinTransformerLnQkvQuant, check_projection, run_projection)
