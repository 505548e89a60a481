"""Owns the floating-point formats: how far apart neighbours are; refuses to judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

# A numpy array of any shape and dtype.
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format: `digits` significant bits, the exponents of its normal numbers."""

    name: str
    digits: int
    lowest: int
    highest: int

    @property
    def unit(self) -> float:
        """Half the distance from 1 to the next number: the error of one rounding."""
        return 2.0**-self.digits

    @property
    def largest(self) -> float:
        return (2.0 - 2.0 ** (1 - self.digits)) * 2.0**self.highest


# IEEE 754-2019 table 3.5; bfloat16 is binary32 with 8 digits.
FORMATS: Final = {
    f.name: f
    for f in (
        Format("float16", 11, -14, 15),
        Format("bfloat16", 8, -126, 127),
        Format("float32", 24, -126, 127),
        Format("float64", 53, -1022, 1023),
    )
}
_PARTS: Final = {"complex64": "float32", "complex128": "float64"}


def format_of(dtype: str) -> Format | None:
    """The format of a dtype, of its parts where it is complex; None for integers and bool."""
    return FORMATS.get(_PARTS.get(dtype, dtype))


def spacing(values: Array, form: Format) -> Array:
    """The distance between neighbours of `form` at each value (float64 array); subnormals too."""
    _, exponents = np.frexp(values)
    return np.ldexp(1.0, np.maximum(exponents - 1, form.lowest) - (form.digits - 1))


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
    if kind == "f" or array.dtype.name == "bfloat16":
        return array.astype(np.float64)
    return array


def rounded(golden: Array, dtype: str) -> Array:
    """`golden` rounded once to `dtype`; overflow gives infinity, as the format says."""
    with np.errstate(over="ignore", invalid="ignore"):
        return golden.astype(numpy_dtype(dtype))
