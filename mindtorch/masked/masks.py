"""Owns how masks are read: broadcast to the input, dimensions, identities of reductions."""

from __future__ import annotations

from typing import Any

from .._tensor import dtype as dt
from .._tensor.dtype import dtype as Dtype, iinfo
from .._tensor.tensor import Tensor
from ..ops.rules import wrap_dims
from ..ops.spec import aten


def dims_of(dim: Any, input: Tensor) -> tuple[int, ...]:
    """Dimensions as wrapped ints; all where none or an empty list is given."""
    if dim is None:
        return tuple(range(input.ndim))
    return wrap_dims((dim,) if isinstance(dim, int) else tuple(dim), input.ndim)


def mask_of(input: Tensor, mask: Tensor | None) -> Tensor | None:
    """The mask in the input's shape; ValueError where it cannot be brought there."""
    if mask is None:
        return None
    if mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the"
            " input)"
        )
    mask = mask if mask.dtype is dt.bool else aten.to(mask, dt.bool)
    return aten.expand(mask, tuple(input.shape))


def widened(input: Tensor, dtype: Dtype | None, sums: bool = False) -> Tensor:
    """In `dtype`; integers become int64 for sums where none is given."""
    if dtype is None and sums and input.dtype.category < dt.FLOAT:
        dtype = dt.int64
    return input if dtype is None else aten.to(input, dtype)


def lowest(d: Dtype) -> Any:
    """The value that any other is at least as large as."""
    if d.category >= dt.FLOAT:
        return float("-inf")
    return 0 if d is dt.bool else int(getattr(iinfo(d), "min"))  # noqa: B009


def highest(d: Dtype) -> Any:
    """The value that any other is at most as large as."""
    if d.category >= dt.FLOAT:
        return float("inf")
    return 1 if d is dt.bool else int(getattr(iinfo(d), "max"))  # noqa: B009


def filled(input: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    """`value` where the mask is false."""
    return input if mask is None else aten.where(mask, input, aten.full_like(input, value))
