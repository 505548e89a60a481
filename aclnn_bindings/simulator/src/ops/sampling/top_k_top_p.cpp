// Logits cut to the k most likely tokens, and to those that carry a share p.
#include "params/sampling.h"
#include "loops/values.h"

#include <cmath>
#include "loops/top_k.h"

namespace aclsim {
namespace {

// (logits, p, k, out): what is not among the k best, or not in the nucleus, becomes -inf.
aclnnStatus check_top_k_top_p(Call& c) {
  using P = params::ApplyTopKTopP;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::logits, P::p, P::k, P::out}));
  for (int i : {P::p, P::k}) ACL_RETURN_IF_FAILED(expect_numel(c, i, rows_of(c.tensor(P::logits))));
  return expect_same_shape(c, P::out, P::logits);
}
void keep_nucleus(float* x, const Ints& order, float p) {
  Floats probability(order.size());
  for (size_t i = 0; i < order.size(); ++i) probability[i] = x[order[i]];
  softmax(probability.data(), static_cast<int64_t>(order.size()));
  double sum = 0;  // from the least likely on; the likeliest stays
  for (size_t i = order.size(); i-- > 1;) {
    sum += probability[i];
    if (sum <= 1 - p) x[order[i]] = -INFINITY;
  }
}
void run_top_k_top_p(Call& c) {
  using P = params::ApplyTopKTopP;

  Floats x = floats(c.tensor(P::logits));
  const Floats p = floats(c.tensor(P::p));
  const Ints k = integers(c.tensor(P::k));
  const int64_t n = width_of(c.tensor(P::logits));
  for (int64_t r = 0; r < rows_of(c.tensor(P::logits)); ++r) {
    float* row = x.data() + r * n;
    const Ints order = best(row, n, n);
    if (k[r] > 0 && k[r] < n) {
      const float least = row[order[k[r] - 1]];
      for (int64_t i = 0; i < n; ++i) row[i] = row[i] < least ? -INFINITY : row[i];
    }
    keep_nucleus(row, order, p[r]);
  }
  write(c.tensor(P::out), x);
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnApplyTopKTopP, check_top_k_top_p, run_top_k_top_p)
