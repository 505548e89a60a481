// Fused optimizer steps.
#include "params/optimizer.h"
#include "loops/pointwise.h"

#include <cmath>

namespace aclsim {
namespace {

struct AdamW {
  double lr, beta1, beta2, decay, eps, step;
  bool amsgrad, maximize;
};

// One element's state, updated in place.
struct Moments {
  double var, m, v, top;
};
void adamw(const AdamW& a, Moments& s, double grad) {
  const double g = a.maximize ? -grad : grad;
  s.var *= 1 - a.lr * a.decay;
  s.m = a.beta1 * s.m + (1 - a.beta1) * g;
  s.v = a.beta2 * s.v + (1 - a.beta2) * g * g;
  const double correction1 = 1 - std::pow(a.beta1, a.step),
               correction2 = 1 - std::pow(a.beta2, a.step);
  double spread = s.v;
  if (a.amsgrad) spread = s.top = s.v <= s.top || s.top != s.top ? s.top : s.v;  // NaN stays
  s.var -= a.lr / correction1 * s.m / (std::sqrt(spread / correction2) + a.eps);
}

aclnnStatus check_adamw(Call& c) {
  using P = params::ApplyAdamWV2;

  for (int i : {P::mRef, P::vRef, P::grad})
    ACL_RETURN_IF_FAILED(expect_same_shape(c, i, P::varRef));
  if (c.flag(P::amsgrad)) {
    if (c.null(P::maxGradNormOptionalRef))
      return c.fail(ACLNN_ERR_PARAM_NULLPTR, "%s is null with amsgrad.",
                    c.name(P::maxGradNormOptionalRef));
    ACL_RETURN_IF_FAILED(expect_same_shape(c, P::maxGradNormOptionalRef, P::varRef));
  }
  if (c.tensor(P::step).numel() == 1) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "step should have 1 element, its shape is %s.",
                shape_text(c.tensor(P::step)));
}
void run_adamw(Call& c) {
  using P = params::ApplyAdamWV2;

  const Tensor& step = c.tensor(P::step);
  const AdamW a = {c.number(P::lr),    c.number(P::beta1),
                   c.number(P::beta2), c.number(P::weightDecay),
                   c.number(P::eps),   load_one<double>(step.data, step.dtype, step.offset) + 1,
                   c.flag(P::amsgrad), c.flag(P::maximize)};
  const Tensor& var = c.tensor(P::varRef);
  parallel_for(var.numel(), 4096, [&](int64_t begin, int64_t end) {
    Walker at(var.rank, var.dims, begin);
    const auto where = [&](const Tensor& t) { return t.offset + at.offset(t.strides); };
    const auto read = [&](int i) {
      const Tensor& t = c.tensor(i);
      return load_one<double>(t.data, t.dtype, where(t));
    };
    const auto write = [&](int i, double value) {
      const Tensor& t = c.tensor(i);
      store_one(value, t.data, t.dtype, where(t));
    };
    for (int64_t i = begin; i < end; ++i, at.next()) {
      Moments s = {read(0), read(1), read(2), a.amsgrad ? read(3) : 0};
      adamw(a, s, read(4));
      write(0, s.var);
      write(1, s.m);
      write(2, s.v);
      if (a.amsgrad) write(3, s.top);
    }
  });
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnApplyAdamWV2, check_adamw, run_adamw)
