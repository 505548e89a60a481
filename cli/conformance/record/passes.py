"""Owns the short form of what passed, for reports: a row a case, grouped by what cases share.

A row is [rest of the case's name after `op/form/`, dtype, tier, seconds, worst error in ULP].
Rules, inputs and numbers of a pass are in the journal alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from .result import Result

_SHARED: Final = ("op", "form", "required", "seed", "soc", "node", "device")


def grouped(results: Iterable[Result]) -> list[dict[str, Any]]:
    """The groups of results that pass."""
    groups: dict[tuple[Any, ...], list[list[Any]]] = {}
    for r in results:
        rest = r.case.removeprefix(f"{r.op}/{r.form}").removeprefix("/")
        worst = (r.measure or {}).get("max_ulp")
        row = [rest, r.dtype, r.tier, round(r.seconds, 4), *([] if worst in (None, 0) else [worst])]
        groups.setdefault(tuple(getattr(r, name) for name in _SHARED), []).append(row)
    return [
        {k: v for k, v in zip(_SHARED, key, strict=True) if v or k == "seed"} | {"cases": rows}
        for key, rows in groups.items()
    ]


def expanded(groups: Sequence[Any]) -> list[dict[str, Any]]:
    """The results of groups, as lines of a journal have them; ValueError for other data."""
    if not isinstance(groups, list) or not all(isinstance(g, Mapping) for g in groups):
        raise ValueError("its passes are no list of objects")
    return [_result(group, row) for group in groups for row in _rows(group)]


def _rows(group: Mapping[str, Any]) -> Sequence[Any]:
    rows = group.get("cases")
    if not isinstance(rows, list) or not all(
        isinstance(r, list) and len(r) in (4, 5) for r in rows
    ):
        raise ValueError("the cases of a group of passes are no rows of 4 or 5")
    return rows


def _result(group: Mapping[str, Any], row: Sequence[Any]) -> dict[str, Any]:
    rest, dtype, tier, seconds = row[:4]
    shared = {name: group[name] for name in _SHARED if name in group}
    parts = [str(part) for part in (group.get("op", ""), group.get("form", ""), rest) if part]
    result = {**shared, "case": "/".join(parts), "verdict": "PASS", "dtype": dtype, "tier": tier,
              "seconds": seconds}  # fmt: skip
    return result if len(row) == 4 else {**result, "measure": {"max_ulp": row[4]}}
