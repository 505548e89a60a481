// Activations and their gradients, as torch defines them.
#include "pointwise.h"
#include "vmath.h"

namespace aclsim {

ACL_FN(Relu, Real, (T x), x < T(0) ? T(0) : x)

}  // namespace aclsim

ACLNN_UNARY_INPLACE(aclnnRelu, aclnnInplaceRelu, Relu)
