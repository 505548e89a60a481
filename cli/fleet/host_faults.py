"""Owns faults of hosts: what went wrong with them rather than with operators, each by its name."""

from __future__ import annotations

import calendar
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from ..plurals import plural
from .merge import Fleet, odd_versions
from .run_files import RunPart, Source

# Clocks of a cluster are kept within milliseconds; a minute apart, stamps cannot be compared.
_SKEW_SECONDS: Final = 60.0
# Every row that a report may have, with its meaning.
NAMES: Final[dict[str, str]] = {
    "no NPU": "no worker could start there; none of its cases ran",
    "disk full": "its journal could not grow; what ran after that is not known",
    "stopped early": "its journal has no end: killed, cut off from power, or still running",
    "worker killed": "from outside, often for want of host memory; its case ran again",
    "device lost": "no worker starts there any more",
    "device hung": "a driver holds a worker that nothing ends, or it does not answer: it is fenced",
    "cut at the deadline": "a preflight's time was up; the case that was under way has no verdict",
    "node lost": "an actor of the cluster, or its host, went away; its cases ran elsewhere",
    "head restarted": "the cluster's head went away; cases in flight ran again",
    "two runs in one journal": "told apart by their ids; give each run a file of its own",
    "several chips": "two hosts of one name, or a chip that was exchanged",
    "clock skew": "its stamps do not fit: times between hosts cannot be compared",
    "torn lines": "lines that are no JSON were left out",
    "other version": "not what most hosts have",
    "shard missing": "no journal of this part is there",
    "other selection": "it is no part of the run that most journals are parts of",
    "unread journal": "what is in it is not in this report",
    "judged twice": "two places gave one case different verdicts; the worse one counts",
}


class HostFault(NamedTuple):
    """One thing that went wrong: its name, where, and what is known of it."""

    name: str
    place: str
    text: str


def rows(fleet: Fleet, now: float | None = None) -> list[HostFault]:
    """All of it, in the order of NAMES; `now` is the time of merging (seconds, UTC)."""
    there = [row for part in fleet.parts for row in _of_part(part, now or time.time())]
    there += _of_fleet(fleet)
    order = list(NAMES)
    return sorted(dict.fromkeys(there), key=lambda r: (order.index(r.name), r.place, r.text))


def _of_part(part: RunPart, now: float) -> Iterator[HostFault]:
    stopped = str((part.end or {}).get("stopped", ""))
    if stopped.startswith("no device"):
        yield HostFault("no NPU", part.node, stopped.partition(": ")[2])
    elif "no space left" in stopped:
        yield HostFault("disk full", part.node, stopped)
    elif part.end is None or part.end.get("interrupted"):
        done, planned = part.results, int(part.header.get("cases", 0))
        yield HostFault("stopped early", part.node, f"{done} of {planned} cases have a result")
    for kind, data in part.notes.values():
        if kind == "killed":
            where = f"{data.get('node') or part.node} {data['device']}"
            more = int(data.get("cases", 1)) - 1
            text = f"in {data['case']}" + (f" or {more} more of its batch" if more else "")
            yield HostFault("worker killed", where, text)
        if kind == "cut":
            where = f"{data.get('node') or part.node} {data['device']}"
            text = f"{data['case']} had run for {data['seconds']:.1f} s"
            yield HostFault("cut at the deadline", where, text)
        if kind == "lost":
            name = str(data.get("what", "device lost"))
            left = len(data.get("cases", ()))
            unrun = f"; not run: {plural(left, 'case')}" if left else ""
            place = str(data["place"])
            where = place if " " in place else f"{part.node} {place}"
            yield HostFault(
                name if name in NAMES else "device lost", where, f"{data['reason']}{unrun}"
            )
    if part.torn:
        yield HostFault("torn lines", part.node, f"{part.torn} in {name_of(part.path)}")
    yield from _skew(part, now)


def name_of(source: Source) -> str:
    """The last part of a journal's path or address."""
    return str(source).rpartition("/")[2]


def _skew(part: RunPart, now: float) -> Iterator[HostFault]:
    started, ended = (_seconds(stamp) for stamp in (
        part.header.get("started"), (part.end or {}).get("ended"),
    ))  # fmt: skip
    if started is not None and started > now + _SKEW_SECONDS:
        yield HostFault("clock skew", part.node, f"started {started - now:.0f} s from now")
    elif started is not None and ended is not None:
        lasted = float((part.end or {}).get("seconds", 0.0))
        if ended - started < lasted - _SKEW_SECONDS:
            text = f"ran for {lasted:.0f} s, by its clock for {ended - started:.0f} s"
            yield HostFault("clock skew", part.node, text)
    for node, skew in part.skews.items():
        if abs(skew) > _SKEW_SECONDS:
            yield HostFault("clock skew", node, f"{skew:+.0f} s against {part.node}")


def _seconds(stamp: str | None) -> float | None:
    try:
        return calendar.timegm(time.strptime(str(stamp), "%Y-%m-%dT%H:%M:%SZ"))
    except ValueError:
        return None


def _without_npu(fleet: Fleet) -> Iterator[HostFault]:
    """Hosts that fell back on the simulator, in a fleet that has NPUs."""
    kinds = {node: str(environment.get("kind", "")) for node, environment in fleet.environments()}
    if "cann" in kinds.values():
        for node in (n for n, kind in kinds.items() if kind == "simulator"):
            yield HostFault("no NPU", node, "only the bundled simulator is there; others have CANN")


def _of_fleet(fleet: Fleet) -> Iterator[HostFault]:
    per_file = Counter(part.path for part in fleet.parts)
    for path, count in per_file.items():
        if count > 1:
            nodes = sorted({p.node for p in fleet.parts if p.path == path})
            yield HostFault(
                "two runs in one journal",
                ", ".join(nodes),
                f"{plural(count, 'run')} in {name_of(path)}",
            )
    for node, odd in odd_versions(fleet.environments()).items():
        text = ", ".join(f"{what} {mine or 'unknown'}, most have {usual or 'unknown'}"
                         for what, (mine, usual) in odd.items())  # fmt: skip
        yield HostFault("other version", node, text)
    for stats in fleet.tally.stats:
        if len(stats.serials) > 1:
            yield HostFault(
                "several chips", stats.name, f"serial {', '.join(sorted(stats.serials))}"
            )
    yield from _without_npu(fleet)
    for shard in fleet.missing:
        yield HostFault("shard missing", str(shard), "its cases are not known")
    for part in fleet.foreign_shards:
        text = f"part {part.options['shard']} of another selection or seed than most; not counted"
        yield HostFault("other selection", part.node, f"{text}: {name_of(part.path)}")
    for one in fleet.unread:
        yield HostFault("unread journal", one.source, one.why)
    for worse, other in fleet.twice:
        text = f"{worse.verdict} there, {other.verdict} at {other.place}"
        yield HostFault("judged twice", worse.place, f"{worse.case}: {text}")
