"""Compares what an install declares with a known CANN version or with a saved report, and two
versions with each other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from aclnn_bindings import WORKSPACE_SUFFIX, Declarations, Difference, Report, Status, diff
from aclnn_bindings.install import documents, library
from aclnn_bindings.interface import catalog

from ...choices import one_of
from ...foreign import parsed, text_of

HELP = (
    f"Compare with a CANN version ({', '.join(catalog.versions())}), a catalog or a saved --json. "
    "OLD..NEW compares two versions; with --from, by the calls of a recording."
)
_RANGE = re.compile(r"([^/]+?)\.\.([^/]+)")


@dataclass(frozen=True, slots=True)
class Reference:
    """What to compare with: declarations, or only the names that a saved report lists."""

    name: str
    declared: Declarations | None
    functions: frozenset[str]
    version: str | None = None


@dataclass(frozen=True, slots=True)
class InterfaceComparison:
    """How an install differs from a reference: `added` is what it has and the reference lacks."""

    reference: str
    difference: Difference


def load(text: str) -> Reference:
    """The reference named `text`; UsageError when it is neither a version nor a readable file."""
    if text in catalog.versions():
        declared = catalog.load(text)
        return Reference(f"CANN {text}", declared, frozenset(declared.functions), text)
    path = Path(text)
    if not path.is_file():
        known = one_of(text, catalog.versions())
        raise click.UsageError(f"--diff {text}: neither a file nor a known version: {known}")
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
        here_version = library.catalog_version(report.install) if report.install else None
        return InterfaceComparison(
            reference.name,
            _with_documents(
                diff(reference.declared, report.declared), reference.version, here_version
            ),
        )
    functions = report.census.functions.values() if report.census else ()
    here = frozenset(f.name for f in functions if f.status is not Status.MISSING)
    added, removed = here - reference.functions, reference.functions - here
    by_name = Difference(_sorted(added), _sorted(removed), (), _ops(added), _ops(removed))
    return InterfaceComparison(reference.name, by_name)


def ends(text: str) -> tuple[Reference, Reference] | None:
    """The two versions or catalogs of `OLD..NEW`, or None for a text of another form."""
    match = _RANGE.fullmatch(text)
    return (load(match[1]), load(match[2])) if match else None


def between(old: Reference, new: Reference, recorded: Path | None) -> InterfaceComparison:
    """What `new` has otherwise than `old`; of the functions that a recording calls, if any."""
    if old.declared is None or new.declared is None:
        raise click.UsageError("--diff OLD..NEW: give versions or catalogs, not reports")
    whole = _with_documents(diff(old.declared, new.declared), old.version, new.version)
    name = f"{old.name}: what {new.name} has"
    if recorded is None:
        return InterfaceComparison(name, whole)
    from ... import recording  # numpy, which no other diagnosis needs

    called = set(recording.open(recorded).totals())
    called |= {n.removesuffix(WORKSPACE_SUFFIX) for n in called}
    return InterfaceComparison(f"{name}, calls of {recorded.name}", _of(whole, called))


def _of(whole: Difference, called: set[str]) -> Difference:
    def calls(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in names if name in called)

    changed = tuple(change for change in whole.changed if change.name in called)
    return Difference(
        calls(whole.added), calls(whole.removed), changed,
        calls(whole.added_ops), calls(whole.removed_ops),
    )  # fmt: skip


def _with_documents(difference: Difference, old: str | None, new: str | None) -> Difference:
    """The difference, and what the two releases' documents list otherwise."""
    if old is None or new is None:
        return difference
    return replace(difference, changed=(*difference.changed, *documents.changes(old, new)))


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))


def _ops(names: frozenset[str]) -> tuple[str, ...]:
    return _sorted(n for n in names if n + WORKSPACE_SUFFIX in names)
