"""Owns the refusal of gradients to arguments that a function has no derivative for."""

from __future__ import annotations

from ...._tensor.tensor import Tensor
from ...spec import aten


def refuse_gradients(function: str, **arguments: Tensor | None) -> None:
    """RuntimeError in torch's words where a call that is recorded would lose a gradient."""
    for name, value in arguments.items():
        if value is not None and value.requires_grad and aten._recorded(value):
            raise RuntimeError(
                f"The function '{function}' is not differentiable with respect to argument"
                f" '{name}'. This input cannot have requires_grad True."
            )
