// Norms with microscaling quantisation after.
#include "params/norm.h"
#include "loops/mx.h"

#include <cmath>

namespace aclsim {
namespace {

// Root-mean-square norms of x, or x1 + x2, then powers of two along the last dim.
template <bool Add>
aclnnStatus check_norm(Call& c) {
  using P = params::RmsNormDynamicMxQuant;

  constexpr int kGamma = Add ? P::beta : P::gamma, kY = Add ? P::mxscaleOut : P::yOut,
                kScale = Add ? params::AddRmsNormDynamicMxQuant::mxscaleOut : P::mxscaleOut;
  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, kGamma, kY}));
  if (Add) ACL_RETURN_IF_FAILED(expect_given(c, {P::gamma, P::rstdOut}));
  if (Add) ACL_RETURN_IF_FAILED(expect_same_shape(c, P::gamma, P::x));
  ACL_RETURN_IF_FAILED(expect_plain(c, kGamma + 4, kGamma + 3, -1));
  for (int i : {kGamma, kGamma + 1})
    ACL_RETURN_IF_FAILED(expect_numel(c, i, width_of(c.tensor(P::x))));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, kY, P::x));
  return expect_powers(c, kY, kScale, along(c.tensor(P::x), -1).scales());
}
template <bool Add>
void run_norm(Call& c) {
  using P = params::RmsNormDynamicMxQuant;

  constexpr int kGamma = Add ? P::beta : P::gamma, kY = Add ? P::mxscaleOut : P::yOut,
                kScale = Add ? params::AddRmsNormDynamicMxQuant::mxscaleOut : P::mxscaleOut;
  Floats x = floats(c.tensor(P::x)), rstds;
  const Floats more = Add ? floats(c.tensor(P::gamma)) : Floats(), gamma = floats(c.tensor(kGamma)),
               beta = floats(at_or_null(c, kGamma + 1));
  const int64_t n = width_of(c.tensor(P::x));
  for (size_t i = 0; i < more.size(); ++i) x[i] += more[i];
  if (Add) write(c.tensor(P::rstdOut), x);
  for (size_t row = 0; row < x.size(); row += static_cast<size_t>(n)) {
    double square = 0;
    for (int64_t i = 0; i < n; ++i) square += static_cast<double>(x[row + i]) * x[row + i];
    const double rstd = 1 / std::sqrt(square / static_cast<double>(n) + c.number(kGamma + 2));
    rstds.push_back(static_cast<float>(rstd));
    for (int64_t i = 0; i < n; ++i)
      x[row + i] = static_cast<float>(x[row + i] * rstd * gamma[i] + (beta.empty() ? 0 : beta[i]));
  }
  write_scaled(c, kY, kScale, x, along(c.tensor(P::x), -1), c.integer(kGamma + 3));
  if (c.flag(kGamma + 6)) write(at_or_null(c, kScale + 1), rstds);
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnRmsNormDynamicMxQuant, check_norm<false>, run_norm<false>)
ACLNN_OWN(aclnnAddRmsNormDynamicMxQuant, check_norm<true>, run_norm<true>)
