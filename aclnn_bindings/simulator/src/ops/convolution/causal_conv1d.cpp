// Depthwise convolutions over what came before, with states of cached sequences. Formulas: torch_npu's
// tests of npu_fused_causal_conv1d; vLLM's causal_conv1d_fn and causal_conv1d_update.
#include "params/convolution.h"
#include <cmath>
#include <cstring>

#include "loops/group.h"

namespace aclsim {
namespace {

const Tensor* part(const Call& c, const char* name) { return at_or_null(c, named(c, name)); }
int64_t setting(const Call& c, const char* name, int64_t other) {
  const int at = named(c, name);
  return at == kNone ? other : c.integer(at);
}
int64_t pad_slot(const Call& c) { return setting(c, "padSlotId", setting(c, "nullBlockId", -1)); }
// Whether values go through the sigmoid-weighted unit; false in `known` for other activations.
bool swishes(const Call& c, bool& known) {
  const int at = named(c, "activation");
  if (at == kNone) {
    const int64_t mode = setting(c, "activationMode", 0);
    known = mode == 0 || mode == 1;
    return mode == 1;
  }
  const char* text = c.text(at);
  const bool none = !text || !*text || !std::strcmp(text, "none") || !std::strcmp(text, "None");
  known = none || !std::strcmp(text, "silu") || !std::strcmp(text, "swish");
  return !none;
}

// x [tokens, dim] or [batch, tokens, dim], weight [width, dim], states [slots, length, dim].
struct Sizes {
  int64_t tokens, batch, dim, width, length, slots;
};
aclnnStatus check_causal(Call& c) {
  using P = params::CausalConv1dFn;

  const int y = named(c, "y");
  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::weight, P::convStatesRef}));
  if (y != kNone) ACL_RETURN_IF_FAILED(expect_given(c, {y}));
  const Tensor &x = c.tensor(P::x), &w = c.tensor(P::weight), &states = c.tensor(P::convStatesRef);
  const Tensor* starts = part(c, "queryStartLoc");
  Sizes& s = c.make<Sizes>();
  bool known = true;
  swishes(c, known);
  bool fits = known && (x.rank == 2 || x.rank == 3) && w.rank == 2 && states.rank == 3 &&
              (starts || x.rank == 3) && (!starts || starts->numel() >= 1);
  if (fits) {
    s = {rows_of(x), starts ? starts->numel() - 1 : x.dims[0], width_of(x), w.dims[0],
         states.dims[1], states.dims[0]};
    fits = w.dims[1] == s.dim && states.dims[2] == s.dim && s.width >= 1 && s.length >= s.width - 1;
  }
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "x %s, weight %s and convStates %s do not fit, queryStartLoc is missing, or the "
                  "activation is neither none nor silu.",
                  shape_text(x), shape_text(w), shape_text(states));
  }
  for (const char* name : {"blockIdxFirstScheduledToken", "blockIdxLastScheduledToken",
                           "initialStateIdx"}) {
    if (part(c, name))
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is not supported by the simulator.", name);
  }
  for (const char* name : {"cacheIndices", "initialStateMode", "numAcceptedTokens", "numComputedTokens"}) {
    if (part(c, name)) ACL_RETURN_IF_FAILED(expect_numel(c, named(c, name), s.batch));
  }
  if (part(c, "bias")) ACL_RETURN_IF_FAILED(expect_numel(c, named(c, "bias"), s.dim));
  if (!part(c, "cacheIndices") && s.slots < s.batch)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "convStates %s has no slot for each of %lld sequences.",
                  shape_text(states), static_cast<long long>(s.batch));
  return y == kNone ? ACLNN_SUCCESS : expect_same_shape(c, y, P::x);
}

// One sequence: `before` rows of state and the new rows, convolved; the first `zeros` rows give nothing
// but what the residual adds.
void convolve(const Call& c, const Sizes& s, const Floats& padded, const Floats& w, const Floats& bias,
              int64_t first, int64_t count, int64_t zeros, Floats& x) {
  bool known;
  const bool swish = swishes(c, known), residual = setting(c, "residualConnection", 0) != 0;
  for (int64_t t = 0; t < count; ++t) {
    for (int64_t d = 0; d < s.dim; ++d) {
      double sum = bias.empty() ? 0 : bias[d];
      for (int64_t k = 0; k < s.width; ++k)
        sum += static_cast<double>(w[k * s.dim + d]) * padded[(t + k) * s.dim + d];
      if (swish) sum = sum / (1 + std::exp(-sum));
      if (t < zeros) sum = 0;
      float& to = x[(first + t) * s.dim + d];
      to = static_cast<float>(residual ? sum + to : sum);
    }
  }
}
aclError run_causal(Call& c) {
  using P = params::CausalConv1dFn;

  const Sizes& s = c.get<Sizes>();
  const int y = named(c, "y");
  Floats x = floats(c.tensor(P::x)), states = floats(c.tensor(P::convStatesRef));
  const Floats w = floats(c.tensor(P::weight)), bias = floats(part(c, "bias"));
  Ints starts = integers(part(c, "queryStartLoc"));
  if (starts.empty()) {
    for (int64_t b = 0; b <= s.batch; ++b) starts.push_back(b * (s.tokens / s.batch));
  }
  const Ints slots = integers(part(c, "cacheIndices")), initial = integers(part(c, "initialStateMode")),
             accepted = integers(part(c, "numAcceptedTokens")),
             computed = integers(part(c, "numComputedTokens"));
  const int64_t keep = s.width - 1, cache = s.length * s.dim;
  for (int64_t b = 0; b < s.batch; ++b) {
    const int64_t slot = slots.empty() ? b : slots[b], first = starts[b], count = starts[b + 1] - first;
    if (slot == pad_slot(c)) continue;
    if (slot < 0 || slot >= s.slots || first < 0 || count < 0 || starts[b + 1] > s.tokens)
      return c.trap(507015, "slot %lld or rows from %lld on are out of range",
                    static_cast<long long>(slot), static_cast<long long>(first));
    const bool fresh = (!computed.empty() && computed[b] == 0) || (!initial.empty() && initial[b] == 0);
    int64_t offset = fresh ? 0 : accepted.empty() ? s.length - keep : accepted[b] - 1;
    if (offset < 0 || offset + keep > s.length) return c.trap(507015, "numAcceptedTokens leave convStates");
    Floats padded(static_cast<size_t>((offset + keep) * s.dim));
    const auto state = states.begin() + slot * cache;
    if (!fresh) std::copy_n(state, padded.size(), padded.begin());
    padded.insert(padded.end(), x.begin() + first * s.dim, x.begin() + (first + count) * s.dim);
    const auto last = std::min<int64_t>(cache, static_cast<int64_t>(padded.size()));
    std::copy(padded.end() - last, padded.end(), state + (cache - last));
    padded.erase(padded.begin(), padded.begin() + offset * s.dim);
    const bool reset = setting(c, "convMode", 0) == 1 && !computed.empty();
    convolve(c, s, padded, w, bias, first, count, reset ? keep - computed[b] : 0, x);
  }
  write(c.tensor(P::convStatesRef), states);
  write(c.tensor(y == kNone ? P::x : y), x);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnFusedCausalConv1d, check_causal, run_causal)
ACLNN_OWN(aclnnInplaceFusedCausalConv1d, check_causal, run_causal)
ACLNN_OWN(aclnnCausalConv1dFn, check_causal, run_causal)
ACLNN_OWN(aclnnCausalConv1dUpdate, check_causal, run_causal)
