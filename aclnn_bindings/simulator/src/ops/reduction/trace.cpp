// The sum of a matrix's diagonal.
#include "params/reduction.h"
#include "loops/iterate.h"
#include "loops/promote.h"
#include "loops/rows.h"
#include "loops/diagonal.h"

namespace aclsim {
namespace {

// (self, out): the sum of the diagonal.
aclnnStatus check_trace(Call& c) {
  using P = params::Trace;

  if (c.tensor(P::self).rank != 2)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "self should have 2 dims.");
  return expect_shape(c, P::out, Shape{});
}
void run_trace(Call& c) {
  using P = params::Trace;

  const Tensor v = diagonal_of(c.tensor(P::self), 0);
  const Tensor& out = c.tensor(P::out);
  with_number(out.dtype, [&](auto tag) {
    using C = typename decltype(tag)::type;
    std::conditional_t<std::is_same<C, float>::value, double, C> sum = 0;
    for (int64_t i = 0; i < v.dims[0]; ++i) {
      sum += load_one<C>(v.data, v.dtype, v.offset + i * v.strides[0]);
    }
    store_one(sum, out.data, out.dtype, out.offset);
  });
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnTrace, check_trace, run_trace)
