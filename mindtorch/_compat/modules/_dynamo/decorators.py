"""torch._dynamo.decorators: marks of tensors whose sizes may change, or may not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mindtorch._tensor.tensor import Tensor
from mindtorch.nn.modules.module import Module

from ..compiler import (
    allow_in_graph as allow_in_graph,
    assume_constant_result as assume_constant_result,
    disable as disable,
    substitute_in_graph as substitute_in_graph,
)

Dims = int | list[int] | tuple[int, ...]


class _DimRange(NamedTuple):
    """The sizes that a dim may have; None where there is no bound."""

    dim: int
    min: int | None
    max: int | None


def _dims(index: Dims) -> Sequence[int]:
    if isinstance(index, int):
        return (index,)
    if not isinstance(index, list | tuple):
        raise AssertionError(f"Expected index to be int, list, or tuple, got {type(index)}")
    return index


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Nothing to mark: no graph is kept."""


def mark_dynamic(
    t: Any, index: Dims, *, hint_override: int | None = None, min: int | None = None,
    max: int | None = None, specialize_on: list[Any] | None = None,
) -> None:  # fmt: skip
    """Let a size, or several, be another from call to call: graphs have it as an input.

    A compiled function that fixes it, or a size outside of the bounds, is refused.
    """
    for dim in _dims(index):
        if not hasattr(t, "_dynamo_dynamic_indices"):
            t._dynamo_dynamic_indices, t._dynamo_dynamic_range = set(), set()
            t._dynamo_hint_overrides = {}
        if hint_override:
            t._dynamo_hint_overrides[dim] = hint_override
        t._dynamo_dynamic_indices.add(dim)
        t._dynamo_dynamic_range.add(_DimRange(dim, min, max))


def _mark(t: Any, name: str, index: Dims) -> None:
    marks: set[int] = getattr(t, name, set())
    marks.update(_dims(index))
    setattr(t, name, marks)


def maybe_mark_dynamic(t: Any, index: Dims) -> None:
    """As `mark_dynamic`, but a function may fix the size."""
    _mark(t, "_dynamo_weak_dynamic_indices", index)


def mark_unbacked(t: Any, index: Dims, **_: object) -> None:
    """As `maybe_mark_dynamic`: a size has a value in each trace."""
    _mark(t, "_dynamo_unbacked_indices", index)


def mark_static(t: Any, index: Dims | None = None) -> None:
    """Let a size, several or all (None) be part of what a graph is for, whatever was before."""
    if not isinstance(t, Tensor) and issubclass(t, Module):
        return
    _mark(t, "_dynamo_static_indices", list(range(t.dim())) if index is None else index)
