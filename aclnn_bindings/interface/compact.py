"""Owns writing declarations as a catalog (format: `catalogs/README.md`); the inverse of `catalog`.

What headers do not say stays open: dtype lists are those that their comments state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from . import atomic_write, releases
from .signature import Declarations, Direction, Param, Signature, Struct

_FLOWS: Final = {Direction.IN: "i", Direction.OUT: "o", Direction.INOUT: "b"}


def compact(
    declared: Declarations, version: str, cann: str, source: str, libraries: Mapping[str, str]
) -> dict[str, Any]:
    """The catalog `version` of CANN release `cann` as a JSON object.

    `source` says where the declarations were read; `libraries` are those of functions, by name.
    """
    sets: dict[str, int] = {}
    functions = {n: _function(f, sets) for n, f in sorted(declared.functions.items())}
    return {
        "version": version,
        "cann": cann,
        "sources": source,
        "dtype_sets": list(sets),
        "headers": _headers(declared, libraries),
        "enums": {n: ["", dict(members)] for n, members in sorted(declared.enums.items())},
        "constants": {n: v for n, v in sorted(declared.constants.items()) if isinstance(v, int)},
        "typedefs": dict(sorted(declared.typedefs.items())),
        "structs": {n: _struct(s) for n, s in sorted(declared.structs.items())},
        "deprecated": sorted(n for n, f in declared.functions.items() if f.deprecated),
        "generated": [],
        "functions": functions,
    }


def _headers(declared: Declarations, libraries: Mapping[str, str]) -> dict[str, list[str]]:
    """header → [group, the library that exports most of its functions]."""
    votes: dict[str, dict[str, int]] = {header: {} for header in declared.sources}
    for name, function in declared.functions.items():
        count = votes.setdefault(function.header, {})
        if library := libraries.get(name):
            count[library] = count.get(library, 0) + 1
    return {
        header: [header.partition("/")[0], max(count, key=lambda n: count[n], default="")]
        for header, count in sorted(votes.items())
    }


def _function(function: Signature, sets: dict[str, int]) -> list[str]:
    return [function.returns, function.header, *(_param(p, sets) for p in function.params)]


def _param(param: Param, sets: dict[str, int]) -> str:
    listed = str(sets.setdefault(" ".join(param.dtypes), len(sets))) if param.dtypes else ""
    flow = _FLOWS[param.direction] + ("?" if param.optional else "")
    return f"{param.type}|{param.name}|{flow}|{listed}"


def _struct(struct: Struct) -> list[Any]:
    """A bit-field's offset has the fraction of a byte that it starts at."""
    rows: list[list[Any]] = []
    place = 0.0
    for field in struct.fields:
        offset: float = field.offset
        if field.bits:
            offset = max(place, offset)
            place = offset + field.bits / 8
        rows.append([field.type, field.name, int(offset) if offset == int(offset) else offset])
    kind = "union" if struct.union else "struct"
    return [struct.header, kind, struct.size, struct.align, rows]


def write(path: Path, catalog: Mapping[str, Any]) -> None:
    """JSON with one entry a line for tables, so that a change shows as the lines it touches."""
    lines = []
    if catalog.get("format") != 1:
        catalog = releases.pack(catalog if "base" in catalog else releases.fold(catalog))
    for key, value in catalog.items():
        if isinstance(value, dict) and len(value) > 20:
            body = ",\n".join(f"{json.dumps(k)}:{_small(v)}" for k, v in value.items())
            lines.append(f"{json.dumps(key)}:{{\n{body}\n}}")
        else:
            lines.append(f"{json.dumps(key)}:{_small(value)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write.write(path, "{\n" + ",\n".join(lines) + "\n}\n", "strict")


def _small(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
