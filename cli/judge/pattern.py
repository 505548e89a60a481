"""Owns where wrong elements lie in a result: a picture of blocks, and the regularity in words."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from .metrics import identical
from .precision import Array, format_of, rounded, spacing, wide

WIDTH: Final = 64
_SHADES: Final = "·▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Pattern:
    """`wrong` of `elements` differ; `shares` are shares per block of memory order; `text` names
    the regularity; `blocks` shows it."""

    wrong: int
    elements: int
    shares: tuple[float, ...]
    text: str

    @property
    def blocks(self) -> str:
        """One character per block: · none wrong, █ all."""
        top = len(_SHADES) - 1
        return "".join(_SHADES[0 if not s else max(1, round(s * top))] for s in self.shares)


def mask_of(got: Array, golden: Array, dtype: str, limit: float) -> Array:
    """Which elements are wrong: not identical for exact results, beyond `limit` ULP for others."""
    form = format_of(dtype)
    if form is None or golden.dtype.kind not in "fc" or limit <= 0:
        expected = rounded(golden, dtype) if form is not None else golden
        return ~identical(got, expected)
    with np.errstate(all="ignore"):
        have, want = wide(got), wide(golden)
        near = wide(rounded(golden, dtype))
        clash = ~((have == near) | (np.isnan(have) & np.isnan(near)))
        size = spacing(np.where(np.isfinite(want), want, 0.0), form)
        far = ~(np.abs(have - want) <= limit * size)
        wrong = clash & far
    return wrong.any(-1) if got.dtype.kind == "c" else wrong


def pattern(wrong: Array) -> Pattern:
    """The Pattern of a mask in the result's shape."""
    flat = np.asarray(wrong).reshape(-1)
    n = flat.size
    edges = np.linspace(0, n, min(WIDTH, max(n, 1)) + 1).astype(int)
    shares = tuple(float(flat[a:b].mean()) if b > a else 0.0
                   for a, b in pairwise(edges))  # fmt: skip
    return Pattern(int(flat.sum()), n, shares, _words(np.asarray(wrong)))


def _words(wrong: Array) -> str:
    flat = wrong.reshape(-1)
    at = np.flatnonzero(flat)
    n = flat.size
    if not at.size:
        return "none beyond the bound"
    if at.size == n:
        return "all elements"
    if at.size == 1:
        return f"one element, at {int(at[0])} of {n}"
    if at[0] == n - at.size:
        return f"a tail: the last {at.size} of {n}"
    if at[-1] == at.size - 1:
        return f"a head: the first {at.size} of {n}"
    if at[-1] - at[0] == at.size - 1:
        return f"one run of {at.size}, from {int(at[0])} of {n}"
    steps = np.diff(at)
    if (steps == steps[0]).all():
        return f"every {int(steps[0])}th, from {int(at[0])}"
    return _by_dimension(wrong) or f"scattered: {at.size} of {n}, the first at {int(at[0])}"


def _by_dimension(wrong: Array) -> str:
    """Whole slices of one dimension: one core's part, one channel, the end of every row."""
    for d in range(wrong.ndim):
        rest = tuple(i for i in range(wrong.ndim) if i != d)
        touched = np.flatnonzero(wrong.any(rest))
        if touched.size and touched.size < wrong.shape[d]:
            size = wrong.shape[d]
            where = f"{int(touched[0])}" if touched.size == 1 else (
                f"{int(touched[0])} to {int(touched[-1])}")  # fmt: skip
            return f"only at {where} of dimension {d} (size {size})"
    return ""
