// Addition, subtraction, multiplication, division, and what is made of them.
#include "loops/pointwise.h"

namespace aclsim {

ACL_FN(Add, Additive, (T a, T b, T alpha), a + alpha * b)
ACL_FN(Sub, Additive, (T a, T b, T alpha), a - alpha * b)
ACL_FN(Rsub, Additive, (T a, T b, T alpha), b - alpha * a)
ACL_FN(Mul, Arith, (T a, T b), a * b)
ACL_FN(Div, Floating, (T a, T b), a / b)
ACL_FN(AddRelu, Real, (T a, T b, T alpha), (a + alpha * b) < T(0) ? T(0) : a + alpha * b)
ACL_FN(Addcmul, Arith, (T a, T b, T c, T value), a + value * b * c)
ACL_FN(Addcdiv, Floating, (T a, T b, T c, T value), a + value * b / c)
// torch's form: exact at both ends.
struct Lerp : FloatingReal {
  template <class T>
  static ACL_INLINE T f(T a, T b, T w) {
    return std::fabs(w) < T(0.5) ? a + w * (b - a) : b - (b - a) * (T(1) - w);
  }
};

}  // namespace aclsim

ACLNN_POINTWISE(aclnnAdd, Add, 3, 0, 1, ~2)
ACLNN_POINTWISE(aclnnAdds, Add, 3, 0, 1, ~2)
ACLNN_POINTWISE(aclnnAddV3, Add, 3, 0, 1, ~2)
// The scalar comes first; what is written is the tensor.
ACLNN_POINTWISE(aclnnInplaceAddV3, Add, 1, 0, 1, ~2)
ACLNN_POINTWISE(aclnnInplaceAdd, Add, 0, 0, 1, ~2)
ACLNN_POINTWISE(aclnnInplaceAdds, Add, 0, 0, 1, ~2)
ACLNN_POINTWISE(aclnnSub, Sub, 3, 0, 1, ~2)
ACLNN_POINTWISE(aclnnSubs, Sub, 3, 0, 1, ~2)
ACLNN_POINTWISE(aclnnInplaceSub, Sub, 0, 0, 1, ~2)
ACLNN_POINTWISE(aclnnInplaceSubs, Sub, 0, 0, 1, ~2)
ACLNN_POINTWISE(aclnnRsub, Rsub, 3, 0, 1, ~2)
ACLNN_POINTWISE(aclnnRsubs, Rsub, 3, 0, 1, ~2)
ACLNN_POINTWISE(aclnnAddRelu, AddRelu, 3, 0, 1, ~2)
ACLNN_POINTWISE(aclnnInplaceAddRelu, AddRelu, 0, 0, 1, ~2)
ACLNN_BINARY_INPLACE(aclnnMul, aclnnInplaceMul, Mul)
ACLNN_BINARY_INPLACE(aclnnMuls, aclnnInplaceMuls, Mul)
ACLNN_BINARY_INPLACE(aclnnDiv, aclnnInplaceDiv, Div)
ACLNN_BINARY_INPLACE(aclnnDivs, aclnnInplaceDivs, Div)
ACLNN_POINTWISE(aclnnAddcmul, Addcmul, 4, 0, 1, 2, ~3)
ACLNN_POINTWISE(aclnnInplaceAddcmul, Addcmul, 0, 0, 1, 2, ~3)
ACLNN_POINTWISE(aclnnAddcdiv, Addcdiv, 4, 0, 1, 2, ~3)
ACLNN_POINTWISE(aclnnInplaceAddcdiv, Addcdiv, 0, 0, 1, 2, ~3)
ACLNN_POINTWISE(aclnnLerp, Lerp, 3, 0, 1, 2)
ACLNN_POINTWISE(aclnnLerps, Lerp, 3, 0, 1, ~2)
ACLNN_POINTWISE(aclnnInplaceLerp, Lerp, 0, 0, 1, 2)
ACLNN_POINTWISE(aclnnInplaceLerps, Lerp, 0, 0, 1, ~2)
