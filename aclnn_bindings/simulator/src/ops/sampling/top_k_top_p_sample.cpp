// Tokens chosen among the most likely: the k best, then those that carry a share p, then those near the
// best. Formula: torch_npu's page and test of npu_top_k_top_p_sample.
#include "params/sampling.h"
#include <cmath>
#include <numeric>

#include "loops/group.h"

namespace aclsim {
namespace {

const Tensor* part(const Call& c, const char* name) { return at_or_null(c, named(c, name)); }
bool set(const Call& c, const char* name, bool other) {
  const int at = named(c, name);
  return at == kNone ? other : c.flag(at);
}
constexpr int64_t kMostBest = 1024;

aclnnStatus check_sample(Call& c) {
  using P = params::TopKTopPSample;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::logits, P::topK, P::topP, named(c, "logitsSelectIdx")}));
  const Tensor& x = c.tensor(P::logits);
  if (x.rank != 2)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "logits %s should have 2 dims.", shape_text(x));
  for (int i : std::initializer_list<int>{P::topK, P::topP, named(c, "logitsSelectIdx")})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, x.dims[0]));
  if (part(c, "minPs")) ACL_RETURN_IF_FAILED(expect_numel(c, named(c, "minPs"), x.dims[0]));
  if (part(c, "q")) ACL_RETURN_IF_FAILED(expect_numel(c, named(c, "q"), x.numel()));
  if (set(c, "isNeedLogits", false)) {
    ACL_RETURN_IF_FAILED(expect_given(c, {named(c, "logitsTopKPSelect")}));
    ACL_RETURN_IF_FAILED(expect_numel(c, named(c, "logitsTopKPSelect"), x.numel()));
  }
  for (const char* name : {"logitsIdx", "logitsSortMasked"}) {
    if (!set(c, "isNeedSampleResult", false)) break;
    ACL_RETURN_IF_FAILED(expect_given(c, {named(c, name)}));
    ACL_RETURN_IF_FAILED(expect_numel(c, named(c, name), x.numel()));
  }
  return ACLNN_SUCCESS;
}

struct Row {
  int64_t k;
  double p, least;
  bool logits;
};
// The candidates of a row, best first (in place where nothing sorts them), and their shares.
void choose(const float* x, int64_t n, const Row& r, int64_t most, Ints& at, Doubles& share) {
  const bool best = r.k >= 1 && r.k <= std::min(most, n), some = r.p < 1;
  at.resize(static_cast<size_t>(n));
  std::iota(at.begin(), at.end(), 0);
  if (best || some || r.least >= 1)
    std::stable_sort(at.begin(), at.end(), [&](int64_t a, int64_t b) { return x[a] > x[b]; });
  if (best) at.resize(static_cast<size_t>(r.k));
  share.clear();
  double top = -INFINITY, sum = 0;
  for (int64_t i : at) top = std::max<double>(top, x[i]);
  for (int64_t i : at) share.push_back(r.logits ? std::exp(x[i] - top) : x[i]);
  for (double v : share) sum += v;
  for (double& v : share) v = r.logits ? v / sum : v;
  size_t kept = at.size();
  if (some) {
    double before = 0;
    kept = 1;
    for (size_t i = 0; r.p > 0 && i < share.size(); before += share[i++]) {
      if (before >= r.p) break;
      kept = i + 1;
    }
  }
  if (r.least >= 1) kept = 1;
  at.resize(kept), share.resize(kept);
  if (r.p <= 0 && r.logits && !share.empty()) share[0] = 1;
  if (r.least <= 0 || r.least >= 1) return;
  const double bound = *std::max_element(share.begin(), share.end()) * r.least;
  size_t to = 0;
  for (size_t i = 0; i < at.size(); ++i) {
    if (share[i] >= bound) at[to] = at[i], share[to++] = share[i];
  }
  at.resize(to), share.resize(to);
}
void run_sample(Call& c) {
  using P = params::TopKTopPSample;

  const Tensor& t = c.tensor(P::logits);
  const int64_t rows = t.dims[0], n = t.dims[1], wide = n ? rows : 0;
  const Floats x = floats(t), ps = floats(c.tensor(P::topP)), q = floats(part(c, "q")),
               least = floats(part(c, "minPs"));
  const Ints ks = integers(c.tensor(P::topK));
  const bool logits = set(c, "inputIsLogits", true);
  const int most_at = named(c, "ksMax");
  const int64_t most = most_at == kNone ? kMostBest : std::min(kMostBest, (c.integer(most_at) + 7) / 8 * 8);
  Ints chosen(static_cast<size_t>(rows)), order(x.size()), at;
  Floats kept(x.size(), logits ? -INFINITY : 0.0f), masked(x.size());
  Doubles share;
  for (int64_t r = 0; r < wide; ++r) {
    const double low = least.empty() ? -1 : least[r];
    choose(x.data() + r * n, n, {ks[r], ps[r], low, logits}, most, at, share);
    size_t best = 0;
    const auto weight = [&](size_t i) {
      return q.empty() ? share[i] : share[i] / (std::fabs(q[r * n + i]) + c.number(named(c, "eps")));
    };
    for (size_t i = 0; i < at.size(); ++i) {
      if (weight(i) > weight(best)) best = i;
      kept[r * n + at[i]] = x[r * n + at[i]];
      order[r * n + i] = at[i], masked[r * n + i] = static_cast<float>(share[i]);
    }
    chosen[r] = at[best];
  }
  write(part(c, "logitsSelectIdx"), chosen);
  if (set(c, "isNeedLogits", false)) write(part(c, "logitsTopKPSelect"), kept);
  if (set(c, "isNeedSampleResult", false)) {
    write(part(c, "logitsIdx"), order);
    write(part(c, "logitsSortMasked"), masked);
  }
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnTopKTopPSample, check_sample, run_sample)
ACLNN_OWN(aclnnTopKTopPSampleV2, check_sample, run_sample)
