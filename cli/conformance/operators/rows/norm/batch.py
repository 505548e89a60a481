"""Batch norms, their statistics and gradients."""

from __future__ import annotations

from .....spec import *
from .._words import *
from .group import SPACE
from .layer import MASKS, VALUES

_LONG_SUMS: Final[dict[str, Any]] = {
    "accumulate": 64, "reason": "sums over batch and space, 20,000 terms of both signs in the "
    "longest case: in float32 they end some 10 units of the largest result apart",
}  # fmt: skip
_IOFFE: Final = "Ioffe, Szegedy: Batch Normalization, 2015"
_CHANNELS: Final = sizes({"*S": SPACE}, C=channels(3, 1, 8, 17, 65))
_EPSILON: Final = number(1e-3, 1e-12, 0.25)
_MOMENTUM: Final = number(0.3, 0.0, 1.0)


def _axes(x: Array) -> tuple[int, ...]:
    return 0, *range(2, x.ndim)


def _by_channel(v: Array, x: Array) -> Array:
    return v.reshape(1, -1, *(1,) * (x.ndim - 2))


def _affine(hat: Array, weight: Array | None, bias: Array | None) -> Array:
    y = hat if weight is None else hat * _by_channel(weight, hat)
    return y if bias is None else y + _by_channel(bias, hat)


def _moved(before: Array | None, by: Array, momentum: float) -> Array | None:
    return None if before is None else (1 - momentum) * before + momentum * by


_VARIANCE: Final = tensor("C", "input", 0.5, 2)


@spec("aclnnBatchNorm", Rule("composite", f"{_IOFFE}; torch.nn.BatchNorm2d document: the "
      "running variance is the unbiased one", values=VALUES), _CHANNELS,
      require("not training or size(input) > C", refuses=None), input=tensor("B C *S"),
      weight=optional(tensor("C", "input")), bias=optional(tensor("C", "input")),
      runningMean=inout(by("training", {
          True: optional(tensor("C", "input")), False: tensor("C", "input")})),
      runningVar=inout(by("training", {
          True: optional(_VARIANCE, iff="given(runningMean)"), False: _VARIANCE})),
      training=flag(True), momentum=_MOMENTUM, eps=_EPSILON, output=out("input"),
      saveMean=out("input"), saveInvstd=out("input"))  # fmt: skip
def batch_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    runningMean: Array | None,
    runningVar: Array | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Array | None, ...]:
    axes = _axes(input)
    mean, var = input.mean(axes), input.var(axes)
    if not training and runningMean is not None and runningVar is not None:
        mean, var = runningMean, runningVar
    inv = 1 / np.sqrt(var + eps)
    y = _affine((input - _by_channel(mean, input)) * _by_channel(inv, input), weight, bias)
    if not training:
        return runningMean, runningVar, y, None, None
    unbiased = input.var(axes, ddof=1) if runningVar is not None else var
    return (_moved(runningMean, mean, momentum), _moved(runningVar, unbiased, momentum), y, mean,
            inv)  # fmt: skip


_MEAN: Final = tensor("C", "gradOut", -1, 1)
_INVERSE: Final = tensor("C", "gradOut", 0.5, 1.5)


@spec("aclnnFastBatchNormBackward aclnnBatchNormBackward", Rule(
      "gradient", f"derivative of {_IOFFE}", _LONG_SUMS, specials=False), _CHANNELS,
      gradOut=tensor("B C *S"),
      input=tensor("B C *S", "gradOut"), weight=tensor("C", "gradOut"), runningMean=_MEAN,
      runningVar=tensor("C", "gradOut", 0.5, 2), saveMean=_MEAN, saveInvstd=_INVERSE,
      training=flag(True), eps=_EPSILON, outputMask=MASKS,
      version=only(0, "documents do not say what others compute"), gradInput=out("input"),
      gradWeight=out("input"), gradBias=out("input"))  # fmt: skip
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
) -> tuple[Array | None, ...]:
    axes = _axes(input)
    mean = saveMean if training else runningMean
    inv = _by_channel(saveInvstd if training else 1 / np.sqrt(runningVar + eps), input)
    hat = (input - _by_channel(mean, input)) * inv
    flow = gradOut * _by_channel(weight, input)
    if training:
        along = hat * (flow * hat).mean(axes, keepdims=True)
        flow = flow - flow.mean(axes, keepdims=True) - along
    parts = (flow * inv, (gradOut * hat).sum(axes), gradOut.sum(axes))
    return tuple(p if w else None for p, w in zip(parts, outputMask, strict=True))


_SYNCHRONIZED: Final = Rule("gradient", "torch 2.13, torch.batch_norm_gather_stats_with_counts, "
                            "batch_norm_backward_reduce, batch_norm_backward_elemt; "
                            "SyncBatchNorm's document")  # fmt: skip
# R devices, of C channels each.
_DEVICES: Final = sizes(R=batch(2, 1, 3, 8), C=channels(3, 1, 8, 17, 65, 1031))


def _counts(dtype: str) -> Content:
    """How many numbers each device has seen."""

    def make(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
        count = draw["R"]
        return np.full(count, 12) if pattern == "even" else rng.integers(2, 9, count)

    return content(make, "even ragged", dtype, shape="R")


@spec("aclnnBatchNormGatherStatsWithCounts", _SYNCHRONIZED, _DEVICES,
      input=ignored("its statistics are those of mean and invstd", tensor("B C 5", "f32")),
      mean=tensor("R C", "f32"), invstd=tensor("R C", "f32", 0.5, 1.5),
      runningMean=inout(optional(tensor("C", "f32"))),
      runningVar=inout(optional(tensor("C", "f32", 0.5, 2), iff="given(runningMean)")),
      momentum=_MOMENTUM, eps=_EPSILON, counts=_counts("f32"), meanAll=out("f32"),
      invstdAll=out("f32"))  # fmt: skip
def gathered_statistics(
    mean: Array, invstd: Array, runningMean: Array | None, runningVar: Array | None,
    momentum: float, eps: float, counts: Array,
) -> tuple[Array | None, ...]:  # fmt: skip
    """Moments of parts become those of the whole: variances add to the spread of the means."""
    share, n = (counts / counts.sum())[:, None], counts.sum()
    whole = (share * mean).sum(0)
    var = (share * (1 / invstd**2 - eps + (mean - whole) ** 2)).sum(0)
    return (_moved(runningMean, whole, momentum), _moved(runningVar, var * n / (n - 1), momentum),
            whole, 1 / np.sqrt(var + eps))  # fmt: skip


@spec("aclnnBatchNormReduceBackward", _SYNCHRONIZED, _CHANNELS,
      gradOut=tensor("B C *S", "f32"), input=tensor("B C *S", "gradOut"), mean=_MEAN,
      invstd=_INVERSE,
      weight=ignored("no sum depends on it", tensor("C", "gradOut")), inputG=flag(True),
      weightG=flag(True), biasG=flag(True), sumDy=out("f32"), sumDyXmu=out("f32"),
      gradWeight=out("f32"), gradBias=out("f32"))  # fmt: skip
def reduced_backward(
    gradOut: Array, input: Array, mean: Array, invstd: Array, inputG: bool, weightG: bool,
    biasG: bool,
) -> tuple[Array | None, ...]:  # fmt: skip
    """The sums that gradients by input, weight and bias ask for."""
    dy = gradOut.sum(_axes(input))
    dyx = (gradOut * (input - _by_channel(mean, input))).sum(_axes(input))
    sums = ((dy, inputG), (dyx, inputG), (dyx * invstd, weightG), (dy, biasG))
    return tuple(v if asked else None for v, asked in sums)


@spec("aclnnBatchNormElemtBackward", _SYNCHRONIZED,
      sizes({"*S": SPACE}, C=channels(3, 1, 8, 17, 65), R=batch(2, 1, 3, 8)),
      gradOut=tensor("B C *S", "f32"), input=tensor("B C *S", "gradOut"), mean=_MEAN,
      invstd=_INVERSE, weight=optional(tensor("C", "gradOut")), sumDy=tensor("C", "gradOut"),
      sumDyXmu=tensor("C", "gradOut"), counter=_counts("i32"),
      gradInput=out("input"))  # fmt: skip
def elementwise_backward(
    gradOut: Array, input: Array, mean: Array, invstd: Array, weight: Array | None, sumDy: Array,
    sumDyXmu: Array, counter: Array,
) -> Array:  # fmt: skip
    n = counter.sum()
    mean, inv, dy, dyx = (_by_channel(v, input) for v in (mean, invstd, sumDy, sumDyXmu))
    return _affine((gradOut - dy / n - (input - mean) * inv**2 * dyx / n) * inv, weight, None)


_STATISTICS: Final = Rule("gradient", "torch 2.13, torch.batch_norm_stats and its kin",
                          values=VALUES)  # fmt: skip


@spec("aclnnBatchNormStats", _STATISTICS, _CHANNELS, input=tensor("B C *S"), eps=_EPSILON,
      mean=out("f32"), invstd=out("f32"))  # fmt: skip
def batch_norm_stats(input: Array, eps: float) -> tuple[Array, Array]:
    return input.mean(_axes(input)), 1 / np.sqrt(input.var(_axes(input)) + eps)


@spec("aclnnBatchNormElemt", Rule("gradient", _STATISTICS.source), _CHANNELS,
      input=tensor("B C *S", "f32"), weight=tensor("C", "input"), bias=tensor("C", "input"),
      mean=tensor("C", "input"), invstd=tensor("C", "input", 0.5, 2),
      eps=ignored("the inverse deviation has it", _EPSILON), output=out("input"))  # fmt: skip
def batch_norm_elemt(input: Array, weight: Array, bias: Array, mean: Array, invstd: Array) -> Array:
    hat = (input - _by_channel(mean, input)) * _by_channel(invstd, input)
    return _affine(hat, weight, bias)


@spec("aclnnBatchNormReduce", Rule("gradient", _STATISTICS.source), _CHANNELS,
      x=tensor("B C *S"), sum=out("f32"), squareSum=out("f32"))  # fmt: skip
def batch_norm_reduce(x: Array) -> tuple[Array, Array]:
    return x.sum(_axes(x)), (x * x).sum(_axes(x))


_TOTALS: Final[dict[str, Domain]] = {
    "totalSum": tensor("R C", "f32"), "totalSquareSum": tensor("R C", "f32", 9, 20),
    "sampleCount": _counts("i32"), "mean": inout(tensor("C", "f32")),
    "variance": inout(tensor("C", "f32", 0.5, 2)), "momentum": _MOMENTUM, "eps": _EPSILON,
}  # fmt: skip


@spec("aclnnSyncBatchNormGatherStats", Rule("gradient", f"{_IOFFE}, from sums of several "
      "devices; torch's SyncBatchNorm"), _DEVICES, **_TOTALS, batchMean=out("f32"),
      batchInvstd=out("f32"))  # fmt: skip
def gathered_sums(
    totalSum: Array, totalSquareSum: Array, sampleCount: Array, mean: Array, variance: Array,
    momentum: float, eps: float,
) -> tuple[Array | None, ...]:  # fmt: skip
    n = sampleCount.sum()
    whole = totalSum.sum(0) / n
    var = totalSquareSum.sum(0) / n - whole**2
    return (_moved(mean, whole, momentum), _moved(variance, var * n / (n - 1), momentum), whole,
            1 / np.sqrt(var + eps))  # fmt: skip
