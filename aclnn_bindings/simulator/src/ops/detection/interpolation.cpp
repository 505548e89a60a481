// The gradient of features interpolated from the three nearest points.
#include "loops/numbers.h"

namespace aclsim {
namespace {

// (gradX [B, C, N], idx [B, N, 3], weight [B, N, 3], m, gradY [B, C, M]): what three known points gave
// goes back to them. A last dim of one is passed over.
aclnnStatus check_three(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {0, 1, 2, 4}));
  ACL_RETURN_IF_FAILED(expect_rank(c, 0, 3, 4));
  const Tensor& g = c.tensor(0);
  const int64_t batch = g.dims[0], points = g.dims[2];
  for (int i : {1, 2}) ACL_RETURN_IF_FAILED(expect_numel(c, i, batch * points * 3));
  return expect_numel(c, 4, batch * g.dims[1] * c.integer(3));
}
aclError run_three(Call& c) {
  const Tensor& t = c.tensor(0);
  const int64_t channels = t.dims[1], points = t.dims[2], known = c.integer(3);
  const Numbers g = numbers(t), share = numbers(c.tensor(2));
  const Integers at = integers(c.tensor(1));
  Numbers to(static_cast<size_t>(c.tensor(4).numel()));
  IndexFault fault;
  for (int64_t i = 0; i < static_cast<int64_t>(at.size()); ++i) {
    const int64_t k = fault.resolve(at[i], known);
    if (k < 0) return fault.report(c, 1);
    const int64_t batch = i / 3 / points, point = i / 3 % points;
    for (int64_t ch = 0; ch < channels; ++ch) {
      to[(batch * channels + ch) * known + k] += g[(batch * channels + ch) * points + point] * share[i];
    }
  }
  put(c.tensor(4), to);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnThreeInterpolateBackward, check_three, run_three)
