// A norm for every member of a list.
#include "params/foreach.h"
#include "loops/reduce.h"
#include "loops/rows.h"
#include "loops/vector_norm.h"

namespace aclsim {
namespace {

// (x, scalar, out): one norm per member.
aclnnStatus check_foreach_norm(Call& c) {
  using P = params::ForeachNorm;

  NormPlan& p = c.make<NormPlan>();
  p.order = c.null(P::scalar) ? 2.0 : c.scalar(P::scalar).real();
  const Span<Tensor*> x = c.tensors(P::x), out = c.tensors(P::out);
  if (x.size != out.size) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "out has %lld tensors, x has %lld.",
                  static_cast<long long>(out.size), static_cast<long long>(x.size));
  }
  for (int64_t i = 0; i < x.size; ++i) {
    if (!x[i] || !out[i]) return c.fail(ACLNN_ERR_PARAM_NULLPTR, "A list member is null.");
    if (out[i]->numel() != 1) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape of out[%lld] should be [], but is %s.",
                    static_cast<long long>(i), shape_text(*out[i]));
    }
    if (!common_norm(p.order)) {
      const uint64_t bytes = (x[i]->numel() + 1) * 8;
      c.workspace_size = std::max<uint64_t>(c.workspace_size, bytes);
    }
  }
  return ACLNN_SUCCESS;
}
void run_foreach_norm(Call& c) {
  using P = params::ForeachNorm;

  NormPlan p = c.get<NormPlan>();
  for (int64_t i = 0; i < c.tensors(P::x).size; ++i) {
    const Tensor& x = *c.tensors(P::x)[i];
    Tensor out = *c.tensors(P::out)[i];
    out.rank = 0;
    p.reduce.axes = (1u << x.rank) - 1;
    p.reduce.domain = x.dtype == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
    norm_of(c, out, x, p);
  }
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnForeachNorm, check_foreach_norm, run_foreach_norm)
