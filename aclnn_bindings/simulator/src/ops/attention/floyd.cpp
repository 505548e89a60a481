// Attention whose keys and values have two parts, one for each row of queries and one for each
// column. Formula: the "npu_fused_floyd_attention" page of torch_npu and its test.
#include "params/attention.h"
#include "loops/values.h"

#include <cmath>

namespace aclsim {
namespace {

// Queries [b, h, i, k, c]; the first keys and values [b, h, i, j, c], the second [b, h, j, k, c].
struct FloydSizes {
  int64_t outer, i, j, k, c;
  int64_t query(int64_t o, int64_t a, int64_t e) const { return ((o * i + a) * k + e) * c; }
  int64_t first(int64_t o, int64_t a, int64_t b) const { return ((o * i + a) * j + b) * c; }
  int64_t second(int64_t o, int64_t b, int64_t e) const { return ((o * j + b) * k + e) * c; }
};
FloydSizes sizes_of(const Call& c) {
  using P = params::FusedFloydAttention;

  const int64_t *q = c.tensor(P::query).dims, *k1 = c.tensor(P::key1).dims;
  return {q[0] * q[1], q[2], k1[3], q[3], q[4]};
}
aclnnStatus check_parts(const Call& c, int mask, int top) {
  using P = params::FusedFloydAttention;

  const Tensor &q = c.tensor(P::query), &k1 = c.tensor(P::key1), &k2 = c.tensor(P::key2);
  const bool fits = q.rank == 5 && k1.rank == 5 && k2.rank == 5 && k1.dims[2] == q.dims[2] &&
                    k2.dims[2] == k1.dims[3] && k2.dims[3] == q.dims[3] &&
                    k1.dims[4] == q.dims[4] && k2.dims[4] == q.dims[4] && k1.dims[0] == q.dims[0] &&
                    k1.dims[1] == q.dims[1] && k2.dims[0] == q.dims[0] && k2.dims[1] == q.dims[1];
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "query %s, key1 %s and key2 %s do not fit.",
                  shape_text(q), shape_text(k1), shape_text(k2));
  }
  if (!c.null(mask) && c.tensor(mask).numel()) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is not supported by the simulator.", c.name(mask));
  }
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::value1, P::key1));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::value2, P::key2));
  for (int s : {top, top + 1}) ACL_RETURN_IF_FAILED(expect_numel(c, s, rows_of(q) * 8));
  return ACLNN_SUCCESS;
}
struct Data {
  Floats q, k1, v1, k2, v2;
};
Data data_of(const Call& c) {
  using P = params::FusedFloydAttention;

  return {floats(c.tensor(P::query)), floats(c.tensor(P::key1)), floats(c.tensor(P::value1)),
          floats(c.tensor(P::key2)), floats(c.tensor(P::value2))};
}
Doubles scores_of(const Data& d, const FloydSizes& s, int64_t o, int64_t a, int64_t e, double scale) {
  Doubles x(static_cast<size_t>(s.j));
  const float* q = &d.q[s.query(o, a, e)];
  for (int64_t b = 0; b < s.j; ++b) {
    const float *f = &d.k1[s.first(o, a, b)], *g = &d.k2[s.second(o, b, e)];
    for (int64_t i = 0; i < s.c; ++i) x[b] += static_cast<double>(q[i]) * (f[i] + g[i]);
    x[b] *= scale;
  }
  return x;
}
// f(outer, row, column) for all queries.
template <class F>
void each_query(const FloydSizes& s, F f) {
  for (int64_t o = 0; o < s.outer; ++o) {
    for (int64_t a = 0; a < s.i; ++a) {
      for (int64_t e = 0; e < s.k; ++e) f(o, a, e);
    }
  }
}
aclnnStatus check_floyd(Call& c) {
  using P = params::FusedFloydAttention;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::query, P::key1, P::value1, P::key2, P::value2,
                                        P::softmaxMaxOut, P::softmaxSumOut, P::attentionOutOut}));
  ACL_RETURN_IF_FAILED(check_parts(c, P::attenMaskOptional, P::softmaxMaxOut));
  return expect_same_shape(c, P::attentionOutOut, P::query);
}
void run_floyd(Call& c) {
  using P = params::FusedFloydAttention;

  const FloydSizes s = sizes_of(c);
  const Data d = data_of(c);
  Floats out(d.q.size()), tops, sums;
  each_query(s, [&](int64_t o, int64_t a, int64_t e) {
    Doubles p = scores_of(d, s, o, a, e, c.number(P::scaleValueOptional));
    const double top = *std::max_element(p.begin(), p.end());
    double sum = 0;
    for (double& v : p) sum += v = std::exp(v - top);
    for (int64_t b = 0; b < s.j; ++b) {
      for (int64_t i = 0; i < s.c; ++i) {
        out[s.query(o, a, e) + i] += static_cast<float>(
            p[b] / sum * (d.v1[s.first(o, a, b) + i] + d.v2[s.second(o, b, e) + i]));
      }
    }
    tops.insert(tops.end(), 8, static_cast<float>(top)),
        sums.insert(sums.end(), 8, static_cast<float>(sum));
  });
  write(c.tensor(P::softmaxMaxOut), tops), write(c.tensor(P::softmaxSumOut), sums),
      write(c.tensor(P::attentionOutOut), out);
}
aclnnStatus check_floyd_grad(Call& c) {
  using P = params::FusedFloydAttentionGrad;

  ACL_RETURN_IF_FAILED(
      expect_given(c, {P::query, P::key1, P::value1, P::key2, P::value2, P::dy, P::softmaxMax,
                       P::softmaxSum, P::dqOut, P::dk1Out, P::dv1Out, P::dk2Out, P::dv2Out}));
  ACL_RETURN_IF_FAILED(check_parts(c, P::attenMaskOptional, P::softmaxMax));
  for (int i = P::query; i < 5; ++i) ACL_RETURN_IF_FAILED(expect_same_shape(c, P::dqOut + i, i));
  return expect_same_shape(c, P::dy, P::query);
}
void run_floyd_grad(Call& c) {
  using P = params::FusedFloydAttentionGrad;

  const FloydSizes s = sizes_of(c);
  const Data d = data_of(c);
  const Floats dy = floats(c.tensor(P::dy)), tops = floats(c.tensor(P::softmaxMax)),
               sums = floats(c.tensor(P::softmaxSum));
  const double scale = c.number(P::scaleValue);
  Doubles dq(d.q.size()), dk1(d.k1.size()), dv1(d.v1.size()), dk2(d.k2.size()), dv2(d.v2.size());
  size_t row = 0;
  each_query(s, [&](int64_t o, int64_t a, int64_t e) {
    Doubles p = scores_of(d, s, o, a, e, scale), dp(p.size());
    const int64_t q = s.query(o, a, e);
    double delta = 0;
    for (int64_t b = 0; b < s.j; ++b) {
      const int64_t f = s.first(o, a, b), g = s.second(o, b, e);
      p[b] = std::exp(p[b] - tops[row * 8]) / sums[row * 8];
      for (int64_t i = 0; i < s.c; ++i) {
        dp[b] += static_cast<double>(dy[q + i]) * (d.v1[f + i] + d.v2[g + i]);
        dv1[f + i] += p[b] * dy[q + i], dv2[g + i] += p[b] * dy[q + i];
      }
      delta += p[b] * dp[b];
    }
    for (int64_t b = 0; b < s.j; ++b) {
      const int64_t f = s.first(o, a, b), g = s.second(o, b, e);
      const double ds = p[b] * (dp[b] - delta) * scale;
      for (int64_t i = 0; i < s.c; ++i) {
        dq[q + i] += ds * (d.k1[f + i] + d.k2[g + i]);
        dk1[f + i] += ds * d.q[q + i], dk2[g + i] += ds * d.q[q + i];
      }
    }
    ++row;
  });
  write(c.tensor(P::dqOut), dq), write(c.tensor(P::dk1Out), dk1), write(c.tensor(P::dv1Out), dv1),
      write(c.tensor(P::dk2Out), dk2), write(c.tensor(P::dv2Out), dv2);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP_FLAGS(aclnnFusedFloydAttention, check_floyd, run_floyd, kOwnNulls | kOwnLimits)
ACLNN_OP_FLAGS(aclnnFusedFloydAttentionGrad, check_floyd_grad, run_floyd_grad,
               kOwnNulls | kOwnLimits)
