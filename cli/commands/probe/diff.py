"""Compares what an install declares with a known CANN version or with a saved report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from aclnn_bindings import WORKSPACE_SUFFIX, Declarations, Difference, Report, Status, diff
from aclnn_bindings.interface import catalog

from ...foreign import parsed, text_of

HELP = (
    f"Compare with a CANN version ({', '.join(catalog.versions())}), a catalog or a saved --json."
)


@dataclass(frozen=True, slots=True)
class Reference:
    """What to compare with: declarations, or only the names that a saved report lists."""

    name: str
    declared: Declarations | None
    functions: frozenset[str]


@dataclass(frozen=True, slots=True)
class InterfaceComparison:
    """How an install differs from a reference: `added` is what it has and the reference lacks."""

    reference: str
    difference: Difference


def load(text: str) -> Reference:
    """The reference named `text`; UsageError when it is neither a version nor a readable file."""
    if text in catalog.versions():
        declared = catalog.load(text)
        return Reference(f"CANN {text}", declared, frozenset(declared.functions))
    path = Path(text)
    if not path.is_file():
        known = ", ".join(catalog.versions())
        raise click.UsageError(f"--diff {text}: neither a known version ({known}) nor a file")
    try:
        data = parsed(text_of(path))
        return _reference(path.name, data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise click.UsageError(
            f"--diff {text}: not a catalog or a report of probe --json ({error})"
        ) from error


def _reference(name: str, data: Any) -> Reference:
    if str(data.get("schema", "")).startswith("mindtorch-npu/probe/"):
        lists = data["functions"]["names"]
        names = frozenset(
            n for status in ("PRESENT", "UNDECLARED", "DRIFTED") for n in lists[status]
        )
        return Reference(f"{name} ({data['summary']})", None, names)
    declared = catalog.parse(data)
    return Reference(f"{name} (CANN {data['version']})", declared, frozenset(declared.functions))


def compare(reference: Reference, report: Report) -> InterfaceComparison:
    """The install against `reference`: signatures where both are known, else exported names."""
    if reference.declared is not None and report.declared is not None:
        return InterfaceComparison(reference.name, diff(reference.declared, report.declared))
    functions = report.census.functions.values() if report.census else ()
    here = frozenset(f.name for f in functions if f.status is not Status.MISSING)
    added, removed = here - reference.functions, reference.functions - here
    by_name = Difference(_sorted(added), _sorted(removed), (), _ops(added), _ops(removed))
    return InterfaceComparison(reference.name, by_name)


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))


def _ops(names: frozenset[str]) -> tuple[str, ...]:
    return _sorted(n for n in names if n + WORKSPACE_SUFFIX in names)
