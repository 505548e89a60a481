"""Owns Rprop."""

from __future__ import annotations

import mindtorch

from .._tensor.tensor import Tensor
from ._checks import advance, check_lr, count, pick, zeros
from ._functional_forms import functional_form
from .optimizer import Group, Optimizer, ParamsT


class Rprop(Optimizer):
    """Steps whose sizes grow while the gradient keeps its sign, and shrink when it turns."""

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = pick(locals(), "lr etas step_sizes foreach maximize differentiable capturable")
        super().__init__(params, defaults)

    def _update(self, p: Tensor, grad: Tensor, group: Group) -> None:
        state, (shrink, grow) = self.state[p], group["etas"]
        if not state:
            sizes = mindtorch.full_like(grad, float(group["lr"]))
            state.update(step=count(), prev=zeros(p), step_size=sizes)
        advance(state)
        grad = -grad if group["maximize"] else grad
        turn = grad.mul(state["prev"]).sign()
        ones = mindtorch.ones_like(turn)
        factor = mindtorch.where(
            turn > 0, ones * grow, mindtorch.where(turn < 0, ones * shrink, ones)
        )
        state["step_size"].mul_(factor).clamp_(*group["step_sizes"])
        grad = mindtorch.where(turn < 0, mindtorch.zeros_like(grad), grad)
        p.addcmul_(grad.sign(), state["step_size"], value=-1)
        state["prev"].copy_(grad)


rprop = functional_form(
    Rprop,
    {"prevs": "prev", "step_sizes": "step_size", "state_steps": "step"},
    "foreach capturable maximize differentiable has_complex",
    "step_size_min step_size_max etaminus etaplus",
)  # fmt: skip
