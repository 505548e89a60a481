"""Owns the names of loss reductions and the old size_average/reduce pair; refuses unknown names."""

from __future__ import annotations

from ...._compat.warn_once import warn
from ...._tensor.recording import unrepeatable
from ...._tensor.tensor import Tensor

_CODES = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """Gives aten's code: none 0, mean 1, sum 2; ValueError for any other name."""
    if reduction not in _CODES:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _CODES[reduction]


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """Reads the pair that torch had before `reduction`."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    name = "none" if not reduce else ("mean" if size_average else "sum")
    if emit_warning:
        unrepeatable()
        warn(
            f"size_average and reduce args will be deprecated, please use reduction='{name}' "
            "instead.",
        )
    return name


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """Reads the old pair as aten's code."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def resolve_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Gives `reduction`, or what the old pair says when it was given; refuses unknown names."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    get_enum(reduction)
    return reduction


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """Applies a reduction to elementwise losses."""
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean()
