"""Losses of classes: likelihood, cross entropy, margins, CTC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, product
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from .....judge.precision import Array
from ...spec import const, f16, spec, t, take
from .._defaults import FLOAT32_GRADIENT
from .._ignored import one_value, reserved, saved

_TARGETS: Final = ((1, 2), (3, 3))
_STEPS, _CLASSES = 5, 4
_CTC: Final[dict[str, Any]] = {
    "tolerance": "gradient",
    "dtypes": ("float32",),
    "specials": False,
    "sparse": True,
    "source": "Graves et al.: Connectionist Temporal Classification, 2006; torch 2.13, ctc_loss",
}


@lru_cache
def _log_p() -> Array:
    """Log probabilities [T, N, C] that sum to 1; a loss assumes that."""
    x = np.random.default_rng(7).standard_normal((_STEPS, len(_TARGETS), _CLASSES))
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


# No path of five steps reads as four equal labels: its loss is infinite.
_ENDLESS: Final = ((1, 2, 0, 2), (2, 2, 2, 2))


def _known(
    targets: tuple[tuple[int, ...], ...] = _TARGETS, blank: int = 0, zero: bool = False,
    steps: tuple[int, ...] = (_STEPS, _STEPS), joined: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Targets in rows, or `joined` one after the other."""
    labels = [c for target in targets for c in target] if joined else targets
    return {"logProbs": const(_log_p(), "float32"), "targets": const(labels, "int64"),
            "inputLengths": steps, "blank": blank, "zeroInfinity": zero}  # fmt: skip


def _labels(targets: Array, lengths: Sequence[int]) -> list[tuple[int, ...]]:
    parts = targets if targets.ndim == 2 else np.split(targets, np.cumsum(lengths)[:-1])
    return [tuple(int(c) for c in part[:n]) for part, n in zip(parts, lengths, strict=True)]


def _paths(target: tuple[int, ...], blank: int, steps: int) -> Iterator[tuple[int, ...]]:
    """Every path that reads as the target once repeats are joined and blanks left out."""
    for path in product(range(_CLASSES), repeat=steps):
        if tuple(c for c, _ in groupby(path) if c != blank) == target:
            yield path


def _likely(probs: Array, path: tuple[int, ...]) -> float:
    return float(np.prod(probs[np.arange(len(path)), list(path)]))


def _prefixes(probs: Array, target: tuple[int, ...], blank: int) -> Array:
    """[T, 2S + 1]: the log of what reaches a place of the target, blanks between, at a step."""
    places = [blank, *(c for label in target for c in (label, blank))]
    step = np.eye(len(places)) + np.eye(len(places), k=1)
    for s in range(2, len(places)):
        step[s - 2, s] = places[s] != blank and places[s] != places[s - 2]
    alpha = [np.where(np.arange(len(places)) < 2, probs[0, places], 0.0)]
    for t_ in range(1, len(probs)):
        alpha.append(alpha[-1] @ step * probs[t_, places])
    with np.errstate(divide="ignore"):
        return np.log(np.stack(alpha))


_HOW: Final[tuple[dict[str, Any], ...]] = (
    {}, {"targets": ((1, 2), (0, 0)), "blank": 3},
    {"targets": _ENDLESS, "blank": 3, "zero": True},
    {"targets": ((1, 2), (3,)), "steps": (_STEPS, 3), "joined": True},
)  # fmt: skip


def _anything_beyond(values: Sequence[Array], got: Sequence[Array]) -> list[Array]:
    """What lies beyond a sample's own lengths is nobody's."""
    return [values[0], np.where(np.isnan(values[1]), got[1], values[1])]


@spec("aclnnCtcLoss", "negLogLikelihoodOut:logProbs logAlphaOut:logProbs", **_CTC,
      nearest=_anything_beyond, samples=lambda: [
          take(**_known(**how), targetlengths=tuple(map(len, how.get("targets", _TARGETS))))
          for how in (*_HOW, {"targets": _ENDLESS, "blank": 3})])  # fmt: skip
def ctc_loss(
    logProbs: Array, targets: Array, inputLengths: Sequence[int], targetlengths: Sequence[int],
    blank: int, zeroInfinity: bool,
) -> tuple[Array, Array]:  # fmt: skip
    """By all paths there are. NaN is what a sample does not have."""
    losses = []
    alphas = np.full((len(inputLengths), len(logProbs), 2 * max(targetlengths) + 1), np.nan)
    for n, labels in enumerate(_labels(targets, targetlengths)):
        probs = np.exp(logProbs[: inputLengths[n], n])
        paths = _paths(labels, blank, len(probs))
        losses.append(-np.log(sum((_likely(probs, p) for p in paths), np.float64())))
        alphas[n, : len(probs), : 2 * len(labels) + 1] = _prefixes(probs, labels, blank)
    loss = np.array(losses)
    return np.where(np.isinf(loss) & zeroInfinity, 0.0, loss), alphas


def _backward(**how: Any) -> dict[str, Any]:
    known, targets = _known(**how), how.get("targets", _TARGETS)
    lengths = tuple(map(len, targets))
    with np.errstate(divide="ignore"):
        loss, alpha = ctc_loss(_log_p(), known["targets"].array(), known["inputLengths"], lengths,
                               known["blank"], False)  # fmt: skip
    return {**known, "targetLengths": lengths, "negLogLikelihood": const(loss, "float32"),
            "logAlpha": const(np.where(np.isnan(alpha), 0, alpha), "float32")}  # fmt: skip


@spec("aclnnCtcLossBackward", "out:logProbs",
      ignored=saved("negLogLikelihood logAlpha"),
      uncovered="zeroInfinity",
      **_CTC, samples=lambda: [
    take(gradOut=t(2), **_backward(**how)) for how in _HOW])  # fmt: skip
def ctc_backward(
    gradOut: Array, logProbs: Array, targets: Array, inputLengths: Sequence[int],
    targetLengths: Sequence[int], blank: int,
) -> Array:  # fmt: skip
    """A class's probability less its share of the paths that read as the target."""
    out = np.zeros_like(logProbs)
    for n, labels in enumerate(_labels(targets, targetLengths)):
        probs = np.exp(logProbs[: inputLengths[n], n])
        share = np.zeros(probs.shape)
        for path in _paths(labels, blank, len(probs)):
            share[np.arange(len(path)), list(path)] += _likely(probs, path)
        if share.any():  # of an infinite loss, zeroInfinity leaves nothing
            out[: len(probs), n] = probs - share / share.sum(-1, keepdims=True)
    return out * gradOut[:, None]


_PARTED: Final[dict[str, Any]] = {
    "tolerance": "gradient",
    "specials": False,
    "source": "Shoeybi et al.: Megatron-LM, 2019, section 3; op-plugin document "
    "npu_fused_linear_online_max_sum",
}


@spec("aclnnFusedLinearOnlineMaxSum",
      "logitsMaxLocalOut:float32 sumExpLogitsLocalOut:float32 predictedLogitsLocalOut:float32 "
      "targetMaskOut:uint8 maskedTargetOut:target vocabParallelLogitsOutOptional:input",
      dtypes=("float16", "bfloat16"), **_PARTED, samples=[
          take(input=t(n, 16, dtype="float16"), weight=t(7, 16, dtype="float16"),
               target=const(([10, 3, 16, 12, 40, 11, 9, 17] * 2)[-n:], "int64"),
               vocabStartIndex=10, vocabEndIndex=16) for n in (8, 16)])  # fmt: skip
def online_max_sum(
    input: Array, weight: Array, target: Array, vocabStartIndex: int, vocabEndIndex: int
) -> tuple[Array, ...]:
    """Classes 10 to 16 are here: a label of another device is masked, eight to a byte."""
    logits = np.einsum("td,cd->tc", input, weight)
    top = np.max(logits, 1)
    here = (target >= vocabStartIndex) & (target <= vocabEndIndex)
    local = np.where(here, target - vocabStartIndex, 0)
    target_logit = np.where(here, np.choose(local, logits.T) - top, 0)
    return (
        top,
        np.exp(logits - top[:, None]).sum(1),
        target_logit,
        np.packbits(~here),
        local,
        logits,
    )


@spec("aclnnFusedCrossEntropyLossWithMaxSum", "lossOut:float32 softMaxOutOptional:float32",
      ignored=reserved("inputOptional weightOptional")
      | one_value("labelSmoothing"),
      dtypes=("float32",), **_PARTED, samples=[
          take(logitsMax=const([2.0, 1.5, 3.0], "float32"),
               sumExpLogits=const([2.5, 4.0, 1.25], "float32"),
               predictedLogits=const([-0.5, -1.0, -2.0], "float32"), labelSmoothing=0.0,
               vocabParallelLogitsOptional=t(3, 7, dtype="float16"))])  # fmt: skip
def loss_of_parts(
    logitsMax: Array, sumExpLogits: Array, predictedLogits: Array,
    vocabParallelLogitsOptional: Array,
) -> tuple[Array, Array]:  # fmt: skip
    p = np.exp(vocabParallelLogitsOptional - logitsMax[:, None]) / sumExpLogits[:, None]
    return np.log(sumExpLogits) - predictedLogits, p


_TORCH: Final = "torch 2.13, documents of torch.nn.functional losses"
ROW: Final[dict[str, Any]] = {"source": _TORCH, "tolerance": "composite"}
GRAD: Final[dict[str, Any]] = {"source": _TORCH, "tolerance": "gradient"}


def nll(
    self: Array, target: Array, weight: Array, reduction: int, ignoreIndex: int
) -> tuple[Array, Array]:
    """The loss and the weight it was divided by."""
    picked = np.where(target == ignoreIndex, 0, target)
    share = np.where(target == ignoreIndex, 0.0, weight[picked])
    loss = -np.take_along_axis(self, np.expand_dims(picked, 1), 1).squeeze(1) * share
    total = share.sum()
    if reduction == 0:
        return loss, np.zeros(())
    return (loss.sum() / total if reduction == 1 else loss.sum()), total


def _classes(shape: tuple[int, ...], count: int) -> Arg:
    values = (np.arange(np.prod(shape)) * 7 + 1) % count
    return const(values.reshape(shape).tolist(), "int64")


def _nll(shape: tuple[int, ...], **more: Any) -> list[Any]:
    rest = (shape[0], *shape[2:])
    return [take(self=t(*shape, low=-4, high=0), target=_classes(rest, shape[1]),
                 weight=t(shape[1], low=0.5, high=2), reduction=r, ignoreIndex=i, **more)
            for r in (0, 1, 2) for i in (-100, 2)]  # fmt: skip


spec("aclnnNLLLoss", "out:self totalWeightOut:self", samples=[*_nll((5, 4)), *_nll((130, 7))],
     **ROW)(nll)  # fmt: skip
spec("aclnnNLLLoss2d", "out:self totalWeightOut:self", samples=_nll((2, 5, 4, 3)), **ROW)(nll)


def nll_backward(
    gradOutput: Array,
    self: Array,
    target: Array,
    weight: Array,
    reduction: int,
    ignoreIndex: int,
    totalWeight: Array,
) -> Array:
    picked = np.where(target == ignoreIndex, 0, target)
    share = np.where(target == ignoreIndex, 0.0, weight[picked])
    flow = gradOutput / totalWeight.reshape(()) if reduction == 1 else gradOutput
    result = np.zeros_like(self)
    np.put_along_axis(result, np.expand_dims(picked, 1), np.expand_dims(-flow * share, 1), 1)
    return result


def _nll_back(shape: tuple[int, ...]) -> list[Any]:
    rest = (shape[0], *shape[2:])
    return [take(gradOutput=t(*rest) if r == 0 else t(), self=t(*shape, low=-4, high=0),
                 target=_classes(rest, shape[1]), weight=t(shape[1], low=0.5, high=2), reduction=r,
                 ignoreIndex=i, totalWeight=const(6.5, "float32"))
            for r in (0, 1, 2) for i in (-100, 2)]  # fmt: skip


spec("aclnnNLLLossBackward", "out:self", samples=_nll_back((5, 4)), **GRAD)(nll_backward)
spec("aclnnNLLLoss2dBackward", "out:self", sparse=True, samples=_nll_back((2, 5, 4, 3)), **GRAD)(
    nll_backward
)


def _log_softmax(x: Array) -> Array:
    shifted = x - x.max(1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))


_MODES: Final = {"none": 0, "mean": 1, "sum": 2}


@spec("aclnnCrossEntropyLoss",
      "lossOut:input logProbOut:input zlossOut:input lseForZlossOut:input",
      constant="lseSquareScaleForZloss returnZloss",
      tolerance="composite",
      source="torch 2.13, document of CrossEntropyLoss with label_smoothing", samples=[
          take(input=t(6, 9), target=_classes((6,), 9), reductionOptional=r, ignoreIndex=i,
               labelSmoothing=s, lseSquareScaleForZloss=0.0, returnZloss=False)
          for r in ("none", "mean", "sum") for i, s in ((-100, 0.0), (2, 0.0), (-100, 0.1))]
      + [take(input=t(6, 9), target=_classes((6,), 9), weightOptional=t(9, low=0.3, high=2),
              reductionOptional="mean", ignoreIndex=2, labelSmoothing=0.2,
              lseSquareScaleForZloss=0.0, returnZloss=False)],
      )  # fmt: skip
def cross_entropy(
    input: Array,
    target: Array,
    weightOptional: Array | None,
    reductionOptional: str,
    ignoreIndex: int,
    labelSmoothing: float,
    lseSquareScaleForZloss: float,
    returnZloss: bool,
) -> tuple[Array, Array, Array, Array]:
    log = _log_softmax(input)
    count = input.shape[1]
    weight = np.ones(count) if weightOptional is None else weightOptional
    loss, _ = nll(log, target, weight, _MODES[reductionOptional], ignoreIndex)
    if labelSmoothing:
        valid = target != ignoreIndex
        each = np.where(valid, -(log * weight).sum(1), 0.0)
        smooth = {"none": each, "sum": each.sum(), "mean": each.sum() / weight[target][valid].sum()}
        part = labelSmoothing / count
        loss = (1 - labelSmoothing) * loss + part * smooth[reductionOptional]
    return loss, log, np.zeros((0,)), np.zeros((0,))


@spec("aclnnSoftmaxCrossEntropyWithLogits", "loss:features backprop:features",
      tolerance="composite", source="TensorFlow, tf.nn.softmax_cross_entropy_with_logits",
      samples=[take(features=t(6, 9), labels=t(6, 9, low=0, high=0.3)),
               take(features=t(3, 1025), labels=t(3, 1025, low=0, high=0.01))])  # fmt: skip
def softmax_cross_entropy(features: Array, labels: Array) -> tuple[Array, Array]:
    log = _log_softmax(features)
    return -(labels * log).sum(1), np.exp(log) - labels


# Rows whose lists end anywhere or nowhere, and a list beyond 1,024 classes.
_LISTED: Final = np.random.default_rng(5).permuted(np.tile(np.arange(-1, 5), (70, 1)), axis=1)[
    :, :5
]
_LONG_LIST: Final = np.where(np.arange(1600) < 1050, np.arange(1599, -1, -1), -1)[None]


# torch's formula has max(0, NaN), its kernels add what is above 0: what NaN gives is not stated.
@spec("aclnnMultilabelMarginLoss", "out:self isTarget:self", tolerance="composite",
      specials=False, source="torch 2.13, document of MultiLabelMarginLoss", samples=[
          take(self=t(3, 5), reduction=r,
               target=const([[3, 0, -1, 1, 2], [1, -1, 0, 0, 0], [-1, 0, 0, 0, 0]], "int64"))
          for r in (0, 1, 2)] + [
          take(self=t(*x.shape), reduction=0, target=const(x, "int64"))
          for x in (_LISTED, _LONG_LIST)])  # fmt: skip
def multilabel_margin(self: Array, target: Array, reduction: int) -> tuple[Array, Array]:
    marked = np.zeros_like(self)
    each = np.zeros(self.shape[0])
    for row, (x, label) in enumerate(zip(self, target, strict=True)):
        stop = np.flatnonzero(label < 0)
        labels = label[: stop[0]] if stop.size else label
        marked[row, labels] = 1
        others = np.setdiff1d(np.arange(x.size), labels)
        each[row] = np.maximum(0, 1 - (x[labels][:, None] - x[others][None])).sum() / x.size
    return (each, each.mean(), each.sum())[reduction], marked


_VOCABULARY: Final[dict[str, Any]] = {
    "tolerance": "gradient", "specials": False,
    "source": "Shoeybi et al.: Megatron-LM, 2019, section 3; op-plugin documents "
    "npu_fused_linear_online_max_sum and npu_cross_entropy_loss",
}  # fmt: skip
_LOCAL: Final = [0, 3, 6, 2, 0, 0, 5, 1]
_ELSEWHERE: Final = [0, 1, 0, 0, 1, 0, 0, 0]


@spec("aclnnFusedLinearCrossEntropyLossGrad", "inputGradOut:input weightGradOut:weight",
      uncovered="labelSmoothing",
      dtypes=("float16", "bfloat16"), **_VOCABULARY, samples=[
          take(grad=t(8), input=f16(8, 16), weight=f16(7, 16), labelSmoothing=0.0,
               targetMask=const(np.packbits(_ELSEWHERE), "uint8"),
               maskedTarget=const(_LOCAL, "int64"), **rest)
          for rest in ({"logitsMaxOptional": t(8), "sumExpLogitsOptional": t(8, low=3, high=9)},
                       {"softmaxOptional": t(8, 7, low=0.0, high=0.3)})])  # fmt: skip
def cross_entropy_grads(
    grad: Array, input: Array, weight: Array, targetMask: Array, maskedTarget: Array,
    logitsMaxOptional: Array | None, sumExpLogitsOptional: Array | None,
    softmaxOptional: Array | None,
) -> tuple[Array, Array]:  # fmt: skip
    """Probabilities less one at the label, where it belongs to this device."""
    if logitsMaxOptional is not None and sumExpLogitsOptional is not None:
        p = np.exp(input @ weight.T - logitsMaxOptional[:, None]) / sumExpLogitsOptional[:, None]
    else:
        p = np.array(softmaxOptional)
    here = 1 - np.unpackbits(targetMask)[: len(p)].astype(np.float64)
    p[np.arange(len(p)), maskedTarget] -= here
    p *= grad[:, None]
    return p @ weight, p.T @ input


@spec("aclnnCrossEntropySumExpAndIndexLogit", "predictedLogitsOut:float32 sumExpLogitsOut:float32 "
      "expLogitsOut:float32 targetOffsetOut:target targetMaskOut:bool", **_VOCABULARY,
      dtypes=("float32",), samples=[
          take(vocabParallelLogits=t(4, 5), target=const([7, 2, 9, 10], "int32"),
               globalLogitsMax=t(4, low=2, high=3), vocabStartIndex=a, vocabEndIndex=a + 5)
          for a in (5, 2)])  # fmt: skip
def parted_sums(
    vocabParallelLogits: Array, target: Array, globalLogitsMax: Array, vocabStartIndex: int,
    vocabEndIndex: int,
) -> tuple[Array, ...]:  # fmt: skip
    """A label of another device has offset 0, a mask, and no logit."""
    shifted = vocabParallelLogits - globalLogitsMax[:, None]
    away = (target < vocabStartIndex) | (target >= vocabEndIndex)
    offset = np.where(away, 0, target - vocabStartIndex)
    shifted_target = np.where(away, 0, shifted[np.arange(len(target)), offset])
    e = np.exp(shifted)
    return shifted_target, e.sum(1), e, offset, away


@spec("aclnnCrossEntropyLossGrad", "out:logProb",
      ignored=reserved("gradZlossOptional lseForZlossOptional lseSquareScaleForZloss"),
      **FLOAT32_GRADIENT, sparse=True,
      source="derivative of torch's cross_entropy", samples=[
          take(gradLoss=t(*flow), logProb=t(5, 9, low=-5, high=-0.2),
               target=const([3, 0, 8, 2, 2], "int64"), reductionOptional=kind, ignoreIndex=ignored,
               weightOptional=weight, labelSmoothing=smooth, lseSquareScaleForZloss=0.0)
          for flow, kind, ignored, weight, smooth in (
              ((), "mean", -100, None, 0.0), ((), "mean", 2, None, 0.0), ((), "sum", 2, None, 0.2),
              ((5,), "none", -100, None, 0.0), ((), "mean", 2, t(9, low=0.3, high=2), 0.2),
              ((5,), "none", 0, t(9, low=0.3, high=2), 0.1))],
      )  # fmt: skip
def cross_entropy_grad(
    gradLoss: Array, logProb: Array, target: Array, weightOptional: Array | None,
    reductionOptional: str, ignoreIndex: int, labelSmoothing: float,
) -> Array:  # fmt: skip
    """Each row: what flows in times the sum of class weights' (softmax - one hot), smoothed over
    the classes; ignored rows are 0."""
    count = logProb.shape[1]
    weight = np.ones(count) if weightOptional is None else weightOptional
    label_weight = weight[target] * (target != ignoreIndex)
    flow = np.broadcast_to(gradLoss, target.shape) * (target != ignoreIndex)
    flow = flow / label_weight.sum() if reductionOptional == "mean" else flow
    hot = np.eye(count)
    smoothed = (1 - labelSmoothing) * label_weight[:, None] * hot[
        target
    ] + labelSmoothing / count * weight
    return flow[:, None] * (smoothed.sum(1, keepdims=True) * np.exp(logProb) - smoothed)
