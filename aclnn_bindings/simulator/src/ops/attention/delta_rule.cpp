// Gated delta rules: recurrences over tokens. Formulas: the "npu_recurrent_gated_delta_rule" and
// "npu_chunk_gated_delta_rule" pages of torch_npu.
#include "loops/values.h"

#include <cmath>
#include <cstring>

namespace aclsim {
namespace {

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

}  // namespace
}  // namespace aclsim

#define ACLNN_STATE(op, ...) ACLNN_OP_FLAGS(op, __VA_ARGS__, kOwnNulls | kOwnLimits)
ACLNN_STATE(aclnnRecurrentGatedDeltaRule, check_recurrent, run_recurrent)
ACLNN_STATE(aclnnChunkGatedDeltaRule, check_chunk, run_chunk)
