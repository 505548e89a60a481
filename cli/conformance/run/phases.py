"""Owns what decompositions leave open: vectors are unique up to a phase, and those of no value up
to a unitary change of them all (Golub and Van Loan, Matrix Computations, 2.4, 5.2, 8.1).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from ...judge.precision import Array
from .reference import Golden

# By row: results that hold the vectors, with the axis that counts them; -2: as rows, conjugated.
_VECTORS: Final[dict[str, tuple[tuple[int, int], ...]]] = {
    "linalg_qr": ((0, -1), (1, -2)),
    "qr": ((0, -1), (1, -2)),
    "linalg_svd": ((0, -1), (2, -2)),
    "_linalg_svd_v": ((0, -1), (2, -1)),
    "linalg_eigh": ((1, -1),),
}


def aligned(name: str, reference: Golden, got: list[tuple[str, Any]]) -> Golden:
    """The reference with its vectors turned as those that came are, where that is open."""
    places = _VECTORS.get(name)
    if places is None or len(got) != len(reference.values):
        return reference
    shapes = [np.shape(v) for v in reference.values]
    if shapes != [a.shape for _, a in got]:
        return reference
    values = list(reference.values)
    phases: Array | None = None
    count = min(n for place, axis in places for n in (shapes[place][axis:] or (0,))[:1] if n)
    for place, axis in places:
        if len(shapes[place]) < 2:
            continue  # not asked for
        target, came = (_columns(np.asarray(v), axis) for v in (values[place], got[place][1]))
        if phases is None:
            phases = _phases(target[..., :count], came[..., :count])
        aligned_columns = target[..., :count] * phases[..., None, :]
        if target.shape[-1] > count:
            aligned_columns = np.concatenate([aligned_columns, _spanned(target, came, count)], -1)
        values[place] = _columns(aligned_columns, axis)
    return replace(reference, values=values)


def _columns(vectors: Array, axis: int) -> Array:
    return vectors if axis == -1 else np.conjugate(np.swapaxes(vectors, -1, -2))


def _phases(reference: Array, came: Array) -> Array:
    """Unit numbers that turn each column towards the one that came; 1 where that says nothing."""
    with np.errstate(all="ignore"):
        along = (np.conjugate(reference) * came).sum(-2)
        size = np.abs(along)
        return np.where(np.isfinite(size) & (size > 0), along / np.where(size > 0, size, 1), 1)


def _spanned(reference: Array, came: Array, count: int) -> Array:
    """The columns after `count`, changed by the unitary matrix nearest to what leads to `came`."""
    rest = reference[..., count:]
    between = np.conjugate(np.swapaxes(rest, -1, -2)) @ came[..., count:]
    if not np.isfinite(between).all() or between.shape[-1] != between.shape[-2]:
        return rest
    left, _, right = np.linalg.svd(between)
    return np.asarray(rest @ (left @ right))
