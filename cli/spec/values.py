"""Owns what a drawn call consists of, before any library makes it: plain data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

# Short names of dtypes in declarations.
DTYPES: Final = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i4": "int4",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "bool": "bool", "c64": "complex64", "c128": "complex128",
    "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "e8m0": "float8_e8m0fnu",
    "e2m1": "float4_e2m1fn",
}  # fmt: skip
_SHORT: Final = {long: short for short, long in DTYPES.items()}


def short_name(dtype: str) -> str:
    """The short name of a dtype."""
    return _SHORT.get(dtype, dtype)


class Elements:
    """Elements that are made when they are first read: a design needs shapes alone."""

    __slots__ = ("_make", "_whole")

    def __init__(self, make: Callable[[], Any], whole: Any = None) -> None:
        self._make, self._whole = make, whole

    def __call__(self) -> Any:
        if self._whole is None:
            self._whole = self._make()
        return self._whole


@dataclass(frozen=True, slots=True)
class TensorValue:
    """A tensor of a call: shape, dtype, the range it is drawn from, or its elements.

    `fill` false: its elements are drawn from the range alone, whatever values are under test.
    `fixed`: no size decides its shape.
    """

    shape: tuple[int, ...]
    dtype: str
    low: float = -2.0
    high: float = 2.0
    values: Elements | None = None
    fill: bool = False
    layout: str = "contiguous"
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class ScalarValue:
    """A number that is passed as an aclScalar: its value, and the name of what has its dtype."""

    value: Any
    dtype: str = ""
