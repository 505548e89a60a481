"""Owns reading the shipped catalog and operator facts for the generator; refuses other formats."""

from __future__ import annotations

import json
import re
import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WORKSPACE = "GetWorkspaceSize"
MAX_WORKSPACE = "GetMaxWorkspaceSize"  # some operators also tell it, with the same parameters
IMAGES = "acldvppop/"  # the headers of image operators, which only older releases publish
# The catalog's dtype names are those of aclDataType without prefix, except this one.
ACL_SPELLING = {"BFLOAT16": "BF16"}
# How files leave out what follows from other entries; the package itself is not imported here.
_FILES = runpy.run_path(str(Path(__file__).parents[2] / "interface/releases.py"))


@dataclass(frozen=True, slots=True)
class CatalogParam:
    """One parameter: C type, name (empty for `...`), direction i|o|b, dtype names."""

    type: str
    name: str
    direction: str
    optional: bool
    dtypes: tuple[str, ...]

    @property
    def declaration(self) -> str:
        """C text `type name`, with arrays and function pointers spelled as declarators."""
        return declare(self.type, self.name)


@dataclass(frozen=True, slots=True)
class CatalogFunction:
    """One C function of the interface and the header that declares it."""

    name: str
    returns: str
    header: str
    params: tuple[CatalogParam, ...]

    @property
    def prototype(self) -> str:
        """C text without attributes or the closing semicolon."""
        params = ", ".join(p.declaration for p in self.params) or "void"
        return f"{declare(self.returns, self.name)}({params})"


@dataclass(frozen=True, slots=True)
class Catalog:
    """Everything the newest CANN declares, plus the documents' facts per operator."""

    version: str
    functions: dict[str, CatalogFunction]
    enums: dict[str, list[Any]]
    constants: dict[str, int]
    typedefs: dict[str, str]
    structs: dict[str, list[Any]]
    deprecated: frozenset[str]
    specs: dict[str, dict[str, Any]]
    spec_dtypes: list[tuple[str, ...]]
    field: dict[str, list[dict[str, Any]]]
    libraries: dict[str, str]  # of a header of operators: the libraries that have them, `|` between

    def field_rows(self, table: str, op: str) -> list[dict[str, Any]]:
        """Rows of a table of the field that speak of `op`."""
        return [row for row in self.field.get(table, ()) if op in row["ops"].split()]

    def dtype_values(self, names: tuple[str, ...]) -> list[int]:
        """aclDataType values of catalog dtype names."""
        values = self.enums["aclDataType"][1]
        return [values["ACL_" + ACL_SPELLING.get(n, n)] for n in names]


def declare(ctype: str, name: str) -> str:
    """C declaration of `name` with the catalog's type text.

    >>> declare("char[128]", "version")
    'char version[128]'
    >>> declare("void (*)(void *)", "func")
    'void (*func)(void *)'
    """
    if ctype == "...":
        return "..."
    if "(*)" in ctype:
        return ctype.replace("(*)", f"(*{name})", 1)
    array = re.match(r"(.*?)((?:\[\w*\])+)$", ctype)
    base, bounds = (array[1].rstrip(), array[2]) if array else (ctype, "")
    space = "" if base.endswith("*") else " "
    return f"{base}{space}{name}{bounds}"


def load(folder: Path) -> Catalog:
    """Read `op_specs.json` and the catalog that it speaks of from a folder.

    The newest headers keep HCCL's structures to C++; catalogs of other releases complete them.
    """
    specs = json.loads((folder / "op_specs.json").read_text(encoding="utf-8"))
    field = json.loads((folder / "field/limits.json").read_text(encoding="utf-8"))
    _widen(specs, field)
    version = specs["version"]
    raw = _tables(folder / f"{version}.json")
    base_sets = list(raw["dtype_sets"])
    for path in sorted(folder.glob("*.json")):
        if path.stem not in (version, "op_specs"):  # what differs from `version`: no more is needed
            other = _tables(path)
            _complete(raw, {**other, "dtype_sets": [*base_sets, *other["dtype_sets"]]})
    if specs["format"] != 1:
        raise ValueError(f"catalog op_specs: format {specs['format']}, expected 1")
    sets = [tuple(s.split()) for s in raw["dtype_sets"]]
    raw = _FILES["unfold"](raw)
    return Catalog(
        version=raw["version"],
        functions={n: _function(n, row, sets) for n, row in raw["functions"].items()},
        enums=raw["enums"],
        constants=raw["constants"],
        typedefs=raw["typedefs"],
        structs=raw["structs"],
        deprecated=frozenset(raw["deprecated"]),
        specs=specs["ops"],
        spec_dtypes=[tuple(s.split()) for s in specs["dtype_sets"]],
        field=field,
        libraries={header: row[1] for header, row in raw["headers"].items()},
    )


def _tables(path: Path) -> dict[str, Any]:
    tables: dict[str, Any] = _FILES["unpack"](json.loads(path.read_text(encoding="utf-8")))
    return tables


def _widen(specs: dict[str, Any], field: dict[str, Any]) -> None:
    """Add to the documents' facts what hardware and clients show that operators take."""
    for row in field["products"]:
        for op in row["ops"].split():
            listed = specs["ops"][op]["products"]
            assert row["products"] not in listed.split(), f"{op}: the document lists it"
            specs["ops"][op]["products"] = f"{listed} {row['products']}"
    for row in field["dtypes"]:
        for op in row["ops"].split() if "takes" in row else ():
            for name in row["params"].split():
                fact = specs["ops"][op]["params"][name]
                specs["dtype_sets"].append(specs["dtype_sets"][fact["dtypes"]] + " " + row["takes"])
                fact["dtypes"] = len(specs["dtype_sets"]) - 1


def _complete(raw: dict[str, Any], other: dict[str, Any]) -> None:
    """Add what only the other catalog describes: HCCL's types and constants, image operators."""
    for table in ("enums", "structs"):
        for name, entry in other[table].items():
            if entry[0].startswith(("hccl/", IMAGES)):
                raw[table].setdefault(name, entry)
    for table in ("typedefs", "constants"):
        for name, entry in other[table].items():
            if name.startswith(("Hccl", "HCCL_", "COMM_NAME_", "acldvppStatus", "ACLDVPP_")):
                raw[table].setdefault(name, entry)
    for name, row in other["functions"].items():
        if row[1].startswith(IMAGES) and name not in raw["functions"]:
            raw["functions"][name] = _adopted(row, other["dtype_sets"], raw["dtype_sets"])


def _adopted(row: list[str], sets: list[str], into: list[str]) -> list[str]:
    """A function's row with its dtype lists looked up in another catalog's table."""
    params = []
    for text in row[2:]:
        head, _, listed = text.rpartition("|")
        if listed:
            names = sets[int(listed)]
            if names not in into:
                into.append(names)
            listed = str(into.index(names))
        params.append(f"{head}|{listed}")
    return [*row[:2], *params]


def _function(name: str, row: list[str], sets: list[tuple[str, ...]]) -> CatalogFunction:
    params = []
    for text in row[2:]:
        ctype, param, flow, listed = text.split("|")
        dtypes = sets[int(listed)] if listed else ()
        params.append(CatalogParam(ctype, param, flow[0], flow.endswith("?"), dtypes))
    return CatalogFunction(name, row[0], row[1], tuple(params))
