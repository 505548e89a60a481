"""Owns numbers as the ABI passes them: range checks, bits, results; refuses structs and varargs."""

from __future__ import annotations

import operator
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..errors import ArgumentError, UnsupportedSignatureError
from ..interface.abi import SCALARS, unqualified
from ..interface.signature import Kind, Param
from .native import ffi, lib, text_of

_MASK: Final = (1 << 64) - 1
_BITS: Final[Mapping[Kind, tuple[int, bool]]] = {
    Kind.INT8: (8, True),
    Kind.INT16: (16, True),
    Kind.INT32: (32, True),
    Kind.INT64: (64, True),
    Kind.UINT8: (8, False),
    Kind.UINT16: (16, False),
    Kind.UINT32: (32, False),
    Kind.UINT64: (64, False),
    Kind.SIZE: (64, False),
    Kind.ENUM: (32, True),
}
INTEGERS: Final = frozenset(_BITS) - {Kind.ENUM}
FLOATS: Final = frozenset({Kind.FLOAT, Kind.DOUBLE})


def integer(param: Param, value: Any) -> int:
    """A by-value integer as 64 bits, sign extended; ArgumentError when out of its type's range."""
    bits, signed = _BITS[param.kind]
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(
            f"{param.name}: expected an integer ({param.type}), got {value!r}"
        ) from None
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if not low <= number <= high:
        raise ArgumentError(
            f"{param.name}: {number} is out of range of {param.type} ({low} to {high})"
        )
    return number & _MASK


def boolean(param: Param, value: Any) -> int:
    """A `bool`: Python's or numpy's, or 0 and 1."""
    if value is True or value is False:
        return int(value)
    if type(value).__name__ in ("bool", "bool_") or (isinstance(value, int) and value in (0, 1)):
        return int(value)
    raise ArgumentError(f"{param.name}: expected a bool, got {value!r}")


def real(param: Param, value: Any) -> int:
    """The bits of a `float` (in the low half) or `double`."""
    code = "<f" if param.kind is Kind.FLOAT else "<d"
    try:
        return int.from_bytes(struct.pack(code, float(value)), "little")
    except (TypeError, ValueError):
        problem = f"expected a number ({param.type})"
    except OverflowError:
        problem = f"too large for {param.type}"
    raise ArgumentError(f"{param.name}: {problem}, got {value!r}")


def enumerator(param: Param, value: Any, enums: Mapping[str, Mapping[str, int]]) -> int:
    """An enum by number or by name, with or without its prefix, such as FLOAT16."""
    if not isinstance(value, str):
        return integer(param, value)
    members = enums.get(unqualified(param.type).removeprefix("enum "), {})
    target = "BF16" if value == "BFLOAT16" else value
    for name in (target, f"ACL_{target}"):
        if name in members:
            return members[name] & _MASK
    ends = [number for name, number in members.items() if name.endswith(f"_{target}")]
    if len(ends) == 1:
        return ends[0] & _MASK
    raise ArgumentError(
        f"{param.name}: {value!r} is no member of {param.type}; "
        f"expected one of {', '.join(members) or 'its numbers'}"
    )


def handle(param: Param, value: Any) -> int:
    """An opaque handle: None, a number, or an object that has one (`Stream`, `Event`, ...)."""
    if value is None:
        return 0
    number = getattr(value, "handle", value)
    try:
        return operator.index(number) & _MASK
    except TypeError:
        raise ArgumentError(
            f"{param.name}: expected a handle ({param.type}), got {value!r}"
        ) from None


def call(function: int, arguments: Sequence[tuple[bool, int]], returns: str = "int") -> int:
    """Call a C function by address with (is_float, bits) words; the bits that it returns."""
    count = len(arguments)
    flags = ffi.new("uint8_t[]", [int(is_float) for is_float, _ in arguments])
    words = ffi.new("uint64_t[]", [bits for _, bits in arguments])
    result = ffi.new("uint64_t *")
    kind = {"float": lib.MT_RESULT_FLOAT, "double": lib.MT_RESULT_DOUBLE}.get(returns)
    if lib.mt_call(
        function, flags, words, count, lib.MT_RESULT_INTEGER if kind is None else kind, result
    ):
        raise UnsupportedSignatureError(
            f"call with {count} arguments: more than registers and stack words hold"
        )
    return int(result[0])


def decode(returns: str, bits: int, typedefs: Mapping[str, str]) -> Any:
    """The value of a result of C type `returns`: number, text, address, or None for void."""
    ctype = unqualified(returns)
    for _ in range(32):
        if ctype == "void":
            return None
        if ctype in ("const char *", "char *"):
            return text_of(ffi.cast("char *", bits))
        if ctype.endswith("*"):
            return bits
        if ctype in ("float", "double"):
            data = bits.to_bytes(8, "little")
            return (
                struct.unpack("<f", data[:4])[0]
                if ctype == "float"
                else struct.unpack("<d", data)[0]
            )
        if ctype in SCALARS:
            return _integer_result(bits, *SCALARS[ctype])
        ctype = unqualified(typedefs.get(ctype, "int"))
    return bits


def _integer_result(bits: int, size: int, signed: bool) -> int:
    """The low `size` bytes; the ABI leaves the rest of the register unspecified."""
    bits &= (1 << size * 8) - 1
    return bits - (1 << size * 8) if signed and bits >> (size * 8 - 1) else bits
