"""Owns what a catalog's file leaves out, as the rest of it or another catalog says it.

A release declares nearly what its neighbour does, so its file names a base and lists what it
has otherwise: entries of tables that are new or changed, and the names that it lacks. Most second
phases and typedefs of structs follow from other entries: `fold` and `pack` leave them out. The
simulator's generator runs this file by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Catalog = dict[str, Any]
Rows = Mapping[str, list[str]]
FORMAT: Final = 2
TABLES: Final = ("headers", "enums", "constants", "typedefs", "structs", "functions",
                 "const_streams", "products")  # fmt: skip
LISTS: Final = ("deprecated", "generated")
PHASE_1: Final = "GetWorkspaceSize"
# What operators declare for their second phase, behind its result and header.
_ARGUMENTS: Final = ("void *|workspace|i|", "uint64_t|workspaceSize|i|",
                     "aclOpExecutor *|executor|i|")  # fmt: skip
_PHASE_2: Final = (*_ARGUMENTS, "aclrtStream|stream|i|")
_CONST_PHASE_2: Final = (*_ARGUMENTS, "const aclrtStream|stream|i|")


def fold(whole: Mapping[str, Any]) -> Catalog:
    """A catalog without the second phases that `unfold` puts back.

    `const_streams` names those whose stream is const.
    """
    functions = whole["functions"]
    constant = _second_phases(functions, _CONST_PHASE_2)
    streams = {name: "" for name, row in constant.items() if functions.get(name) == row}
    common = {**_second_phases(functions, _PHASE_2), **{name: constant[name] for name in streams}}
    listed = {name: row for name, row in functions.items() if common.get(name) != row}
    return {**whole, "const_streams": streams, "functions": listed}


def unfold(folded: Mapping[str, Any]) -> Catalog:
    """The catalog with functions by name, also those that `fold` leaves out."""
    whole, functions = dict(folded), folded["functions"]
    constant = _second_phases(functions, _CONST_PHASE_2)
    common = _second_phases(functions, _PHASE_2)
    common |= {name: constant[name] for name in whole.pop("const_streams", ())}
    return {**whole, "functions": dict(sorted({**common, **functions}.items()))}


def _second_phases(functions: Rows, params: tuple[str, ...]) -> dict[str, list[str]]:
    return {
        name.removesuffix(PHASE_1): [*row[:2], *params]
        for name, row in functions.items()
        if name.endswith(PHASE_1)
    }


def pack(stored: Mapping[str, Any]) -> Catalog:
    """A catalog, or what differs from one, as its file has it: `unpack` is the inverse.

    Headers stand under their group and library, functions that are declared alike on one line. A
    typedef that is the struct of its name is left out, and a struct without one has "".
    """
    packed: Catalog = {"format": FORMAT, **stored}
    if "headers" in stored:
        packed["headers"] = {}
        for header, place in stored["headers"].items():
            packed["headers"].setdefault("|".join(place), []).append(header)
        packed["headers"] = {place: " ".join(names) for place, names in packed["headers"].items()}
    if "functions" in stored:
        alike: dict[str, tuple[list[str], list[str]]] = {}
        for name, row in stored["functions"].items():
            alike.setdefault(str(row), (row, []))[1].append(name)
        packed["functions"] = {" ".join(names): row for row, names in alike.values()}
    typedefs, implied = stored.get("typedefs", {}), _own_types(stored)
    changed = {name: typedefs.get(name, "") for name in implied.keys() | typedefs.keys()}
    packed["typedefs"] = {n: changed[n] for n in sorted(changed) if changed[n] != implied.get(n)}
    if "const_streams" in stored:
        packed["const_streams"] = " ".join(stored["const_streams"])
    return {key: value for key, value in packed.items() if value or key in stored}


def unpack(packed: Mapping[str, Any]) -> Catalog:
    """The tables of a catalog's file; files of format 1 hold them whole."""
    stored: Catalog = {**packed, "format": FORMAT}
    if packed["format"] == 1:
        return stored
    if "headers" in packed:
        places = [(n, place) for place, names in packed["headers"].items() for n in names.split()]
        stored["headers"] = {name: place.split("|", 1) for name, place in sorted(places)}
    if "functions" in packed:
        rows = packed["functions"].items()
        stored["functions"] = {name: row for names, row in rows for name in names.split()}
    typedefs = {**_own_types(packed), **packed.get("typedefs", {})}
    if typedefs:
        stored["typedefs"] = {name: typedefs[name] for name in sorted(typedefs) if typedefs[name]}
    if "const_streams" in packed:
        stored["const_streams"] = dict.fromkeys(packed["const_streams"].split(), "")
    return stored


def _own_types(stored: Mapping[str, Any]) -> dict[str, str]:
    return {name: f"{row[1]} {name}" for name, row in stored.get("structs", {}).items()}


def expand(base: Mapping[str, Any], release: Mapping[str, Any]) -> Catalog:
    """The whole catalog of `release`, which is stored as what differs from `base`."""
    whole = {**base, **{k: v for k, v in release.items() if k not in (*TABLES, "removed")}}
    whole["dtype_sets"] = [*base["dtype_sets"], *release["dtype_sets"]]
    folded = fold(base)
    for table in TABLES:
        lacks = frozenset(release["removed"].get(table, "").split())
        entries = {**folded.get(table, {}), **release.get(table, {})}
        whole[table] = {name: entries[name] for name in sorted(entries) if name not in lacks}
    return unfold(whole)


def difference(
    base: Mapping[str, Any], whole: Mapping[str, Any], name: str, exact: bool = False
) -> Catalog:
    """What `whole` has otherwise than the catalog `base`, which is called `name`.

    What `whole` leaves open of a parameter (direction, dtypes) is what the base says; it stays
    open where the difference is to be `exact`.
    """
    sets = _Sets(base["dtype_sets"], whole["dtype_sets"])
    settled = _settled({} if exact else base["functions"], whole["functions"], sets)
    base, released = fold(base), fold({**whole, "functions": settled})
    release = {k: v for k, v in whole.items() if k not in (*TABLES, *LISTS)}
    release |= {"base": name, "dtype_sets": sets.added, "removed": {}}
    for table in TABLES:
        before, after = base.get(table, {}), released.get(table, {})
        if lacks := sorted(before.keys() - after.keys()):
            release["removed"][table] = " ".join(lacks)
        if changed := {n: v for n, v in after.items() if before.get(n) != v}:
            release[table] = changed
    changed_lists = {name: whole[name] for name in LISTS if base[name] != whole[name]}
    return {**release, **changed_lists}


class _Sets:
    """Dtype lists of a base, and those that a release adds to them."""

    def __init__(self, base: list[str], release: list[str]) -> None:
        self.index = {text: i for i, text in enumerate(base)}
        self.release = release
        self.added: list[str] = []

    def __call__(self, listed: str) -> str:
        """The index that the release's list `listed` has behind the base's."""
        if not listed:
            return ""
        text = self.release[int(listed)]
        if text not in self.index:
            self.index[text] = len(self.index)
            self.added.append(text)
        return str(self.index[text])


def _settled(before: Rows, after: Rows, sets: _Sets) -> Rows:
    """The functions of a release with what its source leaves open read in the base."""
    return {
        name: [*row[:2], *_params(before.get(name, [])[2:], row[2:], sets)]
        for name, row in after.items()
    }


def _params(before: list[str], after: list[str], sets: _Sets) -> list[str]:
    known = {tuple(text.split("|")[:2]): text.split("|") for text in before}
    params = []
    for text in after:
        ctype, name, flow, listed = text.split("|")
        _, _, known_flow, known_list = known.get((ctype, name), ("", "", flow, ""))
        params.append(f"{ctype}|{name}|{known_flow}|{sets(listed) or known_list}")
    return params
