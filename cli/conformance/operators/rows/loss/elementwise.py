"""Losses of single elements and their gradients."""

from __future__ import annotations

from typing import Any, Final

import mindtorch.nn.functional as F
from mindtorch import Tensor

from ...formulas import gradient, words
from ...spec import const, spec, t, take
from .classification import TORCH

ROW: Final[dict[str, Any]] = {"source": TORCH, "tolerance": "composite"}
GRAD: Final[dict[str, Any]] = {"source": TORCH, "tolerance": "gradient"}

_REDUCE: Final = ("none", "mean", "sum")
_SIGNS: Final[dict[str, Any]] = {**GRAD, "sparse": True}


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


spec("aclnnL1Loss", "out:self", samples=_both(), **ROW)(words(_l1))
spec("aclnnL1LossBackward", "gradInput:self", samples=_back(), **_SIGNS)(
    gradient(_l1, grad="gradOutput", of="self"))  # fmt: skip
spec("aclnnMseLossOut", "out:self", samples=_both(), **ROW)(words(_mse))
spec("aclnnMseLossBackward", "out:self", samples=_back(), **GRAD)(
    gradient(_mse, grad="gradOutput", of="self"))  # fmt: skip
spec("aclnnSmoothL1LossBackward", "gradInput:self", **GRAD,
     samples=[*_back("gradOut", beta=1.0), *_back("gradOut", beta=0.25)])(
    gradient(_smooth, grad="gradOut", of="self"))  # fmt: skip
spec("aclnnSoftMarginLoss", "out:self", samples=[*_both(), *_both(4, 9, 1, 2)], **ROW)(
    words(_soft_margin)
)
spec("aclnnSoftMarginLossBackward", "out:self", samples=_back(), **GRAD)(
    gradient(_soft_margin, grad="gradOutput", of="self"))  # fmt: skip
spec("aclnnKlDiv", "out:self", **ROW,
     samples=[*_both(-3, -0.5, 0.1, 1, logTarget=False), *_both(-3, -1, -3, -1, logTarget=True),
              take(self=t(2, 3, low=-3, high=-0.5), reduction=2, logTarget=False,
                   target=const([[0.0, 0.5, 0.25], [1.0, 0.0, 0.75]], "float32"))])(
    words(_kl))  # fmt: skip
spec("aclnnKlDivBackward", "out:self", **GRAD, samples=[
    *_back(low=-3, high=-0.5, tlow=0.1, thigh=1, logTarget=False),
    *_back(low=-3, high=-1, tlow=-3, thigh=-1, logTarget=True)])(
    gradient(_kl, grad="gradOutput", of="self"))  # fmt: skip
spec("aclnnKlDivTargetBackward", "gradTarget:self", **GRAD, samples=[
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
spec("aclnnBinaryCrossEntropyBackward", "out:self", **GRAD, samples=[
    *_back(low=0.05, high=0.95, tlow=0, thigh=1),
    take(gradOutput=t(3, 4), self=t(3, 4, low=0.1, high=0.9), target=t(3, 4, low=0, high=1),
         reduction=0, **_WEIGHTS)])(
    gradient(_bce, grad="gradOutput", of="self"))  # fmt: skip
_FULL: Final[list[Any]] = [
    {"self": t(3, 4, low=-4, high=4), "target": t(3, 4, low=0, high=1), "reduction": r,
     "posWeightOptional": t(4, low=0.5, high=3), **_WEIGHTS} for r in (0, 1, 2)
]  # fmt: skip
spec("aclnnBinaryCrossEntropyWithLogits", "out:self", **ROW,
     samples=[*_both(-4, 4, 0, 1), *_both(-120, 120, 0, 1), *(take(**f) for f in _FULL)])(
    words(_logits))  # fmt: skip
spec("aclnnBinaryCrossEntropyWithLogitsBackward", "out:self", **GRAD, samples=[
    *_back(low=-4, high=4, tlow=0, thigh=1),
    *(take(gradOutput=t(3, 4) if f["reduction"] == 0 else t(), **f) for f in _FULL)])(
    gradient(_logits, grad="gradOutput", of="self"))  # fmt: skip
spec("aclnnBinaryCrossEntropyWithLogitsTargetBackward", "gradTarget:self", **GRAD, samples=[
    *_back(low=-4, high=4, tlow=0, thigh=1),
    *(take(gradOutput=t(3, 4) if f["reduction"] == 0 else t(), **f) for f in _FULL)])(
    gradient(_logits, grad="gradOutput", of="target"))  # fmt: skip
