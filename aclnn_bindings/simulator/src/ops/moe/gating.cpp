// How tokens choose experts: gating scores, the best k of them, and what their gradients are.
// Formulas: the "npu_moe_gating_top_k", "npu_moe_gating_top_k_softmax",
// "npu_moe_compute_expert_tokens" and "npu_moe_update_expert" pages of torch_npu.
#include "params/moe.h"
#include "loops/values.h"

#include <cmath>
#include <numeric>
#include "loops/top_k.h"

namespace aclsim {
namespace {

aclnnStatus expect_last(const Call& c, int out, int like, int64_t last) {
  if (c.null(out)) return ACLNN_SUCCESS;
  Shape shape = shape_of(c.tensor(like));
  shape.dims[shape.rank - 1] = last;
  return expect_shape(c, out, shape);
}
aclnnStatus expect_k(const Call& c, int arg, int64_t experts) {
  const int64_t k = c.integer(arg);
  if (k > 0 && k <= experts) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is %lld, should be in [1, %lld], the experts of x.",
                c.name(arg), static_cast<long long>(k), static_cast<long long>(experts));
}

// (x, finished, k, [renorm, flag,] y, expertIdx, rowIdx or softmax): V1 has row numbers, V2
// options.
template <bool V2>
aclnnStatus check_gating_softmax(Call& c) {
  using P = params::MoeGatingTopKSoftmax;

  constexpr int kOut = V2 ? P::rowIdxOut : P::yOut;
  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, kOut, kOut + 1}));
  if (!V2) ACL_RETURN_IF_FAILED(expect_given(c, {kOut + 2}));
  const Tensor& x = c.tensor(P::x);
  if (x.rank < 2)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "x %s should have 2 or 3 dims.", shape_text(x));
  ACL_RETURN_IF_FAILED(expect_k(c, P::k, width_of(x)));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::finishedOptional, rows_of(x)));
  for (int i : {kOut, kOut + 1}) ACL_RETURN_IF_FAILED(expect_last(c, i, P::x, c.integer(P::k)));
  return V2 ? expect_numel(c, kOut + 2,
                           c.flag(params::MoeGatingTopKSoftmaxV2::outputSoftmaxResultFlag)
                               ? x.numel()
                           : c.null(kOut + 2) ? 0
                                              : c.tensor(kOut + 2).numel())
            : expect_last(c, kOut + 2, P::x, c.integer(P::k));
}
template <bool V2>
void run_gating_softmax(Call& c) {
  using P = params::MoeGatingTopKSoftmaxV2;

  constexpr int kOut = V2 ? P::yOut : params::MoeGatingTopKSoftmax::yOut;
  const bool late = V2 && c.integer(P::renorm) == 1;  // softmax of the chosen only
  Floats x = floats(c.tensor(P::x)), y;
  const Ints finished = integers(c.maybe(P::finishedOptional));
  const int64_t n = width_of(c.tensor(P::x)), rows = rows_of(c.tensor(P::x)), k = c.integer(P::k);
  Ints experts, numbers;
  for (int64_t r = 0; r < rows; ++r) {
    float* row = x.data() + r * n;
    if (!late) softmax(row, n);
    const Ints chosen = best(row, n, k);
    for (int64_t i = 0; i < k; ++i) {
      y.push_back(row[chosen[i]]);
      experts.push_back(!finished.empty() && finished[r] ? n : chosen[i]);
      numbers.push_back(i * rows + r);
    }
    if (late) softmax(y.data() + r * k, k);
  }
  write(c.tensor(kOut), y);
  write(c.tensor(kOut + 1), experts);
  if (!V2) write(c.tensor(kOut + 2), numbers);
  if (V2 && c.flag(P::outputSoftmaxResultFlag) && !late) write(c.maybe(kOut + 2), x);
}

template <int K>
aclnnStatus check_gating(Call& c) {
  using P = params::MoeGatingTopK;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, K + 9, K + 10}));
  const Tensor& x = c.tensor(P::x);
  const int64_t n = width_of(x), groups = c.integer(K + 2), chosen = c.integer(K + 1);
  ACL_RETURN_IF_FAILED(expect_k(c, K, n));
  if (x.rank != 2 || groups < 1 || n % groups != 0 || chosen < 1 || chosen > groups) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "x %s does not divide into %lld groups of which %lld are "
                  "chosen.",
                  shape_text(x), static_cast<long long>(groups), static_cast<long long>(chosen));
  }
  ACL_RETURN_IF_FAILED(expect_numel(c, P::biasOptional, n));
  for (int i : {K + 9, K + 10}) ACL_RETURN_IF_FAILED(expect_last(c, i, P::x, c.integer(K)));
  return c.flag(K + 6) ? expect_given(c, {K + 11}) : ACLNN_SUCCESS;
}
// Scores of groups that are not among the best become minus infinity.
void close_groups(float* x, int64_t n, int64_t groups, int64_t open, bool pairs) {
  const int64_t each = n / groups;
  Floats score(static_cast<size_t>(groups));
  for (int64_t g = 0; g < groups; ++g) {
    const Ints top = best(x + g * each, each, 2);
    score[g] = x[g * each + top[0]];
    if (pairs && each > 1) score[g] += x[g * each + top[1]];
  }
  std::vector<bool> kept(static_cast<size_t>(groups));
  for (int64_t g : best(score.data(), groups, open)) kept[g] = true;
  for (int64_t i = 0; i < n; ++i) {
    if (!kept[i / each]) x[i] = -INFINITY;
  }
}
template <int K>
Ints choose(const Call& c, int64_t row, const Floats& norm, const Floats& bias, const Ints& ids,
            const Ints& table) {
  using P = params::MoeGatingTopK;

  const int64_t n = width_of(c.tensor(P::x)), k = c.integer(K);
  if (!table.empty()) {
    const int64_t* at = table.data() + ids[row] * k;
    return Ints(at, at + k);
  }
  Floats score(norm.begin() + row * n, norm.begin() + (row + 1) * n);
  for (int64_t i = 0; !bias.empty() && i < n; ++i) score[i] += bias[i];
  if (c.integer(K + 2) > 1) {
    close_groups(score.data(), n, c.integer(K + 2), c.integer(K + 1), c.integer(K + 3) == 1);
  }
  return best(score.data(), n, k);
}
template <int K>
void run_gating(Call& c) {
  using P = params::MoeGatingTopKV2;

  Floats x = floats(c.tensor(P::x)), y;
  const Floats bias = floats(c.maybe(P::biasOptional));
  const Ints ids = K > 2 ? integers(c.maybe(P::inputIdsOptional)) : Ints(),
             table = K > 2 ? integers(c.maybe(P::tid2eidOptional)) : Ints();
  const int64_t n = width_of(c.tensor(P::x)), rows = rows_of(c.tensor(P::x));
  const bool sigmoid = c.integer(K + 5) == 1, shares = sigmoid || c.integer(K + 4) == 1;
  Ints experts;
  for (int64_t r = 0; r < rows; ++r) {
    float* row = x.data() + r * n;
    if (!sigmoid) softmax(row, n);
    for (int64_t i = 0; sigmoid && i < n; ++i) row[i] = 1 / (1 + std::exp(-row[i]));
    const Ints chosen = choose<K>(c, r, x, bias, ids, table);
    double sum = c.number(K + 8);
    for (int64_t e : chosen) sum += row[e];
    for (int64_t e : chosen) {
      y.push_back(static_cast<float>(row[e] / (shares ? sum : 1) * c.number(K + 7)));
      experts.push_back(e);
    }
  }
  write(c.tensor(K + 9), y);
  write(c.tensor(K + 10), experts);
  if (c.flag(K + 6)) write(c.tensor(K + 11), x);
}

aclnnStatus check_gating_grad(Call& c) {
  using P = params::MoeGatingTopKBackward;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::xNorm, P::gradY, P::expertIdx, P::out}));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::expertIdx, P::gradY));
  return expect_same_shape(c, P::out, P::xNorm);
}
void run_gating_grad(Call& c) {
  using P = params::MoeGatingTopKBackward;

  const Floats norm = floats(c.tensor(P::xNorm)), dy = floats(c.tensor(P::gradY));
  const Ints experts = integers(c.tensor(P::expertIdx));
  const int64_t n = width_of(c.tensor(P::xNorm)), k = width_of(c.tensor(P::expertIdx));
  const bool sigmoid = c.integer(P::normType) == 1, shares = sigmoid || c.integer(P::renorm) == 1;
  Floats dx(norm.size());
  for (int64_t r = 0; r < rows_of(c.tensor(P::xNorm)); ++r) {
    const float* p = norm.data() + r * n;
    double sum = c.number(P::eps), weighted = 0, inner = 0;
    for (int64_t i = r * k; i < (r + 1) * k; ++i) {
      sum += p[experts[i]], weighted += static_cast<double>(dy[i]) * p[experts[i]];
    }
    Doubles dp(static_cast<size_t>(n));
    for (int64_t i = r * k; i < (r + 1) * k; ++i) {
      const double d = shares ? dy[i] / sum - weighted / (sum * sum) : dy[i];
      dp[experts[i]] += d * c.number(P::routedScalingFactor);
    }
    for (int64_t i = 0; i < n; ++i) inner += dp[i] * p[i];
    for (int64_t i = 0; i < n; ++i) {
      dx[r * n + i] = static_cast<float>(p[i] * (sigmoid ? dp[i] * (1 - p[i]) : dp[i] - inner));
    }
  }
  write(c.tensor(P::out), dx);
}

// (sortedExperts, numExperts, out): how many rows have that expert or an earlier one.
aclnnStatus check_expert_tokens(Call& c) {
  using P = params::MoeComputeExpertTokens;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::sortedExperts, P::out}));
  return expect_numel(c, P::out, c.integer(P::numExperts));
}
void run_expert_tokens(Call& c) {
  using P = params::MoeComputeExpertTokens;

  const Ints sorted = integers(c.tensor(P::sortedExperts));
  Ints ends;
  for (int64_t e = 0; e < c.integer(P::numExperts); ++e) {
    ends.push_back(std::upper_bound(sorted.begin(), sorted.end(), e) - sorted.begin());
  }
  write(c.tensor(P::out), ends);
}

aclnnStatus check_update_expert(Call& c) {
  using P = params::MoeUpdateExpert;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::expertIds, P::eplbTable, P::balancedExpertIds}));
  const int64_t k = width_of(c.tensor(P::expertIds));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::expertScalesOptional, c.tensor(P::expertIds).numel()));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::pruningThresholdOptional, k));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::activeMaskOptional, rows_of(c.tensor(P::expertIds))));
  if (c.integer(P::balanceMode) == 0 && c.integer(P::worldSize) < 1) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "worldSize is %lld, should be positive where balanceMode "
                  "is 0.",
                  static_cast<long long>(c.integer(P::worldSize)));
  }
  return expect_same_shape(c, P::balancedExpertIds, P::expertIds);
}
int64_t placed(const Call& c, const int64_t* row, int64_t token) {
  using P = params::MoeUpdateExpert;

  const int64_t places = row[0];
  if (places <= 1) return row[1];
  if (c.integer(P::balanceMode) != 0) return row[token % places + 1];
  const int64_t each = (c.integer(P::worldSize) + places - 1) / places;
  return row[c.integer(P::localRankId) / each + 1];
}
void run_update_expert(Call& c) {
  using P = params::MoeUpdateExpert;

  Ints ids = integers(c.tensor(P::expertIds)), mask;
  const Ints table = integers(c.tensor(P::eplbTable)),
             active = integers(c.maybe(P::activeMaskOptional));
  const Floats scales = floats(c.maybe(P::expertScalesOptional)),
               least = floats(c.maybe(P::pruningThresholdOptional));
  const int64_t k = width_of(c.tensor(P::expertIds)), width = width_of(c.tensor(P::eplbTable));
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t token = static_cast<int64_t>(i) / k;
    ids[i] = placed(c, table.data() + ids[i] * width, token);
    if (scales.empty()) continue;
    const double sum =
        std::accumulate(scales.begin() + token * k, scales.begin() + (token + 1) * k, 0.0);
    const bool live = active.empty() || active[token];
    mask.push_back(live && sum * least[i % k] < scales[i]);
  }
  write(c.tensor(P::balancedExpertIds), ids);
  if (!scales.empty()) write(c.maybe(P::balancedActiveMask), mask);
}

// (x, addNum, mappingNum, mappingTable, groupNum, groupTopk, topN, topK, activateType, isNorm,
// scale, enableExpertMapping, y, indices): groups are chosen by the sum of their topN scores;
// scores of the others count as zero.
aclnnStatus check_fused_top_k(Call& c) {
  using P = params::MoeFusedTopk;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::addNum, P::y, P::indices}));
  const int64_t n = width_of(c.tensor(P::x)), groups = c.integer(P::groupNum);
  if (groups < 1 || n % groups != 0 || c.integer(P::groupTopk) > groups ||
      c.integer(P::topN) > n / std::max<int64_t>(1, groups) || c.integer(P::activateType) != 0 ||
      c.flag(P::enableExpertMapping)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "x %s and its groups do not fit, or activateType is not 0, or experts are "
                  "mapped, which the "
                  "simulator does not support.",
                  shape_text(c.tensor(P::x)));
  }
  ACL_RETURN_IF_FAILED(expect_k(c, P::topK, n));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::addNum, n));
  for (int i : {P::y, P::indices})
    ACL_RETURN_IF_FAILED(expect_last(c, i, P::x, c.integer(P::topK)));
  return ACLNN_SUCCESS;
}
void run_fused_top_k(Call& c) {
  using P = params::MoeFusedTopk;

  Floats p = floats(c.tensor(P::x)), y;
  const Floats more = floats(c.tensor(P::addNum));
  const int64_t n = width_of(c.tensor(P::x)), groups = c.integer(P::groupNum), each = n / groups;
  Ints indices;
  for (int64_t r = 0; r < rows_of(c.tensor(P::x)); ++r) {
    float* row = p.data() + r * n;
    Floats score(static_cast<size_t>(n)), total(static_cast<size_t>(groups));
    for (int64_t i = 0; i < n; ++i)
      row[i] = 1 / (1 + std::exp(-row[i])), score[i] = row[i] + more[i];
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t i : best(&score[g * each], each, c.integer(P::topN)))
        total[g] += score[g * each + i];
    }
    const Ints order = best(total.data(), groups, groups);
    for (int64_t g = c.integer(P::groupTopk); g < groups; ++g)
      std::fill_n(score.begin() + order[g] * each, each, 0.0f);
    double sum = 0;
    const Ints chosen = best(score.data(), n, c.integer(P::topK));
    for (int64_t i : chosen) sum += row[i];
    for (int64_t i : chosen) {
      y.push_back(static_cast<float>(row[i] / (c.flag(P::isNorm) ? sum : 1) * c.number(P::scale)));
      indices.push_back(i);
    }
  }
  write(c.tensor(P::y), y), write(c.tensor(P::indices), indices);
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnMoeGatingTopKSoftmax, check_gating_softmax<false>, run_gating_softmax<false>)
ACLNN_OWN(aclnnMoeGatingTopKSoftmaxV2, check_gating_softmax<true>, run_gating_softmax<true>)
ACLNN_OWN(aclnnMoeGatingTopK, check_gating<params::MoeGatingTopK::k>,
          run_gating<params::MoeGatingTopK::k>)
ACLNN_OWN(aclnnMoeGatingTopKV2, check_gating<params::MoeGatingTopKV2::k>,
          run_gating<params::MoeGatingTopKV2::k>)
ACLNN_OWN(aclnnMoeGatingTopKBackward, check_gating_grad, run_gating_grad)
ACLNN_OWN(aclnnMoeComputeExpertTokens, check_expert_tokens, run_expert_tokens)
ACLNN_OWN(aclnnMoeUpdateExpert, check_update_expert, run_update_expert)
ACLNN_OWN(aclnnMoeFusedTopk, check_fused_top_k, run_fused_top_k)
