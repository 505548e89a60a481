"""Owns arrays of the floating-point formats: how far apart neighbours are; refuses to judge."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np

from .formats import FORMATS, Format

# A numpy array of any shape and dtype.
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


# dtype → its name, which numpy composes anew each time.
_NAMES: dict[np.dtype[Any], str] = {}
_PARTS: Final = {"complex64": "float32", "complex128": "float64"}


def name_of(array: Array) -> str:
    """The name of an array's dtype."""
    name = _NAMES.get(array.dtype)
    if name is None:
        name = _NAMES[array.dtype] = array.dtype.name
    return name


def format_of(dtype: str) -> Format | None:
    """The format of a dtype, of its parts where it is complex; None for integers and bool."""
    return FORMATS.get(_PARTS.get(dtype, dtype))


def spacing(values: Array, form: Format) -> Array:
    """The distance between neighbours of `form` at each value (float64 array); subnormals too."""
    _, exponents = np.frexp(values)
    return np.ldexp(1.0, np.maximum(exponents - 1, form.lowest) - (form.digits - 1))


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """numpy's dtype of that name, those of ml_dtypes included."""
    if name.startswith(("bfloat16", "float8", "float4", "int4", "uint4")):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)


def wide(array: Array) -> Array:
    """Floats as float64, complex numbers as pairs of float64 in a last dimension; else as it is."""
    kind = array.dtype.kind
    if kind == "c":
        return np.stack([array.real, array.imag], -1).astype(np.float64)
    if kind == "f" or name_of(array) == "bfloat16":
        return array.astype(np.float64)
    return array


def rounded(golden: Array, dtype: str) -> Array:
    """`golden` rounded once to `dtype`; overflow gives infinity, as the format says."""
    with np.errstate(over="ignore", invalid="ignore"):
        return golden.astype(numpy_dtype(dtype))
