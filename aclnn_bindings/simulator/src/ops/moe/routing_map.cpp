// Tokens permuted by a map [tokens, experts] of which expert takes which token, and their
// gradients. Formulas: Megatron-LM's moe_utils (permute, unpermute with a routing map), as the
// tests of torch_npu state them.
#include "params/moe.h"
#include "loops/values.h"

namespace aclsim {
namespace {

// Permuted row i is token `tokens[i]`, for expert `experts[i]`; rows lie expert by expert.
struct Rows {
  Ints tokens, experts;
};
Rows rows_of_map(const Ints& map, int64_t tokens, int64_t experts) {
  Rows r;
  for (int64_t e = 0; e < experts; ++e) {
    for (int64_t t = 0; t < tokens; ++t) {
      if (map[t * experts + e]) r.tokens.push_back(t), r.experts.push_back(e);
    }
  }
  return r;
}
// Each expert's first `capacity` tokens; those that it does not take fill up what is left.
Rows padded_rows(const Ints& map, int64_t tokens, int64_t experts, int64_t capacity) {
  Rows r;
  for (int64_t e = 0; e < experts; ++e) {
    int64_t place = 0;
    for (bool taken : {true, false}) {
      for (int64_t t = 0; t < tokens && place < capacity; ++t) {
        if ((map[t * experts + e] != 0) != taken) continue;
        r.tokens.push_back(t), r.experts.push_back(e), ++place;
      }
    }
  }
  return r;
}
// Where each row lies once rows are sorted by token.
Ints by_token(const Ints& tokens) {
  Ints order(tokens.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return tokens[a] < tokens[b]; });
  return order;
}
aclError expect_below(Call& c, int arg, const Ints& v, int64_t limit) {
  for (int64_t i : v) {
    if (i < 0 || i >= limit)
      return c.trap(507015, "%s holds %lld, outside [0, %lld).", c.name(arg), static_cast<long long>(i),
                    static_cast<long long>(limit));
  }
  return ACL_SUCCESS;
}

aclnnStatus check_permute(Call& c) {
  using P = params::MoeTokenPermuteWithRoutingMap;

  ACL_RETURN_IF_FAILED(
      expect_given(c, {P::tokens, P::routingMap, P::permuteTokensOut, P::sortedIndicesOut}));
  const Tensor &x = c.tensor(P::tokens), &map = c.tensor(P::routingMap);
  if (map.rank != 2 || x.rank != 2 || map.dims[0] != x.dims[0])
    return refuse_fit(c, P::routingMap, P::tokens);
  if (!c.null(P::probsOptional))
    ACL_RETURN_IF_FAILED(expect_same_shape(c, P::probsOptional, P::routingMap));
  if (c.tensor(P::permuteTokensOut).rank != 2 ||
      width_of(c.tensor(P::permuteTokensOut)) != width_of(x))
    return refuse_fit(c, P::permuteTokensOut, P::tokens);
  return c.null(P::probsOptional) ? ACLNN_SUCCESS : expect_given(c, {P::permuteProbsOutOptional});
}
void run_permute(Call& c) {
  using P = params::MoeTokenPermuteWithRoutingMap;

  const Floats x = floats(c.tensor(P::tokens)), probs = floats(c.maybe(P::probsOptional));
  const Tensor& map = c.tensor(P::routingMap);
  const int64_t n = map.dims[0], experts = map.dims[1], h = width_of(c.tensor(P::tokens));
  const bool pads = c.flag(P::dropAndPad);
  const Rows r = pads ? padded_rows(integers(map), n, experts,
                                    experts ? c.integer(P::numOutTokens) / experts : 0)
                      : rows_of_map(integers(map), n, experts);
  Floats out, kept;
  for (size_t i = 0; i < r.tokens.size(); ++i) {
    const float* row = x.data() + r.tokens[i] * h;
    out.insert(out.end(), row, row + h);
    if (!probs.empty()) kept.push_back(probs[r.tokens[i] * experts + r.experts[i]]);
  }
  write_head(c.maybe(P::permuteTokensOut), out);
  if (!probs.empty()) write_head(c.maybe(P::permuteProbsOutOptional), kept);
  write_head(c.maybe(P::sortedIndicesOut), pads ? r.tokens : by_token(r.tokens));
}
aclnnStatus check_permute_grad(Call& c) {
  using P = params::MoeTokenPermuteWithRoutingMapGrad;

  ACL_RETURN_IF_FAILED(
      expect_given(c, {P::permutedTokenOutputGrad, P::sortedIndices, P::tokensGradOut}));
  if (!c.null(P::permutedProbsOutputGradOptional))
    ACL_RETURN_IF_FAILED(expect_given(c, {P::routingMapOptional, P::probsGradOutOptional}));
  if (c.integer(P::numExperts) < 1 || c.integer(P::tokensNum) < 1 ||
      c.tensor(P::sortedIndices).numel() != rows_of(c.tensor(P::permutedTokenOutputGrad))) {
    return c.fail(
        ACLNN_ERR_PARAM_INVALID, "numExperts %lld, tokensNum %lld and %s %s do not fit %s.",
        static_cast<long long>(c.integer(P::numExperts)),
        static_cast<long long>(c.integer(P::tokensNum)), c.name(P::sortedIndices),
        shape_text(c.tensor(P::sortedIndices)), shape_text(c.tensor(P::permutedTokenOutputGrad)));
  }
  if (!c.null(P::permutedProbsOutputGradOptional))
    ACL_RETURN_IF_FAILED(
        expect_numel(c, P::permutedProbsOutputGradOptional, c.tensor(P::sortedIndices).numel()));
  if (!c.null(P::permutedProbsOutputGradOptional))
    ACL_RETURN_IF_FAILED(expect_numel(c, P::probsGradOutOptional,
                                      c.integer(P::numExperts) * c.integer(P::tokensNum)));
  ACL_RETURN_IF_FAILED(
      expect_numel(c, P::routingMapOptional, c.integer(P::numExperts) * c.integer(P::tokensNum)));
  return expect_numel(c, P::tokensGradOut,
                      c.integer(P::tokensNum) * width_of(c.tensor(P::permutedTokenOutputGrad)));
}
Rows rows_of_grad(const Call& c, const Ints& sorted) {
  using P = params::MoeTokenPermuteWithRoutingMapGrad;

  const int64_t n = c.integer(P::tokensNum), experts = c.integer(P::numExperts);
  if (!c.flag(P::dropAndPad) && !c.null(P::routingMapOptional))
    return rows_of_map(integers(c.tensor(P::routingMapOptional)), n, experts);
  Rows r;
  const auto all = static_cast<int64_t>(sorted.size());
  r.tokens.resize(sorted.size()), r.experts.resize(sorted.size());
  for (int64_t i = 0; i < all; ++i) {
    if (c.flag(P::dropAndPad)) {
      r.tokens[i] = sorted[i], r.experts[i] = std::min(experts - 1, i / std::max<int64_t>(1, all / experts));
    } else {
      r.tokens[sorted[i]] = std::min(n - 1, i / std::max<int64_t>(1, all / n));
    }
  }
  return r;
}
aclError run_permute_grad(Call& c) {
  using P = params::MoeTokenPermuteWithRoutingMapGrad;

  const Floats dy = floats(c.tensor(P::permutedTokenOutputGrad)),
               dp = floats(c.maybe(P::permutedProbsOutputGradOptional));
  const Ints sorted = integers(c.tensor(P::sortedIndices));
  ACL_RETURN_IF_FAILED(expect_below(
      c, P::sortedIndices, sorted,
      c.flag(P::dropAndPad) ? c.integer(P::tokensNum) : static_cast<int64_t>(sorted.size())));
  const Rows r = rows_of_grad(c, sorted);
  const int64_t h = width_of(c.tensor(P::permutedTokenOutputGrad)),
                experts = c.integer(P::numExperts);
  Floats dx(static_cast<size_t>(c.integer(P::tokensNum) * h)),
      dprobs(static_cast<size_t>(c.integer(P::tokensNum) * experts));
  for (size_t i = 0; i < std::min(r.tokens.size(), sorted.size()); ++i) {
    for (int64_t j = 0; j < h; ++j) dx[r.tokens[i] * h + j] += dy[i * h + j];
    if (!dp.empty()) dprobs[r.tokens[i] * experts + r.experts[i]] = dp[i];
  }
  write(c.tensor(P::tokensGradOut), dx);
  if (!dp.empty()) write(c.maybe(P::probsGradOutOptional), dprobs);
  return ACL_SUCCESS;
}

// (permuted, sortedIndices, routingMap, probs, paddedMode, restoreShape, unpermuted, outIndex,
// permuteTokenId, permuteProbs). Sorted by token, entry i is permuted row outIndex[i].
aclnnStatus check_unpermute(Call& c) {
  using P = params::MoeTokenUnpermuteWithRoutingMap;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::permutedTokens, P::sortedIndices, P::unpermutedTokens,
                                        P::outIndex, P::permuteTokenId}));
  if (!c.null(P::probsOptional))
    ACL_RETURN_IF_FAILED(expect_given(c, {P::routingMapOptional, P::permuteProbs}));
  if (!c.null(P::probsOptional))
    ACL_RETURN_IF_FAILED(expect_same_shape(c, P::probsOptional, P::routingMapOptional));
  if (width_of(c.tensor(P::unpermutedTokens)) != width_of(c.tensor(P::permutedTokens)))
    return refuse_fit(c, P::unpermutedTokens, P::permutedTokens);
  if (!c.null(P::routingMapOptional) &&
      (c.tensor(P::routingMapOptional).rank != 2 ||
       c.tensor(P::routingMapOptional).dims[0] != rows_of(c.tensor(P::unpermutedTokens))))
    return refuse_fit(c, P::routingMapOptional, P::unpermutedTokens);
  return expect_numel(c, P::sortedIndices, rows_of(c.tensor(P::permutedTokens)));
}
struct Entries {
  Ints rows, tokens, experts;
};
Entries entries_of(const Ints& sorted, const Ints& map, int64_t tokens, bool pads) {
  Entries e;
  const auto all = static_cast<int64_t>(sorted.size());
  const int64_t experts = map.empty() || !tokens ? 1 : static_cast<int64_t>(map.size()) / tokens;
  if (pads) {
    e.rows = by_token(sorted);
    for (int64_t row : e.rows) {
      e.tokens.push_back(sorted[row]);
      e.experts.push_back(std::min(experts - 1, row / std::max<int64_t>(1, all / experts)));
    }
    return e;
  }
  e.rows = sorted;
  for (int64_t i = 0; map.empty() && i < all; ++i)
    e.tokens.push_back(std::min(tokens - 1, i / std::max<int64_t>(1, all / tokens)));
  for (size_t i = 0; i < map.size(); ++i) {
    if (map[i])
      e.tokens.push_back(static_cast<int64_t>(i) / experts),
          e.experts.push_back(static_cast<int64_t>(i) % experts);
  }
  e.tokens.resize(sorted.size()), e.experts.resize(sorted.size());
  return e;
}
aclError run_unpermute(Call& c) {
  using P = params::MoeTokenUnpermuteWithRoutingMap;

  const Floats x = floats(c.tensor(P::permutedTokens)), probs = floats(c.maybe(P::probsOptional));
  const Ints map = integers(c.maybe(P::routingMapOptional));
  const int64_t h = width_of(c.tensor(P::permutedTokens)),
                tokens = rows_of(c.tensor(P::unpermutedTokens));
  const Ints sorted = integers(c.tensor(P::sortedIndices));
  ACL_RETURN_IF_FAILED(
      expect_below(c, P::sortedIndices, sorted,
                   c.flag(P::paddedMode) ? tokens : static_cast<int64_t>(sorted.size())));
  const Entries e = entries_of(sorted, map, tokens, c.flag(P::paddedMode));
  const int64_t experts = tokens ? static_cast<int64_t>(map.size()) / tokens : 0;
  Floats out(static_cast<size_t>(tokens * h)), kept(e.rows.size());
  for (size_t i = 0; i < e.rows.size(); ++i) {
    const float p = probs.empty() ? 1 : probs[e.tokens[i] * experts + e.experts[i]];
    kept[c.flag(P::paddedMode) ? e.rows[i] : static_cast<int64_t>(i)] = p;
    for (int64_t j = 0; j < h; ++j) out[e.tokens[i] * h + j] += p * x[e.rows[i] * h + j];
  }
  write(c.tensor(P::unpermutedTokens), out);
  write_head(c.maybe(P::outIndex), e.rows);
  write_head(c.maybe(P::permuteTokenId), e.tokens);
  if (!probs.empty()) write_head(c.maybe(P::permuteProbs), kept);
  return ACL_SUCCESS;
}
aclnnStatus check_unpermute_grad(Call& c) {
  using P = params::MoeTokenUnpermuteWithRoutingMapGrad;

  ACL_RETURN_IF_FAILED(expect_given(
      c, {P::unpermutedTokensGrad, P::outIndex, P::permuteTokenId, P::permutedTokensGradOut}));
  const int64_t tokens = rows_of(c.tensor(P::unpermutedTokensGrad)),
                h = width_of(c.tensor(P::unpermutedTokensGrad));
  if (!c.null(P::routingMapOptional) && (c.tensor(P::routingMapOptional).rank != 2 ||
                                         c.tensor(P::routingMapOptional).dims[0] != tokens))
    return refuse_fit(c, P::routingMapOptional, P::unpermutedTokensGrad);
  if (width_of(c.tensor(P::permutedTokensGradOut)) != h)
    return refuse_fit(c, P::permutedTokensGradOut, P::unpermutedTokensGrad);
  if (!c.null(P::probsOptional)) {
    ACL_RETURN_IF_FAILED(expect_given(
        c, {P::routingMapOptional, P::permutedTokensOptional, P::probsGradOutOptional}));
    ACL_RETURN_IF_FAILED(expect_same_shape(c, P::probsOptional, P::routingMapOptional));
    ACL_RETURN_IF_FAILED(expect_same_shape(c, P::probsGradOutOptional, P::probsOptional));
    ACL_RETURN_IF_FAILED(
        expect_numel(c, P::permutedTokensOptional, c.tensor(P::permutedTokensGradOut).numel()));
  }
  return expect_numel(c, P::permuteTokenId, c.tensor(P::outIndex).numel());
}
aclError run_unpermute_grad(Call& c) {
  using P = params::MoeTokenUnpermuteWithRoutingMapGrad;

  const Floats dy = floats(c.tensor(P::unpermutedTokensGrad)),
               x = floats(c.maybe(P::permutedTokensOptional)),
               probs = floats(c.maybe(P::probsOptional));
  const Ints map = integers(c.maybe(P::routingMapOptional)), rows = integers(c.tensor(P::outIndex)),
             ids = integers(c.tensor(P::permuteTokenId));
  const int64_t h = width_of(c.tensor(P::unpermutedTokensGrad)),
                tokens = rows_of(c.tensor(P::unpermutedTokensGrad));
  const int64_t experts = tokens ? static_cast<int64_t>(map.size()) / tokens : 0;
  const auto all = static_cast<int64_t>(rows.size());
  ACL_RETURN_IF_FAILED(
      expect_below(c, P::outIndex, rows, rows_of(c.tensor(P::permutedTokensGradOut))));
  ACL_RETURN_IF_FAILED(expect_below(c, P::permuteTokenId, ids, tokens));
  const Ints mapped =
      c.flag(P::dropAndPad) || map.empty() ? Ints() : entries_of(rows, map, tokens, false).experts;
  Floats dx(static_cast<size_t>(c.tensor(P::permutedTokensGradOut).numel())), dp(probs.size());
  for (int64_t i = 0; i < all; ++i) {
    int64_t expert = mapped.empty() ? 0 : mapped[i];
    if (c.flag(P::dropAndPad) && experts)
      expert = std::min(experts - 1, rows[i] / std::max<int64_t>(1, all / experts));
    const int64_t at = ids[i] * experts + expert;
    double dot = 0;
    for (int64_t j = 0; j < h; ++j) {
      const float g = dy[ids[i] * h + j];
      dx[rows[i] * h + j] = g * (probs.empty() ? 1 : probs[at]);
      if (!probs.empty()) dot += static_cast<double>(g) * x[rows[i] * h + j];
    }
    if (!probs.empty()) dp[at] = static_cast<float>(dot);
  }
  write(c.tensor(P::permutedTokensGradOut), dx);
  if (!probs.empty()) write(c.maybe(P::probsGradOutOptional), dp);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnMoeTokenPermuteWithRoutingMap, check_permute, run_permute)
ACLNN_OWN(aclnnMoeTokenPermuteWithRoutingMapGrad, check_permute_grad, run_permute_grad)
ACLNN_OWN(aclnnMoeTokenUnpermuteWithRoutingMap, check_unpermute, run_unpermute)
ACLNN_OWN(aclnnMoeTokenUnpermuteWithRoutingMapGrad, check_unpermute_grad, run_unpermute_grad)
