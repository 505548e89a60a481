// A scale and a shift along some dims.
#include "loops/numbers.h"
#include "loops/philox.h"

namespace aclsim {
namespace {

// (x, scale, bias, axis, numAxes, scaleFromBlob, y): Caffe's Scale: scale's dims stand from axis on.
aclnnStatus check_scale(Call& c) {
  const Tensor &x = c.tensor(0), &scale = c.tensor(1);
  int64_t& axis = c.make<int64_t>();
  axis = c.integer(3);
  ACL_RETURN_IF_FAILED(expect_axis(c, 3, axis, x.rank));
  bool fits = scale.numel() == 1 || axis + scale.rank <= x.rank;
  for (int d = 0; fits && scale.numel() != 1 && d < scale.rank; ++d) {
    fits = scale.dims[d] == x.dims[axis + d];
  }
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of scale doesn't fit %s of x from dim %lld on.",
                  shape_text(scale), shape_text(x), static_cast<long long>(axis));
  }
  ACL_RETURN_IF_FAILED(expect_numel(c, 2, scale.numel()));
  return expect_same_shape(c, 6, 0);
}
aclError run_scale(Call& c) {
  Numbers x = numbers(c.tensor(0));
  const Numbers scale = numbers(c.tensor(1));
  const Numbers bias = numbers_or(c.maybe(2), static_cast<int64_t>(scale.size()), 0);
  const int behind = c.tensor(0).rank - static_cast<int>(c.get<int64_t>()) - c.tensor(1).rank;
  const size_t inner = static_cast<size_t>(tail_numel(c.tensor(0), std::max(0, behind)));
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t k = i / inner % scale.size();
    x[i] = x[i] * scale[k] + bias[k];
  }
  put(c.tensor(6), x);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnScale, check_scale, run_scale)
