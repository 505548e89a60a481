"""Losses of label sequences, and of labels whose vocabulary lies on several devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, product
from typing import Any, Final

import numpy as np

from ....judge.precision import Array
from ..spec import given, spec, t, take

_TARGETS: Final = ((1, 2), (3, 3))
_STEPS, _CLASSES = 5, 4
_CTC: Final[dict[str, Any]] = {
    "family": "loss",
    "tolerance": "gradient",
    "dtypes": ("float32",),
    "specials": False,
    "sparse": True,
    "source": "Graves et al.: Connectionist Temporal Classification, 2006; torch 2.13, ctc_loss",
}


@lru_cache
def _drawn() -> Array:
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
    return {"logProbs": given(_drawn(), "float32"), "targets": given(labels, "int64"),
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
        loss, alpha = ctc_loss(_drawn(), known["targets"].array(), known["inputLengths"], lengths,
                               known["blank"], False)  # fmt: skip
    return {**known, "targetLengths": lengths, "negLogLikelihood": given(loss, "float32"),
            "logAlpha": given(np.where(np.isnan(alpha), 0, alpha), "float32")}  # fmt: skip


@spec("aclnnCtcLossBackward", "out:logProbs", **_CTC, samples=lambda: [
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
    "family": "loss",
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
               target=given(([10, 3, 16, 12, 40, 11, 9, 17] * 2)[-n:], "int64"),
               vocabStartIndex=10, vocabEndIndex=16) for n in (8, 16)])  # fmt: skip
def online_max_sum(
    input: Array, weight: Array, target: Array, vocabStartIndex: int, vocabEndIndex: int
) -> tuple[Array, ...]:
    """Classes 10 to 16 are here: a label of another device is masked, eight to a byte."""
    logits = np.einsum("td,cd->tc", input, weight)
    top = np.max(logits, 1)
    here = (target >= vocabStartIndex) & (target <= vocabEndIndex)
    local = np.where(here, target - vocabStartIndex, 0)
    own = np.where(here, np.choose(local, logits.T) - top, 0)
    return (top, np.exp(logits - top[:, None]).sum(1), own, np.packbits(~here), local, logits)


@spec("aclnnFusedCrossEntropyLossWithMaxSum", "lossOut:float32 softMaxOutOptional:float32",
      dtypes=("float32",), **_PARTED, samples=[
          take(logitsMax=given([2.0, 1.5, 3.0], "float32"),
               sumExpLogits=given([2.5, 4.0, 1.25], "float32"),
               predictedLogits=given([-0.5, -1.0, -2.0], "float32"), labelSmoothing=0.0,
               vocabParallelLogitsOptional=t(3, 7, dtype="float16"))])  # fmt: skip
def loss_of_parts(
    logitsMax: Array, sumExpLogits: Array, predictedLogits: Array,
    vocabParallelLogitsOptional: Array,
) -> tuple[Array, Array]:  # fmt: skip
    p = np.exp(vocabParallelLogitsOptional - logitsMax[:, None]) / sumExpLogits[:, None]
    return np.log(sumExpLogits) - predictedLogits, p
