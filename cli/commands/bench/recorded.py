"""Makes a recording's distinct launches into workloads, and their times into what it all costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...conformance.cases.inputs import main_dtype, tensors_of
from ...conformance.run.subject import UnknownSubjectError
from ...plurals import plural
from ...recording import cases
from ...recording.values import NotAskableError
from ...render import Block, Cell, Content, Grid, Heading, Line
from . import workloads
from .statistics import TimeSpread
from .workloads import Workload

if TYPE_CHECKING:
    from .runner import WorkloadTiming

_DOUBTFUL = 0.2  # a share of noisy time that is worth a word
_DISPLAY_LIMIT = 10


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


def totals(path: Path, rows: Sequence[WorkloadTiming]) -> list[Block]:
    """The launches' times by the recording's counts; beside the baseline's, where there is one.

    A launch counts with its 20th percentile: what else runs on a machine only ever lengthens a
    sample, so that of a few samples the short ones say more than the median.
    """
    launches = cases.distinct(path)
    kind = "device" if any("device" in r.times for r in rows) else "host"
    timed = [r for r in rows if kind in r.times]
    count = sum(launches[r.work.op].count for r in timed)
    whole = sum(one.count for one in launches.values())
    mine = sum(launches[r.work.op].count * r.times[kind].p20 for r in timed)
    text = f"{count:,} of {whole:,} launches were timed: {mine / 1e3:,.3f} ms of {kind} time in all"
    blocks: list[Block] = [Heading("The recorded program"), Line(Cell(text, "strong"))]
    pairs = [
        Pair(launches[r.work.op].name, launches[r.work.op].count, r.times[kind], r.rival[kind])
        for r in timed
        if kind in r.rival
    ]
    return [*blocks, *compared(pairs)] if pairs else blocks


@dataclass(frozen=True, slots=True)
class Pair:
    """One distinct launch on this install and on the baseline's; how often the program made it."""

    operator: str
    count: int
    now: TimeSpread
    then: TimeSpread


def compared(pairs: Sequence[Pair]) -> Iterator[Block]:
    """What the change costs the program: in all, and by operator, the largest difference first."""
    now, then = _total_time(pairs, "p20")
    middle, middle_then = _total_time(pairs, "median")
    yield Line(
        f"{plural(len(pairs), 'workload')} with the baseline: {now / 1e3:,.3f} ms, there "
        f"{then / 1e3:,.3f} ms: ×{_ratio(now, then)} (×{_ratio(middle, middle_then)} by medians)"
    )
    noisy, _ = _total_time([p for p in pairs if p.now.noisy or p.then.noisy], "p20")
    if now and noisy / now > _DOUBTFUL:
        share = f"{noisy / now:.0%} of that time is of launches whose samples scatter"
        yield Line(Cell(f"{share}: more of them (--seconds) say more", "warn"))
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.operator, []).append(pair)
    if len(groups) < 2:
        return
    sums = {name: _total_time(group, "p20") for name, group in groups.items()}
    largest = sorted(sums, key=lambda name: -abs(sums[name][0] - sums[name][1]))[:_DISPLAY_LIMIT]
    table: list[list[Content]] = [
        [name, f"{sum(p.count for p in groups[name]):,}",
         *(f"{us / 1e3:,.3f}" for us in sums[name]), f"×{_ratio(*sums[name])}"]
        for name in largest
    ]  # fmt: skip
    yield Grid(["operator", "launches", "ms", "there", "against"], table, frozenset((1, 2, 3, 4)))


def _total_time(pairs: Sequence[Pair], figure: str) -> tuple[float, float]:
    """µs of all launches, here and there."""
    here = sum(pair.count * getattr(pair.now, figure) for pair in pairs)
    return here, sum(pair.count * getattr(pair.then, figure) for pair in pairs)


def _ratio(now: float, then: float) -> str:
    return f"{now / then:.2f}" if then else "?"
