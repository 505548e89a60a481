"""Owns a fleet's report as blocks: hosts and devices, what differs, what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..check.devices import suspect
from ..check.text import style_of
from ..conformance.record import votes
from ..conformance.record.result import VERDICTS
from ..render import Block, Cell, Content, Grid, Heading, Items, Line
from . import work
from .merge import VERSIONS, Fleet
from .places import Place, places, worst_ops
from .speed import ALARM, Speed
from .weather import NAMES, Row, rows

_SHOWN: Final = 20


def document(fleet: Fleet) -> Iterator[Block]:
    """The whole report, as a terminal, Markdown and the page show it."""
    there = places(fleet)
    hosts = {p.node for p in fleet.parts if not p.places} | {p.node for p in there}
    hosts |= work.probed(fleet)
    yield Line(Cell(f"fleet · {_many(len(hosts), 'host')} · {_many(len(there), 'device')} · "
                    f"{_many(len(fleet.parts), 'run')}", "strong"))  # fmt: skip
    yield Line(totals(fleet))
    yield from _suspects(fleet)
    yield from _weather(rows(fleet))
    yield from work.hosts(fleet)
    yield from _devices(there)
    yield from work.workloads(fleet)
    yield from _versions(fleet)
    yield from _worst(fleet)
    yield from _lost(fleet)


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + "s" * (number != 1)


def totals(fleet: Fleet) -> Cell:
    counts = fleet.counts()
    shown = ", ".join(f"{n:,} {v}" for v, n in counts.ordered())
    lost = f"; {_many(len(fleet.lost), 'case')} lost" if fleet.lost else ""
    text = f"{_many(counts.total, 'result')}: {shown or 'none'}{lost}"
    return Cell(text, "bad" if fleet.failing else "good")


def _suspects(fleet: Fleet) -> Iterator[Block]:
    if not fleet.compares:
        return
    yield Heading("Devices against each other")
    at_fault = votes.suspects(fleet.deviations)
    if at_fault:
        yield Items([suspect(place, own) for place, own in at_fault])
    others = [d for d in fleet.deviations if d.kind not in votes.ABOUT_DEVICES]
    if others:
        grid: list[list[Content]] = [[d.kind, d.case, d.place] for d in others[:_SHOWN]]
        yield Grid(("no device's fault", "case", "seen at"), grid)
    if not fleet.deviations:
        yield Line(Cell("every device gave the same bits", "good"))


def _weather(there: Sequence[Row]) -> Iterator[Block]:
    if not there:
        return
    yield Heading("Hosts")
    shown: list[list[Content]] = [
        [Cell(row.name, "warn"), row.place, row.text] for row in there[: 5 * _SHOWN]
    ]
    if len(there) > 5 * _SHOWN:
        shown.append(["…", f"{len(there) - 5 * _SHOWN} more", "all are in the JSON report"])
    yield Grid(("what", "where", "details"), shown)
    met = dict.fromkeys(row.name for row in there)
    yield Line(Cell("; ".join(f"{name}: {NAMES[name]}" for name in met), "dim"))


def _devices(there: Sequence[Place]) -> Iterator[Block]:
    """Hosts × devices × verdicts; verdicts that nobody has get no column."""
    if not there:
        return
    used = [v for v in ("PASS", *VERDICTS) if any(p.counts.by_verdict.get(v) for p in there)]
    used = list(dict.fromkeys(used))
    yield Heading("Devices")
    grid = [_device(place, used) for place in there]
    columns = ("host", "device", *used, "time / median (interval)", "")
    yield Grid(columns, grid, frozenset(range(2, 3 + len(used))))
    timed = [place.speed for place in there if place.speed is not None]
    if timed:
        yield Line(Cell(_method(timed), "dim"))


def _method(timed: Sequence[Speed]) -> str:
    """What an interval and the word slow mean."""
    limits = sorted({(s.of, s.limit) for s in timed})
    above = ", ".join(f"{limit:.2f} (by {'workloads' if of == 'bench' else 'cases'})"
                      for of, limit in limits)  # fmt: skip
    text = (f"slow: the interval begins above {above}; intervals hold for all devices together "
            f"with {1 - ALARM:.0%}")  # fmt: skip
    few = sum(not s.enough for s in timed)
    return text + (
        f"; {_many(few, 'device')} with too few times, or too few others, for one" if few else ""
    )


def _device(place: Place, used: Sequence[str]) -> list[Content]:
    speed = place.speed
    text = "" if speed is None else f"{speed.median:.2f}"
    if speed is not None and speed.enough:
        text += f" ({speed.low:.2f}–{speed.high:.2f})"
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
            shown = "" if i == 0 else ", ".join(sorted(nodes)[:_SHOWN])
            grid.append([name if i == 0 else "", Cell(value or "unknown", "warn" if i else ""),
                         str(len(nodes)), shown])  # fmt: skip
    if grid:
        yield Heading("Versions")
        yield Grid(("part", "version", "hosts", "which"), grid, frozenset((2,)))


def _worst(fleet: Fleet) -> Iterator[Block]:
    worst = worst_ops(fleet)
    if not worst:
        return
    yield Heading(f"Worst operators ({len(worst)})")
    grid: list[list[Content]] = [
        [Cell(w.op, "bad"), f"{w.failing}/{w.judged}", str(w.places), w.first]
        for w in worst[:_SHOWN]
    ]
    yield Grid(("operator", "failing", "devices", "first"), grid, frozenset((1, 2)))


def _lost(fleet: Fleet) -> Iterator[Block]:
    if not fleet.lost:
        return
    yield Heading(f"Lost cases ({len(fleet.lost):,})")
    grid: list[list[Content]] = [
        [case, str(seed), place, how]
        for (case, seed, place), how in list(fleet.lost.items())[: 2 * _SHOWN]
    ]
    if len(fleet.lost) > 2 * _SHOWN:
        grid.append([f"… and {len(fleet.lost) - 2 * _SHOWN:,} more", "", "", ""])
    yield Grid(("case", "seed", "place", "how"), grid, frozenset((1,)))
