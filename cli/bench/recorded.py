"""Makes a recording's distinct launches into workloads, and their times into what it all costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..conformance.cases.inputs import tensors_of
from ..conformance.cases.recipe import main_dtype
from ..conformance.run.subject import UnknownSubjectError
from ..recording import cases
from ..recording.subjects import NotAskableError
from ..render import Block, Cell, Heading, Line
from . import workloads
from .workloads import Workload

if TYPE_CHECKING:
    from .runner import Row


def workloads_of(path: Path, declarations: Any) -> list[Workload]:
    """One per distinct launch that a formula fits, in the order of first calls.

    The formula verifies results: what is wrong has no times.
    """
    work_items = []
    for name in cases.distinct(path):
        try:
            what = cases.subject(path, name, declarations)
        except (UnknownSubjectError, NotAskableError):
            continue
        main = main_dtype(tensors_of(what.samples()[0]))
        work_items.append(replace(workloads.small(what, main), op=name))
    return work_items


def totals(path: Path, rows: Sequence[Row]) -> list[Block]:
    """The launches' times by the recording's counts; beside the baseline's, where there is one."""
    launches = cases.distinct(path)
    kind = "device" if any("device" in r.times for r in rows) else "host"
    timed = [r for r in rows if kind in r.times]
    count = sum(launches[r.work.op].count for r in timed)
    whole = sum(one.count for one in launches.values())
    mine = _sum(timed, launches, kind)
    text = f"{count:,} of {whole:,} launches were timed: {mine / 1e3:,.3f} ms of {kind} time in all"
    both = [r for r in timed if kind in r.rival]
    blocks: list[Block] = [Heading("The recorded program"), Line(Cell(text, "strong"))]
    if both:
        now = _sum(both, launches, kind)
        then = sum(launches[r.work.op].count * r.rival[kind].median for r in both)
        ratio = now / then if then else float("nan")
        words = (f"{len(both)} workloads with the baseline: {now / 1e3:,.3f} ms, there "
                 f"{then / 1e3:,.3f} ms: ×{ratio:.2f}")  # fmt: skip
        blocks.append(Line(words))
    return blocks


def _sum(rows: Sequence[Row], launches: dict[str, cases.Distinct], kind: str) -> float:
    return sum(launches[r.work.op].count * r.times[kind].median for r in rows)
