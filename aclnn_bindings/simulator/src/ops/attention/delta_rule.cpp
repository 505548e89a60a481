// Gated delta rules: recurrences over tokens. Formulas: the "npu_recurrent_gated_delta_rule" and
// "npu_chunk_gated_delta_rule" pages of torch_npu.
#include "params/attention.h"
#include "loops/values.h"

#include <cmath>

namespace aclsim {
namespace {

// (query, key, value, beta, stateRef, lengths, stateIndices, g, gk, accepted, scale, out): tokens
// [tokens, heads, width], a state [value width, key width] for each value head.
aclnnStatus check_sizes(const Call& c, int state, int g) {
  using P = params::ChunkGatedDeltaRule;

  const Tensor &q = c.tensor(P::query), &k = c.tensor(P::key), &v = c.tensor(P::value),
               &s = c.tensor(state);
  const bool fits = q.rank == 3 && v.rank == 3 && s.rank == 4 && q.same_shape(k) &&
                    q.dims[0] == v.dims[0] && s.dims[1] == v.dims[1] && s.dims[2] == v.dims[2] &&
                    s.dims[3] == k.dims[2] && q.dims[1] > 0 && v.dims[1] % q.dims[1] == 0;
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "query %s, key %s, value %s and state %s do not fit.",
                  shape_text(q), shape_text(k), shape_text(v), shape_text(s));
  }
  for (int i : std::initializer_list<int>{P::beta, g})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, v.dims[0] * v.dims[1]));
  return ACLNN_SUCCESS;
}
aclnnStatus check_recurrent(Call& c) {
  using P = params::RecurrentGatedDeltaRule;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::query, P::key, P::value, P::stateRef,
                                        P::actualSeqLengths, P::ssmStateIndices, P::out}));
  ACL_RETURN_IF_FAILED(check_sizes(c, P::stateRef, P::g));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::ssmStateIndices, c.tensor(P::value).dims[0]));
  ACL_RETURN_IF_FAILED(expect_numel(
      c, P::gk,
      c.tensor(P::value).dims[0] * c.tensor(P::value).dims[1] * c.tensor(P::key).dims[2]));
  ACL_RETURN_IF_FAILED(
      expect_numel(c, P::numAcceptedTokens, c.tensor(P::actualSeqLengths).numel()));
  return expect_same_shape(c, P::out, P::value);
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
  using P = params::ChunkGatedDeltaRule;

  const Tensor &k = c.tensor(P::key), &v = c.tensor(P::value);
  return {floats(c.tensor(P::query)), floats(k), floats(v), floats(at_or_null(c, P::beta)),
          floats(at_or_null(c, g)),   k.dims[1], v.dims[1], v.dims[1] / k.dims[1],
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
  using P = params::RecurrentGatedDeltaRule;

  const Tokens t = tokens_of(c, P::g);
  const Floats gk = floats(at_or_null(c, P::gk));
  const Ints lengths = integers(c.tensor(P::actualSeqLengths)),
             places = integers(c.tensor(P::ssmStateIndices)),
             accepted = integers(at_or_null(c, P::numAcceptedTokens));
  Doubles state = doubles(c.tensor(P::stateRef));
  const int64_t each = t.d.dv * t.d.dk, blocks = c.tensor(P::stateRef).dims[0];
  for (int64_t p : places) {
    if (p < 0 || p >= blocks) return c.trap(507015, "A state index lies outside of the states.");
  }
  Floats out(t.v.size());
  int64_t first = 0;
  for (size_t b = 0; b < lengths.size(); ++b) {
    if (lengths[b] <= 0) continue;
    const int64_t from = places[first + (accepted.empty() ? 0 : accepted[b] - 1)];
    for (int64_t n = 0; n < t.heads; ++n) {
      const auto begin = state.begin() + (from * t.heads + n) * each;
      Doubles s(begin, begin + each);
      for (int64_t i = first; i < first + lengths[b]; ++i) {
        advance(t, i, n, gk.empty() ? nullptr : gk.data(), c.number(P::scaleValue), s.data(),
                out.data());
        std::copy(s.begin(), s.end(), state.begin() + (places[i] * t.heads + n) * each);
      }
    }
    first += lengths[b];
  }
  write(c.tensor(P::stateRef), state), write(c.tensor(P::out), out);
  return ACL_SUCCESS;
}
aclnnStatus check_chunk(Call& c) {
  using P = params::ChunkGatedDeltaRule;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::query, P::key, P::value, P::beta, P::initialState,
                                        P::actualSeqLengths, P::out, P::finalState}));
  ACL_RETURN_IF_FAILED(check_sizes(c, P::initialState, P::gOptional));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::actualSeqLengths, c.tensor(P::initialState).dims[0]));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::finalState, P::initialState));
  return expect_same_shape(c, P::out, P::value);
}
void run_chunk(Call& c) {
  using P = params::ChunkGatedDeltaRule;

  const Tokens t = tokens_of(c, P::gOptional);
  const Ints lengths = integers(c.tensor(P::actualSeqLengths));
  Doubles state = doubles(c.tensor(P::initialState));
  Floats out(t.v.size());
  int64_t first = 0;
  for (size_t b = 0; b < lengths.size(); first += lengths[b++]) {
    for (int64_t n = 0; n < t.heads; ++n) {
      double* s = state.data() + (static_cast<int64_t>(b) * t.heads + n) * t.d.dv * t.d.dk;
      for (int64_t i = first; i < first + lengths[b]; ++i)
        advance(t, i, n, nullptr, c.number(P::scaleValue), s, out.data());
    }
  }
  write(c.tensor(P::out), out), write(c.tensor(P::finalState), state);
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnRecurrentGatedDeltaRule, check_recurrent, run_recurrent)
ACLNN_OWN(aclnnChunkGatedDeltaRule, check_chunk, run_chunk)
