"""Sorting and medians."""

from __future__ import annotations

from typing import Final

import numpy as np

from ....judge.precision import Array
from ..spec import spec, t, take
from ._defaults import EXACT


@spec("aclnnArgsort", "out:int64", **EXACT, samples=[
    take(self=t(3, 65), dim=1, descending=False), take(self=t(65, 3), dim=0, descending=True),
    take(self=t(1025), dim=-1, descending=False)], dtypes=("float32",))  # fmt: skip
def argsort(self: Array, dim: int, descending: bool) -> Array:
    return np.argsort(-self if descending else self, dim, kind="stable").astype(np.int64)


_MEDIAN: Final = [take(self=t(3, 65), dim=d, keepDim=k) for d, k in ((1, False), (0, True))]


def _kth(self: Array, dim: int, keepDim: bool) -> tuple[Array, Array]:
    rank = (self.shape[dim] - 1) // 2
    at = np.expand_dims(np.take(np.argsort(self, dim, kind="stable"), rank, dim), dim)
    value = np.take_along_axis(self, at, dim)
    return (value, at) if keepDim else (value.squeeze(dim), at.squeeze(dim))


spec("aclnnMedianDim aclnnNanMedianDim", "valuesOut:self indicesOut:int64", samples=_MEDIAN,
     **EXACT, dtypes=("float32",), specials=False)(_kth)  # fmt: skip
spec("aclnnMedian", "valuesOut:self", samples=[take(self=t(3, 65)), take(self=t(4))],
     **EXACT, specials=False)(
    lambda self: np.asarray(np.sort(self, None)[(self.size - 1) // 2]))  # fmt: skip
spec("aclnnNanMedian", "out:self", samples=[take(self=t(3, 65)), take(self=t(4))],
     **EXACT, specials=False)(
    lambda self: np.asarray(np.sort(self, None)[(self.size - 1) // 2]))  # fmt: skip
