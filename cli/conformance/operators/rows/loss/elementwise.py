"""Losses of single elements and their gradients."""

from __future__ import annotations

import mindtorch.nn.functional as F
from mindtorch import Tensor

from .....spec import *
from .....spec import row as row_
from ...formulas import gradient, words
from .._words import *
from .classification import TORCH

_REDUCE: Final = ("none", "mean", "sum")
_REDUCTION: Final = choice(1, 0, 2)
_LOSS: Final = Rule("composite", TORCH)
_LOSS_GRAD: Final = Rule("gradient", TORCH)
_ROWS: Final = sizes(N=row_)
Formula = Callable[..., Any]


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


def _flow(shape: str) -> Domain:
    """One number for each element, or one for what was reduced."""
    return by("reduction", {1: tensor(""), 0: tensor(shape), 2: tensor("")})


def _pair(like: str, target: Domain | None = None) -> dict[str, Domain]:
    every = tensor("*S", like or "f32 f16 bf16")
    return {"self": every, "target": target or tensor("*S", like or "self")}


def _forward(
    name: str, formula: Formula, target: Domain | None = None, rule: Rule = _LOSS, **params: Domain
) -> None:
    spec(name, rule, **_pair("", target), reduction=_REDUCTION, **params, out=out("self"))(
        words(formula))  # fmt: skip


def _backward(
    name: str, formula: Formula, result: str = "out", target: Domain | None = None,
    flow: str = "gradOutput", of: str = "self", rule: Rule = _LOSS_GRAD, **params: Domain,
) -> None:  # fmt: skip
    spec(name, rule, **{flow: _flow("*S")}, **_pair(flow, target), reduction=_REDUCTION,
         **params, **{result: out("self")})(gradient(formula, grad=flow, of=of))  # fmt: skip


def _shares(like: str) -> Domain:
    """What the divergence is from: shares, or their logarithms."""
    return by("logTarget", {False: tensor("*S", like, 0, 1), True: tensor("*S", like, -3, -1)})


_forward("aclnnL1Loss", _l1)
# The sign of NaN is not stated; torch's is 0.
_backward("aclnnL1LossBackward", _l1, "gradInput",
          rule=Rule("gradient", TORCH, sparse=True, specials=False))  # fmt: skip
_forward("aclnnMseLossOut", _mse)
_backward("aclnnMseLossBackward", _mse)
_backward("aclnnSmoothL1LossBackward", _smooth, "gradInput", flow="gradOut",
          rule=replace(_LOSS_GRAD, specials=False), beta=number(1.0, 0.25, 3.0))  # fmt: skip
# The exponential in it overflows where products of graded numbers do.
_MARGIN: Final = "normal integer opposed positive nan"
_forward("aclnnSoftMarginLoss", _soft_margin, rule=replace(_LOSS, values=_MARGIN))
_backward("aclnnSoftMarginLossBackward", _soft_margin, rule=replace(_LOSS_GRAD, values=_MARGIN))
_forward("aclnnKlDiv", _kl, _shares("self"), logTarget=flag())
_backward("aclnnKlDivBackward", _kl, target=_shares("gradOutput"), logTarget=flag())
_backward("aclnnKlDivTargetBackward", _kl, "gradTarget", _shares("gradOutput"), of="target",
          logTarget=flag())  # fmt: skip
spec("aclnnBinaryCrossEntropyBackward", _LOSS_GRAD, gradOutput=_flow("*S"),
     self=tensor("*S", "gradOutput", 0.05, 0.95), target=tensor("*S", "gradOutput", 0, 1),
     weightOptional=optional(tensor("*S", "gradOutput", 0.5, 2)), reduction=_REDUCTION,
     out=out("self"))(gradient(_bce, grad="gradOutput", of="self"))  # fmt: skip


def _with_logits(like: str) -> dict[str, Domain]:
    """Weights of each element or column; those of positive targets, of each column."""
    of = like or "self"
    weights = forms(every=tensor("*B N", of, 0.5, 2), row=tensor("N", of, 0.5, 2))
    return {"self": tensor("*B N", like), "target": tensor("*B N", of, 0, 1),
            "weightOptional": optional(weights),
            "posWeightOptional": optional(tensor("N", of, 0.5, 3)),
            "reduction": _REDUCTION}  # fmt: skip


_GRADED: Final = "normal graded integer opposed positive"
spec("aclnnBinaryCrossEntropyWithLogits", Rule("composite", TORCH, values=_GRADED), _ROWS,
     **_with_logits(""), out=out("self"))(words(_logits))  # fmt: skip
for _name, _of, _result in (("", "self", "out"), ("Target", "target", "gradTarget")):
    spec(f"aclnnBinaryCrossEntropyWithLogits{_name}Backward", Rule(
         "gradient", TORCH, values=_GRADED), _ROWS, gradOutput=_flow("*B N"),
         **_with_logits("gradOutput"), **{_result: out("self")})(
        gradient(_logits, grad="gradOutput", of=_of))  # fmt: skip
