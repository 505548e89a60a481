"""Owns the element types of ACL: width, encoding of a value, enum member; refuses unknown names."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ..errors import ArgumentError
from .signature import Declarations

Number = bool | int | float | complex


@dataclass(frozen=True, slots=True)
class DType:
    """An element type: `bits` wide, `code` of `struct` and `numpy` name where it has them."""

    name: str
    bits: int
    code: str = ""
    numpy: str = ""

    def bytes_for(self, elements: int) -> int:
        """Bytes that `elements` packed elements take."""
        return (elements * self.bits + 7) // 8


_ROWS: Final = (
    DType("FLOAT", 32, "f", "float32"),
    DType("FLOAT16", 16, "e", "float16"),
    DType("DOUBLE", 64, "d", "float64"),
    DType("BFLOAT16", 16, "", "bfloat16"),
    DType("INT8", 8, "b", "int8"),
    DType("INT16", 16, "h", "int16"),
    DType("INT32", 32, "i", "int32"),
    DType("INT64", 64, "q", "int64"),
    DType("UINT8", 8, "B", "uint8"),
    DType("UINT16", 16, "H", "uint16"),
    DType("UINT32", 32, "I", "uint32"),
    DType("UINT64", 64, "Q", "uint64"),
    DType("BOOL", 8, "?", "bool"),
    DType("COMPLEX32", 32, "ee"),
    DType("COMPLEX64", 64, "ff", "complex64"),
    DType("COMPLEX128", 128, "dd", "complex128"),
    DType("HIFLOAT8", 8),
    DType("FLOAT8_E5M2", 8, "", "float8_e5m2"),
    DType("FLOAT8_E4M3FN", 8, "", "float8_e4m3fn"),
    DType("FLOAT8_E8M0", 8, "", "float8_e8m0fnu"),
    DType("FLOAT4_E2M1", 4),
    DType("FLOAT4_E1M2", 4),
    DType("INT4", 4),
    DType("UINT1", 1),
)
DTYPES: Final[Mapping[str, DType]] = {row.name: row for row in _ROWS}
BY_NUMPY: Final[Mapping[str, DType]] = {row.numpy: row for row in _ROWS if row.numpy}


def dtype(name: str) -> DType:
    """The element type called `name`, with or without `ACL_`; ArgumentError for an unknown one."""
    row = DTYPES.get(name) or DTYPES.get(canonical(name))
    if row is None:
        raise ArgumentError(f"dtype {name!r}: expected one of {', '.join(DTYPES)}")
    return row


def canonical(name: str) -> str:
    """ACL's name without its prefix; the header says ACL_BF16 where documents say BFLOAT16."""
    short = name.removeprefix("ACL_").upper()
    return "BFLOAT16" if short == "BF16" else short


def enum_values(declarations: Declarations, enum: str, prefix: str) -> dict[str, int]:
    """Name without prefix → value of an enum, as the install's headers number it."""
    members = declarations.enums.get(enum, {})
    values = {name.removeprefix(prefix): value for name, value in members.items()}
    if "BF16" in values:
        values["BFLOAT16"] = values["BF16"]
    return values


def encode(value: Number, name: str) -> bytes:
    """The bytes of one scalar of dtype `name`; ArgumentError when the value is not one of its."""
    row = dtype(name)
    try:
        if row.name == "BFLOAT16":
            return _bfloat16(float(value))  # type: ignore[arg-type]
        if len(row.code) == 2:
            number = complex(value)
            return struct.pack("<" + row.code, number.real, number.imag)
        if row.code in "fed" and row.code:
            return struct.pack("<" + row.code, float(value))  # type: ignore[arg-type]
        if row.code == "?":
            return struct.pack("<?", bool(value))
        if row.code and isinstance(value, int):
            return struct.pack("<" + row.code, int(value))
    except (TypeError, OverflowError, struct.error) as error:
        raise ArgumentError(f"scalar {value!r} as {row.name}: {error}") from None
    raise ArgumentError(
        f"scalar {value!r} as {row.name}: it has no such scalar; give another dtype"
    )


def _bfloat16(value: float) -> bytes:
    """Rounds to nearest even from float32; a NaN stays one."""
    try:
        bits = int.from_bytes(struct.pack("<f", value), "little")
    except OverflowError:
        bits = 0x7F800000 | (0x80000000 if value < 0 else 0)
    if value != value:
        return b"\xc0\x7f"
    bits += 0x7FFF + ((bits >> 16) & 1)
    return ((bits >> 16) & 0xFFFF).to_bytes(2, "little")


def natural_dtype(value: Number) -> str:
    """The dtype of a Python number in a scalar argument, as CANN's PyTorch adapter passes it."""
    if isinstance(value, bool):
        return "BOOL"
    if isinstance(value, int):
        return "INT64"
    return "COMPLEX128" if isinstance(value, complex) else "DOUBLE"
