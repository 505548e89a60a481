// A scale and a shift along some dims.
#include "params/pointwise.h"
#include "loops/numbers.h"
#include "loops/philox.h"

namespace aclsim {
namespace {

// (x, scale, bias, axis, numAxes, scaleFromBlob, y): Caffe's Scale: scale's dims stand from axis on.
aclnnStatus check_scale(Call& c) {
  using P = params::Scale;

  const Tensor &x = c.tensor(P::x), &scale = c.tensor(P::scale);
  int64_t& axis = c.make<int64_t>();
  axis = c.integer(P::axis);
  ACL_RETURN_IF_FAILED(expect_axis(c, P::axis, axis, x.rank));
  bool fits = scale.numel() == 1 || axis + scale.rank <= x.rank;
  for (int d = 0; fits && scale.numel() != 1 && d < scale.rank; ++d) {
    fits = scale.dims[d] == x.dims[axis + d];
  }
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of scale doesn't fit %s of x from dim %lld on.",
                  shape_text(scale), shape_text(x), static_cast<long long>(axis));
  }
  ACL_RETURN_IF_FAILED(expect_numel(c, P::bias, scale.numel()));
  return expect_same_shape(c, P::y, P::x);
}
void run_scale(Call& c) {
  using P = params::Scale;

  Numbers x = numbers(c.tensor(P::x));
  const Numbers scale = numbers(c.tensor(P::scale));
  const Numbers bias = numbers_or(c.maybe(P::bias), static_cast<int64_t>(scale.size()), 0);
  const int behind =
      c.tensor(P::x).rank - static_cast<int>(c.get<int64_t>()) - c.tensor(P::scale).rank;
  const size_t inner = static_cast<size_t>(tail_numel(c.tensor(P::x), std::max(0, behind)));
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t k = i / inner % scale.size();
    x[i] = x[i] * scale[k] + bias[k];
  }
  put(c.tensor(P::y), x);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnScale, check_scale, run_scale)
