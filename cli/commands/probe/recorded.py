"""Which functions that a recorded program calls are missing or declared otherwise on an install."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aclnn_bindings import Report
from aclnn_bindings.install.library import DeclarationsUnknownError, declarations
from aclnn_bindings.interface.signature import Declarations

from ... import exits, recording, render
from ...plurals import plural


@dataclass(frozen=True, slots=True)
class Lack:
    """One function, how often the program called it, and what is wrong with it here."""

    name: str
    calls: int
    what: str


def document(path: Path, report: Report) -> tuple[list[render.Block], int]:
    """What the install lacks for the recording at `path`, and the exit code."""
    opened = recording.open(path)
    totals = opened.totals()
    if report.install is None or report.census is None:
        return [render.Line(render.Cell("no install to look at", "bad"))], exits.NOTHING
    lacks = _lacks(opened, report)
    where = f"{report.install.kind} {report.install.version or '?'} at {report.install.root}"
    operators = [n for n in totals if n in report.census.ops or n.startswith("aclnn")]
    style: render.Style = "bad" if lacks else "good"
    head = f"{plural(len(totals), 'function')} called, {len(lacks)} missing or changed here"
    blocks: list[render.Block] = [
        render.Facts([("recording", str(path)), ("install", where)]),
        render.Line(render.Cell(head, style)),
    ]
    if lacks:
        rows = [[lack.name, f"{lack.calls:,}", lack.what] for lack in lacks]
        blocks.append(render.Grid(["function", "calls", "here"], rows, frozenset((1,))))
    else:
        names = sorted({n.removesuffix("GetWorkspaceSize") for n in operators})
        blocks.append(render.Line(" ".join(names)))
    if opened.cut_off:
        blocks.append(render.Line(render.Cell(f"not judged: {opened.cut_off}", "warn")))
    return blocks, _code(bool(lacks), bool(opened.cut_off))


def _code(lacks: bool, cut_off: bool) -> int:
    if lacks:
        return exits.PROBLEMS
    return exits.NOT_JUDGED if cut_off else exits.OK


def _lacks(opened: recording.Recording, report: Report) -> list[Lack]:
    assert report.install is not None
    assert report.census is not None
    try:
        declared: Declarations | None = declarations(report.install)
    except DeclarationsUnknownError:
        declared = None
    exported = {name for _, elf in report.files for name in elf.exports}
    lacking = []
    for name, (calls, _, _) in opened.totals().items():
        if name not in exported:
            lacking.append(Lack(name, calls, "exported by no library"))
        elif change := _change(opened.types(name), declared, name):
            lacking.append(Lack(name, calls, change))
    return lacking


def _change(before: Sequence[str], declared: Declarations | None, name: str) -> str:
    """How the types of parameters differ, const apart; "" when they do not or are unknown."""
    signature = declared.functions.get(name) if declared else None
    if signature is None or not before:
        return ""
    then, now = [_bare(t) for t in before], [_bare(p.type) for p in signature.params]
    if then == now:
        return ""
    if len(then) != len(now):
        return f"{plural(len(now), 'parameter')}, {len(then)} where it was recorded"
    at = next(i for i, pair in enumerate(zip(then, now, strict=True)) if pair[0] != pair[1])
    return f"parameter {at + 1} is {now[at]}, was {then[at]}"


def _bare(ctype: str) -> str:
    return ctype.replace("const ", "").replace("*const", "*").strip()
