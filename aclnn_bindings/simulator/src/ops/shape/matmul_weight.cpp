// The order of weights for products, which stays plain here (see docs/unspecified_ops.md).
#include "params/shape.h"
#include "loops/matrices.h"

namespace aclsim {
namespace {

// Weights keep their order: the private format of the document is this simulator's own to choose.
aclnnStatus check_private(Call& c) {
  using P = params::TransMatmulWeight;
  return expect_given(c, {P::mmWeightRef});
}
void run_private(Call&) { return; }

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnTransMatmulWeight, check_private, run_private)
