"""Batch norms, their statistics and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .....judge.precision import Array
from ...spec import const, spec, t, take
from .._ignored import follows, requested
from .rms import GRAD, ROW

_LONG_SUMS: Final[dict[str, Any]] = {
    "accumulate": 64, "reason": "sums over batch and space, 20,640 terms of both signs in the "
    "longest case: in float32 they end some 10 units of the largest result apart",
}  # fmt: skip


@spec("aclnnBatchNorm", "output:input runningMean:runningMean runningVar:runningVar "
      "saveMean:input saveInvstd:input", samples=[
          take(input=t(*shape), weight=t(3, low=0.5), bias=t(3), runningMean=t(3),
               runningVar=t(3, low=0.5), training=training, momentum=0.3, eps=eps)
          for shape, training, eps in (
              ((4, 3, 5, 2), True, 1e-3), ((4, 3, 5, 2), False, 0.25), ((5, 3), True, 0.25))],
      **{**ROW, "source": "Ioffe, Szegedy: Batch Normalization, 2015; torch.nn.BatchNorm2d "
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


_BACKWARD: Final = [
    take(gradOut=t(4, 3, 5, 2), input=t(4, 3, 5, 2), weight=t(3, low=0.5), runningMean=t(3),
         runningVar=t(3, low=0.5), saveMean=t(3, high=1), saveInvstd=t(3, low=0.5, high=1.5),
         training=tr, eps=1e-3, outputMask=m, version=0)
    for tr in (True, False) for m in ((True, True, True), (True, False, False))
]  # fmt: skip
spec("aclnnBatchNormBackward aclnnFastBatchNormBackward",
     "gradInput:input gradWeight:input gradBias:input",
     constant="eps version",
     samples=_BACKWARD, rule=_LONG_SUMS,
     **{**GRAD, "source": "derivative of Ioffe, Szegedy: Batch Normalization, 2015"})(
    batch_norm_backward)  # fmt: skip
_SYNCHRONIZED: Final[dict[str, Any]] = {
    "tolerance": "gradient", "dtypes": ("float32",),
    "source": "torch 2.13, torch.batch_norm_gather_stats_with_counts, batch_norm_backward_reduce, "
    "batch_norm_backward_elemt; SyncBatchNorm's document",
}  # fmt: skip


@spec(
    "aclnnBatchNormGatherStatsWithCounts",
    "meanAll:float32 invstdAll:float32 runningMean:runningMean runningVar:runningVar",
    ignored=follows("input"),
    **_SYNCHRONIZED,
    samples=[
        take(
            input=t(4, 3, 5),
            mean=t(2, 3),
            invstd=t(2, 3, low=0.5, high=1.5),
            runningMean=t(3),
            runningVar=t(3, low=0.5, high=2),
            momentum=0.3,
            eps=1e-3,
            counts=const([20.0, 12.0], "float32"),
        )
    ],
)
def gathered_statistics(
    mean: Array, invstd: Array, runningMean: Array, runningVar: Array, momentum: float, eps: float,
    counts: Array,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Moments of parts become those of the whole: variances add to the spread of the means."""
    share, n = (counts / counts.sum())[:, None], counts.sum()
    whole = (share * mean).sum(0)
    second = (share * (1 / invstd**2 - eps + mean**2)).sum(0)
    var = second - whole**2
    return (whole, 1 / np.sqrt(var + eps), (1 - momentum) * runningMean + momentum * whole,
            (1 - momentum) * runningVar + momentum * var * n / (n - 1))  # fmt: skip


@spec(
    "aclnnBatchNormReduceBackward",
    "sumDy:float32 sumDyXmu:float32 gradWeight:float32 gradBias:float32",
    ignored=follows("weight") | requested("inputG weightG biasG"),
    **_SYNCHRONIZED,
    samples=[
        take(
            gradOut=t(4, 3, 5),
            input=t(4, 3, 5),
            mean=t(3),
            invstd=t(3, low=0.5, high=1.5),
            weight=t(3),
            inputG=True,
            weightG=True,
            biasG=True,
        )
    ],
)
def reduced_backward(
    gradOut: Array, input: Array, mean: Array, invstd: Array
) -> tuple[Array, Array, Array, Array]:
    axes = (0, *range(2, input.ndim))
    dy = gradOut.sum(axes)
    centred = input - mean.reshape(1, -1, *(1,) * (input.ndim - 2))
    dyx = (gradOut * centred).sum(axes)
    return dy, dyx, dyx * invstd, dy


@spec("aclnnBatchNormElemtBackward", "gradInput:input", **_SYNCHRONIZED, samples=[
    take(gradOut=t(4, 3, 5), input=t(4, 3, 5), mean=t(3), invstd=t(3, low=0.5, high=1.5),
         weight=t(3), sumDy=t(3), sumDyXmu=t(3), counter=const([12, 8], "int32"))])  # fmt: skip
def elementwise_backward(
    gradOut: Array, input: Array, mean: Array, invstd: Array, weight: Array, sumDy: Array,
    sumDyXmu: Array, counter: Array,
) -> Array:  # fmt: skip
    n = counter.sum()
    mean, inv, w, dy, dyx = (
        v.reshape(1, -1, *(1,) * (input.ndim - 2)) for v in (mean, invstd, weight, sumDy, sumDyXmu)
    )
    return (gradOut - dy / n - (input - mean) * inv**2 * dyx / n) * inv * w


_STATISTICS: Final[dict[str, Any]] = {
    "tolerance": "gradient", "dtypes": ("float32",),
    "source": "torch 2.13, torch.batch_norm_stats and its kin",
}  # fmt: skip


@spec("aclnnBatchNormStats", "mean:float32 invstd:float32", **_STATISTICS,
      samples=[take(input=t(4, 3, 5, 2), eps=1e-3)])  # fmt: skip
def batch_norm_stats(input: Array, eps: float) -> tuple[Array, Array]:
    axes = (0, *range(2, input.ndim))
    return input.mean(axes), 1 / np.sqrt(input.var(axes) + eps)


@spec("aclnnBatchNormElemt", "output:input",
      ignored=follows("eps"),
      **_STATISTICS, samples=[
    take(input=t(4, 3, 5, 2), weight=t(3), bias=t(3), mean=t(3), invstd=t(3, low=0.5), eps=1e-3)],
    )  # fmt: skip
def batch_norm_elemt(input: Array, weight: Array, bias: Array, mean: Array, invstd: Array) -> Array:
    shape = (1, -1) + (1,) * (input.ndim - 2)
    hat = (input - mean.reshape(shape)) * invstd.reshape(shape)
    return hat * weight.reshape(shape) + bias.reshape(shape)


@spec("aclnnBatchNormReduce", "sum:float32 squareSum:float32", **_STATISTICS,
      samples=[take(x=t(4, 3, 5, 2))])  # fmt: skip
def batch_norm_reduce(x: Array) -> tuple[Array, Array]:
    axes = (0, *range(2, x.ndim))
    return x.sum(axes), (x * x).sum(axes)


@spec("aclnnSyncBatchNormGatherStats",
      "batchMean:float32 batchInvstd:float32 mean:mean variance:variance",
      tolerance="gradient", dtypes=("float32",), source="Ioffe, Szegedy: Batch Normalization, "
      "2015, from sums of several devices; torch's SyncBatchNorm", samples=[
          take(totalSum=t(2, 3), totalSquareSum=t(2, 3, low=9, high=20),
               sampleCount=const([5, 7], "int32"), mean=t(3), variance=t(3, low=0.5), momentum=0.3,
               eps=1e-3)])  # fmt: skip
def gathered_sums(
    totalSum: Array, totalSquareSum: Array, sampleCount: Array, mean: Array, variance: Array,
    momentum: float, eps: float,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    n = sampleCount.sum()
    whole = totalSum.sum(0) / n
    var = totalSquareSum.sum(0) / n - whole**2
    return (whole, 1 / np.sqrt(var + eps), (1 - momentum) * mean + momentum * whole,
            (1 - momentum) * variance + momentum * var * n / (n - 1))  # fmt: skip
