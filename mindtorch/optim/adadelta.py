"""Owns Adadelta."""

from __future__ import annotations

from typing import ClassVar

from .._tensor.tensor import Tensor
from ._checks import advance, check_lr, check_positive, count, directed, pick, zeros
from ._functional_forms import functional_form
from .optimizer import Group, Optimizer, ParamsT


class Adadelta(Optimizer):
    """p -= lr · g · sqrt(mean of Δ² + eps) / sqrt(mean of g² + eps)."""

    by_lists = True
    capturable_devices: ClassVar = ["cuda", "xpu", "hpu", "privateuseone"]

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_positive(eps=eps, weight_decay=weight_decay)
        names = "lr rho eps weight_decay maximize capturable foreach differentiable"
        defaults = pick(locals(), names)
        super().__init__(params, defaults)

    def _update(self, p: Tensor, grad: Tensor, group: Group) -> None:
        state, rho, eps = self.state[p], group["rho"], group["eps"]
        if not state:
            state.update(step=count(), square_avg=zeros(p), acc_delta=zeros(p))
        advance(state)
        grad = directed(grad, p, group)
        square, deltas = state["square_avg"], state["acc_delta"]
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        root = square.add(eps).sqrt_()
        delta = deltas.add(eps).sqrt_()
        delta = (delta.clone() if group.get("differentiable") else delta).div_(root).mul_(grad)
        deltas.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        p.add_(delta, alpha=-group["lr"])


adadelta = functional_form(
    Adadelta,
    {"square_avgs": "square_avg", "acc_deltas": "acc_delta", "state_steps": "step"},
    "capturable foreach differentiable has_complex",
    "lr rho eps weight_decay maximize",
)  # fmt: skip
