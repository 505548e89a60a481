"""Owns autocast: which ops run in the lower precision, which in float32, and the casts.

A row's field `autocast` says it, after torch's documentation ("Automatic Mixed Precision",
op-specific behaviour): its cpu list for cpu tensors, its CUDA list for npu tensors. Rows in
neither run in the dtype of their inputs; composites are cast through what they call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._autograd.grad_mode import LOCAL
from .._tensor.dtype import bfloat16, dtype, float16, float32
from .._tensor.tensor import Tensor
from ..ops.spec import Op, aten


def applies(op: Op, args: Sequence[Any]) -> bool:
    """Whether the row's rule is for the device of these arguments, and autocast is on there."""
    first = _first(args)
    if first is None:
        return False
    device = first._geom.device.type
    where = op.dtypes.autocast.partition(" on ")[2]
    return device in (LOCAL.autocast or {}) and where in ("", "cpu" if device == "meta" else device)


def autocast_dtype(op: Op, device: str) -> dtype | None:
    """The dtype that autocast wants for this op's floating inputs on a device type, or None."""
    lower: dtype | None = (LOCAL.autocast or {}).get(device)
    if lower is None or not op.dtypes.autocast:
        return None
    rule, _, where = op.dtypes.autocast.partition(" on ")
    if rule == "lower":
        return lower
    here = where in ("", "cpu" if device == "meta" else device)
    return float32 if here and rule == "float32" else None


def recast(op: Op, args: Sequence[Any]) -> tuple[Any, ...] | None:
    """The arguments as autocast wants them; None where nothing changes."""
    first = _first(args)
    if first is None:
        return None
    target = autocast_dtype(op, first._geom.device.type)
    if target is None:
        return None
    recast_args = tuple(_cast(a, target) for a in args)
    return recast_args if any(a is not b for a, b in zip(recast_args, args, strict=True)) else None


def _first(args: Sequence[Any]) -> Tensor | None:
    for value in args:
        if isinstance(value, Tensor):
            return value
        if isinstance(value, tuple | list) and value and isinstance(value[0], Tensor):
            return value[0]
    return None


def _cast(value: Tensor | int, target: dtype) -> Tensor | int:
    if isinstance(value, Tensor):
        d = value._geom.dtype
        narrow = d is float16 or d is bfloat16 or d is float32
        return aten.to(value, target) if narrow and d is not target else value
    if isinstance(value, tuple | list) and value and isinstance(value[0], Tensor):
        recast_values = tuple(_cast(v, target) for v in value)
        return (
            recast_values
            if any(a is not b for a, b in zip(recast_values, value, strict=True))
            else value
        )
    return value
