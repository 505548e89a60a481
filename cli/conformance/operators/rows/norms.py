"""Normalisations and their gradients: what each divides by, and where the mean goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ....judge.precision import Array
from ..spec import spec, t, take

_RMS: Final = "Zhang, Sennrich: Root Mean Square Layer Normalization, 2019, equation 4"
_ROW: Final[dict[str, Any]] = {"family": "norm", "tolerance": "composite", "source": _RMS}
_GRAD: Final[dict[str, Any]] = {"family": "norm", "tolerance": "gradient", "source": _RMS}
_LONG_SUMS: Final[dict[str, Any]] = {
    "accumulate": 64, "reason": "sums over batch and space, 20,640 terms of both signs in the "
    "longest case: in float32 they end some 10 units of the largest result apart",
}  # fmt: skip


def _axes(x: Array, gamma: Array) -> tuple[int, ...]:
    return tuple(range(x.ndim - gamma.ndim, x.ndim))


@spec("aclnnRmsNorm", "yOut:x rstdOut:float32", **_ROW, samples=[
    take(x=t(3, 16), gamma=t(16), epsilon=1e-6),
    take(x=t(2, 3, 65), gamma=t(65), epsilon=0.25),
    take(x=t(2, 1025), gamma=t(1025), epsilon=1e-5),
    take(x=t(2, 5, 9), gamma=t(5, 9), epsilon=1e-6),
    take(x=t(2, 5120, low=3, high=4), gamma=t(5120), epsilon=1e-6)])  # fmt: skip
def rms_norm(x: Array, gamma: Array, epsilon: float) -> tuple[Array, Array]:
    rstd = 1 / np.sqrt((x * x).mean(_axes(x, gamma), keepdims=True) + epsilon)
    return x * rstd * gamma, rstd


@spec("aclnnGemmaRmsNorm", "yOut:x rstdOut:float32", **{**_ROW, "source":
      "Gemma: Open Models, 2024; GemmaRMSNorm of its public code: scale 1 + gamma"}, samples=[
    take(x=t(3, 16), gamma=t(16), epsilon=1e-6), take(x=t(2, 1025), gamma=t(1025), epsilon=0.25),
    ])  # fmt: skip
def gemma_rms_norm(x: Array, gamma: Array, epsilon: float) -> tuple[Array, ...]:
    return rms_norm(x, 1 + gamma, epsilon)


_TWO: Final = [take(x1=t(*s), x2=t(*s, high=3), gamma=t(s[-1]), epsilon=e)
               for s, e in (((3, 16), 1e-6), ((2, 3, 65), 0.25), ((2, 1025), 1e-5))]  # fmt: skip


@spec("aclnnAddRmsNorm", "yOut:x1 rstdOut:float32 xOut:x1", samples=_TWO, **_ROW)
def add_rms_norm(x1: Array, x2: Array, gamma: Array, epsilon: float) -> tuple[Array, ...]:
    return (*rms_norm(x1 + x2, gamma, epsilon), x1 + x2)


@spec("aclnnInplaceAddRmsNorm", "x1Ref:x1Ref x2Ref:x2Ref rstdOut:float32", **_ROW, samples=[
    take(x1Ref=t(*s), x2Ref=t(*s, high=3), gamma=t(s[-1]), epsilon=e)
    for s, e in (((3, 16), 1e-6), ((2, 3, 65), 0.25))])  # fmt: skip
def inplace_add_rms_norm(
    x1Ref: Array, x2Ref: Array, gamma: Array, epsilon: float
) -> tuple[Array, Array, Array]:
    y, rstd = rms_norm(x1Ref + x2Ref, gamma, epsilon)
    return y, x1Ref + x2Ref, rstd


@spec("aclnnAddRmsNormCast", "y1Out:float32 y2Out:x1 rstdOut:float32 xOut:x1", **_ROW, samples=[
    take(x1=t(*s, dtype="float16"), x2=t(*s, dtype="float16"), gamma=t(s[-1], dtype="float16"),
         epsilon=e) for s, e in (((3, 16), 1e-6), ((2, 3, 65), 0.25))])  # fmt: skip
def add_rms_norm_cast(
    x1: Array, x2: Array, gamma: Array, epsilon: float
) -> tuple[Array, Array, Array, Array]:
    y, rstd = rms_norm(x1 + x2, gamma, epsilon)
    return y, y, rstd, x1 + x2


@spec("aclnnRmsNormGrad", "dxOut:x dgammaOut:float32", **_GRAD, samples=[
    take(dy=t(3, 16, dtype="float16"), x=t(3, 16, dtype="float16"), rstd=t(3, 1, low=0.5, high=1.5),
         gamma=t(16, dtype="float16")),
    take(dy=t(2, 5, 65, dtype="float16"), x=t(2, 5, 65, dtype="float16"),
         rstd=t(2, 5, 1, low=0.5, high=1.5), gamma=t(65, dtype="float16"))])  # fmt: skip
def rms_norm_grad(dy: Array, x: Array, rstd: Array, gamma: Array) -> tuple[Array, Array]:
    """y = x rstd(x) gamma, with d rstd / dx = -rstd^3 x / N."""
    n = gamma.size
    dx = dy * gamma * rstd - x * rstd**3 * (dy * gamma * x).sum(-1, keepdims=True) / n
    lead = tuple(range(x.ndim - gamma.ndim))
    return dx, (dy * x * rstd).sum(lead)


def layer_norm(
    x: Array,
    axes: tuple[int, ...],
    gamma: Array | float | None,
    beta: Array | float | None,
    eps: float,
) -> tuple[Array, Array, Array]:
    mean = x.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(x.var(axes, keepdims=True) + eps)
    y = (x - mean) * rstd
    y = y if gamma is None else y * gamma
    return (y if beta is None else y + beta), mean, rstd


_LAYER: Final = [
    take(input=t(3, 16), normalizedShape=(16,), weightOptional=t(16), biasOptional=t(16), eps=1e-5),
    take(input=t(2, 4, 65, low=9, high=10), normalizedShape=(4, 65), weightOptional=t(4, 65),
         biasOptional=t(4, 65), eps=1e-3),
    take(input=t(2, 1025), normalizedShape=(1025,), eps=1e-5),
]  # fmt: skip


def _layer_norm(
    input: Array,
    normalizedShape: Sequence[int],
    weightOptional: Array | None,
    biasOptional: Array | None,
    eps: float,
    implMode: int = 0,
) -> tuple[Array, ...]:
    axes = tuple(range(input.ndim - len(normalizedShape), input.ndim))
    return layer_norm(input, axes, weightOptional, biasOptional, eps)


spec("aclnnFastLayerNorm aclnnLayerNormWithImplMode",
     "out:input meanOutOptional:float32 rstdOutOptional:float32", samples=_LAYER,
     **{**_ROW, "source": "Ba, Kiros, Hinton: Layer Normalization, 2016; torch's document"})(
    _layer_norm)  # fmt: skip


def _layer_back(
    gradOut: Array,
    input: Array,
    normalizedShape: tuple[int, ...],
    mean: Array,
    rstd: Array,
    weightOptional: Array | None,
    biasOptional: Array | None,
    outputMask: Sequence[bool],
) -> tuple[Array | None, ...]:
    axes = tuple(range(input.ndim - len(normalizedShape), input.ndim))
    lead = tuple(range(input.ndim - len(normalizedShape)))
    hat = (input - mean) * rstd
    flow = gradOut if weightOptional is None else gradOut * weightOptional
    centred = flow - flow.mean(axes, keepdims=True)
    dx = rstd * (centred - hat * (flow * hat).mean(axes, keepdims=True))
    parts = (dx, (gradOut * hat).sum(lead), gradOut.sum(lead))
    return tuple(p if w else None for p, w in zip(parts, outputMask, strict=True))


spec("aclnnLayerNormBackward", "gradInputOut:input gradWeightOut:input gradBiasOut:input",
     **{**_GRAD, "source": "derivative of Ba, Kiros, Hinton: Layer Normalization, 2016"}, samples=[
         take(gradOut=t(3, 16), input=t(3, 16), normalizedShape=(16,), mean=t(3, 1, high=1),
              rstd=t(3, 1, low=0.5, high=1.5), weightOptional=t(16), biasOptional=t(16),
              outputMask=m) for m in ((True, True, True), (True, False, False))])(
    _layer_back)  # fmt: skip


@spec("aclnnAddLayerNorm aclnnInplaceAddLayerNorm",
      "yOut:x1 meanOut:float32 rstdOut:float32 xOut:x1", **{**_ROW, "source":
      "Ba, Kiros, Hinton: Layer Normalization, 2016, of x1 + x2 + bias"}, samples=[
          take(x1=t(*s), x2=t(*s), gamma=t(s[-1]), beta=t(s[-1]), biasOptional=b, epsilon=1e-5,
               additionalOutput=True)
          for s, b in (((3, 16), None), ((2, 3, 65), t(65)))])  # fmt: skip
def add_layer_norm(
    x1: Array, x2: Array, gamma: Array, beta: float, biasOptional: Array | None, epsilon: float,
    additionalOutput: bool,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    x = x1 + x2 + (0 if biasOptional is None else biasOptional)
    y, mean, rstd = layer_norm(x, (-1,), gamma, beta, epsilon)
    return y, mean, rstd, x


@spec("aclnnDeepNorm", "meanOut:float32 rstdOut:float32 yOut:x", **{**_ROW, "source":
      "Wang et al.: DeepNet, 2022: layer norm of alpha x + gx"}, samples=[
          take(x=t(*s), gx=t(*s), beta=t(s[-1]), gamma=t(s[-1]), alpha=a, epsilon=1e-5)
          for s, a in (((3, 16), 0.3), ((2, 3, 65), 2.0), ((2, 1032), 0.5))])  # fmt: skip
def deep_norm(
    x: Array, gx: Array, beta: float, gamma: Array, alpha: float, epsilon: float
) -> tuple[Array, Array, Array]:  # fmt: skip
    y, mean, rstd = layer_norm(alpha * x + gx, (-1,), gamma, beta, epsilon)
    return mean, rstd, y


def _grouped(self: Array, group: int, eps: float) -> tuple[Array, Array, Array, tuple[int, ...]]:
    n, c = self.shape[:2]
    parts = self.reshape(n, group, -1)
    mean, rstd = parts.mean(-1), 1 / np.sqrt(parts.var(-1) + eps)
    hat = ((parts - mean[..., None]) * rstd[..., None]).reshape(self.shape)
    return hat, mean, rstd, (1, c) + (1,) * (self.ndim - 2)


def _silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def group_norm_silu(
    self: Array, gamma: Array, beta: Array, group: int, eps: float, activateSilu: bool = True
) -> tuple[Array, Array, Array]:
    hat, mean, rstd, shape = _grouped(self, group, eps)
    y = hat * gamma.reshape(shape) + beta.reshape(shape)
    return _silu(y) if activateSilu else y, mean, rstd


_SILU: Final = [take(self=t(*s), gamma=t(s[1]), beta=t(s[1]), group=g, eps=1e-5)
                for s, g in (((2, 4, 9), 2), ((2, 6, 3, 5), 3), ((1, 8, 70), 1))]  # fmt: skip
_WU: Final = "Wu, He: Group Normalization, 2018, then x sigmoid(x)"
spec("aclnnGroupNormSilu", "out:self meanOut:self rstdOut:self", samples=_SILU,
     **{**_ROW, "source": _WU})(group_norm_silu)  # fmt: skip
spec("aclnnGroupNormSiluV2", "out:self meanOut:self rstdOut:self", **{**_ROW, "source": _WU},
     samples=[take(**s.kwargs, activateSilu=a) for s in _SILU for a in (True, False)])(
    group_norm_silu)  # fmt: skip


@spec("aclnnGroupNormSwish", "yOut:x meanOut:x rstdOut:x", **{**_ROW, "source":
      "Wu, He: Group Normalization, 2018, then x sigmoid(scale x)"}, samples=[
          take(x=t(2, 4, 9), gamma=t(4), beta=t(4), numGroups=2, dataFormatOptional="NCHW",
               eps=1e-5, activateSwish=a, swishScale=s)
          for a, s in ((True, 1.0), (True, 0.5), (False, 1.0))])  # fmt: skip
def group_norm_swish(
    x: Array, gamma: Array, beta: Array, numGroups: int, dataFormatOptional: str, eps: float,
    activateSwish: bool, swishScale: float,
) -> tuple[Array, Array, Array]:  # fmt: skip
    hat, mean, rstd, shape = _grouped(x, numGroups, eps)
    y = hat * gamma.reshape(shape) + beta.reshape(shape)
    return y / (1 + np.exp(-swishScale * y)) if activateSwish else y, mean, rstd


@spec("aclnnGroupNormBackward", "gradInput:input gradGammaOut:input gradBetaOut:input",
      **{**_GRAD, "source": "derivative of Wu, He: Group Normalization, 2018"}, samples=[
          take(gradOut=t(2, 4, 9), input=t(2, 4, 9), mean=t(2, 2, high=1),
               rstd=t(2, 2, low=0.5, high=1.5), gamma=t(4), N=2, C=4, HxW=9, group=2,
               outputMask=m) for m in ((True, True, True), (True, False, False))])  # fmt: skip
def group_norm_backward(
    gradOut: Array, input: Array, mean: Array, rstd: Array, gamma: Array, N: int, C: int, HxW: int,
    group: int, outputMask: Sequence[bool],
) -> tuple[Array | None, ...]:  # fmt: skip
    x, dy = input.reshape(N, group, -1), gradOut.reshape(N, group, -1)
    m, r = mean.reshape(N, group, 1), rstd.reshape(N, group, 1)
    hat = (x - m) * r
    scale = np.repeat(gamma, HxW).reshape(1, group, -1)
    flow = dy * scale
    centred = flow - flow.mean(-1, keepdims=True)
    dx = r * (centred - hat * (flow * hat).mean(-1, keepdims=True))
    per = (hat * dy).reshape(N, C, HxW).sum((0, 2)), gradOut.reshape(N, C, HxW).sum((0, 2))
    parts = (dx.reshape(input.shape), *per)
    return tuple(p if w else None for p, w in zip(parts, outputMask, strict=True))


@spec("aclnnInstanceNorm", "y:x mean:x variance:x", **{**_ROW, "source":
      "Ulyanov, Vedaldi, Lempitsky: Instance Normalization, 2016"}, samples=[
          take(x=t(2, 4, 5, 7), gamma=t(4), beta=t(4), dataFormat="NCHW", eps=1e-3)])  # fmt: skip
def instance_norm(
    x: Array, gamma: Array, beta: Array, dataFormat: str, eps: float
) -> tuple[Array, ...]:
    mean, var = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
    hat = (x - mean) / np.sqrt(var + eps)
    return hat * gamma.reshape(1, -1, 1, 1) + beta.reshape(1, -1, 1, 1), mean, var


@spec("aclnnBatchNorm", "output:input runningMean:runningMean runningVar:runningVar "
      "saveMean:input saveInvstd:input", samples=[
          take(input=t(*shape), weight=t(3, low=0.5), bias=t(3), runningMean=t(3),
               runningVar=t(3, low=0.5), training=training, momentum=0.3, eps=eps)
          for shape, training, eps in (
              ((4, 3, 5, 2), True, 1e-3), ((4, 3, 5, 2), False, 0.25), ((5, 3), True, 0.25))],
      **{**_ROW, "source": "Ioffe, Szegedy: Batch Normalization, 2015; torch.nn.BatchNorm2d "
         "document: the running variance is the unbiased one"})  # fmt: skip
def batch_norm(
    input: Array,
    weight: Array,
    bias: Array,
    runningMean: Array,
    runningVar: Array,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Array | None, ...]:
    shape, axes = (1, -1) + (1,) * (input.ndim - 2), (0, *range(2, input.ndim))
    mean = input.mean(axes) if training else runningMean
    var = input.var(axes) if training else runningVar
    inv = 1 / np.sqrt(var + eps)
    hat = (input - mean.reshape(shape)) * inv.reshape(shape)
    y = hat * weight.reshape(shape) + bias.reshape(shape)
    if not training:
        return y, runningMean, runningVar, None, None
    moved = (1 - momentum) * runningMean + momentum * mean
    spread = (1 - momentum) * runningVar + momentum * input.var(axes, ddof=1)
    return y, moved, spread, mean, inv


def batch_norm_backward(
    gradOut: Array,
    input: Array,
    weight: Array,
    runningMean: Array,
    runningVar: Array,
    saveMean: Array,
    saveInvstd: Array,
    training: bool,
    eps: float,
    outputMask: Sequence[bool],
    version: int = 0,
) -> tuple[Array | None, ...]:
    shape = (1, -1) + (1,) * (input.ndim - 2)
    axes = (0, *range(2, input.ndim))
    mean = saveMean if training else runningMean
    inv = saveInvstd if training else 1 / np.sqrt(runningVar + eps)
    hat = (input - mean.reshape(shape)) * inv.reshape(shape)
    flow = gradOut * weight.reshape(shape)
    if training:
        centred = flow - flow.mean(axes, keepdims=True)
        flow = centred - hat * (flow * hat).mean(axes, keepdims=True)
    parts = (flow * inv.reshape(shape), (gradOut * hat).sum(axes), gradOut.sum(axes))
    return tuple(p if w else None for p, w in zip(parts, outputMask, strict=True))


_BN: Final = [
    take(gradOut=t(4, 3, 5, 2), input=t(4, 3, 5, 2), weight=t(3, low=0.5), runningMean=t(3),
         runningVar=t(3, low=0.5), saveMean=t(3, high=1), saveInvstd=t(3, low=0.5, high=1.5),
         training=tr, eps=1e-3, outputMask=m, version=0)
    for tr in (True, False) for m in ((True, True, True), (True, False, False))
]  # fmt: skip
spec("aclnnBatchNormBackward aclnnFastBatchNormBackward",
     "gradInput:input gradWeight:input gradBias:input", samples=_BN, rule=_LONG_SUMS,
     **{**_GRAD, "source": "derivative of Ioffe, Szegedy: Batch Normalization, 2015"})(
    batch_norm_backward)  # fmt: skip
