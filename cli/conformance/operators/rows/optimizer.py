"""Steps of optimizers."""

from __future__ import annotations

from collections.abc import Mapping

from ....spec import *
from ....spec.domains import InOut
from ._ignored import SPEED
from ._words import *

_RULE: Final = Rule("gradient", "Loshchilov, Hutter: Decoupled Weight Decay Regularization, 2019; "
                    "torch.optim.AdamW")  # fmt: skip
_FLOATS: Final = "f32 f16 bf16"
_RATES: Final[dict[str, Domain]] = {
    "lr": number(0.05, 1e-3, 0), "beta1": number(0.9, 0.5, 0), "beta2": number(0.99, 0.5),
    "weightDecay": number(0.1, 0, 0.5), "eps": number(1e-3, 0.25),
}  # fmt: skip
_MODES: Final[dict[str, Domain]] = {"amsgrad": flag(), "maximize": flag()}


# Documents ask for one dim at least.
_SHAPES: Final = sizes({"*S": shape("3x5", 1, 7, "2x3x4", 1025, "33x65", "1x9", "2x1x3x2")})


def _state(dtype: str, low: float = -2.0) -> InOut:
    """A tensor of the optimizer's state, as large as the parameters."""
    return inout(tensor("*S", dtype, low))


def adamw(
    var: Array,
    m: Array,
    v: Array,
    grad: Array,
    step: float,
    top: Array | None,
    rates: Mapping[str, float],
) -> tuple[Array, Array, Array, Array | None]:
    """One step of AdamW: (var, m, v, top); `top` is the running maximum of v for amsgrad."""
    g = -grad if rates["maximize"] else grad
    b1, b2 = rates["beta1"], rates["beta2"]
    var = var * (1 - rates["lr"] * rates["weightDecay"])
    m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
    most = v
    if rates["amsgrad"] and top is not None:
        top = most = np.maximum(top, v)
    root = np.sqrt(most / (1 - b2**step)) + rates["eps"]
    return var - rates["lr"] / (1 - b1**step) * m / root, m, v, top


@spec("aclnnApplyAdamWV2", _RULE, _SHAPES, varRef=_state(_FLOATS), mRef=_state("varRef"),
      vRef=_state("varRef", 0),
      maxGradNormOptionalRef=inout(optional(tensor("*S", "varRef", 0), iff="amsgrad")),
      grad=tensor("*S", "varRef"),
      step=forms(real=scalar_tensor("f32", 3, 0, 1000), whole=scalar_tensor("i64", 3, 0)),
      **_RATES, **_MODES)  # fmt: skip
def apply_adamw_v2(
    varRef: Array,
    mRef: Array,
    vRef: Array,
    maxGradNormOptionalRef: Array | None,
    grad: Array,
    step: Array,
    lr: float,
    beta1: float,
    beta2: float,
    weightDecay: float,
    eps: float,
    amsgrad: bool,
    maximize: bool,
) -> tuple[Array | None, ...]:
    rates = {"lr": lr, "beta1": beta1, "beta2": beta2, "weightDecay": weightDecay, "eps": eps,
             "amsgrad": amsgrad, "maximize": maximize}  # fmt: skip
    # `step` counts the steps taken before this one: no public document says so, kernels do.
    now = step.item() + 1
    return adamw(varRef, mRef, vRef, grad, now, maxGradNormOptionalRef, rates)


_LISTS: Final = sizes({"*S": shape("3x5", 1, 65, "2x3x4", 1025)})
_SCALE: Final = optional(scalar_tensor("f32", 4, 0.5))


def _list(dtype: str, low: float = -2.0) -> InOut:
    return inout(tensors("L", "*S@L", dtype, low))


@spec("aclnnFusedAdamw", replace(_RULE, specials=False), _LISTS,
      pin("foundInfOptional=1.0 amsgrad=True", "a step that is passed over"),
      paramsRef=_list(_FLOATS), grads=tensors("L", "*S@L", "paramsRef"),
      expAvgsRef=_list("paramsRef"),
      expAvgSqsRef=_list("paramsRef", 0),
      maxExpAvgSqsRef=inout(optional(tensors("L", "*S@L", "paramsRef", 0), iff="amsgrad")),
      stateSteps=forms(early=tensors("L", "1", "i64", 1, 9),
                       late=tensors("L", "1", "i64", 500, 999),
                       real=tensors("L", "1", "f32", 1, 9)),
      gradScaleOptional=_SCALE, foundInfOptional=optional(scalar_tensor("f32", 0, 1)),
      **_RATES, **_MODES)  # fmt: skip
def fused_adamw(
    paramsRef: list[Array],
    grads: list[Array],
    expAvgsRef: list[Array],
    expAvgSqsRef: list[Array],
    maxExpAvgSqsRef: list[Array] | None,
    stateSteps: list[Array],
    gradScaleOptional: Array | None,
    foundInfOptional: Array | None,
    lr: float,
    beta1: float,
    beta2: float,
    weightDecay: float,
    eps: float,
    amsgrad: bool,
    maximize: bool,
) -> tuple[list[Array] | None, ...]:
    """Steps count this one."""
    if foundInfOptional is not None and foundInfOptional.any():  # the step is skipped
        return paramsRef, expAvgsRef, expAvgSqsRef, maxExpAvgSqsRef
    if gradScaleOptional is not None:
        grads = [g / gradScaleOptional for g in grads]
    rates = {"lr": lr, "beta1": beta1, "beta2": beta2, "weightDecay": weightDecay, "eps": eps,
             "amsgrad": amsgrad, "maximize": maximize}  # fmt: skip
    tops: Sequence[Array | None] = maxExpAvgSqsRef or [None] * len(paramsRef)
    rows = zip(paramsRef, expAvgsRef, expAvgSqsRef, grads, stateSteps, tops, strict=True)
    updated = [adamw(p, m, v, g, s.item(), top, rates) for p, m, v, g, s, top in rows]
    params, means, squares, most = map(list, zip(*updated, strict=True))
    return params, means, squares, most if amsgrad else None


@spec("aclnnFusedSgd", replace(_RULE, source="torch 2.13, document of torch.optim.SGD"), _LISTS,
      require("not nesterov or (momentum > 0 and dampening == 0)"),
      paramsRef=_list(_FLOATS), gradsRef=_list("paramsRef"),
      momentumBufferListOptionalRef=_list("paramsRef"),
      gradScaleOptional=_SCALE, weightDecay=number(0.1, 0), momentum=number(0.8, 0, 1),
      lr=number(0.05, 1e-3), dampening=number(0, 0.3), nesterov=flag(), maximize=flag(),
      isFirstStep=flag())  # fmt: skip
def fused_sgd(
    paramsRef: list[Array],
    gradsRef: list[Array],
    momentumBufferListOptionalRef: list[Array],
    gradScaleOptional: Array | None,
    weightDecay: float,
    momentum: float,
    lr: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    isFirstStep: bool,
) -> tuple[list[Array], ...]:
    params, buffers = [], []
    grads = gradsRef if gradScaleOptional is None else [g / gradScaleOptional for g in gradsRef]
    for p, g, b in zip(paramsRef, grads, momentumBufferListOptionalRef, strict=True):
        flow = (-g if maximize else g) + weightDecay * p
        if not momentum:
            params.append(p - lr * flow)
            buffers.append(b)
            continue
        velocity = flow if isFirstStep else momentum * b + (1 - dampening) * flow
        buffers.append(velocity)
        params.append(p - lr * (flow + momentum * velocity if nesterov else velocity))
    return params, grads, buffers


@spec("aclnnAmpUpdateScale", Rule("composite", "torch 2.13, torch._amp_update_scale_"),
      pin("growthTracker=2 growthInterval=3", "the scale grows"),
      currentScale=tensor("1", "f32", 1, 4096), growthTracker=scalar_tensor("i32", 0, 2, 1),
      foundInf=scalar_tensor("f32", 0, 1), growthFactor=number(2.0, 1.5),
      backoffFactor=number(0.25, 0.5), growthInterval=integer(3, 1, 2, 2000),
      updatedScale=out("currentScale"), updatedGrowthTracker=out("growthTracker"))  # fmt: skip
def amp_update_scale(
    currentScale: Array, growthTracker: Array, foundInf: Array, growthFactor: float,
    backoffFactor: float, growthInterval: int,
) -> tuple[Array, Array]:  # fmt: skip
    if foundInf[0]:
        return currentScale * backoffFactor, np.zeros_like(growthTracker)
    if growthTracker[0] + 1 == growthInterval:
        return currentScale * growthFactor, np.zeros_like(growthTracker)
    return currentScale, growthTracker + 1


@spec("aclnnApplyFusedEmaAdam", replace(_RULE, specials=False, source="Loshchilov, Hutter: "
                                        "Decoupled Weight Decay Regularization, 2019; Apex, "
                                        "FusedAdam's two modes of decay; Polyak, Juditsky 1992: "
                                        "the average"),
      _SHAPES, grad=tensor("*S", _FLOATS), varRef=_state("grad"), mRef=_state("grad"),
      vRef=_state("grad", 0.1), sRef=_state("grad"), step=scalar_tensor("i64", 5, 1, 1000),
      lr=_RATES["lr"], emaDecay=number(0.9, 0, 1), beta1=_RATES["beta1"], beta2=_RATES["beta2"],
      eps=_RATES["eps"], mode=choice(0, 1), biasCorrection=flag(True),
      weightDecay=_RATES["weightDecay"])  # fmt: skip
def ema_adam(
    grad: Array, varRef: Array, mRef: Array, vRef: Array, sRef: Array, step: Array, lr: float,
    emaDecay: float, beta1: float, beta2: float, eps: float, mode: int, biasCorrection: bool,
    weightDecay: float,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Mode 0 adds the decay to the gradient, mode 1 to the update."""
    g = grad if mode else grad + weightDecay * varRef
    m, v = beta1 * mRef + (1 - beta1) * g, beta2 * vRef + (1 - beta2) * g * g
    count = float(step[0])
    one, two = (1 - beta1**count, 1 - beta2**count) if biasCorrection else (1.0, 1.0)
    update = m / one / (np.sqrt(v / two) + eps) + (weightDecay * varRef if mode else 0)
    var = varRef - lr * update
    return var, m, v, emaDecay * sRef + (1 - emaDecay) * var


def _rate(*values: float, dtype: str = "varRef") -> Domain:
    return scalar_tensor(dtype, *values)


_POWERS: Final = replace(_RULE, specials=False, source="Loshchilov, Hutter: Decoupled Weight Decay "
                         "Regularization, 2019, algorithm 2; the powers are those before the step; "
                         "Reddi et al.: AMSGrad, 2018")  # fmt: skip


@spec("aclnnApplyAdamW", _POWERS, _SHAPES, varRef=_state(_FLOATS), mRef=_state("varRef"),
      vRef=_state("varRef", 0.1), beta1Power=_rate(0.875**2, 1, 2**-10),
      beta2Power=_rate(0.9375**2, 1, 2**-8), lr=_rate(0.125, 0), weightDecay=_rate(0.0625, 0),
      beta1=_rate(0.875, 0.5), beta2=_rate(0.9375, 0.5),
      eps=_rate(2**-10, 0.25), grad=tensor("*S", "varRef"),
      maxGradNormOptional=optional(tensor("*S", "varRef", 0.1), iff="amsgrad"),
      amsgrad=ignored("its maximum is given where it is set", flag()),
      maximize=flag())  # fmt: skip
def adam_w(
    varRef: Array, mRef: Array, vRef: Array, beta1Power: Array, beta2Power: Array, lr: Array,
    weightDecay: Array, beta1: Array, beta2: Array, eps: Array, grad: Array,
    maxGradNormOptional: Array | None, maximize: bool,
) -> tuple[Array, ...]:  # fmt: skip
    g = -grad if maximize else grad
    m, v = beta1 * mRef + (1 - beta1) * g, beta2 * vRef + (1 - beta2) * g * g
    most = v if maxGradNormOptional is None else np.maximum(maxGradNormOptional, v)
    first, second = m / (1 - beta1Power * beta1), most / (1 - beta2Power * beta2)
    return varRef * (1 - lr * weightDecay) - lr * first / (np.sqrt(second) + eps), m, v


@spec("aclnnApplyAdam", replace(_RULE, source="TensorFlow, tf.raw_ops.ApplyAdam"),
      _SHAPES, varRef=_state(_FLOATS), m=tensor("*S", "varRef"), v=tensor("*S", "varRef", 0),
      beta1Power=_rate(0.81, 0.5, 1e-5, dtype="f32"),
      beta2Power=_rate(0.98, 0.5, 1e-3, dtype="f32"), lr=_rate(0.05, 0, dtype="f32"),
      beta1=_rate(0.9, 0.5, dtype="f32"), beta2=_rate(0.99, 0.5, dtype="f32"),
      epsilon=_rate(1e-3, 0.25, dtype="f32"), grad=tensor("*S", "varRef"),
      useLocking=ignored(SPEED, flag()), useNesterov=flag())  # fmt: skip
def apply_adam(
    varRef: Array, m: Array, v: Array, beta1Power: Array, beta2Power: Array, lr: Array,
    beta1: Array, beta2: Array, epsilon: Array, grad: Array, useNesterov: bool,
) -> Array:  # fmt: skip
    rate = lr * np.sqrt(1 - beta2Power) / (1 - beta1Power)
    mean = m * beta1 + grad * (1 - beta1)
    spread = np.sqrt(v * beta2 + grad**2 * (1 - beta2))
    step = mean * beta1 + grad * (1 - beta1) if useNesterov else mean
    return np.asarray(varRef - rate * step / (spread + epsilon))
