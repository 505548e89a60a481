"""Owns catalogs that are stored as what differs from another one; refuses a base of another kind.

A release declares nearly what its neighbour does, so its file names a base and lists what it
has otherwise: entries of tables that are new or changed, and the names that it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Catalog = dict[str, Any]
Rows = Mapping[str, list[str]]
TABLES: Final = ("headers", "enums", "constants", "typedefs", "structs", "functions", "products")
LISTS: Final = ("deprecated", "generated")
PHASE_1: Final = "GetWorkspaceSize"
# What most operators declare for their second phase, behind its result and header.
_PHASE_2: Final = ("void *|workspace|i|", "uint64_t|workspaceSize|i|",
                   "aclOpExecutor *|executor|i|", "aclrtStream|stream|i|")  # fmt: skip


def fold(functions: Rows) -> dict[str, list[str]]:
    """The functions of a catalog without the second phases that `unfold` puts back."""
    common = _second_phases(functions)
    return {name: row for name, row in functions.items() if common.get(name) != row}


def unfold(functions: Rows) -> dict[str, list[str]]:
    """Functions as a file lists them, by name, with the second phases that it leaves out."""
    return dict(sorted({**_second_phases(functions), **functions}.items()))


def _second_phases(functions: Rows) -> dict[str, list[str]]:
    return {
        name.removesuffix(PHASE_1): [*row[:2], *_PHASE_2]
        for name, row in functions.items()
        if name.endswith(PHASE_1)
    }


def expand(base: Mapping[str, Any], release: Mapping[str, Any]) -> Catalog:
    """The whole catalog of `release`, which is stored as what differs from `base`."""
    whole = {**base, **{k: v for k, v in release.items() if k not in (*TABLES, "removed")}}
    whole["dtype_sets"] = [*base["dtype_sets"], *release["dtype_sets"]]
    folded = {**base, "functions": fold(base["functions"])}
    for table in TABLES:
        lacks = frozenset(release["removed"].get(table, "").split())
        entries = {**folded.get(table, {}), **release.get(table, {})}
        whole[table] = {name: entries[name] for name in sorted(entries) if name not in lacks}
    return {**whole, "functions": unfold(whole["functions"])}


def difference(
    base: Mapping[str, Any], whole: Mapping[str, Any], name: str, exact: bool = False
) -> Catalog:
    """What `whole` has otherwise than the catalog `base`, which is called `name`.

    What `whole` leaves open of a parameter (direction, dtypes) is what the base says; it stays
    open where the difference is to be `exact`.
    """
    sets = _Sets(base["dtype_sets"], whole["dtype_sets"])
    settled = _settled({} if exact else base["functions"], whole["functions"], sets)
    base = {**base, "functions": fold(base["functions"])}
    released = {**whole, "functions": fold(settled)}
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
