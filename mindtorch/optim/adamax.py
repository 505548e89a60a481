"""Owns Adamax."""

from __future__ import annotations

from .._tensor.tensor import Tensor
from ._checks import advance, check_betas, check_lr, check_positive, count, directed, pick, zeros
from ._functional_forms import functional_form
from .optimizer import Group, Optimizer, ParamsT


class Adamax(Optimizer):
    """Adam with the infinity norm of the gradients in place of the second moment."""

    by_lists = True

    def __init__(
        self,
        params: ParamsT,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_positive(eps=eps)
        check_betas(betas)
        check_positive(weight_decay=weight_decay)
        names = "lr betas eps weight_decay foreach maximize differentiable capturable"
        defaults = pick(locals(), names)
        super().__init__(params, defaults)

    def _update(self, p: Tensor, grad: Tensor, group: Group) -> None:
        state, (beta1, beta2) = self.state[p], group["betas"]
        if not state:
            state.update(step=count(), exp_avg=zeros(p), exp_inf=zeros(p))
        step = advance(state)
        grad = directed(grad, p, group)
        mean, largest = state["exp_avg"], state["exp_inf"]
        mean.lerp_(grad, 1 - beta1)
        largest.copy_((largest * beta2).maximum(grad.abs() + group["eps"]))
        p.addcdiv_(mean, largest, value=-group["lr"] / (1 - beta1**step))


adamax = functional_form(
    Adamax,
    {"exp_avgs": "exp_avg", "exp_infs": "exp_inf", "state_steps": "step"},
    "foreach maximize differentiable capturable has_complex",
    "eps beta1 beta2 lr weight_decay",
)  # fmt: skip
