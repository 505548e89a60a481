"""Owns a fleet's report as blocks: hosts and devices, what differs, what went wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from ..commands.check.devices import agreement, suspect
from ..commands.check.text import style_of
from ..conformance.cases.case import BENCH
from ..conformance.record import votes
from ..conformance.record.result import VERDICTS
from ..render import Block, Cell, Content, Grid, Heading, Item, Items, Line
from . import work
from .advice import Advice, advice
from .device_stats import DeviceStats
from .host_faults import NAMES, HostFault, rows
from .merge import VERSIONS, Fleet
from .speed import ALARM, Speed

_LISTED: Final = 20
_NAMED: Final = 6
_DEVICES: Final = 64  # of more than these, healthy ones are only counted


def document(fleet: Fleet, every: bool = False) -> Iterator[Block]:
    """The whole report, as a terminal and Markdown show it; the page has `every` device in a table
    of its own."""
    there = fleet.devices
    hosts = {p.node for p in fleet.parts if not p.places} | {p.node for p in there}
    hosts |= work.probed(fleet)
    yield Line(Cell(f"fleet · {_many(len(hosts), 'host')} · {_many(len(there), 'device')} · "
                    f"{_many(len(fleet.parts), 'run')}", "strong"))  # fmt: skip
    yield Line(totals(fleet))
    yield from _advice(advice(fleet))
    yield from _suspects(fleet)
    yield from _slow(there)
    yield from _host_faults(rows(fleet))
    yield from work.hosts(fleet)
    if not every:
        yield from _devices(there)
    yield from work.workloads(fleet)
    yield from _versions(fleet)
    yield from _worst(fleet)
    yield from _lost(fleet)


def progress(fleet: Fleet) -> Iterator[Block]:
    """How far the runs are, a line a host: what was planned, judged, and fails."""
    done: dict[str, int] = Counter()
    planned: dict[str, int] = Counter()
    failing: dict[str, int] = Counter()
    for part in fleet.parts:
        done[part.node] += part.results
        planned[part.node] += int(part.header.get("cases", 0))
        failing[part.node] += part.failing
    running = sorted({part.node for part in fleet.parts if part.end is None}, key=str)
    judged = f"{sum(done.values()):,} of {sum(planned.values()):,} cases"
    at_work = f"{_many(len(running), 'host')} of {len(planned)} at work"
    yield Line(Cell(f"{judged}; {at_work}", "strong"))
    grid: list[list[Content]] = [
        [node, f"{done[node]:,}", f"{planned[node]:,}",
         Cell(f"{failing[node]:,}", "bad" if failing[node] else "")]
        for node in sorted(running, key=lambda n: (done[n] / max(planned[n], 1), n))[:_LISTED]
    ]  # fmt: skip
    if grid:
        yield Grid(("at work, slowest first", "done", "planned", "failing"), grid,
                   frozenset((1, 2, 3)))  # fmt: skip


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + "s" * (number != 1)


def totals(fleet: Fleet) -> Cell:
    counts = fleet.counts()
    label = ", ".join(f"{n:,} {v}" for v, n in counts.ordered())
    lost, unread = fleet.lost_counts.total(), len(fleet.unread)
    ends = [f"; {_many(lost, 'case')} lost" if lost else "",
            f"; {_many(unread, 'journal')} not read" if unread else ""]  # fmt: skip
    text = f"{_many(counts.total, 'result')}: {label or 'none'}{''.join(ends)}"
    return Cell(text, "bad" if fleet.failing or fleet.incomplete else "good")


def _advice(there: Sequence[Advice]) -> Iterator[Block]:
    """What to do with which devices, and why."""
    if not there:
        return
    yield Heading(f"What to do ({_many(len(there), 'device')})")
    yield Items([Item(Cell(f"{one.action}: {one.name}", "bad"), one.evidence)
                 for one in there[:_LISTED]])  # fmt: skip
    if len(there) > _LISTED:
        yield Line(f"and {_many(len(there) - _LISTED, 'device')} more; all are in the JSON report")


def _suspects(fleet: Fleet) -> Iterator[Block]:
    if not fleet.compares:
        return
    yield Heading("Devices against each other")
    at_fault = votes.suspects(fleet.deviations)
    if at_fault:
        alike = _alike(at_fault)
        yield Items([_differing(places, group) for places, group in alike[:_LISTED]])
        left = sum(len(places) for places, _ in alike[_LISTED:])
        if left:
            yield Line(f"and {_many(left, 'device')} more; all are in the JSON report")
    others = [d for d in fleet.deviations if d.kind not in votes.ABOUT_DEVICES]
    if others:
        grid: list[list[Content]] = [[d.kind, d.case, d.place] for d in others[:_LISTED]]
        yield Grid(("no device's fault", "case", "seen at"), grid)
    if not fleet.deviations:
        yield agreement(fleet.voters)


def _alike(
    at_fault: Sequence[tuple[str, Sequence[votes.Deviation]]],
) -> list[tuple[list[str], Sequence[votes.Deviation]]]:
    """Devices with one and the same deviations, such as those of hosts with another driver, as one
    finding."""
    groups: dict[tuple[tuple[str, ...], ...], tuple[list[str], Sequence[votes.Deviation]]] = {}
    for place, group in at_fault:
        same = tuple(sorted((d.case, str(d.seed), d.kind, d.digest) for d in group))
        groups.setdefault(same, ([], group))[0].append(place)
    return list(groups.values())


def _differing(there: Sequence[str], group: Sequence[votes.Deviation]) -> Item:
    if len(there) == 1:
        return suspect(there[0], group)
    nodes = list(dict.fromkeys(place.rpartition(" ")[0] for place in there))
    more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
    names = ", ".join(there if len(there) <= _NAMED else nodes[:_NAMED]) + more
    return suspect(f"{_many(len(there), 'device')} of {_many(len(nodes), 'host')} ({names})", group,
                   "differ")  # fmt: skip


def _host_faults(there: Sequence[HostFault]) -> Iterator[Block]:
    if not there:
        return
    yield Heading("Hosts")
    rows_: list[list[Content]] = [
        [Cell(row.name, "warn"), row.place, row.text] for row in there[: 5 * _LISTED]
    ]
    if len(there) > 5 * _LISTED:
        rows_.append(["…", f"{len(there) - 5 * _LISTED} more", "all are in the JSON report"])
    yield Grid(("what", "where", "details"), rows_)
    names = dict.fromkeys(row.name for row in there)
    yield Line(Cell("; ".join(f"{name}: {NAMES[name]}" for name in names), "dim"))


def _slow(there: Sequence[DeviceStats]) -> Iterator[Block]:
    """Devices that are slow, the slowest first: among thousands nobody would see their rows."""
    late = [(p, p.speed) for p in there if p.speed is not None and p.speed.slow]
    if not late:
        return
    yield Heading(f"Slow devices ({len(late):,})")
    late.sort(key=lambda pair: -pair[1].median)
    grid: list[list[Content]] = [
        [Cell(p.name, "bad"), _time(speed), "workloads" if speed.of == BENCH else "cases",
         str(speed.n)]
        for p, speed in late[:_LISTED]
    ]  # fmt: skip
    yield Grid(("device", "time / median (interval)", "by", "times"), grid, frozenset((1, 3)))


def _time(speed: Speed) -> str:
    text = f"{speed.median:.2f}"
    return text + (f" ({speed.low:.2f}–{speed.high:.2f})" if speed.enough else "")


def _devices(there: Sequence[DeviceStats]) -> Iterator[Block]:
    """Hosts × devices × verdicts, those with faults first; of many healthy ones their number."""
    if not there:
        return
    used = [v for v in ("PASS", *VERDICTS) if any(p.counts.by_verdict.get(v) for p in there)]
    used = list(dict.fromkeys(used))
    yield Heading("Devices")
    faulty = [p for p in there if p.faulty]
    healthy = [p for p in there if not p.faulty]
    rows = [*faulty, *(healthy if len(there) <= _DEVICES else ())]
    columns = ("host", "device", *used, "time / median (interval)", "")
    if rows:
        yield Grid(columns, [_device(p, used) for p in rows], frozenset(range(2, 3 + len(used))))
    if len(rows) < len(there):
        yield Line(f"{_many(len(healthy), 'healthy device')}; all are in the page and the JSON")
    timed = [place.speed for place in there if place.speed is not None]
    if timed:
        yield Line(Cell(method(timed), "dim"))


def method(timed: Sequence[Speed]) -> str:
    """What an interval and the word slow mean."""
    limits = sorted({(s.of, s.limit) for s in timed})
    above = ", ".join(f"{limit:.2f} (by {'workloads' if of == BENCH else 'cases'})"
                      for of, limit in limits)  # fmt: skip
    text = (f"slow: the interval begins above {above}; intervals hold for all devices together "
            f"with {1 - ALARM:.0%}")  # fmt: skip
    few = sum(not s.enough for s in timed)
    return text + (
        f"; {_many(few, 'device')} without one: too few times, or too few others" if few else ""
    )


def _device(place: DeviceStats, used: Sequence[str]) -> list[Content]:
    speed = place.speed
    text = "" if speed is None else _time(speed)
    marks = [*place.kinds, *(["slow"] if speed is not None and speed.slow else [])]
    cells: list[Content] = [place.node, place.device]
    for verdict in used:
        number = place.counts.by_verdict.get(verdict, 0)
        cells.append(Cell(f"{number:,}" if number else "", style_of(verdict) if number else ""))
    return [*cells, Cell(text, "warn" if "slow" in marks else ""), Cell(", ".join(marks), "bad")]


def _versions(fleet: Fleet) -> Iterator[Block]:
    """Which versions there are, and how many hosts have each."""
    grid: list[list[Content]] = []
    for name in VERSIONS:
        by_value: dict[str, set[str]] = {}
        for node, environment in fleet.environments():
            by_value.setdefault(str(environment.get(name, "")), set()).add(node)
        if not any(by_value):
            continue
        ordered = sorted(by_value.items(), key=lambda x: (-len(x[1]), x[0]))
        for i, (value, nodes) in enumerate(ordered):
            nodes_text = "" if i == 0 else ", ".join(sorted(nodes)[:_LISTED])
            grid.append([name if i == 0 else "", Cell(value or "unknown", "warn" if i else ""),
                         str(len(nodes)), nodes_text])  # fmt: skip
    if grid:
        yield Heading("Versions")
        yield Grid(("part", "version", "hosts", "which"), grid, frozenset((2,)))


def _worst(fleet: Fleet) -> Iterator[Block]:
    worst = fleet.tally.worst_ops()
    if not worst:
        return
    yield Heading(f"Worst operators ({len(worst)})")
    grid: list[list[Content]] = [
        [Cell(w.op, "bad"), f"{w.failing}/{w.judged}", str(w.places), w.first]
        for w in worst[:_LISTED]
    ]
    yield Grid(("operator", "failing", "devices", "first"), grid, frozenset((1, 2)))


def _lost(fleet: Fleet) -> Iterator[Block]:
    if not fleet.lost:
        return
    yield Heading(f"Lost cases ({fleet.lost_counts.total():,})")
    grid: list[list[Content]] = [
        [case, str(seed), place, how]
        for (case, seed, place), how in list(fleet.lost.items())[: 2 * _LISTED]
    ]
    if len(fleet.lost) > 2 * _LISTED:
        more = fleet.lost_counts.total() - 2 * _LISTED
        grid.append([f"… and {more:,} more", "", "", ""])
    yield Grid(("case", "seed", "place", "how"), grid, frozenset((1,)))
