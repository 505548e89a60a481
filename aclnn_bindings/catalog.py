"""Owns the signature catalogs of known CANN versions; refuses to answer for a version it lacks.

The data is `catalogs/*.json` (format: `catalogs/README.md`). Comparing two sets of declarations is
`compare.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from .abi import SCALARS, kind_of
from .errors import BindingError
from .lazy import LazyMapping
from .signature import Declarations, Direction, Field, Kind, Param, Signature, Struct

_DATA: Final = Path(__file__).parent / "catalogs"
_DIRECTIONS: Final = {"i": Direction.IN, "o": Direction.OUT, "b": Direction.INOUT}
_VERSIONS: Final = ("8.1.RC1", "2026-08")
# CANN releases whose interface a catalog was read from, or is known to equal.
_RELEASES: Final = ((re.compile(r"8\.1\.RC1(\.\d+)?$"), "8.1.RC1"),)


class UnknownVersionError(BindingError, LookupError):
    """There is no catalog of the version asked for."""


def versions() -> tuple[str, ...]:
    """Names of the catalogs, oldest first."""
    return _VERSIONS


def version_of(cann: str | None) -> str | None:
    """The catalog that describes CANN release `cann` exactly, or None."""
    if cann in _VERSIONS:
        return cann
    return next((name for pattern, name in _RELEASES if cann and pattern.match(cann)), None)


@cache
def load(version: str) -> Declarations:
    """Everything that CANN `version` declares; UnknownVersionError names the versions there are."""
    if version not in _VERSIONS:
        raise UnknownVersionError(
            f"catalog of CANN {version}: there is none; known are {', '.join(_VERSIONS)}"
        )
    return parse(_read(f"{version}.json"))


def parse(data: Mapping[str, Any]) -> Declarations:
    """Declarations from a catalog's JSON object; functions and structs are built when asked for."""
    rows = _Rows(data)
    return Declarations(
        functions=LazyMapping(data["functions"], rows.function),
        enums={name: row[1] for name, row in data["enums"].items()},
        constants=data["constants"],
        typedefs=data["typedefs"],
        structs=LazyMapping(data["structs"], rows.struct),
        sources=tuple(data["headers"]),
    )


def library_of(version: str, function: str) -> str:
    """The library that CANN `version` puts `function` in; `a.so|b.so` means either, "" unknown."""
    data = _read(f"{version}.json")
    row = data["functions"].get(function)
    return str(data["headers"].get(row[1], ("", ""))[1]) if row else ""


@cache
def sources(version: str) -> str:
    """Where the facts of catalog `version` were read."""
    named = _read(f"{version}.json")["sources"]
    return named if isinstance(named, str) else "; ".join(named.values())


@cache
def _read(name: str) -> dict[str, Any]:
    text = (_DATA / name).read_text(encoding="utf-8")
    return dict(json.loads(text))


class _Rows:
    """Builds declarations from the rows of one catalog; equal parameters are one object."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data
        self.deprecated = frozenset(data["deprecated"])
        self.params: dict[str, Param] = {}

    def function(self, name: str, row: list[str]) -> Signature:
        params = tuple(self.params.get(text) or self.param(text) for text in row[2:])
        return Signature(name, row[0], params, row[1], 0, True, name in self.deprecated)

    def param(self, text: str) -> Param:
        ctype, name, flow, listed = text.split("|")
        dtypes = tuple(self.data["dtype_sets"][int(listed)].split()) if listed else ()
        types = self.data["typedefs"], self.data["enums"], self.data["structs"]
        kind = kind_of(ctype, *types) or Kind.STRUCT
        made = Param(name, ctype, kind, _DIRECTIONS[flow[0]], flow.endswith("?"), dtypes)
        self.params[text] = made
        return made

    def struct(self, name: str, row: list[Any]) -> Struct:
        header, kind, size, align, fields = row
        ends = [*(field[2] for field in fields[1:]), size]
        members = tuple(self.field(f, end) for f, end in zip(fields, ends, strict=True))
        return Struct(name, size, align, members, header, 0, kind == "union")

    def field(self, row: list[Any], end: float) -> Field:
        """One member; a fraction of a byte in its offset or in its `end` marks a bit-field."""
        ctype, name, offset = row[:3]
        bits = 0 if offset == int(offset) and end == int(end) else int((end - offset) * 8)
        return Field(name, ctype, int(offset), (bits + 7) // 8 or self.width(ctype), bits)

    def width(self, ctype: str) -> int:
        """Bytes of a member's type (LP64), 0 when the catalog does not say what it is."""
        base, _, bounds = ctype.partition("[")
        base = base.replace("const ", "").strip()
        count = 1
        for bound in bounds.rstrip("]").split("][") if bounds else ():
            count *= int(bound) if bound.isdigit() else 0
        if "*" in ctype or "(" in ctype:
            return 8 * count
        if base in self.data["enums"]:
            return 4 * count
        if base in self.data["structs"]:
            return int(self.data["structs"][base][2]) * count
        target = self.data["typedefs"].get(base)
        if target and target.removeprefix("struct ").removeprefix("union ") != base:
            return self.width(target) * count
        return SCALARS.get(base, (0, False))[0] * count
