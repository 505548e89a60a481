"""Losses and their gradients; reduction is 0 none, 1 mean, 2 sum."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import mindtorch.nn.functional as F
from mindtorch import Tensor
from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..formulas import gradient, words
from ..spec import given, spec, t, take

_REDUCE: Final = ("none", "mean", "sum")
_TORCH: Final = "torch 2.13, documents of torch.nn.functional losses"
_ROW: Final[dict[str, Any]] = {"family": "loss", "source": _TORCH, "tolerance": "composite"}
_GRAD: Final[dict[str, Any]] = {"family": "loss", "source": _TORCH, "tolerance": "gradient"}
_SIGNS: Final[dict[str, Any]] = {**_GRAD, "sparse": True}


def _both(low: float = -2.0, high: float = 2.0, tlow: float = -2.0, thigh: float = 2.0,
          **more: Any) -> list[Any]:  # fmt: skip
    return [take(self=t(*s, low=low, high=high), target=t(*s, low=tlow, high=thigh), reduction=r,
                 **more)
            for s in ((3, 4), (2, 3, 70)) for r in (0, 1, 2)]  # fmt: skip


def _back(grad: str = "gradOutput", low: float = -2.0, high: float = 2.0, tlow: float = -2.0,
          thigh: float = 2.0, **more: Any) -> list[Any]:  # fmt: skip
    grads = []
    for s in ((3, 4), (2, 3, 70)):
        for r in (0, 1, 2):
            x, y = t(*s, low=low, high=high), t(*s, low=tlow, high=thigh)
            grads.append(take(**{grad: t(*s) if r == 0 else t()}, self=x, target=y, reduction=r,
                              **more))  # fmt: skip
    return grads


def _l1(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    return F.l1_loss(self, target, reduction=_REDUCE[reduction])


def _mse(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    return F.mse_loss(self, target, reduction=_REDUCE[reduction])


def _smooth(self: Tensor, target: Tensor, reduction: int, beta: float) -> Tensor:
    return F.smooth_l1_loss(self, target, reduction=_REDUCE[reduction], beta=beta)


def _soft_margin(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    return F.soft_margin_loss(self, target, reduction=_REDUCE[reduction])


def _kl(self: Tensor, target: Tensor, reduction: int, logTarget: bool) -> Tensor:
    return F.kl_div(self, target, reduction=_REDUCE[reduction], log_target=logTarget)


spec("aclnnL1Loss", "out:self", samples=_both(), **_ROW)(words(_l1))
spec("aclnnL1LossBackward", "gradInput:self", samples=_back(), **_SIGNS)(
    gradient(_l1, grad="gradOutput", of="self"))  # fmt: skip
spec("aclnnMseLossOut", "out:self", samples=_both(), **_ROW)(words(_mse))
spec("aclnnMseLossBackward", "out:self", samples=_back(), **_GRAD)(
    gradient(_mse, grad="gradOutput", of="self"))  # fmt: skip
spec("aclnnSmoothL1LossBackward", "gradInput:self", **_GRAD,
     samples=[*_back("gradOut", beta=1.0), *_back("gradOut", beta=0.25)])(
    gradient(_smooth, grad="gradOut", of="self"))  # fmt: skip
spec("aclnnSoftMarginLoss", "out:self", samples=[*_both(), *_both(4, 9, 1, 2)], **_ROW)(
    words(_soft_margin)
)
spec("aclnnSoftMarginLossBackward", "out:self", samples=_back(), **_GRAD)(
    gradient(_soft_margin, grad="gradOutput", of="self"))  # fmt: skip
spec("aclnnKlDiv", "out:self", **_ROW,
     samples=[*_both(-3, -0.5, 0.1, 1, logTarget=False), *_both(-3, -1, -3, -1, logTarget=True),
              take(self=t(2, 3, low=-3, high=-0.5), reduction=2, logTarget=False,
                   target=given([[0.0, 0.5, 0.25], [1.0, 0.0, 0.75]], "float32"))])(
    words(_kl))  # fmt: skip
spec("aclnnKlDivBackward", "out:self", **_GRAD, samples=[
    *_back(low=-3, high=-0.5, tlow=0.1, thigh=1, logTarget=False),
    *_back(low=-3, high=-1, tlow=-3, thigh=-1, logTarget=True)])(
    gradient(_kl, grad="gradOutput", of="self"))  # fmt: skip
spec("aclnnKlDivTargetBackward", "gradTarget:self", **_GRAD, samples=[
    *_back(low=-3, high=-0.5, tlow=0.1, thigh=1, logTarget=False),
    *_back(low=-3, high=-1, tlow=-3, thigh=-1, logTarget=True)])(
    gradient(_kl, grad="gradOutput", of="target"))  # fmt: skip


def _bce(self: Tensor, target: Tensor, weightOptional: Tensor | None, reduction: int) -> Tensor:
    return F.binary_cross_entropy(self, target, weightOptional, reduction=_REDUCE[reduction])


def _logits(
    self: Tensor,
    target: Tensor,
    weightOptional: Tensor | None,
    posWeightOptional: Tensor | None,
    reduction: int,
) -> Tensor:
    return F.binary_cross_entropy_with_logits(
        self, target, weightOptional, reduction=_REDUCE[reduction], pos_weight=posWeightOptional
    )


_WEIGHTS: Final[dict[str, Any]] = {"weightOptional": t(3, 4, low=0.5, high=2)}
spec("aclnnBinaryCrossEntropyBackward", "out:self", **_GRAD, samples=[
    *_back(low=0.05, high=0.95, tlow=0, thigh=1),
    take(gradOutput=t(3, 4), self=t(3, 4, low=0.1, high=0.9), target=t(3, 4, low=0, high=1),
         reduction=0, **_WEIGHTS)])(
    gradient(_bce, grad="gradOutput", of="self"))  # fmt: skip
_FULL: Final[list[Any]] = [
    {"self": t(3, 4, low=-4, high=4), "target": t(3, 4, low=0, high=1), "reduction": r,
     "posWeightOptional": t(4, low=0.5, high=3), **_WEIGHTS} for r in (0, 1, 2)
]  # fmt: skip
spec("aclnnBinaryCrossEntropyWithLogits", "out:self", **_ROW,
     samples=[*_both(-4, 4, 0, 1), *_both(-120, 120, 0, 1), *(take(**f) for f in _FULL)])(
    words(_logits))  # fmt: skip
spec("aclnnBinaryCrossEntropyWithLogitsBackward", "out:self", **_GRAD, samples=[
    *_back(low=-4, high=4, tlow=0, thigh=1),
    *(take(gradOutput=t(3, 4) if f["reduction"] == 0 else t(), **f) for f in _FULL)])(
    gradient(_logits, grad="gradOutput", of="self"))  # fmt: skip
spec("aclnnBinaryCrossEntropyWithLogitsTargetBackward", "gradTarget:self", **_GRAD, samples=[
    *_back(low=-4, high=4, tlow=0, thigh=1),
    *(take(gradOutput=t(3, 4) if f["reduction"] == 0 else t(), **f) for f in _FULL)])(
    gradient(_logits, grad="gradOutput", of="target"))  # fmt: skip


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
    return given(values.reshape(shape).tolist(), "int64")


def _nll(shape: tuple[int, ...], **more: Any) -> list[Any]:
    rest = (shape[0], *shape[2:])
    return [take(self=t(*shape, low=-4, high=0), target=_classes(rest, shape[1]),
                 weight=t(shape[1], low=0.5, high=2), reduction=r, ignoreIndex=i, **more)
            for r in (0, 1, 2) for i in (-100, 2)]  # fmt: skip


spec("aclnnNLLLoss", "out:self totalWeightOut:self", samples=[*_nll((5, 4)), *_nll((130, 7))],
     **_ROW)(nll)  # fmt: skip
spec("aclnnNLLLoss2d", "out:self totalWeightOut:self", samples=_nll((2, 5, 4, 3)), **_ROW)(nll)


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
                 ignoreIndex=i, totalWeight=given(6.5, "float32"))
            for r in (0, 1, 2) for i in (-100, 2)]  # fmt: skip


spec("aclnnNLLLossBackward", "out:self", samples=_nll_back((5, 4)), **_GRAD)(nll_backward)
spec("aclnnNLLLoss2dBackward", "out:self", sparse=True, samples=_nll_back((2, 5, 4, 3)), **_GRAD)(
    nll_backward
)


def _log_softmax(x: Array) -> Array:
    shifted = x - x.max(1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))


_MODES: Final = {"none": 0, "mean": 1, "sum": 2}


@spec("aclnnCrossEntropyLoss",
      "lossOut:input logProbOut:input zlossOut:input lseForZlossOut:input",
      family="loss", tolerance="composite",
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
        kept = target != ignoreIndex
        each = np.where(kept, -(log * weight).sum(1), 0.0)
        smooth = {"none": each, "sum": each.sum(), "mean": each.sum() / weight[target][kept].sum()}
        part = labelSmoothing / count
        loss = (1 - labelSmoothing) * loss + part * smooth[reductionOptional]
    return loss, log, np.zeros((0,)), np.zeros((0,))


@spec("aclnnSoftmaxCrossEntropyWithLogits", "loss:features backprop:features", family="loss",
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
@spec("aclnnMultilabelMarginLoss", "out:self isTarget:self", family="loss", tolerance="composite",
      specials=False, source="torch 2.13, document of MultiLabelMarginLoss", samples=[
          take(self=t(3, 5), reduction=r,
               target=given([[3, 0, -1, 1, 2], [1, -1, 0, 0, 0], [-1, 0, 0, 0, 0]], "int64"))
          for r in (0, 1, 2)] + [
          take(self=t(*x.shape), reduction=0, target=given(x, "int64"))
          for x in (_LISTED, _LONG_LIST)])  # fmt: skip
def multilabel_margin(self: Array, target: Array, reduction: int) -> tuple[Array, Array]:
    marked = np.zeros_like(self)
    each = np.zeros(self.shape[0])
    for row, (x, wanted) in enumerate(zip(self, target, strict=True)):
        stop = np.flatnonzero(wanted < 0)
        labels = wanted[: stop[0]] if stop.size else wanted
        marked[row, labels] = 1
        others = np.setdiff1d(np.arange(x.size), labels)
        each[row] = np.maximum(0, 1 - (x[labels][:, None] - x[others][None])).sum() / x.size
    return (each, each.mean(), each.sum())[reduction], marked
