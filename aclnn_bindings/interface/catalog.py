"""Owns the signature catalogs of known CANN versions; refuses to answer for a version it lacks.

The data is `catalogs/*.json` and `catalogs/releases/*.json` (format: `catalogs/README.md`), or in
the user's folder: `$XDG_DATA_HOME/mindtorch-npu/catalogs`, by default below `~/.local/share`. A
file, and the base that it names, is all that a version needs. Comparing two sets of declarations
is `compare.py`, writing one `compact.py`, storing one as a difference `releases.py`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from ..errors import BindingError
from . import releases
from .abi import SCALARS, kind_of
from .lazy import LazyMapping
from .signature import Declarations, Direction, Field, Kind, Param, Signature, Struct
from .user_dir import of_user

_DATA: Final = Path(__file__).parents[1] / "catalogs"
_DIRECTIONS: Final = {"i": Direction.IN, "o": Direction.OUT, "b": Direction.INOUT}
# The line that says which CANN a catalog is of; it stands among the first.
_OF: Final = re.compile(r'^"cann":"([^"]*)"', re.MULTILINE)
# Facts of operator documents stand beside the catalogs and are none.
_SPECS: Final = "op_specs.json"


class UnknownVersionError(BindingError, LookupError):
    """There is no catalog of the version asked for."""


class CatalogError(BindingError, ValueError):
    """A catalog's file is not one, or stands in two folders; the message names it."""


def user_folder() -> Path:
    """Where a user's own catalogs are read from and written to."""
    return of_user("XDG_DATA_HOME", ".local/share") / "catalogs"


@cache
def _files() -> dict[str, Path]:
    """Name → file of every catalog, oldest CANN first."""
    files: dict[str, Path] = {}
    for folder in (_DATA, _DATA / "releases", user_folder()):
        for path in sorted(folder.glob("*.json")) if os.path.isdir(folder) else ():
            if path.name == _SPECS:
                continue
            if path.stem in files:
                raise CatalogError(
                    f"catalog {path.stem}: it is in {files[path.stem]} and in {path}; remove one"
                )
            files[path.stem] = path
    return dict(sorted(files.items(), key=lambda item: _age(item[1])))


def _age(path: Path) -> tuple[list[int], bool, str]:
    """Sorts catalogs by the release that they say, a candidate (RC) before its release."""
    with path.open(encoding="utf-8") as file:
        line = _OF.search(file.read(4096))
    if line is None:
        raise CatalogError(f'{path}: no catalog: its first lines have no "cann"')
    numbers = [int(n) for n in re.findall(r"\d+", line[1].partition("RC")[0])[:3]]
    return numbers, "RC" not in line[1], path.stem


def versions() -> tuple[str, ...]:
    """Names of the catalogs, oldest first."""
    return tuple(_files())


def forget() -> None:
    """Look for catalogs again: a file was added."""
    for known in (_files, read, load, sources):
        known.cache_clear()


def version_of(cann: str | None) -> str | None:
    """The catalog that describes CANN release `cann`, or None.

    A third or fourth number of a release mends kernels and keeps the interface.
    """
    if not cann or cann in versions():
        return cann or None
    stems = {n: re.escape(n.removesuffix(".0")) for n in versions()}
    return next((n for n, stem in stems.items() if re.fullmatch(stem + r"(\.\d+)+", cann)), None)


@cache
def load(version: str) -> Declarations:
    """Everything that CANN `version` declares; UnknownVersionError names the versions there are."""
    return parse(read(version))


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
    data = read(version)
    row = data["functions"].get(function)
    return str(data["headers"].get(row[1], ("", ""))[1]) if row else ""


@cache
def sources(version: str) -> str:
    """Where the facts of catalog `version` were read."""
    named = read(version)["sources"]
    return named if isinstance(named, str) else "; ".join(named.values())


@cache
def read(version: str) -> dict[str, Any]:
    """The JSON object of catalog `version`, whole also where it is stored as a difference."""
    path = _files().get(version)
    if path is None:
        raise UnknownVersionError(
            f"catalog of CANN {version}: there is none; known are {', '.join(versions())}; "
            "`mindtorch-npu catalog make` writes one from an install"
        )
    try:
        data = releases.unpack(json.loads(path.read_text(encoding="utf-8")))
        if "base" in data:
            return releases.expand(read(data["base"]), data)
        return releases.unfold(data)
    except (KeyError, ValueError) as error:
        raise CatalogError(f"{path}: {error}; write it again or remove it") from None


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
        param = Param(name, ctype, kind, _DIRECTIONS[flow[0]], flow.endswith("?"), dtypes)
        self.params[text] = param
        return param

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
