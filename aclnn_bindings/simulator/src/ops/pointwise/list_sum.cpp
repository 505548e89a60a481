// Sums of the members of a list.
#include "params/pointwise.h"
#include "loops/iterate.h"
#include "loops/promote.h"
#include "loops/rows.h"
#include "loops/members.h"

namespace aclsim {
namespace {

// (tensors, out): the sum of all, elementwise.
aclnnStatus check_sum_list(Call& c) {
  using P = params::Sum;

  ACL_RETURN_IF_FAILED(expect_members(c, P::tensors));
  for (const Tensor* t : c.tensors(P::tensors)) {
    if (t->same_shape(c.tensor(P::out))) continue;
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s in tensors should equal out's, %s.",
                  shape_text(*t), shape_text(c.tensor(P::out)));
  }
  return ACLNN_SUCCESS;
}
void run_sum_list(Call& c) {
  using P = params::Sum;

  const Tensor& out = c.tensor(P::out);
  copy_tensor(out, *c.tensors(P::tensors)[0]);
  for (int64_t i = 1; i < c.tensors(P::tensors).size; ++i) {
    Loop loop = loop_over(out);
    loop.add(out);
    loop.add(*c.tensors(P::tensors)[i]);
    loop.coalesce();
    with_real(out.dtype, [&](auto tag) {
      using C = typename decltype(tag)::type;
      run_loop<C>(loop, [](int64_t n, C* o, const C* const* in) {
        for (int64_t k = 0; k < n; ++k) o[k] = in[0][k] + in[1][k];
      });
    });
  }
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnSum, check_sum_list, run_sum_list)
ACLNN_OP(aclnnAddN, check_sum_list, run_sum_list)
