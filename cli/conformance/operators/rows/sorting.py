"""Sorting and medians."""

from __future__ import annotations

from ....spec import *
from ._along import WHOLE, along
from ._defaults import TORCH
from ._words import *

_AXIS: Final = axis("A", WHOLE)


@spec("aclnnArgsort", Rule("exact", TORCH, values="normal ties special integer wide"),
      along("*B A *N"), self=tensor(WHOLE), dim=_AXIS, descending=flag(),
      out=out("i64"))  # fmt: skip
def argsort(self: Array, dim: int, descending: bool) -> Array:
    """Ties keep their order; NaN is above all numbers."""
    if not descending:
        return np.argsort(self, dim, kind="stable")
    behind = np.argsort(np.flip(self, dim), dim, kind="stable")
    return self.shape[dim] - 1 - np.flip(behind, dim)


def _median(self: Array, dim: int, skip: bool) -> tuple[Array, Array]:
    """The lower middle of all numbers; `skip` false: where there is a NaN, the first."""
    order = np.argsort(self, dim, kind="stable")
    numbers = (self == self).sum(dim, keepdims=True)
    rank = np.maximum(numbers - 1, 0) // 2
    if not skip:
        rank = np.where(numbers < self.shape[dim], numbers, rank)
    at = np.take_along_axis(order, rank, dim)
    return np.take_along_axis(self, at, dim), at


_FLAT: Final = Rule("exact", TORCH, numbers="extremum",
                    values="normal ties nan integer wide halfway infinite")  # fmt: skip


def _medians(name: str, result: str, skip: bool) -> None:
    # Which of equal medians an index names is not stated.
    @spec(f"aclnn{name}Dim", Rule("exact", TORCH, values="normal nan wide"), along("*B A *N"),
          self=tensor(WHOLE, "f32"), dim=_AXIS, keepDim=flag(), valuesOut=out("self"),
          indicesOut=out("i64"))  # fmt: skip
    def median_dim(self: Array, dim: int, keepDim: bool) -> tuple[Array, Array]:
        value, at = _median(self, dim, skip)
        return (value, at) if keepDim else (value.squeeze(dim), at.squeeze(dim))

    flat: Callable[..., Array] = lambda self: _median(self.reshape(-1), 0, skip)[0].reshape(())
    spec(f"aclnn{name}", _FLAT, self=tensor("*S"), **{result: out("self")})(flat)


_medians("Median", "valuesOut", False)
_medians("NanMedian", "out", True)
