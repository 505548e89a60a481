"""Owns RAdam."""

from __future__ import annotations

from .._tensor.tensor import Tensor
from ._checks import advance, check_betas, check_lr, check_positive, count, pick, zeros
from ._functional_forms import functional_form
from .optimizer import Group, Optimizer, ParamsT


class RAdam(Optimizer):
    """Adam whose adaptive rate is rectified by its variance, and off while that is undefined."""

    by_lists = True

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_positive(eps=eps)
        check_betas(betas)
        check_positive(weight_decay=weight_decay)
        names = (
            "lr betas eps weight_decay "
            "maximize foreach capturable decoupled_weight_decay differentiable"
        )
        defaults = pick(locals(), names)
        super().__init__(params, defaults)

    def _update(self, p: Tensor, grad: Tensor, group: Group) -> None:
        state, (beta1, beta2), lr = self.state[p], group["betas"], group["lr"]
        if not state:
            state.update(step=count(), exp_avg=zeros(p), exp_avg_sq=zeros(p))
        step = advance(state)
        grad = -grad if group["maximize"] else grad
        if group["weight_decay"] != 0:
            if group["decoupled_weight_decay"]:
                p.mul_(1 - lr * group["weight_decay"])
            else:
                grad = grad.add(p, alpha=group["weight_decay"])
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        move = mean / (1 - beta1**step) * lr
        correction = 1 - beta2**step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * (beta2**step) / correction
        if length > 5.0:
            top = (length - 4) * (length - 2) * longest
            rectified = (top / ((longest - 4) * (longest - 2) * length)) ** 0.5
            move = move * (correction**0.5 / (square.sqrt() + group["eps"])) * rectified
        p.add_(move, alpha=-1.0)


radam = functional_form(
    RAdam,
    {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq", "state_steps": "step"},
    "decoupled_weight_decay foreach differentiable capturable has_complex maximize",
    "beta1 beta2 lr weight_decay eps",
)  # fmt: skip
