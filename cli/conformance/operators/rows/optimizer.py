"""Steps of optimizers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ....judge.precision import Array
from ..spec import const, spec, t, take

_ADAMW: Final = "Loshchilov, Hutter: Decoupled Weight Decay Regularization, 2019; torch.optim.AdamW"
_ROW: Final[dict[str, Any]] = {"tolerance": "gradient", "source": _ADAMW,
                               "dtypes": ("float32",)}  # fmt: skip
_RATES: Final[dict[str, Any]] = {"lr": 0.05, "beta1": 0.9, "beta2": 0.99, "weightDecay": 0.1,
                                 "eps": 1e-3}  # fmt: skip


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


@spec("aclnnApplyAdamWV2", "varRef:varRef mRef:varRef vRef:varRef maxGradNormOptionalRef:varRef",
      **_ROW, samples=[
          take(varRef=t(3, 65), mRef=t(3, 65), vRef=t(3, 65, low=0), grad=t(3, 65),
               maxGradNormOptionalRef=t(3, 65, low=0) if a else None,
               step=const([3.0], "float32"), **_RATES, amsgrad=a, maximize=x)
          for a, x in ((False, False), (True, False), (False, True))])  # fmt: skip
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
    updated = adamw(varRef, mRef, vRef, grad, now, maxGradNormOptionalRef, rates)
    return updated if amsgrad else (*updated[:3], None)


@spec("aclnnFusedAdamw", "paramsRef:paramsRef expAvgsRef:expAvgsRef expAvgSqsRef:expAvgSqsRef "
      "maxExpAvgSqsRef:paramsRef",
      uncovered="gradScaleOptional",
      **_ROW, samples=[
          take(paramsRef=[t(3, 5), t(65)], grads=[t(3, 5), t(65)], expAvgsRef=[t(3, 5), t(65)],
               expAvgSqsRef=[t(3, 5, low=0), t(65, low=0)],
               maxExpAvgSqsRef=[t(3, 5, low=0), t(65, low=0)] if a else None,
               stateSteps=[const([3.0], "float32"), const([s], "float32")], **_RATES,
               amsgrad=a, maximize=x, foundInfOptional=const([f], "float32"))
          for x, s, f, a in ((False, 3.0, 0.0, False), (True, 7.0, 0.0, False),
                             (False, 3.0, 1.0, False), (False, 3.0, 0.0, True))])  # fmt: skip
def fused_adamw(
    paramsRef: list[Array],
    grads: list[Array],
    expAvgsRef: list[Array],
    expAvgSqsRef: list[Array],
    stateSteps: list[Array],
    lr: float,
    beta1: float,
    beta2: float,
    weightDecay: float,
    eps: float,
    amsgrad: bool,
    maximize: bool,
    foundInfOptional: Array | None = None,
    maxExpAvgSqsRef: list[Array] | None = None,
) -> tuple[list[Array] | None, ...]:
    if foundInfOptional is not None and foundInfOptional.any():  # the step is skipped
        return paramsRef, expAvgsRef, expAvgSqsRef, maxExpAvgSqsRef
    rates = {"lr": lr, "beta1": beta1, "beta2": beta2, "weightDecay": weightDecay, "eps": eps,
             "amsgrad": amsgrad, "maximize": maximize}  # fmt: skip
    tops: Sequence[Array | None] = maxExpAvgSqsRef or [None] * len(paramsRef)
    rows = zip(paramsRef, expAvgsRef, expAvgSqsRef, grads, stateSteps, tops, strict=True)
    updated = [adamw(p, m, v, g, s.item(), top, rates) for p, m, v, g, s, top in rows]
    params, means, squares, most = map(list, zip(*updated, strict=True))
    return params, means, squares, most if amsgrad else None


@spec("aclnnFusedSgd",
      "paramsRef:paramsRef gradsRef:paramsRef momentumBufferListOptionalRef:paramsRef",
      **{**_ROW, "source": "torch 2.13, document of torch.optim.SGD"}, samples=[
          take(paramsRef=[t(3, 5), t(65)], gradsRef=[t(3, 5), t(65)],
               momentumBufferListOptionalRef=[t(3, 5), t(65)], weightDecay=0.1, momentum=0.8,
               lr=0.05, dampening=d, nesterov=n, maximize=x, isFirstStep=f, gradScaleOptional=s)
          for d, n, f, x, s in (
              (0.0, False, False, False, None), (0.3, False, False, False, None),
              (0.0, True, False, False, None), (0.0, False, True, False, None),
              (0.0, False, False, True, None),
              (0.3, False, False, False, const([4.0], "float32")))] + [
          take(paramsRef=[t(3, 5), t(65)], gradsRef=[t(3, 5), t(65)],
               momentumBufferListOptionalRef=[t(3, 5), t(65)], weightDecay=0.1, momentum=1.0,
               lr=0.05, dampening=0.3, nesterov=False, maximize=False, isFirstStep=False,
               gradScaleOptional=None),
          # More parameters than a kernel may unroll.
          take(paramsRef=[t(3)] * 9, gradsRef=[t(3)] * 9,
               momentumBufferListOptionalRef=[t(3)] * 9, weightDecay=0.1, momentum=0.8, lr=0.05,
               dampening=0.0, nesterov=False, maximize=False, isFirstStep=False,
               gradScaleOptional=None)])  # fmt: skip
def fused_sgd(
    paramsRef: list[Array],
    gradsRef: list[Array],
    momentumBufferListOptionalRef: list[Array],
    weightDecay: float,
    momentum: float,
    lr: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    isFirstStep: bool,
    gradScaleOptional: Array | None,
) -> tuple[list[Array], ...]:
    params, buffers = [], []
    grads = gradsRef if gradScaleOptional is None else [g / gradScaleOptional for g in gradsRef]
    rows = zip(paramsRef, grads, momentumBufferListOptionalRef, strict=True)
    for p, g, b in rows:
        flow = (-g if maximize else g) + weightDecay * p
        velocity = flow if isFirstStep else momentum * b + (1 - dampening) * flow
        buffers.append(velocity)
        params.append(p - lr * (flow + momentum * velocity if nesterov else velocity))
    return params, grads, buffers


@spec("aclnnAmpUpdateScale", "updatedScale:currentScale updatedGrowthTracker:growthTracker",
      constant="backoffFactor",
      tolerance="composite", dtypes=("float32",),
      source="torch 2.13, torch._amp_update_scale_", samples=[
          take(currentScale=const([64.0], "float32"), growthTracker=const([n], "int32"),
               foundInf=const([f], "float32"), growthFactor=2.0, backoffFactor=0.25,
               growthInterval=3) for n, f in ((0, 0.0), (2, 0.0), (1, 1.0))])  # fmt: skip
def amp_update_scale(
    currentScale: Array, growthTracker: Array, foundInf: Array, growthFactor: float,
    backoffFactor: float, growthInterval: int,
) -> tuple[Array, Array]:  # fmt: skip
    if foundInf[0]:
        return currentScale * backoffFactor, np.zeros_like(growthTracker)
    if growthTracker[0] + 1 == growthInterval:
        return currentScale * growthFactor, np.zeros_like(growthTracker)
    return currentScale, growthTracker + 1


@spec("aclnnApplyFusedEmaAdam", "varRef:varRef mRef:mRef vRef:vRef sRef:sRef",
      tolerance="gradient", specials=False, dtypes=("float32",),
      source="Loshchilov, Hutter: Decoupled Weight Decay Regularization, 2019; Apex, FusedAdam's "
      "two modes of decay; Polyak, Juditsky 1992: the average", samples=[
          take(grad=t(3, 7), varRef=t(3, 7), mRef=t(3, 7, low=-1), vRef=t(3, 7, low=0.1),
               sRef=t(3, 7), step=const([s], "int64"), lr=0.01, emaDecay=0.9, beta1=0.9,
               beta2=0.99, eps=1e-8, mode=m, biasCorrection=b, weightDecay=0.1)
          for s, m, b in ((1, 0, True), (5, 1, True), (5, 1, False))])  # fmt: skip
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


def _adam(amsgrad: bool, maximize: bool) -> dict[str, Any]:
    one = {"beta1Power": 0.81, "beta2Power": 0.9801, "lr": 0.1, "weightDecay": 0.05, "beta1": 0.9,
           "beta2": 0.99, "eps": 1e-3}  # fmt: skip
    return {"varRef": t(3, 5), "mRef": t(3, 5), "vRef": t(3, 5, low=0.1), "grad": t(3, 5),
            "maxGradNormOptional": t(3, 5, low=0.1) if amsgrad else None, "amsgrad": amsgrad,
            "maximize": maximize, **{k: const([v], "float32") for k, v in one.items()}}  # fmt: skip


@spec("aclnnApplyAdamW", "varRef:varRef mRef:mRef vRef:vRef",
      uncovered="maxGradNormOptional amsgrad",
      tolerance="gradient", specials=False, dtypes=("float32",),
      source="Loshchilov, Hutter: Decoupled Weight Decay Regularization, 2019, algorithm 2; the "
      "powers are those before the step", samples=[
          take(**_adam(False, m)) for m in (False, True)])  # fmt: skip
def adam_w(
    varRef: Array, mRef: Array, vRef: Array, beta1Power: Array, beta2Power: Array, lr: Array,
    weightDecay: Array, beta1: Array, beta2: Array, eps: Array, grad: Array, maximize: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    g = -grad if maximize else grad
    m, v = beta1 * mRef + (1 - beta1) * g, beta2 * vRef + (1 - beta2) * g * g
    first, second = m / (1 - beta1Power * beta1), v / (1 - beta2Power * beta2)
    return varRef * (1 - lr * weightDecay) - lr * first / (np.sqrt(second) + eps), m, v


@spec("aclnnApplyAdam", "varRef:varRef", tolerance="gradient",
      dtypes=("float32",), source="TensorFlow, tf.raw_ops.ApplyAdam", samples=[
          take(varRef=t(3, 65), m=t(3, 65), v=t(3, 65, low=0), beta1Power=const([0.81], "float32"),
               beta2Power=const([0.98], "float32"), lr=const([0.05], "float32"),
               beta1=const([0.9], "float32"), beta2=const([0.99], "float32"),
               epsilon=const([1e-3], "float32"), grad=t(3, 65), useLocking=False, useNesterov=n)
          for n in (False, True)])  # fmt: skip
def apply_adam(
    varRef: Array, m: Array, v: Array, beta1Power: Array, beta2Power: Array, lr: Array,
    beta1: Array, beta2: Array, epsilon: Array, grad: Array, useNesterov: bool,
) -> Array:  # fmt: skip
    rate = lr * np.sqrt(1 - beta2Power) / (1 - beta1Power)
    mean = m * beta1 + grad * (1 - beta1)
    spread = np.sqrt(v * beta2 + grad**2 * (1 - beta2))
    step = mean * beta1 + grad * (1 - beta1) if useNesterov else mean
    return np.asarray(varRef - rate * step / (spread + epsilon))
