"""Owns Adam and AdamW."""

from __future__ import annotations

from typing import Any

from .._tensor.tensor import Tensor
from .._tensor.types import Number
from ._checks import (
    advance,
    check_betas,
    check_kinds,
    check_lr,
    check_positive,
    count,
    pick,
    zeros,
)  # fmt: skip
from ._functional_forms import step_of_lists
from .optimizer import Group, Optimizer, ParamsT

__all__ = ["Adam", "AdamW", "adam"]


class Adam(Optimizer):
    """p -= lr · m̂ / (sqrt(v̂) + eps), with bias-corrected moments m̂ and v̂."""

    by_lists = True

    sparse_refusal = "does not support sparse gradients, please consider SparseAdam instead"
    _refuses_as = "Adam"

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        betas: tuple[float, ...] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_lr(lr)
        check_positive(eps=eps)
        check_betas(betas)
        if not any(all(isinstance(beta, kind) for beta in betas) for kind in (float, Tensor)):
            raise ValueError("betas must be either both floats or both Tensors")
        check_positive(weight_decay=weight_decay)
        betas = tuple(betas)
        names = (
            "lr betas eps weight_decay amsgrad "
            "maximize foreach capturable differentiable fused decoupled_weight_decay"
        )
        defaults = pick(locals(), names)
        check_kinds(lr, foreach, None, capturable, None)
        super().__init__(params, defaults)
        check_kinds(None, foreach, fused, True, differentiable)

    def _state_of(self, p: Tensor, group: Group) -> dict[str, Any]:
        state: dict[str, Any] = self.state[p]
        if not state:
            names = ["exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * bool(group["amsgrad"])
            # At once: a Ctrl-C amid it leaves all of the state or nothing.
            state.update({"step": count()} | {name: zeros(p) for name in names})
        return state

    def _update(self, p: Tensor, grad: Tensor, group: Group) -> None:
        state, (beta1, beta2), lr = self._state_of(p, group), group["betas"], group["lr"]
        if group["maximize"]:
            grad = -grad
        if group["weight_decay"] != 0:
            if group["decoupled_weight_decay"]:
                p.mul_(1 - lr * group["weight_decay"])
            else:
                grad = grad.add(p, alpha=group["weight_decay"])
        step = advance(state)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            if group.get("differentiable"):
                square = largest.copy_(largest.clone().maximum(square))
            else:
                square = largest.clamp_min_(square)
        if group.get(
            "differentiable"
        ):  # by numbers that are tensors, and nothing saved is written to
            size = -lr / (1 - beta1 ** state["step"])
            root = (1 - beta2 ** state["step"]).sqrt()
            denominator = (square.sqrt() / (root * size)).add_(group["eps"] / size)
            p.addcdiv_(mean.clone(), denominator)
            return
        root = (1 - beta2**step) ** 0.5
        denominator = (square.sqrt() / root).add_(group["eps"])
        rate = lr / (1 - beta1**step)
        if isinstance(lr, Tensor) and lr.requires_grad:  # and gets a gradient
            p.addcdiv_(mean, denominator / -rate)
        else:
            p.addcdiv_(mean, denominator, value=-float(rate))


class AdamW(Adam):
    """Adam whose weight decay acts on the parameter, not on the gradient."""

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        betas: tuple[float, ...] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # checkpoints of older versions do not say it
            group["decoupled_weight_decay"] = True


def adam(
    params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor], state_steps: list[Tensor], foreach: bool | None = None,
    capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
    grad_scale: Tensor | None = None, found_inf: Tensor | None = None, has_complex: bool = False,
    decoupled_weight_decay: bool = False, *, amsgrad: bool, beta1: float, beta2: float, lr: Number,
    weight_decay: float, eps: float, maximize: bool,
) -> None:  # fmt: skip
    """One step of Adam, as a function of lists; RuntimeError for steps that are no tensors."""
    group = {"betas": (beta1, beta2), "lr": lr, "weight_decay": weight_decay, "eps": eps,
             "amsgrad": amsgrad, "maximize": maximize,
             "decoupled_weight_decay": decoupled_weight_decay}  # fmt: skip
    states = {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "max_exp_avg_sq": max_exp_avg_sqs,
              "step": state_steps}  # fmt: skip
    step_of_lists(Adam, params, grads, states, group)


def adamw(
    params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor], state_steps: list[Tensor], foreach: bool | None = None,
    capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
    grad_scale: Tensor | None = None, found_inf: Tensor | None = None, has_complex: bool = False,
    *, amsgrad: bool, beta1: float, beta2: float, lr: Number, weight_decay: float, eps: float,
    maximize: bool,
) -> None:  # fmt: skip
    """One step of AdamW: of adam, with the decay of weights apart from gradients."""
    adam(
        params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps,
        decoupled_weight_decay=True, amsgrad=amsgrad, beta1=beta1, beta2=beta2, lr=lr,
        weight_decay=weight_decay, eps=eps, maximize=maximize,
    )  # fmt: skip
