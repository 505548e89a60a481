"""Owns cond and while_loop, run eagerly: Python's own branches and loops, on tensors' truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mindtorch._tensor.tensor import Tensor


def cond(
    pred: Tensor | bool,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    """`true_fn(*operands)` where `pred`, one element, is true, else `false_fn(*operands)`."""
    if not isinstance(pred, Tensor | bool | int):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    for function in (true_fn, false_fn):
        if not callable(function):
            raise RuntimeError("Expect both branches to be callable.")
    return (true_fn if bool(pred) else false_fn)(*operands)


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]
) -> tuple[Any, ...]:
    """Apply `body_fn` to what is carried for as long as `cond_fn` of it is true."""
    if not isinstance(carried_inputs, tuple | list):
        raise RuntimeError(f"carried_inputs must be a tuple or list but got {type(carried_inputs)}")
    carried: Any = tuple(carried_inputs)
    while bool(cond_fn(*carried)):
        carried = body_fn(*carried)
        carried = tuple(carried) if isinstance(carried, tuple | list) else (carried,)
    return tuple(carried)
