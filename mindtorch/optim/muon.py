"""Owns Muon: momentum whose matrix is made orthogonal before it is applied."""

from __future__ import annotations

from typing import Any

import mindtorch

from .._tensor.tensor import Tensor
from ._checks import pick
from .optimizer import Group, Optimizer, ParamsT

__all__ = ["Muon"]


def _refuse(**settings: float) -> None:
    for name, value in settings.items():
        if not 0.0 <= value:  # noqa: SIM300 (the order that errors of types name)
            raise ValueError(f"{name} should be >= 0 but is: {value}")


def _orthogonal(grad: Tensor, coefficients: tuple[float, ...], steps: int, eps: float) -> Tensor:
    """The nearest orthogonal matrix, nearly, in bfloat16: a quintic Newton-Schulz iteration."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = grad.bfloat16()
    tall = x.size(0) > x.size(1)
    x = x.T if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = mindtorch.addmm(x, mindtorch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def _scaled(lr: float, how: str | None, shape: Any) -> float:
    rows, columns = shape[:2]
    if how == "match_rms_adamw":
        return float(lr * 0.2 * max(rows, columns) ** 0.5)
    return float(lr * max(1, rows / columns) ** 0.5)


class Muon(Optimizer):
    """p -= lr · scale · orthogonal(momentum), for matrices (Jordan et al., 2024)."""

    refuses_complex = True

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        _refuse(**{"Learning rate": lr})
        _refuse(momentum=momentum, **{"weight decay": weight_decay})
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        names = "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn"
        defaults = pick(locals(), names)
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size:"
                        f" {p.size()}"
                    )

    def _update(self, p: Tensor, grad: Tensor, group: Group) -> None:
        state, lr, momentum = self.state[p], float(group["lr"]), group["momentum"]
        if not state:
            state["momentum_buffer"] = mindtorch.zeros_like(grad)
        mean = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        step = grad.lerp(mean, momentum) if group["nesterov"] else mean
        step = _orthogonal(step, group["ns_coefficients"], group["ns_steps"], group["eps"])
        p.mul_(1 - lr * group["weight_decay"])
        p.add_(step, alpha=-_scaled(lr, group["adjust_lr_fn"], p.shape))
