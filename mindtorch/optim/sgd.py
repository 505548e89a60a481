"""Owns SGD with momentum."""

from __future__ import annotations

from typing import ClassVar

from .._tensor.tensor import Tensor
from .._tensor.types import Number
from ._checks import check_kinds, check_lr, check_positive, directed, pick
from .optimizer import Group, Optimizer, ParamsT

__all__ = ["SGD"]


class SGD(Optimizer):
    """p -= lr · v, v = momentum · v + (1 - dampening) · g."""

    sparse_refusal = None
    _later: ClassVar[dict[str, bool | None]] = {"foreach": None}

    def __init__(
        self,
        params: ParamsT,
        lr: Number = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Number = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr, below=True)
        check_positive(momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        names = "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused"
        defaults = pick(locals(), names)
        super().__init__(params, defaults)
        check_kinds(None, foreach, fused, True, differentiable)

    def _update(self, p: Tensor, grad: Tensor, group: Group) -> None:
        grad = directed(grad, p, group)
        momentum = group["momentum"]
        if momentum != 0:
            state = self.state[p]
            velocity = state.get("momentum_buffer")
            if velocity is None:
                velocity = state["momentum_buffer"] = grad.clone().detach()
            else:
                velocity.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(velocity, alpha=momentum) if group["nesterov"] else velocity
        p.add_(grad, alpha=-group["lr"])
