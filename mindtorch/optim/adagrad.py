"""Owns Adagrad."""

from __future__ import annotations

from typing import Any

import mindtorch

from .._tensor.tensor import Tensor
from ._checks import (
    advance,
    check_kinds,
    check_lr,
    check_positive,
    count,
    directed,
    pick,
)
from ._functional_forms import functional_form
from .optimizer import Group, Optimizer, ParamsT


class Adagrad(Optimizer):
    """p -= lr / (1 + (step - 1) lr_decay) · g / (sqrt(sum of g²) + eps)."""

    by_lists = True

    sparse_refusal = None

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_positive(
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        names = (
            "lr lr_decay eps weight_decay "
            "initial_accumulator_value foreach maximize differentiable fused"
        )
        defaults = pick(locals(), names)
        super().__init__(params, defaults)
        check_kinds(None, foreach, fused, True, differentiable)
        for group in self.param_groups:
            for p in group["params"]:
                start = group["initial_accumulator_value"]
                start = complex(start, start) if p.is_complex() else start
                self.state[p] = {"step": count(), "sum": mindtorch.full_like(p.data, start)}

    def share_memory(self) -> None:
        """Moves the sums to shared memory."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _update(self, p: Tensor, grad: Tensor, group: Group) -> None:
        state = self.state[p]
        step = advance(state)
        rate = group["lr"] / (1 + (step - 1) * group["lr_decay"])
        if grad.is_sparse:
            _update_rows(p, grad, state["sum"], group, rate)
            return
        grad = directed(grad, p, group)
        state["sum"].addcmul_(grad, grad, value=1)
        root = state["sum"].sqrt()
        root = root + group["eps"] if group.get("differentiable") else root.add_(group["eps"])
        p.addcdiv_(grad, root, value=-rate)


def _update_rows(p: Tensor, grad: Any, total: Any, group: Group, rate: Any) -> None:
    """The same of the elements that a sparse gradient has; the others stay."""
    if group["weight_decay"] != 0:
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    grad = (-grad if group["maximize"] else grad).coalesce()
    values, at = grad._values(), grad._indices()
    total.add_(mindtorch.sparse_coo_tensor(at, values.square(), grad.shape))
    scale = total.sparse_mask(grad)._values().sqrt_().add_(group["eps"])
    p.add_(mindtorch.sparse_coo_tensor(at, values / scale, grad.shape), alpha=-rate)


adagrad = functional_form(
    Adagrad,
    {"state_sums": "sum", "state_steps": "step"},
    "fused grad_scale found_inf has_sparse_grad foreach differentiable has_complex",
    "lr weight_decay lr_decay eps maximize",
)  # fmt: skip
