"""Owns parsed declarations as compact rows, decoded one by one when they are asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, overload

from ..signature import Declarations, Direction, Field, Kind, Param, Signature, Skipped, Struct

T = TypeVar("T")
# JSON's edge: a row is a list of JSON values, or the text of one.
Row = Any

_KINDS = list(Kind)
_DIRECTIONS = list(Direction)
KIND_INDEX = {kind: index for index, kind in enumerate(_KINDS)}
DIRECTION_INDEX = {direction: index for index, direction in enumerate(_DIRECTIONS)}
EXPORTED, DEPRECATED = 1, 2
SECTIONS = ("functions", "enums", "constants", "typedefs", "structs")


@dataclass(slots=True)
class Image:
    """All rows of a set of headers: `named` by section and name, parameters shared by number."""

    headers: list[str] = field(default_factory=list)
    params: list[Row] = field(default_factory=list)
    named: dict[str, dict[str, Row]] = field(default_factory=lambda: {s: {} for s in SECTIONS})
    skipped: list[Row] = field(default_factory=list)


def _plain(row: Row) -> Row:
    return json.loads(row) if isinstance(row, str) else row


class DecodedTable(Mapping[str, T], Generic[T]):
    """A mapping that decodes a row at its first use and keeps the result."""

    def __init__(self, rows: Mapping[str, Row], decode: Callable[[str, Row], T]) -> None:
        self._rows, self._decode = rows, decode
        self._made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        entry = self._made.get(name)
        if entry is None:
            entry = self._made[name] = self._decode(name, _plain(self._rows[name]))
        return entry

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<{len(self)} declarations>"


class Rows(Sequence[T], Generic[T]):
    """A sequence that decodes a row when it is read."""

    def __init__(self, rows: Sequence[Row], decode: Callable[[Row], T]) -> None:
        self._rows, self._decode = rows, decode

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self._decode(_plain(row)) for row in self._rows[index]]
        return self._decode(_plain(self._rows[index]))

    def __len__(self) -> int:
        return len(self._rows)


class _Decoder:
    """Makes the dataclasses of one image from its rows."""

    def __init__(self, image: Image) -> None:
        self.headers, self.rows = image.headers, image.params
        self.params: dict[int, Param] = {}

    def param(self, index: int) -> Param:
        param = self.params.get(index)
        if param is None:
            ctype, name, kind, direction, optional, dtypes = _plain(self.rows[index])
            param = self.params[index] = Param(
                name, ctype, _KINDS[kind], _DIRECTIONS[direction], bool(optional), tuple(dtypes)
            )
        return param

    def function(self, name: str, row: Row) -> Signature:
        returns, header, line, flags, numbers = row
        params = tuple(self.param(n) for n in numbers)
        exported, deprecated = bool(flags & EXPORTED), bool(flags & DEPRECATED)
        return Signature(name, returns, params, self.headers[header], line, exported, deprecated)

    def struct(self, name: str, row: Row) -> Struct:
        size, align, header, line, union, fields = row
        members = tuple(Field(*f) for f in fields)
        return Struct(name, size, align, members, self.headers[header], line, bool(union))

    def skipped(self, row: Row) -> Skipped:
        header, line, text, reason = row
        return Skipped(self.headers[header], line, text, reason)


def declarations(image: Image) -> Declarations:
    """The declarations that an image holds; nothing is decoded yet."""
    decoder, named = _Decoder(image), image.named
    return Declarations(
        functions=DecodedTable(named["functions"], decoder.function),
        enums=DecodedTable(named["enums"], lambda _, row: dict(row)),
        constants=DecodedTable(named["constants"], lambda _, row: row[0]),
        typedefs=DecodedTable(named["typedefs"], lambda _, row: row[0]),
        structs=DecodedTable(named["structs"], decoder.struct),
        skipped=Rows(image.skipped, decoder.skipped),
        sources=tuple(image.headers),
    )
