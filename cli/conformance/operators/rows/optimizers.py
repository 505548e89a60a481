"""Fused optimizer steps, loss scaling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ....judge.precision import Array
from ..spec import given, spec, t, take

_ADAMW: Final = "Loshchilov, Hutter: Decoupled Weight Decay Regularization, 2019; torch.optim.AdamW"
_ROW: Final[dict[str, Any]] = {"family": "optimizer", "tolerance": "gradient", "source": _ADAMW,
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
               step=given([3.0], "float32"), **_RATES, amsgrad=a, maximize=x)
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
      "maxExpAvgSqsRef:paramsRef", **_ROW, samples=[
          take(paramsRef=[t(3, 5), t(65)], grads=[t(3, 5), t(65)], expAvgsRef=[t(3, 5), t(65)],
               expAvgSqsRef=[t(3, 5, low=0), t(65, low=0)],
               maxExpAvgSqsRef=[t(3, 5, low=0), t(65, low=0)] if a else None,
               stateSteps=[given([3.0], "float32"), given([s], "float32")], **_RATES,
               amsgrad=a, maximize=x, foundInfOptional=given([f], "float32"))
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
              (0.3, False, False, False, given([4.0], "float32")))] + [
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
        kept = flow if isFirstStep else momentum * b + (1 - dampening) * flow
        buffers.append(kept)
        params.append(p - lr * (flow + momentum * kept if nesterov else kept))
    return params, grads, buffers


@spec("aclnnAmpUpdateScale", "updatedScale:currentScale updatedGrowthTracker:growthTracker",
      family="optimizer", tolerance="composite", dtypes=("float32",),
      source="torch 2.13, torch._amp_update_scale_", samples=[
          take(currentScale=given([64.0], "float32"), growthTracker=given([n], "int32"),
               foundInf=given([f], "float32"), growthFactor=2.0, backoffFactor=0.25,
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
