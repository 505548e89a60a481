// Optimizer steps over lists of parameters, and those that take their coefficients as tensors.
#include "loops/numbers.h"

namespace aclsim {
namespace {

bool all_finite(const Tensor* flag) { return !flag || number(*flag) == 0; }

// Every member of the lists at `arguments` has the shape of its parameter in list 0; an absent or
// empty list passes.
aclnnStatus expect_lists(const Call& c, std::initializer_list<int> arguments) {
  const Span<Tensor*> params = c.tensors(0);
  for (int arg : arguments) {
    const Span<Tensor*> list = c.tensors(arg);
    if (list.size == 0) continue;
    bool fits = list.size == params.size;
    for (int64_t i = 0; fits && i < list.size; ++i) {
      fits = list[i] && params[i] && list[i]->same_shape(*params[i]);
    }
    if (fits) continue;
    return c.fail(ACLNN_ERR_PARAM_INVALID, "The members of %s should have the shapes of those of %s.",
                  c.name(arg), c.name(0));
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
  ACL_RETURN_IF_FAILED(expect_lists(c, {1, 2, 3, 4}));
  if (c.flag(13) && c.tensors(4).size != c.tensors(0).size) {
    return c.fail(ACLNN_ERR_PARAM_NULLPTR, "%s is missing with amsgrad.", c.name(4));
  }
  bool steps = c.tensors(5).size == c.tensors(0).size && c.tensors(1).size == c.tensors(0).size;
  for (const Tensor* t : c.tensors(5)) steps = steps && t && t->numel() == 1;
  if (!steps) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have one number per parameter.", c.name(5));
  }
  return expect_single(c, {6, 7});
}
aclError run_fused_adamw(Call& c) {
  if (!all_finite(c.maybe(7))) return ACL_SUCCESS;
  const double lr = c.number(8), b1 = c.number(9), b2 = c.number(10), eps = c.number(12);
  const bool amsgrad = c.flag(13);
  const double scale = c.maybe(6) ? number(c.tensor(6)) : 1, sign = c.flag(14) ? -1 : 1;
  for (int64_t i = 0; i < c.tensors(0).size; ++i) {
    const auto member = [&](int arg) -> const Tensor& { return *c.tensors(arg)[i]; };
    Numbers var = numbers(member(0)), g = numbers(member(1)), m = numbers(member(2)),
            v = numbers(member(3)), top = amsgrad ? numbers(member(4)) : Numbers();
    const double step = number(member(5));
    const double fix1 = 1 - std::pow(b1, step), fix2 = std::sqrt(1 - std::pow(b2, step));
    for (size_t k = 0; k < var.size(); ++k) {
      g[k] /= scale;
      const double grad = sign * g[k];
      var[k] -= lr * c.number(11) * var[k];
      m[k] += (1 - b1) * (grad - m[k]);
      v[k] = b2 * v[k] + (1 - b2) * grad * grad;
      if (amsgrad) top[k] = std::max(top[k], v[k]);
      const double spread = std::sqrt(amsgrad ? top[k] : v[k]) / fix2 + eps;
      var[k] -= lr / fix1 * m[k] / spread;
    }
    put(member(0), var);
    if (c.maybe(6)) put(member(1), g);
    put(member(2), m);
    put(member(3), v);
    if (amsgrad) put(member(4), top);
  }
  return ACL_SUCCESS;
}

// (params, grads, momentumBuffers, gradScale, weightDecay, momentum, lr, dampening, nesterov,
// maximize, isFirstStep): torch's _fused_sgd_.
aclnnStatus check_fused_sgd(Call& c) {
  ACL_RETURN_IF_FAILED(expect_lists(c, {1, 2}));
  if (c.tensors(1).size != c.tensors(0).size) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have as many members as %s.", c.name(1),
                  c.name(0));
  }
  if (c.number(5) != 0 && c.tensors(2).size != c.tensors(0).size) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is missing with momentum.", c.name(2));
  }
  return expect_single(c, {3});
}
aclError run_fused_sgd(Call& c) {
  const double decay = c.number(4), momentum = c.number(5), lr = c.number(6);
  const double scale = c.maybe(3) ? number(c.tensor(3)) : 1, sign = c.flag(9) ? -1 : 1;
  for (int64_t i = 0; i < c.tensors(0).size; ++i) {
    Numbers var = numbers(*c.tensors(0)[i]), g = numbers(*c.tensors(1)[i]), kept;
    if (momentum != 0) kept = numbers(*c.tensors(2)[i]);
    for (size_t k = 0; k < var.size(); ++k) {
      g[k] /= scale;
      double grad = sign * g[k] + decay * var[k];
      if (momentum != 0) {
        kept[k] = c.flag(10) ? grad : momentum * kept[k] + (1 - c.number(7)) * grad;
        grad = c.flag(8) ? grad + momentum * kept[k] : kept[k];
      }
      var[k] -= lr * grad;
    }
    put(*c.tensors(0)[i], var);
    if (c.maybe(3)) put(*c.tensors(1)[i], g);
    if (momentum != 0) put(*c.tensors(2)[i], kept);
  }
  return ACL_SUCCESS;
}

// (var, m, v, beta1Power, beta2Power, lr, beta1, beta2, epsilon, grad, useLocking, useNesterov):
// TensorFlow's ApplyAdam; only var is written, as documented.
aclnnStatus check_adam(Call& c) {
  ACL_RETURN_IF_FAILED(expect_all_shaped_like(c, 0, {1, 2, 9}));
  return expect_single(c, {3, 4, 5, 6, 7, 8});
}
aclError run_adam(Call& c) {
  const auto of = [&](int arg) { return number(c.tensor(arg)); };
  const double rate = of(5) * std::sqrt(1 - of(4)) / (1 - of(3));
  const double b1 = of(6), b2 = of(7), eps = of(8);
  Numbers var = numbers(c.tensor(0)), m = numbers(c.tensor(1)), v = numbers(c.tensor(2));
  const Numbers g = numbers(c.tensor(9));
  for (size_t k = 0; k < var.size(); ++k) {
    m[k] += (g[k] - m[k]) * (1 - b1);
    v[k] += (g[k] * g[k] - v[k]) * (1 - b2);
    const double moved = c.flag(11) ? m[k] * b1 + (1 - b1) * g[k] : m[k];
    var[k] -= rate * moved / (std::sqrt(v[k]) + eps);
  }
  put(c.tensor(0), var);
  return ACL_SUCCESS;
}

// (var, m, v, beta1Power, beta2Power, lr, weightDecay, beta1, beta2, eps, grad, maxGradNorm,
// amsgrad, maximize): the powers are those of the step before.
aclnnStatus check_adamw_powers(Call& c) {
  ACL_RETURN_IF_FAILED(expect_all_shaped_like(c, 0, {1, 2, 10, 11}));
  if (c.flag(12)) ACL_RETURN_IF_FAILED(expect_given(c, {11}));
  return expect_single(c, {3, 4, 5, 6, 7, 8, 9});
}
aclError run_adamw_powers(Call& c) {
  const auto of = [&](int arg) { return number(c.tensor(arg)); };
  const double lr = of(5), b1 = of(7), b2 = of(8), eps = of(9), sign = c.flag(13) ? -1 : 1;
  const double fix1 = 1 - of(3) * b1, fix2 = 1 - of(4) * b2;
  Numbers var = numbers(c.tensor(0)), m = numbers(c.tensor(1)), v = numbers(c.tensor(2));
  Numbers g = numbers(c.tensor(10)), top = c.flag(12) ? numbers(c.tensor(11)) : Numbers();
  for (size_t k = 0; k < var.size(); ++k) {
    m[k] = b1 * m[k] + (1 - b1) * sign * g[k];
    v[k] = b2 * v[k] + (1 - b2) * g[k] * g[k];
    if (c.flag(12)) top[k] = std::max(top[k], v[k]);
    const double spread = std::sqrt((c.flag(12) ? top[k] : v[k]) / fix2) + eps;
    var[k] = var[k] * (1 - lr * of(6)) - lr / fix1 * m[k] / spread;
  }
  put(c.tensor(0), var);
  put(c.tensor(1), m);
  put(c.tensor(2), v);
  if (c.flag(12)) put(c.tensor(11), top);
  return ACL_SUCCESS;
}

// (grad, var, m, v, s, step, lr, emaDecay, beta1, beta2, eps, mode, biasCorrection, weightDecay):
// apex' Adam (mode 0: decay joins the gradient, 1: the update) with a moving average of var.
aclnnStatus check_ema_adam(Call& c) {
  ACL_RETURN_IF_FAILED(expect_all_shaped_like(c, 0, {1, 2, 3, 4}));
  ACL_RETURN_IF_FAILED(expect_int(c, 11, 0, 1));
  return expect_single(c, {5});
}
aclError run_ema_adam(Call& c) {
  const double lr = c.number(6), ema = c.number(7), b1 = c.number(8), b2 = c.number(9);
  const double decay = c.number(13), step = number(c.tensor(5));
  const double fix1 = c.flag(12) ? 1 - std::pow(b1, step) : 1;
  const double fix2 = c.flag(12) ? 1 - std::pow(b2, step) : 1;
  const bool joins_grad = c.integer(11) == 0;
  Numbers g = numbers(c.tensor(0)), var = numbers(c.tensor(1)), m = numbers(c.tensor(2)),
          v = numbers(c.tensor(3)), s = numbers(c.tensor(4));
  for (size_t k = 0; k < var.size(); ++k) {
    const double grad = g[k] + (joins_grad ? decay * var[k] : 0);
    m[k] = b1 * m[k] + (1 - b1) * grad;
    v[k] = b2 * v[k] + (1 - b2) * grad * grad;
    const double update = m[k] / fix1 / (std::sqrt(v[k] / fix2) + c.number(10));
    var[k] -= lr * (update + (joins_grad ? 0 : decay * var[k]));
    s[k] = ema * s[k] + (1 - ema) * var[k];
  }
  for (auto [arg, values] : {std::pair(1, &var), {2, &m}, {3, &v}, {4, &s}}) {
    put(c.tensor(arg), *values);
  }
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnFusedAdamw, check_fused_adamw, run_fused_adamw)
ACLNN_OP(aclnnFusedSgd, check_fused_sgd, run_fused_sgd)
ACLNN_OP(aclnnApplyAdam, check_adam, run_adam)
ACLNN_OP(aclnnApplyAdamW, check_adamw_powers, run_adamw_powers)
ACLNN_OP(aclnnApplyFusedEmaAdam, check_ema_adam, run_ema_adam)
