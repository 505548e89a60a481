"""Owns NAdam."""

from __future__ import annotations

from .._tensor.tensor import Tensor
from ._checks import advance, check_betas, check_lr, check_positive, count, pick, zeros
from ._functional_forms import functional_form
from .optimizer import Group, Optimizer, ParamsT


class NAdam(Optimizer):
    """Adam with Nesterov momentum, whose momentum follows a schedule."""

    by_lists = True
    capturable_tensors = "params, mu_products and state_steps"

    def __init__(
        self,
        params: ParamsT,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check_positive(weight_decay=weight_decay, momentum_decay=momentum_decay)
        names = (
            "lr betas eps weight_decay momentum_decay "
            "decoupled_weight_decay maximize foreach capturable differentiable"
        )
        defaults = pick(locals(), names)
        super().__init__(params, defaults)

    def _update(self, p: Tensor, grad: Tensor, group: Group) -> None:
        state, (beta1, beta2), lr = self.state[p], group["betas"], group["lr"]
        if not state:
            state.update(step=count(), mu_product=count(1.0), exp_avg=zeros(p), exp_avg_sq=zeros(p))
        step = advance(state)
        grad = -grad if group["maximize"] else grad
        if group["weight_decay"] != 0:
            if group["decoupled_weight_decay"]:
                p.mul_(1 - lr * group["weight_decay"])
            else:
                grad = grad.add(p, alpha=group["weight_decay"])
        decay = group["momentum_decay"]
        mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * decay)))
        mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * decay)))
        state["mu_product"] *= mu
        product = state["mu_product"]
        product = product if group.get("differentiable") else float(product.item())
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        root = square.div(1 - beta2**step).sqrt().add(group["eps"])
        of_grad, of_mean = (
            -lr * (1.0 - mu) / (1.0 - product),
            -lr * mu_next / (1.0 - product * mu_next),
        )
        if group.get("differentiable"):  # what is saved is not written to
            p.addcdiv_(grad * of_grad, root).addcdiv_(mean * of_mean, root)
        else:
            p.addcdiv_(grad, root, value=of_grad).addcdiv_(mean, root, value=of_mean)


nadam = functional_form(
    NAdam,
    {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq", "mu_products": "mu_product",
     "state_steps": "step"},
    "decoupled_weight_decay foreach capturable differentiable has_complex maximize",
    "beta1 beta2 lr weight_decay momentum_decay eps",
)  # fmt: skip
