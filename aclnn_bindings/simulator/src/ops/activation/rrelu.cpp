// Leaky ReLU with random slopes.
#include "loops/numbers.h"
#include "loops/philox.h"

namespace aclsim {
namespace {

// (self, noise, lower, upper, training, seed, offset[, out]): torch's rrelu_with_noise.
template <int Out>
aclnnStatus check_rrelu(Call& c) {
  ACL_RETURN_IF_FAILED(expect_all_shaped_like(c, 0, {Out}));
  ACL_RETURN_IF_FAILED(expect_numel(c, 1, c.tensor(0).numel()));
  if (c.scalar(2).real() <= c.scalar(3).real()) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "lower is %g, more than upper, %g.", c.scalar(2).real(),
                c.scalar(3).real());
}
template <int Out>
aclError run_rrelu(Call& c) {
  const double low = c.scalar(2).real(), high = c.scalar(3).real();
  const Philox random = stream_of(c, 5);
  Numbers x = numbers(c.tensor(0)), noise(x.size(), 1);
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] > 0) continue;
    noise[i] = c.flag(4) ? low + (high - low) * random.unit_double(i) : (low + high) / 2;
    x[i] *= noise[i];
  }
  if (c.flag(4)) put(c.tensor(1), noise);
  put(c.tensor(Out), x);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnRReluWithNoise, check_rrelu<7>, run_rrelu<7>)
ACLNN_OP(aclnnInplaceRReluWithNoise, check_rrelu<0>, run_rrelu<0>)
