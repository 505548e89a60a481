"""Owns the checks of hyperparameters and the start of an update that optimizers share."""

from __future__ import annotations

from typing import Any

import mindtorch

from .._tensor.tensor import Tensor


def check_lr(lr: Any) -> None:
    """ValueError for a negative learning rate or a tensor of more than one element."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")


def check_positive(**values: Any) -> None:
    """ValueError for a negative value; the keyword names it,
    underscores as torch's text has them."""
    for name, value in values.items():
        if not value >= 0.0:
            raise ValueError(f"Invalid {_TEXT.get(name, name)} value: {value}")


_TEXT = {"eps": "epsilon"}


def check_betas(betas: tuple[float, ...]) -> None:
    """ValueError for a beta outside [0, 1)."""
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


def zeros(p: Tensor) -> Tensor:
    """A state tensor like the parameter."""
    return mindtorch.zeros_like(p)


def count(start: float = 0.0) -> Tensor:
    """A step count: float32, 0-d, on the CPU, as torch's state dicts have it."""
    return mindtorch.tensor(start, dtype=mindtorch.float32)


def advance(state: dict[str, Any]) -> float:
    """Adds one to the count and gives it as a number."""
    state["step"] += 1
    return float(state["step"].item())


def directed(grad: Tensor, p: Tensor, group: dict[str, Any]) -> Tensor:
    """The gradient to descend: negated for maximize, with L2 weight decay added."""
    if group["maximize"]:
        grad = -grad
    decay = group["weight_decay"]
    return grad.add(p, alpha=decay) if decay != 0 else grad
