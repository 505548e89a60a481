// Tokens permuted by a map [tokens, experts] of which expert takes which token, and their
// gradients. Formulas: Megatron-LM's moe_utils (permute, unpermute with a routing map), as the
// tests of torch_npu state them.
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
template <class C>
void write_head(const Tensor* t, std::vector<C> v) {
  if (!t) return;
  v.resize(static_cast<size_t>(t->numel()));
  write(t, v);
}

aclError expect_below(Call& c, int arg, const Ints& v, int64_t limit) {
  for (int64_t i : v) {
    if (i < 0 || i >= limit)
      return c.trap(507015, "%s holds %lld, outside [0, %lld).", c.name(arg), static_cast<long long>(i),
                    static_cast<long long>(limit));
  }
  return ACL_SUCCESS;
}

// (tokens, routingMap, probs, numOutTokens, dropAndPad, permuteTokens, permuteProbs,
// sortedIndices).
aclnnStatus check_permute(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 5, 7}));
  const Tensor &x = c.tensor(0), &map = c.tensor(1);
  if (map.rank != 2 || x.rank != 2 || map.dims[0] != x.dims[0]) return refuse_fit(c, 1, 0);
  if (!c.null(2)) ACL_RETURN_IF_FAILED(expect_same_shape(c, 2, 1));
  if (c.tensor(5).rank != 2 || width_of(c.tensor(5)) != width_of(x))
    return refuse_fit(c, 5, 0);
  return c.null(2) ? ACLNN_SUCCESS : expect_given(c, {6});
}
aclError run_permute(Call& c) {
  const Floats x = floats(c.tensor(0)), probs = floats(c.maybe(2));
  const Tensor& map = c.tensor(1);
  const int64_t n = map.dims[0], experts = map.dims[1], h = width_of(c.tensor(0));
  const bool pads = c.flag(4);
  const Rows r = pads ? padded_rows(integers(map), n, experts, experts ? c.integer(3) / experts : 0)
                      : rows_of_map(integers(map), n, experts);
  Floats out, kept;
  for (size_t i = 0; i < r.tokens.size(); ++i) {
    const float* row = x.data() + r.tokens[i] * h;
    out.insert(out.end(), row, row + h);
    if (!probs.empty()) kept.push_back(probs[r.tokens[i] * experts + r.experts[i]]);
  }
  write_head(c.maybe(5), out);
  if (!probs.empty()) write_head(c.maybe(6), kept);
  write_head(c.maybe(7), pads ? r.tokens : by_token(r.tokens));
  return ACL_SUCCESS;
}
// (permutedGrad, permutedProbsGrad, sortedIndices, routingMap, numExperts, tokensNum, dropAndPad,
// tokensGrad, probsGrad).
aclnnStatus check_permute_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 2, 7}));
  if (!c.null(1)) ACL_RETURN_IF_FAILED(expect_given(c, {3, 8}));
  if (c.integer(4) < 1 || c.integer(5) < 1 || c.tensor(2).numel() != rows_of(c.tensor(0))) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "numExperts %lld, tokensNum %lld and %s %s do not fit %s.",
                  static_cast<long long>(c.integer(4)), static_cast<long long>(c.integer(5)), c.name(2),
                  shape_text(c.tensor(2)), shape_text(c.tensor(0)));
  }
  if (!c.null(1)) ACL_RETURN_IF_FAILED(expect_numel(c, 1, c.tensor(2).numel()));
  if (!c.null(1)) ACL_RETURN_IF_FAILED(expect_numel(c, 8, c.integer(4) * c.integer(5)));
  ACL_RETURN_IF_FAILED(expect_numel(c, 3, c.integer(4) * c.integer(5)));
  return expect_numel(c, 7, c.integer(5) * width_of(c.tensor(0)));
}
Rows rows_of_grad(const Call& c, const Ints& sorted) {
  const int64_t n = c.integer(5), experts = c.integer(4);
  if (!c.flag(6) && !c.null(3)) return rows_of_map(integers(c.tensor(3)), n, experts);
  Rows r;
  const auto all = static_cast<int64_t>(sorted.size());
  r.tokens.resize(sorted.size()), r.experts.resize(sorted.size());
  for (int64_t i = 0; i < all; ++i) {
    if (c.flag(6)) {
      r.tokens[i] = sorted[i], r.experts[i] = std::min(experts - 1, i / std::max<int64_t>(1, all / experts));
    } else {
      r.tokens[sorted[i]] = std::min(n - 1, i / std::max<int64_t>(1, all / n));
    }
  }
  return r;
}
aclError run_permute_grad(Call& c) {
  const Floats dy = floats(c.tensor(0)), dp = floats(c.maybe(1));
  const Ints sorted = integers(c.tensor(2));
  ACL_RETURN_IF_FAILED(
      expect_below(c, 2, sorted, c.flag(6) ? c.integer(5) : static_cast<int64_t>(sorted.size())));
  const Rows r = rows_of_grad(c, sorted);
  const int64_t h = width_of(c.tensor(0)), experts = c.integer(4);
  Floats dx(static_cast<size_t>(c.integer(5) * h)),
      dprobs(static_cast<size_t>(c.integer(5) * experts));
  for (size_t i = 0; i < std::min(r.tokens.size(), sorted.size()); ++i) {
    for (int64_t j = 0; j < h; ++j) dx[r.tokens[i] * h + j] += dy[i * h + j];
    if (!dp.empty()) dprobs[r.tokens[i] * experts + r.experts[i]] = dp[i];
  }
  write(c.tensor(7), dx);
  if (!dp.empty()) write(c.maybe(8), dprobs);
  return ACL_SUCCESS;
}

// (permuted, sortedIndices, routingMap, probs, paddedMode, restoreShape, unpermuted, outIndex,
// permuteTokenId, permuteProbs). Sorted by token, entry i is permuted row outIndex[i].
aclnnStatus check_unpermute(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 6, 7, 8}));
  if (!c.null(3)) ACL_RETURN_IF_FAILED(expect_given(c, {2, 9}));
  if (!c.null(3)) ACL_RETURN_IF_FAILED(expect_same_shape(c, 3, 2));
  if (width_of(c.tensor(6)) != width_of(c.tensor(0))) return refuse_fit(c, 6, 0);
  if (!c.null(2) && (c.tensor(2).rank != 2 || c.tensor(2).dims[0] != rows_of(c.tensor(6))))
    return refuse_fit(c, 2, 6);
  return expect_numel(c, 1, rows_of(c.tensor(0)));
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
  const Floats x = floats(c.tensor(0)), probs = floats(c.maybe(3));
  const Ints map = integers(c.maybe(2));
  const int64_t h = width_of(c.tensor(0)), tokens = rows_of(c.tensor(6));
  const Ints sorted = integers(c.tensor(1));
  ACL_RETURN_IF_FAILED(
      expect_below(c, 1, sorted, c.flag(4) ? tokens : static_cast<int64_t>(sorted.size())));
  const Entries e = entries_of(sorted, map, tokens, c.flag(4));
  const int64_t experts = tokens ? static_cast<int64_t>(map.size()) / tokens : 0;
  Floats out(static_cast<size_t>(tokens * h)), kept(e.rows.size());
  for (size_t i = 0; i < e.rows.size(); ++i) {
    const float p = probs.empty() ? 1 : probs[e.tokens[i] * experts + e.experts[i]];
    kept[c.flag(4) ? e.rows[i] : static_cast<int64_t>(i)] = p;
    for (int64_t j = 0; j < h; ++j) out[e.tokens[i] * h + j] += p * x[e.rows[i] * h + j];
  }
  write(c.tensor(6), out);
  write_head(c.maybe(7), e.rows);
  write_head(c.maybe(8), e.tokens);
  if (!probs.empty()) write_head(c.maybe(9), kept);
  return ACL_SUCCESS;
}
// (unpermutedGrad, outIndex, permuteTokenId, routingMap, permuted, probs, dropAndPad, restoreShape,
// permutedGrad, probsGrad).
aclnnStatus check_unpermute_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 8}));
  const int64_t tokens = rows_of(c.tensor(0)), h = width_of(c.tensor(0));
  if (!c.null(3) && (c.tensor(3).rank != 2 || c.tensor(3).dims[0] != tokens)) return refuse_fit(c, 3, 0);
  if (width_of(c.tensor(8)) != h) return refuse_fit(c, 8, 0);
  if (!c.null(5)) {
    ACL_RETURN_IF_FAILED(expect_given(c, {3, 4, 9}));
    ACL_RETURN_IF_FAILED(expect_same_shape(c, 5, 3));
    ACL_RETURN_IF_FAILED(expect_same_shape(c, 9, 5));
    ACL_RETURN_IF_FAILED(expect_numel(c, 4, c.tensor(8).numel()));
  }
  return expect_numel(c, 2, c.tensor(1).numel());
}
aclError run_unpermute_grad(Call& c) {
  const Floats dy = floats(c.tensor(0)), x = floats(c.maybe(4)), probs = floats(c.maybe(5));
  const Ints map = integers(c.maybe(3)), rows = integers(c.tensor(1)), ids = integers(c.tensor(2));
  const int64_t h = width_of(c.tensor(0)), tokens = rows_of(c.tensor(0));
  const int64_t experts = tokens ? static_cast<int64_t>(map.size()) / tokens : 0;
  const auto all = static_cast<int64_t>(rows.size());
  ACL_RETURN_IF_FAILED(expect_below(c, 1, rows, rows_of(c.tensor(8))));
  ACL_RETURN_IF_FAILED(expect_below(c, 2, ids, tokens));
  const Ints mapped =
      c.flag(6) || map.empty() ? Ints() : entries_of(rows, map, tokens, false).experts;
  Floats dx(static_cast<size_t>(c.tensor(8).numel())), dp(probs.size());
  for (int64_t i = 0; i < all; ++i) {
    int64_t expert = mapped.empty() ? 0 : mapped[i];
    if (c.flag(6) && experts) expert = std::min(experts - 1, rows[i] / std::max<int64_t>(1, all / experts));
    const int64_t at = ids[i] * experts + expert;
    double dot = 0;
    for (int64_t j = 0; j < h; ++j) {
      const float g = dy[ids[i] * h + j];
      dx[rows[i] * h + j] = g * (probs.empty() ? 1 : probs[at]);
      if (!probs.empty()) dot += static_cast<double>(g) * x[rows[i] * h + j];
    }
    if (!probs.empty()) dp[at] = static_cast<float>(dot);
  }
  write(c.tensor(8), dx);
  if (!probs.empty()) write(c.maybe(9), dp);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

#define ACLNN_MAP(op, ...) ACLNN_OP_FLAGS(op, __VA_ARGS__, kOwnNulls | kOwnLimits)
ACLNN_MAP(aclnnMoeTokenPermuteWithRoutingMap, check_permute, run_permute)
ACLNN_MAP(aclnnMoeTokenPermuteWithRoutingMapGrad, check_permute_grad, run_permute_grad)
ACLNN_MAP(aclnnMoeTokenUnpermuteWithRoutingMap, check_unpermute, run_unpermute)
ACLNN_MAP(aclnnMoeTokenUnpermuteWithRoutingMapGrad, check_unpermute_grad, run_unpermute_grad)
