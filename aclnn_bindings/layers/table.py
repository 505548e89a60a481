"""Writes an install's functions as data for the interceptor; refuses to know what any of them does.

For each exported function: its parameters, where each is passed on this machine, and what it is.
Layout: `native/table.h`. Registers: System V ABI, AMD64 supplement, 3.2.3; Procedure Call Standard
for the Arm 64-bit Architecture, 6.8.2. A function that takes a struct by value or a variable list
has no known parameters: it is forwarded, and recorded by name.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ..interface.abi import SCALARS, kind_of, unqualified
from ..interface.signature import WORKSPACE_SUFFIX, Declarations, Direction, Kind, Param, Signature

MAGIC: Final = 0x314C4241544C434D  # "MCLTABL1"
_NONE: Final = 0xFFFFFFFF
_REGISTERS: Final[Mapping[str, int]] = {"x86_64": 6, "aarch64": 8}
_VECTORS: Final = 8

# The codes of `native/table.h`.
INTEGER, REAL, STRING, HANDLE, POINTER = 8, 9, 10, 11, 12
CODES: Final[Mapping[Kind, int]] = {
    Kind.TENSOR: 0, Kind.TENSOR_LIST: 1, Kind.SCALAR: 2, Kind.SCALAR_LIST: 3, Kind.INT_ARRAY: 4,
    Kind.BOOL_ARRAY: 5, Kind.FLOAT_ARRAY: 6, Kind.EXECUTOR: 7, Kind.FLOAT: REAL,
    Kind.DOUBLE: REAL, Kind.STRING: STRING, Kind.HANDLE: HANDLE, Kind.POINTER: POINTER,
    Kind.FUNCTION: POINTER,
}  # fmt: skip
_WIDTHS: Final[Mapping[Kind, tuple[int, bool]]] = {
    Kind.BOOL: (1, False), Kind.INT8: (1, True), Kind.UINT8: (1, False), Kind.INT16: (2, True),
    Kind.UINT16: (2, False), Kind.INT32: (4, True), Kind.UINT32: (4, False), Kind.ENUM: (4, True),
    Kind.FLOAT: (4, False),
}  # fmt: skip
_THINGS: Final = {"aclrtStream": 1, "aclrtEvent": 2, "aclrtContext": 3}
_ACCESS: Final = {Direction.IN: 1, Direction.OUT: 2, Direction.INOUT: 3}
_NOTHING, _STATUS, _WORD, _OTHER = range(4)


@dataclass(frozen=True, slots=True)
class InterposedFunction:
    """One row: `signature` is None where nothing declares the function."""

    name: str
    signature: Signature | None

    @property
    def known(self) -> bool:
        """Whether its arguments can be read: every parameter is a word or a floating number."""
        kinds = {p.kind for p in self.signature.params} if self.signature else {Kind.VARARGS}
        return not kinds & {Kind.STRUCT, Kind.VARARGS, Kind.VOID}


def functions(names: Iterable[str], declared: Declarations | None) -> list[InterposedFunction]:
    """The rows for exported `names`, in the order of their numbers."""
    known: Mapping[str, Signature] = declared.functions if declared else {}
    return [InterposedFunction(name, known.get(name)) for name in sorted(set(names))]


def write(rows: list[InterposedFunction], declared: Declarations | None, machine: str) -> bytes:
    """The table's file for `machine`, `x86_64` or `aarch64`."""
    numbers = {row.name: i for i, row in enumerate(rows)}
    strings, parameters, packed = bytearray(), bytearray(), bytearray()
    for row in rows:
        passed = _parameters(row, declared, machine) if declared and row.known else _Passed()
        packed += struct.pack("<IIBBBBI", len(strings), len(parameters) // 8, len(passed.rows),
                              _returns(row, declared), passed.stack_words, declared is not None
                              and row.known, _partner(row, numbers))  # fmt: skip
        parameters += b"".join(passed.rows)
        strings += row.name.encode() + b"\0"
    head = struct.pack("<QII", MAGIC, len(rows), len(parameters) // 8)
    return bytes(head + packed + parameters + strings)


def _partner(row: InterposedFunction, numbers: Mapping[str, int]) -> int:
    """The other phase; only where phase 1 is a declared `…GetWorkspaceSize` of two phases."""
    if not row.known:
        return _NONE
    if row.name.endswith(WORKSPACE_SUFFIX):
        return numbers.get(row.name.removesuffix(WORKSPACE_SUFFIX), _NONE)
    return numbers.get(row.name + WORKSPACE_SUFFIX, _NONE)


@dataclass(slots=True)
class _Passed:
    """Parameters while they are dealt to registers and to the stack."""

    rows: list[bytes]
    integers: int = 0
    vectors: int = 0
    stack_words: int = 0

    def __init__(self) -> None:
        self.rows = []
        self.integers = self.vectors = self.stack_words = 0

    def place(self, real: bool, registers: int) -> tuple[int, int]:
        """(0, register), (1, vector register) or (2, stack word) for the next parameter."""
        if real and self.vectors < _VECTORS:
            self.vectors += 1
            return 1, self.vectors - 1
        if not real and self.integers < registers:
            self.integers += 1
            return 0, self.integers - 1
        self.stack_words += 1
        return 2, self.stack_words - 1


def _parameters(row: InterposedFunction, declared: Declarations, machine: str) -> _Passed:
    assert row.signature is not None
    passed = _Passed()
    for param in row.signature.params:
        code = code_of(row.name, param)
        width, signed = _WIDTHS.get(param.kind, (8, param.kind is Kind.INT64))
        place, index = passed.place(code == REAL, _REGISTERS[machine])
        out = out_width(param, declared) if code == POINTER else 0
        thing = _THINGS.get(unqualified(param.type), 0)
        passed.rows.append(
            bytes((code, place, index, width, signed, out, thing, _ACCESS[param.direction]))
        )
    return passed


def code_of(function: str, param: Param) -> int:
    """What the parameter is, as `native/table.h` numbers it."""
    code = CODES.get(param.kind, INTEGER)
    return POINTER if code == STRING and not _is_input_text(function, param) else code


def _is_input_text(function: str, param: Param) -> bool:
    """A buffer for text is no text yet; phase 1 takes its texts as `char *` too."""
    return "const" in param.type or function.endswith(WORKSPACE_SUFFIX)


def out_width(param: Param, declared: Declarations) -> int:
    """Bytes that a call writes through the pointer: one number or handle; 0 for anything else."""
    ctype = unqualified(param.type)
    if param.kind is not Kind.POINTER or not ctype.endswith("*") or ctype.startswith("const "):
        return 0
    pointee = ctype[:-1].strip()
    kind = kind_of(pointee, declared.typedefs, declared.enums, declared.structs)
    if kind in (None, Kind.STRUCT, Kind.VOID, Kind.VARARGS, Kind.FUNCTION) or pointee == "char":
        return 0
    if pointee in SCALARS:
        return min(SCALARS[pointee][0], 8)
    return _WIDTHS.get(kind, (8, False))[0] if kind else 0


def _returns(row: InterposedFunction, declared: Declarations | None) -> int:
    if row.signature is None or declared is None:
        return _WORD
    types = declared.typedefs, declared.enums, declared.structs
    kind = kind_of(row.signature.returns, *types)
    if row.signature.returns == "void":
        return _NOTHING
    if kind in (Kind.FLOAT, Kind.DOUBLE, Kind.STRUCT):
        return _OTHER
    return _STATUS if kind in (Kind.INT32, Kind.ENUM) else _WORD


def returns_word(row: InterposedFunction, declared: Declarations | None) -> bool:
    """Whether what the function returns is recorded among its words."""
    return _returns(row, declared) == _WORD
