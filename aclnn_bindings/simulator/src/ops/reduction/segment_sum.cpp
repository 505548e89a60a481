// Exponentials of segment sums, and their gradient.
#include "params/reduction.h"
#include "loops/numbers.h"
#include "loops/philox.h"

namespace aclsim {
namespace {

// (self [..., T], out [..., T, T]): exp of the sums of self over (j, i], 0 above the diagonal.
aclnnStatus expect_segments(const Call& c, int self, int sums) {
  ACL_RETURN_IF_FAILED(expect_rank(c, self, 1, kMaxRank - 1));
  Shape shape = shape_of(c.tensor(self));
  shape.dims[shape.rank] = shape.dims[shape.rank - 1];
  ++shape.rank;
  return expect_shape(c, sums, shape);
}
aclnnStatus check_segsum(Call& c) {
  using P = params::ExpSegsum;
  return expect_segments(c, P::self, P::out);
}
void run_segsum(Call& c) {
  using P = params::ExpSegsum;

  const int64_t n = tail_numel(c.tensor(P::self), 1);
  const Numbers x = numbers(c.tensor(P::self));
  Numbers out(x.size() * static_cast<size_t>(n));
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    double sum = 0;
    for (int64_t j = i % n; j >= 0; --j) {
      out[i * n + j] = std::exp(sum);
      sum += x[i / n * n + j];
    }
  }
  put(c.tensor(P::out), out);
}
// (gradOutput, gradSelf (the result), gradInput).
aclnnStatus check_segsum_grad(Call& c) {
  using P = params::ExpSegsumBackward;

  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::gradSelf, P::gradOutput));
  return expect_segments(c, P::gradInput, P::gradOutput);
}
void run_segsum_grad(Call& c) {
  using P = params::ExpSegsumBackward;

  const int64_t n = tail_numel(c.tensor(P::gradInput), 1);
  const Numbers g = numbers(c.tensor(P::gradOutput)), y = numbers(c.tensor(P::gradSelf));
  Numbers x(static_cast<size_t>(c.tensor(P::gradInput).numel()));
  for (int64_t row = 0; row < static_cast<int64_t>(x.size()); ++row) {
    double sum = 0;  // element k takes part in (j, i] for j < k <= i
    for (int64_t j = 0; j <= row % n; ++j) {
      x[row / n * n + j] += sum;
      sum += g[row * n + j] * y[row * n + j];
    }
  }
  put(c.tensor(P::gradInput), x);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnExpSegsum, check_segsum, run_segsum)
ACLNN_OP(aclnnExpSegsumBackward, check_segsum_grad, run_segsum_grad)
