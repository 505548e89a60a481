"""Losses of label sequences, and of labels whose vocabulary lies on several devices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby, product
from typing import Any, Final

import numpy as np

from mindtorch._tensor.types import Array
from mindtorch.ops.samples import Arg

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
    targets: tuple[tuple[int, ...], ...] = _TARGETS, blank: int = 0, zero: bool = False
) -> dict[str, Any]:
    return {"logProbs": given(_drawn(), "float32"), "targets": given(targets, "int64"),
            "inputLengths": (_STEPS,) * len(targets), "blank": blank,
            "zeroInfinity": zero}  # fmt: skip


def _paths(target: tuple[int, ...], blank: int) -> Iterator[tuple[int, ...]]:
    """Every path that reads as the target once repeats are joined and blanks left out."""
    for path in product(range(_CLASSES), repeat=_STEPS):
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


@spec("aclnnCtcLoss", "negLogLikelihoodOut:logProbs logAlphaOut:logProbs", **_CTC, samples=lambda: [
    take(**_known(targets, blank, zero), targetlengths=tuple(map(len, targets)))
    for targets, blank, zero in ((_TARGETS, 0, False), (((1, 2), (0, 0)), 3, False),
                                 (_ENDLESS, 3, True), (_ENDLESS, 3, False))])  # fmt: skip
def ctc_loss(
    logProbs: Array, targets: Array, blank: int, zeroInfinity: bool
) -> tuple[Array, Array]:
    """By all paths there are."""
    losses, alphas = [], []
    for n, target in enumerate(targets):
        probs, labels = np.exp(logProbs[:, n]), tuple(int(c) for c in target)
        losses.append(
            -np.log(sum((_likely(probs, p) for p in _paths(labels, blank)), np.float64()))
        )
        alphas.append(_prefixes(probs, labels, blank))
    loss = np.array(losses)
    return np.where(np.isinf(loss) & zeroInfinity, 0.0, loss), np.stack(alphas)


def _forward(targets: tuple[tuple[int, ...], ...], blank: int, _zero: bool) -> dict[str, Arg]:
    with np.errstate(divide="ignore"):
        loss, alpha = ctc_loss(_drawn(), np.array(targets), blank, False)
    return {"negLogLikelihood": given(loss, "float32"), "logAlpha": given(alpha, "float32")}


@spec("aclnnCtcLossBackward", "out:logProbs", **_CTC, samples=lambda: [
    take(gradOut=t(2), **_known(*how), **_forward(*how), targetLengths=tuple(map(len, how[0])))
    for how in ((_TARGETS, 0, False), (((1, 2), (0, 0)), 3, False),
                (_ENDLESS, 3, True))])  # fmt: skip
def ctc_backward(gradOut: Array, logProbs: Array, targets: Array, blank: int) -> Array:
    """A class's probability less its share of the paths that read as the target."""
    out = np.exp(logProbs)
    for n, target in enumerate(targets):
        probs, share = np.exp(logProbs[:, n]), np.zeros(logProbs[:, n].shape)
        for path in _paths(tuple(int(c) for c in target), blank):
            share[np.arange(len(path)), list(path)] += _likely(probs, path)
        if share.any():
            out[:, n] -= share / share.sum(-1, keepdims=True)
        else:  # an infinite loss, of which zeroInfinity leaves nothing
            out[:, n] = 0
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
