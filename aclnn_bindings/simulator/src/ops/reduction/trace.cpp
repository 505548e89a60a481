// The sum of a matrix's diagonal.
#include "loops/iterate.h"
#include "loops/promote.h"
#include "loops/rows.h"
#include "loops/diagonal.h"

namespace aclsim {
namespace {

// (self, out): the sum of the diagonal.
aclnnStatus check_trace(Call& c) {
  if (c.tensor(0).rank != 2) return c.fail(ACLNN_ERR_PARAM_INVALID, "self should have 2 dims.");
  return expect_shape(c, 1, Shape{});
}
aclError run_trace(Call& c) {
  const Tensor v = diagonal_of(c.tensor(0), 0);
  const Tensor& out = c.tensor(1);
  with_number(out.dtype, [&](auto tag) {
    using C = typename decltype(tag)::type;
    std::conditional_t<std::is_same<C, float>::value, double, C> sum = 0;
    for (int64_t i = 0; i < v.dims[0]; ++i) {
      sum += load_one<C>(v.data, v.dtype, v.offset + i * v.strides[0]);
    }
    store_one(sum, out.data, out.dtype, out.offset);
  });
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnTrace, check_trace, run_trace)
