// The gradient of features interpolated from the three nearest points.
#include "params/detection.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

// (gradX [B, C, N], idx [B, N, 3], weight [B, N, 3], m, gradY [B, C, M]): what three known points gave
// goes back to them. A last dim of one is passed over.
aclnnStatus check_three(Call& c) {
  using P = params::ThreeInterpolateBackward;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::grad_x, P::idx, P::weight, P::grad_y}));
  ACL_RETURN_IF_FAILED(expect_rank(c, P::grad_x, 3, 4));
  const Tensor& g = c.tensor(P::grad_x);
  const int64_t batch = g.dims[0], points = g.dims[2];
  for (int i : {P::idx, P::weight}) ACL_RETURN_IF_FAILED(expect_numel(c, i, batch * points * 3));
  return expect_numel(c, P::grad_y, batch * g.dims[1] * c.integer(P::m));
}
aclError run_three(Call& c) {
  using P = params::ThreeInterpolateBackward;

  const Tensor& t = c.tensor(P::grad_x);
  const int64_t channels = t.dims[1], points = t.dims[2], known = c.integer(P::m);
  const Numbers g = numbers(t), share = numbers(c.tensor(P::weight));
  const Integers at = integers(c.tensor(P::idx));
  Numbers to(static_cast<size_t>(c.tensor(P::grad_y).numel()));
  IndexFault fault;
  for (int64_t i = 0; i < static_cast<int64_t>(at.size()); ++i) {
    const int64_t k = fault.resolve(at[i], known);
    if (k < 0) return fault.report(c, P::idx);
    const int64_t batch = i / 3 / points, point = i / 3 % points;
    for (int64_t ch = 0; ch < channels; ++ch) {
      to[(batch * channels + ch) * known + k] += g[(batch * channels + ch) * points + point] * share[i];
    }
  }
  put(c.tensor(P::grad_y), to);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnThreeInterpolateBackward, check_three, run_three)
