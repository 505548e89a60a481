"""Owns ASGD."""

from __future__ import annotations

from .._tensor.tensor import Tensor
from ._checks import advance, check_lr, check_positive, count, directed, pick, zeros
from ._functional_forms import functional_form
from .optimizer import Group, Optimizer, ParamsT


class ASGD(Optimizer):
    """SGD that keeps an average of the parameter from step t0 on."""

    by_lists = True
    capturable_tensors = "params, mus, etas, and state_steps"

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_positive(weight_decay=weight_decay)
        names = "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable"
        defaults = pick(locals(), names)
        super().__init__(params, defaults)

    def _update(self, p: Tensor, grad: Tensor, group: Group) -> None:
        state, lr, lambd = self.state[p], group["lr"], group["lambd"]
        if not state:
            state.update(step=count(), eta=count(float(lr)), mu=count(1.0), ax=zeros(p))
        step = advance(state)
        grad = directed(grad, p, group)
        eta, mu = float(state["eta"].item()), float(state["mu"].item())
        p.mul_(1 - lambd * eta)
        p.add_(grad, alpha=-eta)
        average = state["ax"]
        if mu == 1:
            average.copy_(p)
        else:
            average.add_(p.sub(average).mul_(mu))
        state["eta"].fill_(lr / ((1 + lambd * lr * step) ** group["alpha"]))
        state["mu"].fill_(1 / max(1, step - group["t0"]))


asgd = functional_form(
    ASGD,
    {"axs": "ax", "mus": "mu", "etas": "eta", "state_steps": "step"},
    "foreach maximize differentiable capturable has_complex",
    "lambd lr t0 alpha weight_decay",
)  # fmt: skip
