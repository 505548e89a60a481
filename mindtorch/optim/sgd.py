"""Owns SGD with momentum."""

from __future__ import annotations

from typing import Any, ClassVar

from .._tensor.tensor import Tensor
from .._tensor.types import Number
from ._checks import check_kinds, check_lr, check_positive, directed, pick
from ._functional_forms import step_of_lists
from .optimizer import Group, Optimizer, ParamsT

__all__ = ["SGD", "sgd"]


class SGD(Optimizer):
    """p -= lr · v, v = momentum · v + (1 - dampening) · g."""

    by_lists = True

    sparse_refusal = None
    _later: ClassVar[dict[str, Any]] = {"foreach": None}

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
                velocity = state["momentum_buffer"] = grad.detach().clone()
            else:
                velocity.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(velocity, alpha=momentum) if group["nesterov"] else velocity
        lr = group["lr"]
        if isinstance(lr, Tensor) and lr.requires_grad:
            p.addcmul_(grad, lr, value=-1)
        else:
            p.add_(grad, alpha=-lr)


def sgd(
    params: list[Tensor], d_p_list: list[Tensor], momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False, foreach: bool | None = None, fused: bool | None = None,
    grad_scale: Tensor | None = None, found_inf: Tensor | None = None, *, weight_decay: float,
    momentum: float, lr: Number, dampening: float, nesterov: bool, maximize: bool,
) -> None:  # fmt: skip
    """One step of SGD, as a function of lists; the list of momenta gets those that are new."""
    group = {"weight_decay": weight_decay, "momentum": momentum, "lr": lr, "dampening": dampening,
             "nesterov": nesterov, "maximize": maximize}  # fmt: skip
    states = {"momentum_buffer": momentum_buffer_list}
    results = step_of_lists(SGD, params, d_p_list, states, group)
    if momentum != 0:
        momentum_buffer_list[:] = [state["momentum_buffer"] for state in results]
