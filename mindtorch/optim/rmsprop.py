"""Owns RMSprop."""

from __future__ import annotations

from typing import Any, ClassVar

from .._tensor.tensor import Tensor
from ._checks import advance, check_lr, check_positive, count, directed, pick, zeros
from ._functional_forms import functional_form
from .optimizer import Group, Optimizer, ParamsT


class RMSprop(Optimizer):
    """p -= lr · g / (sqrt(mean of g²) + eps), optionally centered and with momentum."""

    by_lists = True

    later_options = ("centered", "momentum")
    _later: ClassVar[dict[str, Any]] = {"foreach": None, "momentum": 0}

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_positive(eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        names = (
            "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable"
        )
        defaults = pick(locals(), names)
        super().__init__(params, defaults)

    def _state_of(self, p: Tensor, group: Group) -> dict[str, Any]:
        state: dict[str, Any] = self.state[p]
        if not state:
            names = ["square_avg"]
            if group["momentum"] > 0:
                names.append("momentum_buffer")
            if group["centered"]:
                names.append("grad_avg")
            # At once: a Ctrl-C amid it leaves all of the state or nothing.
            state.update({"step": count()} | {name: zeros(p) for name in names})
        return state

    def _update(self, p: Tensor, grad: Tensor, group: Group) -> None:
        state, alpha = self._state_of(p, group), group["alpha"]
        grad = directed(grad, p, group)
        advance(state)
        square = state["square_avg"]
        square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"]
            mean.lerp_(grad, 1 - alpha)
            root = square.addcmul(mean, mean, value=-1).sqrt_()
        else:
            root = square.sqrt()
        root = root + group["eps"] if group.get("differentiable") else root.add_(group["eps"])
        if group["momentum"] > 0:
            velocity = state["momentum_buffer"]
            velocity.mul_(group["momentum"]).addcdiv_(grad, root)
            p.add_(velocity, alpha=-group["lr"])
        else:
            p.addcdiv_(grad, root, value=-group["lr"])


rmsprop = functional_form(
    RMSprop,
    {"square_avgs": "square_avg", "grad_avgs": "grad_avg",
     "momentum_buffer_list": "momentum_buffer", "state_steps": "step"},
    "foreach maximize differentiable capturable has_complex",
    "lr alpha eps weight_decay momentum centered",
)  # fmt: skip
