"""Owns the families of operators, and which operators each has; reads the spec rows only."""

from __future__ import annotations

from .row import SPECS, UNSPECIFIED


def _declare() -> None:
    from . import rows  # noqa: F401 - declares the rows


def in_family(family: str) -> list[str]:
    """Operators with a spec row of that family."""
    _declare()
    return [name for name, row in SPECS.items() if row.family == family]


def by_family() -> list[list[str]]:
    """The operators of each family."""
    _declare()
    families: dict[str, list[str]] = {}
    for name, row in SPECS.items():
        families.setdefault(row.family, []).append(name)
    return list(families.values())


def operator_families() -> set[str]:
    _declare()
    return {row.family for row in SPECS.values()}


def without_formula() -> set[str]:
    """Operators whose formula nobody publishes."""
    _declare()
    return set(UNSPECIFIED)
