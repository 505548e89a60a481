"""The part of probe's document that is about operators and functions."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from aclnn_bindings import Census, CensusOp, Report, Signature, Status, product_of, support

from ...render import Block, Cell, Code, Facts, Grid, Heading, Line

MAX_LISTED: Final = 6


def listed(names: Sequence[str]) -> str:
    """The first of `names`, and how many more there are."""
    text = ", ".join(names[:MAX_LISTED])
    return text + (f" and {len(names) - MAX_LISTED:,} more" if len(names) > MAX_LISTED else "")


def operators(report: Report, census: Census) -> Iterator[Block]:
    """Operators by library, functions by status, and what `check` would lack."""
    labels = {
        str(lib.path): f"{lib.name} ({lib.vendor})" if lib.vendor else lib.name
        for lib, _ in report.files
    }
    if census.ops:
        yield Heading("Operators")
        yield _by_library(census, labels)
    yield Heading("Functions")
    rows = [(s.value, _status(census, s)) for s in Status if census.count(s)]
    rows += _shadowed(census, labels)
    yield Facts(rows + (_needed(report, census) if report.files else []))


def _by_library(census: Census, labels: Mapping[str, str]) -> Grid:
    groups: dict[str, list[CensusOp]] = {}
    for op in census.ops.values():
        groups.setdefault(labels.get(op.library, "in no library"), []).append(op)
    rows: list[tuple[str | Cell, ...]] = [
        (name, *_counts(ops)) for name, ops in sorted(groups.items(), key=lambda g: -len(g[1]))
    ]
    if len(rows) > 1:
        rows.append((Cell("all", "strong"), *_counts(list(census.ops.values()))))
    columns = ("library", "installed", "declared", "callable")
    return Grid(columns, rows, frozenset({1, 2, 3}))


def _counts(ops: Sequence[CensusOp]) -> tuple[str, str, str]:
    flags = ("installed", "declared", "callable")
    first, second, third = (f"{sum(getattr(op, flag) for op in ops):,}" for flag in flags)
    return first, second, third


def _status(census: Census, status: Status) -> str | Cell:
    rows = [f for f in census.functions.values() if f.status is status]
    if status is Status.PRESENT:
        return f"{len(rows):,}"
    names = listed([f.name for f in rows])
    return Cell(f"{len(rows):,}: {names}", "warn" if status is Status.DRIFTED else "")


def _shadowed(census: Census, labels: Mapping[str, str]) -> list[tuple[str, str | Cell]]:
    rows = [f for f in census.functions.values() if f.shadowed]
    if not rows:
        return []
    first, others = rows[0], ", ".join(labels[path] for path in rows[0].shadowed)
    text = f"{len(rows):,}: {first.name} comes from {labels[first.library]}, not from {others}"
    return [("shadowed", text + (" …" if len(rows) > 1 else ""))]


def _needed(report: Report, census: Census) -> list[tuple[str, str | Cell]]:
    needed = report.request.needed
    if not needed:
        return []
    lacking = [n for n in needed if n not in census.ops or not census.ops[n].callable]
    text = f"{len(needed) - len(lacking)} of the {len(needed)} operators it uses are callable"
    if lacking:
        text += f"; missing: {listed(lacking)}"
    return [("for check", Cell(text, "warn" if lacking else ""))]


def operator_detail(name: str, report: Report) -> Iterator[Block]:
    """One operator in detail: state, documents, prototype."""
    yield Heading(name)
    op = report.census.ops.get(name) if report.census else None
    if op is None:
        known = [*report.census.ops] if report.census else []
        close = difflib.get_close_matches(name, known, 3, 0.75)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        yield Line(Cell(f"  not declared and not exported by this install{hint}", "bad"))
        return
    state = Cell("callable", "good") if op.callable else Cell(op.reason, "bad")
    yield Facts([("state", state), ("library", op.library or "none"), *_documented(name, report)])
    signature = report.declared.ops.get(name) if report.declared else None
    if signature is not None:
        yield Code(prototype(signature.workspace))


def _documented(name: str, report: Report) -> Iterator[tuple[str, str | Cell]]:
    product = product_of(report.fact("soc") or "")
    documented = support(name, product)
    if documented is None:
        yield "documented", Cell("no document of it was read", "dim")
        return
    yield "products", " ".join(documented.products) or "not stated"
    if documented.on(product) is False:
        yield "this SoC", Cell(f"{product} is not among them", "warn")
    for param, dtypes in documented.dtypes.items():
        yield param, " ".join(dtypes) or Cell("none on this SoC", "warn")


def prototype(signature: Signature) -> str:
    """The C declaration, one parameter a line."""
    params = [f"{p.type}{'' if p.type.endswith('*') else ' '}{p.name}" for p in signature.params]
    return f"{signature.returns} {signature.name}(\n    " + ",\n    ".join(params) + ");"
