"""Owns which of several right answers came: where elements tie, any valid index passes.

sort without `stable`, topk and kthvalue promise values in order and indices that lead to them
(torch documents); topk without `sorted` promises no order at all. Of decompositions see phases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...judge.metrics import same
from ...judge.precision import Array
from .phases import aligned
from .reference import Golden

if TYPE_CHECKING:
    from .trial import Trial


def settled(
    trial: Trial, reference: Golden, got: list[tuple[str, Any]]
) -> tuple[Golden, list[tuple[str, Any]]]:
    """Reference and results with the reference's indices in place of others that are as right."""
    row = trial.subject.op
    if row is not None and trial.case.form != "grad":
        reference = aligned(row.name, reference, got)
    if row is None or not row.testing.ties or len(got) != 2 or not trial.recipe.slots:
        return reference, got
    source, (values_type, values), (index_type, index) = trial.recipe.slots[0].array, *got
    named = {a.name: v for a, v in zip(row.schema.args, trial.recipe.args, strict=False)}
    if named.get("stable") or not source.ndim or values.shape != index.shape:
        return reference, got
    dim = int(named.get("dim", -1))
    if not _leads(source, values, index, dim):
        return reference, got
    if named.get("sorted") is False:
        reference = _in_order(reference, dim)
        values = np.sort(_plain(values), axis=dim).astype(values.dtype)
    expected = np.asarray(reference.values[1]).reshape(index.shape).astype(index.dtype)
    return reference, [(values_type, values), (index_type, expected)]


def _leads(source: Array, values: Array, index: Array, dim: int) -> bool:
    """Whether the indices are different, in range, and lead to the values."""
    if index.ndim < source.ndim:
        values, index = np.expand_dims(values, dim), np.expand_dims(index, dim)
    if index.size and (index.min() < 0 or index.max() >= source.shape[dim]):
        return False
    ordered = np.sort(index, axis=dim)
    if (np.diff(ordered, axis=dim) == 0).any():
        return False
    return bool(same(np.take_along_axis(source, index, dim), values).all())


def _in_order(reference: Golden, dim: int) -> Golden:
    values = np.sort(_plain(reference.values[0]), axis=dim).astype(reference.values[0].dtype)
    return Golden(reference.native, [values, *reference.values[1:]], reference.scale)


def _plain(values: Array) -> Array:
    return values.astype(np.float32) if values.dtype.name == "bfloat16" else values
