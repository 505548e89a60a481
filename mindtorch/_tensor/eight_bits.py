"""Owns what torch makes of numbers that floats of eight bits do not hold, and pairs of halves.

As torch/headeronly/util/Float8_e4m3fn.h and Float8_e8m0fnu.h convert float32: e4m3fn keeps to its
largest number, 448; e8m0fnu, a power of two, has no sign, and its smallest for zero. ml_dtypes
gives NaN for these.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from .._compat.warn_once import warn_once
from .types import Array

_E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
_E8M0 = np.dtype(ml_dtypes.float8_e8m0fnu)


def fitting(values: Array, dtype: np.dtype[Any]) -> Array:
    """`values` as numpy may convert them to `dtype`."""
    if values.dtype.names or dtype.names:
        return values if values.dtype == dtype else _of_pairs(values, dtype)
    if dtype.kind != "V" or dtype.itemsize != 1 or values.dtype == dtype:
        return values
    if dtype not in (_E4M3, _E8M0):
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        single: Array = values.astype(np.float32, copy=False)
    if dtype == _E4M3:
        return np.clip(single, -448, 448)
    return np.maximum(np.abs(single), np.float32(2.0**-127))


def _of_pairs(values: Array, dtype: np.dtype[Any]) -> Array:
    """Complex numbers of pairs of halves, or pairs of other numbers."""
    if values.dtype.names:
        return values["real"].astype(np.complex64) + 1j * values["imag"].astype(np.complex64)
    warn_once("ComplexHalf support is experimental and many operators don't support it yet.")
    pairs = np.empty(values.shape, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        pairs["real"] = values.real
        pairs["imag"] = values.imag if values.dtype.kind == "c" else 0
    return pairs


def readable(values: Array) -> Array:
    """Pairs of halves as complex64, other values as they are."""
    return _of_pairs(values, values.dtype) if values.dtype.names else values
