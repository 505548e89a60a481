"""Owns what a fleet's report says of work beside checking: findings on hosts, times of work."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ..conformance.cases.case import BENCH
from ..plurals import plural
from ..render import Block, Cell, Content, Grid, Heading, Line, Style
from .merge import Fleet

_LISTED: Final = 20
_HOSTS: Final = 6
_RANK: Final = {"error": 0, "warning": 1, "note": 2}
_STYLES: Final[dict[str, Style]] = {"error": "bad", "warning": "warn", "note": "dim"}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that probes saw, and on which hosts."""

    severity: str
    what: str
    fix: str
    nodes: tuple[str, ...]

    def as_json(self) -> dict[str, str | list[str]]:
        return {"severity": self.severity, "what": self.what, "fix": self.fix,
                "nodes": list(self.nodes)}  # fmt: skip


def findings(fleet: Fleet) -> list[Finding]:
    """What probes saw, errors first, then what most hosts have; one finding for all its hosts."""
    nodes: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for result in fleet.tally.probes.values():
        causes = (result.measure or {}).get("causes", ())
        for cause in causes:
            nodes[cause["severity"], cause["what"], cause["fix"]].add(result.node)
        if result.failing and not causes:
            nodes["error", result.reason, ""].add(result.node)
    everything = [Finding(*key, tuple(sorted(places))) for key, places in nodes.items()]
    return sorted(everything, key=lambda f: (_RANK.get(f.severity, 3), -len(f.nodes), f.what))


def probed(fleet: Fleet) -> set[str]:
    """Hosts that were probed."""
    return {r.node for r in fleet.tally.probes.values()}


def hosts(fleet: Fleet) -> Iterator[Block]:
    """Findings of probes, each with its hosts."""
    nodes = probed(fleet)
    if not nodes:
        return
    yield Heading(f"Probes ({plural(len(nodes), 'host')})")
    there = findings(fleet)
    if not any(f.severity == "error" for f in there):
        yield Line(Cell("no host has an error", "good"))
    if not there:
        return
    grid: list[list[Content]] = [
        [Cell(f.severity, _STYLES.get(f.severity, "")), str(len(f.nodes)), _named(f.nodes), f.what,
         f.fix]
        for f in there[:_LISTED]
    ]  # fmt: skip
    if len(there) > _LISTED:
        grid.append(["…", "", "", f"{len(there) - _LISTED} more; all are in the JSON report", ""])
    yield Grid(("finding", "hosts", "which", "what", "fix"), grid, frozenset((1,)))


def _named(nodes: tuple[str, ...]) -> str:
    more = f" and {len(nodes) - _HOSTS} more" if len(nodes) > _HOSTS else ""
    return ", ".join(nodes[:_HOSTS]) + more


@dataclass(frozen=True, slots=True)
class Timing:
    """A workload over all devices, in µs: of each device the median of rounds' fastest calls."""

    work: str
    devices: int
    median: float
    low: float
    high: float
    slowest: str

    def as_json(self) -> dict[str, str | int | float]:
        return {"workload": self.work, "devices": self.devices, "median_us": round(self.median, 3),
                "low_us": round(self.low, 3), "high_us": round(self.high, 3),
                "slowest": self.slowest}  # fmt: skip


def timings(fleet: Fleet) -> list[Timing]:
    """Every workload that was timed, in the order of names."""
    workloads = []
    for number, by_device in fleet.tally.times.workloads().items():
        medians = {fleet.tally.stats[i].name: statistics.median(values)
                   for i, values in by_device.items()}  # fmt: skip
        slowest = max(medians, key=lambda place: (medians[place], place))
        name = fleet.tally.cases[number].replace(f"/{BENCH}/", " ", 1).replace("/", " ")
        workloads.append(Timing(name, len(medians), statistics.median(medians.values()),
                                min(medians.values()), medians[slowest], slowest))  # fmt: skip
    return sorted(workloads, key=lambda t: t.work)


def workloads(fleet: Fleet) -> Iterator[Block]:
    """Times of workloads over the devices."""
    there = timings(fleet)
    if not there:
        return
    yield Heading("Workloads")
    grid: list[list[Content]] = [
        [t.work, str(t.devices), f"{t.median:.4g}", f"{t.low:.4g}", f"{t.high:.4g}",
         f"{t.high / t.median:.2f}", t.slowest]
        for t in there[:_LISTED]
    ]  # fmt: skip
    columns = ("workload", "devices", "median µs", "fastest", "slowest", "/ median", "at")
    yield Grid(columns, grid, frozenset(range(1, 6)))
