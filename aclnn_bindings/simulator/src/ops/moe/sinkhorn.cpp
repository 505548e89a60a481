// Sinkhorn's normalisation of the costs of routing.
#include "params/moe.h"
#include "loops/numbers.h"
#include "loops/philox.h"

namespace aclsim {
namespace {

// (cost [R, C], tol, p): Megatron's Sinkhorn normalisation of exp(cost).
aclnnStatus check_sinkhorn(Call& c) {
  using P = params::Sinkhorn;

  ACL_RETURN_IF_FAILED(expect_rank(c, P::cost, 2, 2));
  return expect_same_shape(c, P::p, P::cost);
}
void run_sinkhorn(Call& c) {
  using P = params::Sinkhorn;

  const int64_t rows = c.tensor(P::cost).dims[0], cols = c.tensor(P::cost).dims[1];
  const double tol = c.null(P::tol) ? 1e-4 : c.scalar(P::tol).real(), eps = 1e-8;
  Numbers x = numbers(c.tensor(P::cost)), d0(rows, 1), d1(cols, 1);
  for (double& v : x) v = std::exp(v);
  constexpr int kMost = 10000;
  double error = std::numeric_limits<double>::infinity();
  for (int step = 0; step < kMost && error > tol && !x.empty(); ++step) {
    const Numbers before = d1;
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t k = 0; k < cols; ++k) sum += d1[k] * x[r * cols + k];
      d0[r] = 1 / (static_cast<double>(rows) * (sum + eps));
    }
    error = 0;
    for (int64_t k = 0; k < cols; ++k) {
      double sum = 0;
      for (int64_t r = 0; r < rows; ++r) sum += d0[r] * x[r * cols + k];
      d1[k] = 1 / (static_cast<double>(cols) * (sum + eps));
      error += std::fabs(before[k] - d1[k]) / static_cast<double>(cols);
    }
  }
  for (int64_t i = 0; i < rows * cols; ++i) x[i] *= d0[i / cols] * d1[i % cols];
  put(c.tensor(P::p), x);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnSinkhorn, check_sinkhorn, run_sinkhorn)
