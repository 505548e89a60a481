"""Owns merging: many runs as one, in any order, each case counted once, what is missing named.

Journals are read as a stream: what stays in memory grows with devices, cases and failures.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ..conformance.cases.shard import CaseShard, parse as shard_of
from ..conformance.record import journal, votes
from ..conformance.record.result import FAILING, VERDICTS, Counts
from . import bits, columns, run_files, tally as tally_
from .device_stats import Counters, DeviceStats, natural
from .run_files import RunPart, Unread
from .speed import speeds
from .tally import Judgement, Key, Tally

_NOTES: Final = frozenset(("soak", "repeat", "lost", "deviation", "killed", "cut"))
# What of an environment a fleet should have in common.
VERSIONS: Final = ("cann", "driver", "firmware", "kernels", "soc", "mindtorch_npu")


@dataclass(slots=True)
class Fleet:
    """Runs as one. `lost` are the first planned cases without a result, by (case, seed, place),
    where place is "" unless devices were compared, and how; `lost_counts` counts all of them.
    `unread` are journals that are not in it."""

    parts: list[RunPart] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    devices: list[DeviceStats] = field(default_factory=list)
    lost: dict[Key, str] = field(default_factory=dict)
    lost_counts: Counter[str] = field(default_factory=Counter)
    missing: list[CaseShard] = field(default_factory=list)
    foreign_shards: list[RunPart] = field(default_factory=list)
    deviations: list[votes.Deviation] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)

    def counts(self) -> Counts:
        return Counts({v: n for v, n in self.tally.counts.by_verdict.items() if n})

    @property
    def twice(self) -> list[tuple[Judgement, Judgement]]:
        """Cases that several places judged, and differently: the worse verdict first."""
        return sorted(set(self.tally.twice), key=lambda p: (p[0].case, p[0].seed, p[1].place))

    def environments(self) -> list[tuple[str, Mapping[str, Any]]]:
        """(node, environment) of every host on which a worker started."""
        pairs: list[tuple[str, Mapping[str, Any]]] = [
            (p.node, p.environment) for p in self.parts if "kind" in p.environment and not p.places
        ]
        pairs += [pair for p in self.parts for pair in p.places.items()]
        pairs = [
            (node, environment) for node, environment in pairs if environment.get("kind") != "cpu"
        ]
        known = {node for node, _ in pairs}
        return pairs + [
            (n, environment) for n, environment in self._probed() if environment and n not in known
        ]

    def _probed(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """What probes saw on hosts: a probe runs on the host itself, on no device."""
        for result in self.tally.probes.values():
            versions = (result.measure or {}).get("versions", {})
            yield result.node, {**versions, "mindtorch_npu": self.version} if versions else {}

    @property
    def version(self) -> str:
        """Of mindtorch-npu, which wrote the journals."""
        return next((p.version for p in self.parts if p.version), "")

    @property
    def voters(self) -> int:
        """Devices that judged what others judged too."""
        return _union(self.tally).bit_count()

    @property
    def compares(self) -> bool:
        return any(part.compares and not part.options.get("items") for part in self.parts)

    @property
    def ended(self) -> bool:
        """Whether every run has told its end, and no part of a divided one is still to come."""
        return all(p.end is not None for p in self.parts) and not (self.missing or self.unread)

    @property
    def failing(self) -> bool:
        """Whether a case fails or a device differs."""
        return bool(self.counts().failing or self.deviations)

    @property
    def incomplete(self) -> bool:
        """Whether something that was to be judged was not, or cannot be read."""
        whole = [part for part in self.parts if not part.options.get("shard")]
        unknown = any(not part.begun for part in whole)
        return bool(unknown or self.lost or self.missing or self.unread or self.foreign_shards)


def _union(tally: Tally) -> int:
    rows = 0
    for ballots in tally.compared.values():
        rows |= ballots.members.rows()
    return rows


def merge(sources: Iterable[run_files.Source]) -> Fleet:
    """One fleet of the runs in all journals; the same for every order of them, and for journals
    that come twice."""
    readable, unread = run_files.ordered(list(sources))
    fleet = Fleet(unread=unread)
    runs: dict[str, RunPart] = {}
    for source, events in columns.read_all(readable):
        broken = _JournalTally(runs, fleet.tally).read(events)
        if broken:
            more = f", and {len(broken) - 1:,} more" if len(broken) > 1 else ""
            why = broken[0].removeprefix(f"{source}: ")
            fleet.unread.append(Unread(str(source), f"{why}{more}"))
    fleet.parts = sorted(runs.values(), key=lambda p: (p.node, p.run))
    _find_lost(fleet)
    fleet.missing, fleet.foreign_shards = missing_shards(fleet.parts)
    if fleet.compares:
        fleet.deviations = _deviations(fleet)
    _describe(fleet)
    return fleet


class _JournalTally:
    """Takes the events of one journal into runs and a tally."""

    def __init__(self, runs: dict[str, RunPart], tally: Tally) -> None:
        self._runs, self._tally = runs, tally
        self._by_part: dict[str, RunPart] = {}
        self._numbers = array("q")
        self._judged: dict[tuple[str, int], list[int]] = {}

    def read(self, events: Iterable[columns.Event]) -> list[str]:
        """Take them all; what cannot be read."""
        broken: list[str] = []
        for event in events:
            if isinstance(event, columns.ResultBlock):
                self._block(event)
            elif isinstance(event, columns.CaseNames):
                self._numbers.extend(map(self._tally.number, event.names))
            elif isinstance(event, RunPart):
                self._by_part[event.run] = self._runs.setdefault(event.run, event)
            elif isinstance(event, columns.Unreadable):
                broken.append(event.why)
            elif isinstance(event, columns.TornLines):
                for part in self._by_part.values():
                    part.torn = max(part.torn, event.lines)
            else:
                broken += self._other(event)
        for (run, index), (judged, failing) in self._judged.items():
            # Of two copies of a journal the longer one.
            known = self._runs[run].judged.get(index, (0, 0))
            self._runs[run].judged[index] = max(known, (judged, failing))
        return broken

    def _global(self, numbers: array[int]) -> bits.Numbers:
        """The report's numbers of a journal's."""
        table: bits.Numbers = np.frombuffer(self._numbers, np.int64)
        return table[np.frombuffer(numbers, np.uint32)]

    def _block(self, block: columns.ResultBlock) -> None:
        part, tally = self._by_part[block.run], self._tally
        if block.planned:
            _plan(part, block.device, block.seed, self._global(block.planned), tally)
        if not block.cases and not block.started:
            return
        stats = tally.device(block.node or part.node, block.device or part.device)
        rows = tally_.ResultRows(self._global(block.cases), np.frombuffer(block.ranks, np.uint8),
                           np.frombuffer(block.digests, np.uint64),
                           np.frombuffer(block.seconds, np.float64))  # fmt: skip
        part.results += tally.add_block(rows, stats, block.seed, part.compares)
        self._count(part, stats, len(rows.numbers), 0)
        at = _place(part, block.device, block.node) if part.compares else ""
        open_ = part.started.setdefault((block.seed, at), set())
        open_.update(self._global(block.started).tolist())
        open_.difference_update(rows.numbers.tolist())

    def _count(self, part: RunPart, stats: DeviceStats, judged: int, failing: int) -> None:
        """Count results for the trend: those of every run, of cases that other runs judged too."""
        counts = self._judged.setdefault((part.run, stats.index), [0, 0])
        counts[0] += judged
        counts[1] += failing

    def _result(self, part: RunPart, line: dict[str, Any]) -> None:
        if line.get("verdict") not in VERDICTS:
            raise journal.JournalError(
                f"verdict {line.get('verdict')!r} is none of {', '.join(VERDICTS)}; a newer "
                "version wrote this: merge it with that one"
            )
        tally = self._tally
        stats = tally.device(line.get("node") or part.node, line.get("device") or part.device)
        new = tally.add(line, stats, part.compares)
        self._count(part, stats, 1, line["verdict"] in FAILING)
        part.results += bool(new)
        part.failing += new > 1
        at = _place(part, str(line.get("device", "")), str(line.get("node", "")))
        key = line.get("seed", 0), at if part.compares else ""
        part.started.get(key, set()).discard(tally.number(line["case"]))

    def _other(self, event: columns.SingleLine) -> list[str]:
        try:
            part, line = self._by_part[event.run], event.line
            if line.get("kind") == "result":
                self._result(part, line)
            else:
                _take(part, line, self._tally)
        except journal.JournalError as error:
            return [f"line {event.number}: {error}"]
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            kind = event.line.get("kind")
            return [f"line {event.number}: a {kind!r} line is none of ours: {error!r}"]
        return []


def _take(part: RunPart, line: dict[str, Any], tally: Tally) -> None:
    kind = line.get("kind")
    if kind == "start":
        at = _place(part, str(line.get("device", ""))) if part.compares else ""
        key = int(line.get("seed", 0)), at
        part.started.setdefault(key, set()).add(tally.number(str(line["case"])))
    elif kind == "plan":
        cases = np.array([tally.number(str(case)) for case in line["cases"]], np.int64)
        _plan(part, str(line.get("device", "")), int(line["seed"]), cases, tally)
    elif kind == "place":
        part.places[str(line["node"])] = dict(line["environment"])
        part.skews[str(line["node"])] = float(line.get("skew", 0.0))
        _identify(tally, str(line["node"]), line["environment"], part.order)
    elif kind == "run":
        _identify(tally, part.node, part.environment, part.order)
    elif kind == "end":
        part.end = line
    elif kind == "health":
        stats = tally.device(str(line.get("node") or part.node), str(line["device"]))
        stats.counters.setdefault(part.order, Counters()).after = dict(line.get("health", {}))
        stats.take_beside(line.get("processes", ()))
    elif kind in _NOTES:
        part.notes[json.dumps(line, sort_keys=True)] = (str(kind), line)


def _place(part: RunPart, device: str, node: str = "") -> str:
    return device if " " in device else f"{node or part.node} {device}".strip()


def _plan(part: RunPart, device: str, seed: int, numbers: bits.Numbers, tally: Tally) -> None:
    stats = None
    part.planned = True
    if part.compares:
        node, _, device = _place(part, device).rpartition(" ")
        stats = tally.device(node, device)
    tally.plan(numbers, seed, stats, part.node)


def _identify(tally: Tally, node: str, environment: Mapping[str, Any], order: str) -> None:
    """What the system said of a host's chips before the run of that place in time."""
    for device, chip in environment.get("chips", {}).items():
        stats = tally.device(node, str(device))
        stats.chip = {k: v for k, v in chip.items() if k not in ("health", "processes")}
        if serial := str(chip.get("serial", "")):
            stats.serials[serial] = None
        stats.counters.setdefault(order, Counters()).before = dict(chip.get("health", {}))
        stats.take_beside(chip.get("processes", ()))


def _find_lost(fleet: Fleet) -> None:
    """Planned cases that nobody has a result of, and whether they had begun."""
    planned, fleet.lost_counts = tally_.bounded(fleet.tally.lost())
    under_way = {key: part.node for part in fleet.parts for key in _started(part, fleet.tally)}
    for case, seed, place in sorted({*planned, *under_way}):
        begun = under_way.get((case, seed, place))
        at = begun or fleet.tally.planner(case, seed, place)
        how = "under way" if begun else "not begun"
        fleet.lost[case, seed, place] = f"{how} on {at}" if at else how
    fleet.lost_counts.update(key[2] for key in under_way if key not in set(planned))


def _started(part: RunPart, tally: Tally) -> Iterator[Key]:
    """Cases that a run began, and nobody has a result of."""
    for (seed, place), numbers in part.started.items():
        for number in numbers:
            if not tally.verdict(tally.cases[number], seed, place):
                yield tally.cases[number], seed, place


def selection_of(part: RunPart) -> str:
    """What a run was asked to check; parts of one run have the same."""
    options = part.options
    selection = options.get("selection")
    return str(selection or [options.get(k) for k in ("what", "level", "seed")])


def missing_shards(runs: Iterable[RunPart]) -> tuple[list[CaseShard], list[RunPart]]:
    """Parts of a divided run that no journal is there of which began, and journals of a part that
    belong to another selection than most of that many parts."""
    by_count: dict[int, dict[str, list[RunPart]]] = {}
    for part in runs:
        if part.options.get("shard"):
            selections = by_count.setdefault(shard_of(str(part.options["shard"])).count, {})
            if part.begun:
                selections.setdefault(selection_of(part), []).append(part)
    missing: list[CaseShard] = []
    foreign: list[RunPart] = []
    for count, selections in sorted(by_count.items()):
        usual = min(selections, key=lambda s: (-len(selections[s]), s), default="")
        numbers = {shard_of(str(p.options["shard"])).number for p in selections.get(usual, ())}
        missing += [CaseShard(i, count) for i in range(1, count + 1) if i not in numbers]
        foreign += [p for s, group in selections.items() if s != usual for p in group]
    return missing, foreign


def most(values: Iterable[str]) -> str:
    """The value that most have; the smallest of equally common ones."""
    counts = Counter(values)
    return min(counts, key=lambda v: (-counts[v], v), default="")


def odd_versions(
    hosts: Sequence[tuple[str, Mapping[str, Any]]],
) -> dict[str, dict[str, tuple[str, str]]]:
    """node → {what: (its version, that of most)} where they differ."""
    odd: dict[str, dict[str, tuple[str, str]]] = {}
    for name in VERSIONS:
        versions = {node: str(environment.get(name, "")) for node, environment in hosts}
        usual = most(versions.values())
        for node, value in versions.items():
            if value != usual:
                odd.setdefault(node, {})[name] = (value, usual)
    return odd


def _deviations(fleet: Fleet) -> list[votes.Deviation]:
    """Those that the runs themselves saw, and what only shows across hosts."""
    by_case: dict[Key, dict[str, Any]] = {}
    seen: dict[votes.Key, votes.Evidence] = {}
    for part in fleet.parts:
        notes = list(part.notes.values())
        for data in (data for kind, data in notes if kind == "deviation"):
            by_case[data["case"], int(data["seed"]), _place(part, str(data["place"]))] = data
        seen |= votes.evidence(notes, part.node)
    first = {key: str(data["first"]) for key, data in by_case.items() if data.get("first")}
    texts = {
        node: ", ".join(f"{what} {mine or 'none'}, most have {usual or 'none'}"
                        for what, (mine, usual) in odd.items())
        for node, odd in odd_versions(fleet.environments()).items()
    }  # fmt: skip
    versions = {stats.name: texts[stats.node] for stats in fleet.tally.stats if stats.node in texts}
    stuck = {key for key, data in by_case.items() if data.get("class") == votes.STUCK}
    return [
        votes.renamed(d, votes.STUCK)
        if (d.case, d.seed, d.place) in stuck and d.kind == votes.DETERMINISTIC
        else d
        for d in votes.deviations(fleet.tally.splits(), seen, None, first, versions)
    ]


def _describe(fleet: Fleet) -> None:
    """Give every device that judged a case its speed, faults and trend."""
    kinds: dict[str, Counter[str]] = {}
    for deviation in fleet.deviations:
        kinds.setdefault(deviation.place, Counter())[deviation.kind] += 1
    deviating = Counter(
        (fleet.tally.named[place].index, part.day)
        for part in fleet.parts
        for kind, data in part.notes.values()
        if kind == "deviation" and data.get("class") in votes.ABOUT_DEVICES
        and (place := _place(part, str(data["place"]))) in fleet.tally.named
    )  # fmt: skip
    by_index = speeds(fleet.tally.times)
    days: dict[tuple[int, str], list[int]] = {}
    for part in fleet.parts:
        for index, counts in part.judged.items():
            of_day = days.setdefault((index, part.day), [0, 0])
            of_day[:] = map(sum, zip(of_day, counts, strict=True))
    for (index, day), (judged, failing) in sorted(days.items()):
        bad = max(failing, deviating[index, day])  # a case that differs need not fail
        fleet.tally.stats[index].days.append((day, judged, bad))
    for stats in fleet.tally.stats:
        counted = kinds.get(stats.name, Counter())
        stats.speed = by_index.get(stats.index)
        stats.kinds = tuple(k for k in votes.CLASSES if k in counted)
        stats.deviating = sum(n for k, n in counted.items() if k in votes.ABOUT_DEVICES)
    fleet.devices = sorted(
        (s for s in fleet.tally.stats if s.counts.total and not s.probe),
        key=lambda s: natural((s.node, s.device)),
    )
