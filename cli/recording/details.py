"""Reads what parameters were, from the bytes that a recording keeps of them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .values import Array, RecordedScalar, RecordedTensor, Unknown

ABSENT, UNKNOWN = 0xFFFFFFFF, 0xFFFFFFFE
# Codes of `aclnn_bindings/layers/table.py`.
TENSOR, TENSOR_LIST, SCALAR, SCALAR_LIST, INTS, BOOLS, FLOATS, EXECUTOR = range(8)
INTEGER, REAL, STRING, HANDLE, POINTER = range(8, 13)
_ARRAYS: Final = {INTS: ("int", "q", 8), BOOLS: ("bool", "?", 1), FLOATS: ("float", "f", 4)}


@dataclass(frozen=True, slots=True)
class RecordedParameter:
    """One parameter as the recording's table of functions has it."""

    name: str
    code: int
    type: str


class Details:
    """Geometries of one process, and the reading of details that refer to them."""

    def __init__(self, dtypes: Mapping[int, str]) -> None:
        self._dtypes = dtypes
        self._tensors: dict[int, RecordedTensor] = {}

    def add_geometry(self, number: int, data: bytes) -> None:
        dtype, form, offset = struct.unpack_from("<iiq", data)
        at, parts = 16, []
        for _ in range(3):
            (count,) = struct.unpack_from("<I", data, at)
            parts.append(struct.unpack_from(f"<{count}q", data, at + 4))
            at += 4 + 8 * count
        self._tensors[number] = RecordedTensor(
            parts[0], parts[1], offset, parts[2], self._dtypes.get(dtype, str(dtype)), form
        )

    def read(self, data: bytes, parameters: Sequence[RecordedParameter]) -> dict[str, Any]:
        """The values of `parameters`, whose bytes follow each other in `data`."""
        reader = _Reader(data, self._tensors, self._dtypes)
        return {p.name: reader.value(p) for p in parameters}


class _Reader:
    def __init__(
        self, data: bytes, tensors: Mapping[int, RecordedTensor], dtypes: Mapping[int, str]
    ) -> None:
        self._data, self._at = data, 0
        self._tensors, self._dtypes = tensors, dtypes

    def _take(self, form: str) -> Any:
        (value,) = struct.unpack_from(f"<{form}", self._data, self._at)
        self._at += struct.calcsize(f"<{form}")
        return value

    def _bytes(self, count: int) -> bytes:
        chunk = self._data[self._at : self._at + count]
        self._at += count
        return chunk

    def value(self, parameter: RecordedParameter) -> Any:
        code = parameter.code
        if code == TENSOR:
            return self._tensor()
        if code in (TENSOR_LIST, SCALAR_LIST):
            return self._list(code)
        if code == SCALAR:
            return self._scalar()
        if code in _ARRAYS:
            return self._array(*_ARRAYS[code])
        if code == STRING:
            return self._text()
        if code == REAL:
            return self._take("d")
        if code == INTEGER:
            return self._take("Q" if parameter.type.startswith("u") else "q")
        return Unknown() if self._take("Q") else None

    def _tensor(self) -> RecordedTensor | Unknown | None:
        number = self._take("I")
        return None if number == ABSENT else self._tensors.get(number, Unknown())

    def _scalar(self) -> RecordedScalar | Unknown | None:
        dtype, count = self._take("i"), self._take("I")
        if count in (ABSENT, UNKNOWN):
            return None if count == ABSENT else Unknown()
        return RecordedScalar(self._dtypes.get(dtype, str(dtype)), self._bytes(count))

    def _list(self, code: int) -> tuple[Any, ...] | Unknown | None:
        count = self._take("I")
        if count in (ABSENT, UNKNOWN):
            return None if count == ABSENT else Unknown()
        take = self._tensor if code == TENSOR_LIST else self._scalar
        return tuple(take() for _ in range(count))

    def _array(self, kind: str, form: str, size: int) -> Array | Unknown | None:
        count = self._take("I")
        if count in (ABSENT, UNKNOWN):
            return None if count == ABSENT else Unknown()
        data = self._bytes(count)
        return Array(kind, struct.unpack(f"<{count // size}{form}", data))

    def _text(self) -> str | None:
        count = self._take("I")
        return None if count == ABSENT else self._bytes(count).decode("utf-8", "replace")
