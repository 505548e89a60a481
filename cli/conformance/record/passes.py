"""Owns the short form of what passed, for reports: a row a case, grouped by what cases share.

A row is [rest of the case's name after `op/form/`, dtype, tier, seconds, worst error in ULP]. The
rest is a list of its parts; parts, dtype and tier are places in the group's `words`.
Rules, inputs and numbers of a pass are in the journal alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from .result import Result

_SHARED: Final = ("op", "form", "required", "seed", "soc", "node", "device")


def grouped(results: Iterable[Result]) -> list[dict[str, Any]]:
    """The groups of results that pass."""
    groups: dict[tuple[Any, ...], tuple[dict[str, int], list[list[Any]]]] = {}
    for r in results:
        key = tuple(getattr(r, name) for name in _SHARED)
        words, rows = groups.setdefault(key, ({}, []))
        rest = r.case.removeprefix(f"{r.op}/{r.form}").removeprefix("/")
        parts, dtype, tier = (
            [words.setdefault(word, len(words)) for word in each]
            for each in (rest.split("/"), (r.dtype,), (r.tier,))
        )
        worst = (r.measure or {}).get("max_ulp")
        row = [parts, *dtype, *tier, round(r.seconds, 4)]
        rows.append(row if worst in (None, 0) else [*row, worst])
    return [
        {k: v for k, v in zip(_SHARED, key, strict=True) if v or k == "seed"}
        | {"words": list(words), "cases": rows}
        for key, (words, rows) in groups.items()
    ]


def expanded(groups: Sequence[Any]) -> list[dict[str, Any]]:
    """The results of groups, as lines of a journal have them; ValueError for other data."""
    if not isinstance(groups, list) or not all(isinstance(g, Mapping) for g in groups):
        raise ValueError("its passes are no list of objects")
    return [_result(group, _spelled(group, row)) for group in groups for row in _rows(group)]


def _rows(group: Mapping[str, Any]) -> Sequence[Any]:
    rows = group.get("cases")
    if not isinstance(rows, list) or not all(
        isinstance(r, list) and len(r) in (4, 5) for r in rows
    ):
        raise ValueError("the cases of a group of passes are no rows of 4 or 5")
    return rows


def _spelled(group: Mapping[str, Any], row: Sequence[Any]) -> Sequence[Any]:
    """A row with its words; one of an older report has them already."""
    words = group.get("words")
    if words is None:
        return row
    parts, dtype, tier, *rest = row
    try:
        return ["/".join([words[at] for at in parts]), words[dtype], words[tier], *rest]
    except (TypeError, IndexError, KeyError):
        raise ValueError("a row of a group of passes has places that its words lack") from None


def _result(group: Mapping[str, Any], row: Sequence[Any]) -> dict[str, Any]:
    rest, dtype, tier, seconds = row[:4]
    shared = {name: group[name] for name in _SHARED if name in group}
    parts = [str(part) for part in (group.get("op", ""), group.get("form", ""), rest) if part]
    result = {**shared, "case": "/".join(parts), "verdict": "PASS", "dtype": dtype, "tier": tier,
              "seconds": seconds}  # fmt: skip
    return result if len(row) == 4 else {**result, "measure": {"max_ulp": row[4]}}
