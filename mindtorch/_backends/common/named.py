"""Owns how the arguments of a row's ACLNN call are found by name, whoever runs it."""

from __future__ import annotations

from typing import Any

from ..._tensor.tensor import Tensor
from ...ops.spec import Op


def positions(op: Op) -> tuple[dict[str, int], dict[str, int]]:
    """Positions of an op's arguments and of its results, by name; one result is "out" too."""
    names: tuple[dict[str, int], dict[str, int]] | None = op.cache.get("positions")
    if names is None:
        results = {r.name or f"out{k}": k for k, r in enumerate(op.schema.returns)}
        if len(results) == 1:
            results["out"] = 0
        names = {a.name: i for i, a in enumerate(op.schema.args)}, results
        op.cache["positions"] = names
    return names


def metadata(value: Any) -> Any:
    """A value with Geometries for tensors, in lists too, as conditions and rules read it."""
    if isinstance(value, Tensor):
        return value._geom
    return tuple(metadata(v) for v in value) if value.__class__ is tuple else value
