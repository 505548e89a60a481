// Leaky ReLU with random slopes.
#include "params/activation.h"
#include "loops/numbers.h"
#include "loops/philox.h"

namespace aclsim {
namespace {

// (self, noise, lower, upper, training, seed, offset[, out]): torch's rrelu_with_noise.
template <int Out>
aclnnStatus check_rrelu(Call& c) {
  using P = params::RReluWithNoise;

  ACL_RETURN_IF_FAILED(expect_all_shaped_like(c, P::self, {Out}));
  ACL_RETURN_IF_FAILED(expect_numel(c, P::noise, c.tensor(P::self).numel()));
  if (c.scalar(P::lower).real() <= c.scalar(P::upper).real()) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "lower is %g, more than upper, %g.",
                c.scalar(P::lower).real(), c.scalar(P::upper).real());
}
template <int Out>
void run_rrelu(Call& c) {
  using P = params::RReluWithNoise;

  const double low = c.scalar(P::lower).real(), high = c.scalar(P::upper).real();
  const Philox random = stream_of(c, P::seed);
  Numbers x = numbers(c.tensor(P::self)), noise(x.size(), 1);
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] > 0) continue;
    noise[i] = c.flag(P::training) ? low + (high - low) * random.unit_double(i) : (low + high) / 2;
    x[i] *= noise[i];
  }
  if (c.flag(P::training)) put(c.tensor(P::noise), noise);
  put(c.tensor(Out), x);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnRReluWithNoise, check_rrelu<params::RReluWithNoise::out>,
         run_rrelu<params::RReluWithNoise::out>)
ACLNN_OP(aclnnInplaceRReluWithNoise, check_rrelu<params::InplaceRReluWithNoise::self>,
         run_rrelu<params::InplaceRReluWithNoise::self>)
