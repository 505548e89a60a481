// Optimizer steps over lists of parameters, and those that take their coefficients as tensors.
#include "params/optimizer.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

bool all_finite(const Tensor* flag) { return !flag || number(*flag) == 0; }

// Every member of the lists at `arguments` has the shape of its parameter in list 0; an absent or
// empty list passes.
aclnnStatus expect_lists(const Call& c, std::initializer_list<int> arguments) {
  using P = params::FusedSgd;

  const Span<Tensor*> params = c.tensors(P::paramsRef);
  for (int arg : arguments) {
    const Span<Tensor*> list = c.tensors(arg);
    if (list.size == 0) continue;
    bool fits = list.size == params.size;
    for (int64_t i = 0; fits && i < list.size; ++i) {
      fits = list[i] && params[i] && list[i]->same_shape(*params[i]);
    }
    if (fits) continue;
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "The members of %s should have the shapes of those of %s.", c.name(arg),
                  c.name(P::paramsRef));
  }
  return ACLNN_SUCCESS;
}
aclnnStatus expect_single(const Call& c, std::initializer_list<int> arguments) {
  for (int i : arguments) ACL_RETURN_IF_FAILED(expect_numel(c, i, 1));
  return ACLNN_SUCCESS;
}

// (params, grads, expAvgs, expAvgSqs, maxExpAvgSqs, stateSteps, gradScale, foundInf, lr, beta1,
// beta2, weightDecay, eps, amsgrad, maximize): torch's _fused_adamw_, whose steps count this one.
aclnnStatus check_fused_adamw(Call& c) {
  using P = params::FusedAdamw;

  ACL_RETURN_IF_FAILED(
      expect_lists(c, {P::grads, P::expAvgsRef, P::expAvgSqsRef, P::maxExpAvgSqsRef}));
  if (c.flag(P::amsgrad) && c.tensors(P::maxExpAvgSqsRef).size != c.tensors(P::paramsRef).size) {
    return c.fail(ACLNN_ERR_PARAM_NULLPTR, "%s is missing with amsgrad.",
                  c.name(P::maxExpAvgSqsRef));
  }
  bool steps = c.tensors(P::stateSteps).size == c.tensors(P::paramsRef).size &&
               c.tensors(P::grads).size == c.tensors(P::paramsRef).size;
  for (const Tensor* t : c.tensors(P::stateSteps)) steps = steps && t && t->numel() == 1;
  if (!steps) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have one number per parameter.",
                  c.name(P::stateSteps));
  }
  return expect_single(c, {P::gradScaleOptional, P::foundInfOptional});
}
aclError run_fused_adamw(Call& c) {
  using P = params::FusedAdamw;

  if (!all_finite(c.maybe(P::foundInfOptional))) return ACL_SUCCESS;
  const double lr = c.number(P::lr), b1 = c.number(P::beta1), b2 = c.number(P::beta2),
               eps = c.number(P::eps);
  const bool amsgrad = c.flag(P::amsgrad);
  const double scale = c.maybe(P::gradScaleOptional) ? number(c.tensor(P::gradScaleOptional)) : 1,
               sign = c.flag(P::maximize) ? -1 : 1;
  for (int64_t i = 0; i < c.tensors(P::paramsRef).size; ++i) {
    const auto member = [&](int arg) -> const Tensor& { return *c.tensors(arg)[i]; };
    Numbers var = numbers(member(0)), g = numbers(member(1)), m = numbers(member(2)),
            v = numbers(member(3)), top = amsgrad ? numbers(member(4)) : Numbers();
    const double step = number(member(5));
    const double fix1 = 1 - std::pow(b1, step), fix2 = std::sqrt(1 - std::pow(b2, step));
    for (size_t k = 0; k < var.size(); ++k) {
      g[k] /= scale;
      const double grad = sign * g[k];
      var[k] -= lr * c.number(P::weightDecay) * var[k];
      m[k] += (1 - b1) * (grad - m[k]);
      v[k] = b2 * v[k] + (1 - b2) * grad * grad;
      if (amsgrad && !(v[k] <= top[k] || top[k] != top[k])) top[k] = v[k];  // NaN stays
      const double spread = std::sqrt(amsgrad ? top[k] : v[k]) / fix2 + eps;
      var[k] -= lr / fix1 * m[k] / spread;
    }
    put(member(0), var);
    put(member(2), m);
    put(member(3), v);
    if (amsgrad) put(member(4), top);
  }
  return ACL_SUCCESS;
}

// (params, grads, momentumBuffers, gradScale, weightDecay, momentum, lr, dampening, nesterov,
// maximize, isFirstStep): torch's _fused_sgd_.
aclnnStatus check_fused_sgd(Call& c) {
  using P = params::FusedSgd;

  ACL_RETURN_IF_FAILED(expect_lists(c, {P::gradsRef, P::momentumBufferListOptionalRef}));
  if (c.tensors(P::gradsRef).size != c.tensors(P::paramsRef).size) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have as many members as %s.",
                  c.name(P::gradsRef), c.name(P::paramsRef));
  }
  if (c.number(P::momentum) != 0 &&
      c.tensors(P::momentumBufferListOptionalRef).size != c.tensors(P::paramsRef).size) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is missing with momentum.",
                  c.name(P::momentumBufferListOptionalRef));
  }
  return expect_single(c, {P::gradScaleOptional});
}
void run_fused_sgd(Call& c) {
  using P = params::FusedSgd;

  const double decay = c.number(P::weightDecay), momentum = c.number(P::momentum),
               lr = c.number(P::lr);
  const double scale = c.maybe(P::gradScaleOptional) ? number(c.tensor(P::gradScaleOptional)) : 1,
               sign = c.flag(P::maximize) ? -1 : 1;
  for (int64_t i = 0; i < c.tensors(P::paramsRef).size; ++i) {
    Numbers var = numbers(*c.tensors(P::paramsRef)[i]), g = numbers(*c.tensors(P::gradsRef)[i]),
            kept;
    if (momentum != 0) kept = numbers(*c.tensors(P::momentumBufferListOptionalRef)[i]);
    for (size_t k = 0; k < var.size(); ++k) {
      g[k] /= scale;
      double grad = sign * g[k] + decay * var[k];
      if (momentum != 0) {
        kept[k] = c.flag(P::isFirstStep) ? grad
                                         : momentum * kept[k] + (1 - c.number(P::dampening)) * grad;
        grad = c.flag(P::nesterov) ? grad + momentum * kept[k] : kept[k];
      }
      var[k] -= lr * grad;
    }
    put(*c.tensors(P::paramsRef)[i], var);
    if (c.maybe(P::gradScaleOptional)) put(*c.tensors(P::gradsRef)[i], g);
    if (momentum != 0) put(*c.tensors(P::momentumBufferListOptionalRef)[i], kept);
  }
}

// (var, m, v, beta1Power, beta2Power, lr, beta1, beta2, epsilon, grad, useLocking, useNesterov):
// TensorFlow's ApplyAdam; only var is written, as documented.
aclnnStatus check_adam(Call& c) {
  using P = params::ApplyAdam;

  ACL_RETURN_IF_FAILED(expect_all_shaped_like(c, P::varRef, {P::m, P::v, P::grad}));
  return expect_single(c, {P::beta1Power, P::beta2Power, P::lr, P::beta1, P::beta2, P::epsilon});
}
void run_adam(Call& c) {
  using P = params::ApplyAdam;

  const auto of = [&](int arg) { return number(c.tensor(arg)); };
  const double rate = of(5) * std::sqrt(1 - of(4)) / (1 - of(3));
  const double b1 = of(6), b2 = of(7), eps = of(8);
  Numbers var = numbers(c.tensor(P::varRef)), m = numbers(c.tensor(P::m)),
          v = numbers(c.tensor(P::v));
  const Numbers g = numbers(c.tensor(P::grad));
  for (size_t k = 0; k < var.size(); ++k) {
    m[k] += (g[k] - m[k]) * (1 - b1);
    v[k] += (g[k] * g[k] - v[k]) * (1 - b2);
    const double moved = c.flag(P::useNesterov) ? m[k] * b1 + (1 - b1) * g[k] : m[k];
    var[k] -= rate * moved / (std::sqrt(v[k]) + eps);
  }
  put(c.tensor(P::varRef), var);
}

// (var, m, v, beta1Power, beta2Power, lr, weightDecay, beta1, beta2, eps, grad, maxGradNorm,
// amsgrad, maximize): the powers are those of the step before.
aclnnStatus check_adamw_powers(Call& c) {
  using P = params::ApplyAdamW;

  ACL_RETURN_IF_FAILED(
      expect_all_shaped_like(c, P::varRef, {P::mRef, P::vRef, P::grad, P::maxGradNormOptional}));
  if (c.flag(P::amsgrad)) ACL_RETURN_IF_FAILED(expect_given(c, {P::maxGradNormOptional}));
  return expect_single(
      c, {P::beta1Power, P::beta2Power, P::lr, P::weightDecay, P::beta1, P::beta2, P::eps});
}
void run_adamw_powers(Call& c) {
  using P = params::ApplyAdamW;

  const auto of = [&](int arg) { return number(c.tensor(arg)); };
  const double lr = of(5), b1 = of(7), b2 = of(8), eps = of(9), sign = c.flag(P::maximize) ? -1 : 1;
  const double fix1 = 1 - of(3) * b1, fix2 = 1 - of(4) * b2;
  Numbers var = numbers(c.tensor(P::varRef)), m = numbers(c.tensor(P::mRef)),
          v = numbers(c.tensor(P::vRef));
  Numbers g = numbers(c.tensor(P::grad)),
          top = c.flag(P::amsgrad) ? numbers(c.tensor(P::maxGradNormOptional)) : Numbers();
  for (size_t k = 0; k < var.size(); ++k) {
    m[k] = b1 * m[k] + (1 - b1) * sign * g[k];
    v[k] = b2 * v[k] + (1 - b2) * g[k] * g[k];
    if (c.flag(P::amsgrad)) top[k] = std::max(top[k], v[k]);
    const double spread = std::sqrt((c.flag(P::amsgrad) ? top[k] : v[k]) / fix2) + eps;
    var[k] = var[k] * (1 - lr * of(6)) - lr / fix1 * m[k] / spread;
  }
  put(c.tensor(P::varRef), var);
  put(c.tensor(P::mRef), m);
  put(c.tensor(P::vRef), v);
}

// (grad, var, m, v, s, step, lr, emaDecay, beta1, beta2, eps, mode, biasCorrection, weightDecay):
// apex' Adam (mode 0: decay joins the gradient, 1: the update) with a moving average of var.
aclnnStatus check_ema_adam(Call& c) {
  using P = params::ApplyFusedEmaAdam;

  ACL_RETURN_IF_FAILED(expect_all_shaped_like(c, P::grad, {P::varRef, P::mRef, P::vRef, P::sRef}));
  ACL_RETURN_IF_FAILED(expect_int(c, P::mode, 0, 1));
  return expect_single(c, {P::step});
}
void run_ema_adam(Call& c) {
  using P = params::ApplyFusedEmaAdam;

  const double lr = c.number(P::lr), ema = c.number(P::emaDecay), b1 = c.number(P::beta1),
               b2 = c.number(P::beta2);
  const double decay = c.number(P::weightDecay), step = number(c.tensor(P::step));
  const double fix1 = c.flag(P::biasCorrection) ? 1 - std::pow(b1, step) : 1;
  const double fix2 = c.flag(P::biasCorrection) ? 1 - std::pow(b2, step) : 1;
  const bool joins_grad = c.integer(P::mode) == 0;
  Numbers g = numbers(c.tensor(P::grad)), var = numbers(c.tensor(P::varRef)),
          m = numbers(c.tensor(P::mRef)), v = numbers(c.tensor(P::vRef)),
          s = numbers(c.tensor(P::sRef));
  for (size_t k = 0; k < var.size(); ++k) {
    const double grad = g[k] + (joins_grad ? decay * var[k] : 0);
    m[k] = b1 * m[k] + (1 - b1) * grad;
    v[k] = b2 * v[k] + (1 - b2) * grad * grad;
    const double update = m[k] / fix1 / (std::sqrt(v[k] / fix2) + c.number(P::eps));
    var[k] -= lr * (update + (joins_grad ? 0 : decay * var[k]));
    s[k] = ema * s[k] + (1 - ema) * var[k];
  }
  for (auto [arg, values] : {std::pair(1, &var), {2, &m}, {3, &v}, {4, &s}}) {
    put(c.tensor(arg), *values);
  }
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnFusedAdamw, check_fused_adamw, run_fused_adamw)
ACLNN_OP(aclnnFusedSgd, check_fused_sgd, run_fused_sgd)
ACLNN_OP(aclnnApplyAdam, check_adam, run_adam)
ACLNN_OP(aclnnApplyAdamW, check_adamw_powers, run_adamw_powers)
ACLNN_OP(aclnnApplyFusedEmaAdam, check_ema_adam, run_ema_adam)
