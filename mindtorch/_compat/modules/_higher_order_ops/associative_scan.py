"""Owns associative_scan: running results of an associative function of two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mindtorch.ops.spec import aten
from mindtorch.utils._pytree import tree_flatten, tree_unflatten


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:  # fmt: skip
    """The results of combining the slices of `xs` along `dim` up to each place."""
    leaves, spec = tree_flatten(xs)
    if not leaves:
        raise RuntimeError("Expected at least 1 xs leaf")
    count = leaves[0].shape[dim]
    order = range(count - 1, -1, -1) if reverse else range(count)
    slices = [[aten.select(leaf, dim, i) for leaf in leaves] for i in range(count)]
    results: dict[int, list[Any]] = {}
    before: list[Any] | None = None
    for i in order:
        if before is not None:
            pair = tree_unflatten(before, spec), tree_unflatten(slices[i], spec)
            before = tree_flatten(combine_fn(*pair))[0]
        else:
            before = slices[i]
        results[i] = before
    rows = [results[i] for i in range(count)]
    columns = [aten.stack(column, dim) for column in zip(*rows, strict=True)]
    return tree_unflatten(columns, spec)
