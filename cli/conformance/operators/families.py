"""Owns the families of operators, and which operators each has; reads the spec rows only."""

from __future__ import annotations

from . import rows
from .row import SPECS, UNSPECIFIED


def in_family(family: str) -> list[str]:
    """Operators with a spec row of that family."""
    rows.declare_all()
    names = [name for name, row in SPECS.items() if row.family == family]
    return sorted(names, key=lambda name: SPECS[name].module)


def by_family() -> list[list[str]]:
    """The operators of each family."""
    rows.declare_all()
    families: dict[str, list[str]] = {}
    for name, row in SPECS.items():
        families.setdefault(row.family, []).append(name)
    return list(families.values())


def operator_families() -> set[str]:
    rows.declare_all()
    return {row.family for row in SPECS.values()}


def without_formula() -> set[str]:
    """Operators whose formula nobody publishes."""
    rows.declare_all()
    return set(UNSPECIFIED)
