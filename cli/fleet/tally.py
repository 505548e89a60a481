"""Owns what results come to: counts, votes and times in memory that grows with devices, cases and
failures, and takes a bit for a result of compared devices and four bytes for one that was dealt.
"""

from __future__ import annotations

import zlib
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ..conformance.cases.case import BENCH, ITEMS, PROBE, SOAK
from ..conformance.record import votes
from ..conformance.record.result import FAILING, NEUTRAL, VERDICTS, Counts, Result, from_json
from .device_stats import DeviceStats, Worst
from .speed import Times, time_of

_ORDER: Final = tuple(VERDICTS)  # worst first
_RANK: Final = {verdict: i for i, verdict in enumerate(_ORDER)}
_REASON: Final = 300  # characters of a failure's reason
_REASONS: Final = 200_000  # failures of compared devices whose reason is known
_LOST: Final = 10_000  # lost cases that are named; the others are counted
_HEX: Final = 16

Key = tuple[str, int, str]


class Judgement(NamedTuple):
    """One of several verdicts of a case."""

    case: str
    seed: int
    verdict: str
    place: str


@dataclass(slots=True)
class Ballots:
    """Votes on the cases of one seed, by the cases' numbers: the digest, verdict and devices of the
    first vote, and those that differ. Devices are bits."""

    digests: array[int] = field(default_factory=lambda: array("Q"))
    verdicts: bytearray = field(default_factory=bytearray)
    members: list[int] = field(default_factory=list)
    others: dict[int, dict[tuple[int, int], int]] = field(default_factory=dict)

    def add(self, number: int, digest: int, rank: int, bit: int) -> list[int] | None:
        """The ranks of votes that the device gave before; None for this very vote."""
        members = self.members
        if number >= len(members):
            more = number + 1 - len(members)
            members.extend([0] * more)
            self.digests.extend([0] * more)
            self.verdicts.extend(bytes(more))
        first = members[number]
        if not first:
            self.digests[number], self.verdicts[number] = digest, rank
            members[number] = bit
            return []
        camps = self.others.get(number)
        alike = self.digests[number] == digest and self.verdicts[number] == rank
        if not alike and camps is None:
            camps = self.others[number] = {}
        vote = (digest, rank)
        if (first if alike else (camps or {}).get(vote, 0)) & bit:
            return None
        before = [self.verdicts[number]] if first & bit else []
        before += [r for (_, r), bits in (camps or {}).items() if bits & bit]
        if alike:
            members[number] = first | bit
        elif camps is not None:
            camps[vote] = camps.get(vote, 0) | bit
        return before

    def voted(self, number: int) -> int:
        """The devices that judged a case."""
        bits = self.members[number] if number < len(self.members) else 0
        for more in self.others.get(number, {}).values():
            bits |= more
        return bits

    def camps(self, number: int) -> list[tuple[int, int, int]]:
        """(digest, rank, devices) of every vote on a case."""
        first = (self.digests[number], self.verdicts[number], self.members[number])
        return [first, *((d, r, bits) for (d, r), bits in self.others.get(number, {}).items())]


class Places(Sequence[str]):
    """The names of the devices whose bits are set."""

    def __init__(self, bits: int, tally: Tally) -> None:
        self._bits, self._tally = bits, tally

    def __len__(self) -> int:
        return self._bits.bit_count()

    def __iter__(self) -> Iterator[str]:
        return (stats.name for stats in self._tally.of(self._bits))

    def __contains__(self, name: object) -> bool:
        stats = self._tally.named.get(str(name))
        return stats is not None and bool(self._bits & stats.bit)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice) and at.start is None and at.stop is not None:
            names = iter(self)
            return tuple(name for _, name in zip(range(at.stop), names, strict=False))
        return tuple(self)[at]


@dataclass(slots=True)
class OpStats:
    """An operator's cases: how many were judged and fail, where, and the first that fails."""

    judged: int = 0
    failing: int = 0
    devices: int = 0
    first: tuple[str, int, str, str] | None = None


@dataclass(slots=True)
class Tally:
    """Everything that results and plans of any number of runs come to."""

    numbers: dict[str, int] = field(default_factory=dict)
    cases: list[str] = field(default_factory=list)
    sums: array[int] = field(default_factory=lambda: array("I"))
    stats: list[DeviceStats] = field(default_factory=list)
    named: dict[str, DeviceStats] = field(default_factory=dict)
    compared: dict[int, Ballots] = field(default_factory=dict)
    planned: dict[int, list[int]] = field(default_factory=dict)
    dealt: dict[int, array[int]] = field(default_factory=dict)
    dealt_plan: dict[int, array[int]] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    ops: dict[str, OpStats] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    probes: dict[str, Result] = field(default_factory=dict)
    twice: list[tuple[Judgement, Judgement]] = field(default_factory=list)
    reasons: dict[Key, str] = field(default_factory=dict)
    odd_digests: dict[int, str] = field(default_factory=dict)
    times: Times = field(default_factory=Times)
    days: dict[tuple[int, str], list[int]] = field(default_factory=dict)

    def number(self, case: str) -> int:
        """The number of a case's name."""
        known = self.numbers.get(case)
        if known is None:
            known = self.numbers[case] = len(self.cases)
            self.cases.append(case)
            self.sums.append(zlib.crc32(case.encode("utf-8", "replace")))
        return known

    def device(self, node: str, device: str) -> DeviceStats:
        """What is known of a device."""
        name = f"{node} {device}".strip()
        stats = self.named.get(name)
        if stats is None:
            stats = DeviceStats(node, device, index=len(self.stats), bit=1 << len(self.stats))
            self.named[name] = stats
            self.stats.append(stats)
        return stats

    def of(self, bits: int) -> Iterator[DeviceStats]:
        """The devices whose bits are set."""
        while bits:
            low = bits & -bits
            yield self.stats[low.bit_length() - 1]
            bits ^= low

    def add(self, line: Mapping[str, Any], node: str, device: str, compares: bool, day: str) -> int:
        """Count a result's line, of a host and a device where it names none: 0 where it is known,
        1 where it is new, 2 where it is new and fails.

        KeyError, TypeError or ValueError for a line that is none.
        """
        result = from_json(line) if line["verdict"] in FAILING or line["form"] in ITEMS else None
        case, seed, rank = line["case"], line.get("seed", 0), _RANK[line["verdict"]]
        if case.__class__ is not str or seed.__class__ is not int:
            raise TypeError(f"case {case!r:.100}, seed {seed!r:.100}")
        stats = self.device(line.get("node") or node, line.get("device") or device)
        number = self.number(case)
        if line["form"] == PROBE and result is not None:
            self.probes[f"{stats.node}\0{case}"] = result.with_(node=stats.node)
            stats.probe = True
        if compares:
            new = self._vote(line, stats, number, seed, rank)
        else:
            new = self._deal(line, stats, number, seed, rank)
        if not new:
            return 0
        self._time(line, result, stats, number, compares)
        trend = self.days.setdefault((stats.index, day), [0, 0])
        trend[0] += 1
        trend[1] += result is not None and result.failing
        return 2 if line["verdict"] in FAILING else 1

    def _vote(
        self, line: Mapping[str, Any], stats: DeviceStats, number: int, seed: int, rank: int
    ) -> bool:
        ballots = self.compared.get(seed)
        if ballots is None:
            ballots = self.compared[seed] = Ballots()
        before = ballots.add(number, self._digest(line.get("digest", "")), rank, stats.bit)
        if before is None:
            return False
        if line["verdict"] in FAILING and len(self.reasons) < _REASONS:
            self.reasons[line["case"], seed, stats.name] = str(line.get("reason", ""))[:_REASON]
        if not before:
            self._count(line, stats, rank)
            return True
        worst = min(before)
        if worst != rank:
            one, other = (Judgement(line["case"], seed, _ORDER[r], stats.name)
                          for r in sorted((worst, rank)))  # fmt: skip
            self.twice.append((one, other))
        if rank < worst:
            self._uncount(line, stats, worst)
            self._count(line, stats, rank)
        return False

    def _deal(
        self, line: Mapping[str, Any], stats: DeviceStats, number: int, seed: int, rank: int
    ) -> bool:
        cells = self.dealt.get(seed)
        if cells is None:
            cells = self.dealt[seed] = array("I")
        if number >= len(cells):
            cells.extend([0] * (number + 1 - len(cells)))
        cell = cells[number]
        if not cell:
            cells[number] = (stats.index + 1) << 4 | rank
            self._count(line, stats, rank)
            return True
        other, known = self.stats[(cell >> 4) - 1], cell & 15
        if other is stats and known == rank:
            return False
        ours = Judgement(line["case"], seed, _ORDER[rank], stats.name)
        theirs = Judgement(line["case"], seed, _ORDER[known], other.name)
        if known != rank:
            worse, better = sorted((ours, theirs), key=_severity)
            self.twice.append((worse, better))
        if _severity(ours) < _severity(theirs):
            cells[number] = (stats.index + 1) << 4 | rank
            self._uncount(line, other, known)
            self._count(line, stats, rank)
            return True
        return False

    def _count(self, line: Mapping[str, Any], stats: DeviceStats, rank: int) -> None:
        verdict = _ORDER[rank]
        counts, total = stats.counts.by_verdict, self.counts.by_verdict
        counts[verdict] = counts.get(verdict, 0) + 1
        total[verdict] = total.get(verdict, 0) + 1
        stats.seconds += line.get("seconds", 0.0)
        op = self.ops.get(line["op"])
        if op is None:
            op = self.ops[line["op"]] = OpStats()
        op.judged += verdict not in NEUTRAL
        if verdict in FAILING and line["form"] != PROBE:
            op.failing += 1
            op.devices |= stats.bit
            first = (line["case"], line.get("seed", 0), verdict, str(line.get("reason", "")))
            op.first = min(filter(None, (op.first, first)))

    def _uncount(self, line: Mapping[str, Any], stats: DeviceStats, rank: int) -> None:
        verdict, op = _ORDER[rank], self.ops[line["op"]]
        stats.counts.by_verdict[verdict] -= 1
        self.counts.by_verdict[verdict] -= 1
        op.judged -= verdict not in NEUTRAL
        op.failing -= verdict in FAILING

    def _time(
        self, line: Mapping[str, Any], result: Result | None, stats: DeviceStats, number: int,
        same: bool,
    ) -> None:  # fmt: skip
        """The time of work that passed; soaks last as long as they are asked to."""
        form, verdict = line["form"], line["verdict"]
        if verdict in NEUTRAL or verdict in FAILING or form in (SOAK, PROBE):
            return
        value = time_of(result) if form == BENCH and result else line.get("seconds", 0.0)
        seed = line.get("seed", 0)
        if not value:
            return
        if same or form == BENCH:
            self.times.add(form == BENCH, number, seed, self.sums[number], stats.index, value)
        else:
            group = self.number(f"{line['op']}/{form}")
            self.times.add(False, group, -1, self.sums[number] ^ seed, stats.index, value)

    def _digest(self, text: str) -> int:
        """A digest as a number; of another form than ours, one that stands for it."""
        if not text:
            return 0
        if len(text) == _HEX:
            try:
                return int(text, 16)
            except ValueError:
                pass
        code = zlib.crc32(text.encode("utf-8", "replace")) + 1
        self.odd_digests[code] = text
        return code

    def _digest_text(self, code: int) -> str:
        return self.odd_digests.get(code) or (f"{code:016x}" if code else "")

    def plan(self, case: str, seed: int, stats: DeviceStats | None, node: str) -> None:
        """A case that is to be judged: on a device where devices are compared, else anywhere, by
        the run that `node` started."""
        number = self.number(case)
        if stats is None:
            nodes = self.dealt_plan.setdefault(seed, array("I"))
            nodes.extend([0] * (number + 1 - len(nodes)))
            nodes[number] = nodes[number] or self.nodes.setdefault(node, len(self.nodes)) + 1
        else:
            cells = self.planned.setdefault(seed, [])
            cells.extend([0] * (number + 1 - len(cells)))
            cells[number] |= stats.bit

    def verdict(self, case: str, seed: int = 0, place: str = "") -> str:
        """What counts for a case, of a place where devices are compared; "" without a result."""
        number = self.numbers.get(case, -1)
        if not place:
            cells = self.dealt.get(seed, ())
            cell = cells[number] if 0 <= number < len(cells) else 0
            return _ORDER[cell & 15] if cell else ""
        ballots, stats = self.compared.get(seed), self.named.get(place)
        if ballots is None or stats is None or not ballots.voted(number) & stats.bit:
            return ""
        return _ORDER[min(rank for _, rank, bits in ballots.camps(number) if bits & stats.bit)]

    def planner(self, case: str, seed: int, place: str) -> str:
        """The host that was to judge a case."""
        if place:
            return self.named[place].node
        nodes, number = self.dealt_plan.get(seed, ()), self.numbers.get(case, -1)
        at = nodes[number] if 0 <= number < len(nodes) else 0
        return list(self.nodes)[at - 1] if at else ""

    def lost(self) -> Iterator[Key]:
        """Planned cases that nobody has a result of."""
        for seed, plan in self.planned.items():
            ballots = self.compared.get(seed, Ballots())
            for number, bits in enumerate(plan):
                for stats in self.of(bits & ~ballots.voted(number)):
                    yield self.cases[number], seed, stats.name
        for seed, nodes in self.dealt_plan.items():
            cells = self.dealt.get(seed, ())
            for number in (n for n, node in enumerate(nodes) if node):
                if number >= len(cells) or not cells[number]:
                    yield self.cases[number], seed, ""

    def splits(self) -> Iterator[votes.Split]:
        """Every case in which devices do not agree."""
        for seed, ballots in sorted(self.compared.items()):
            for number in sorted(ballots.others, key=self.cases.__getitem__):
                case = self.cases[number]
                if case.split("/")[1] not in ITEMS:
                    yield votes.split(case, seed, [
                        votes.Camp(self._digest_text(digest), _ORDER[rank], Places(bits, self),
                                   self._reasons(case, seed, rank, bits))
                        for digest, rank, bits in ballots.camps(number)
                    ])  # fmt: skip

    def _reasons(self, case: str, seed: int, rank: int, bits: int) -> dict[str, str]:
        if _ORDER[rank] not in FAILING:
            return {}
        named = ((case, seed, stats.name) for stats in self.of(bits))
        return {key[2]: self.reasons[key] for key in named if key in self.reasons}

    def worst_ops(self) -> list[Worst]:
        """Operators with failures, most places and cases first."""
        worst = []
        for name, op in self.ops.items():
            if op.failing and op.first:
                case, _, verdict, reason = op.first
                worst.append(Worst(name, op.failing, op.judged, op.devices.bit_count(),
                                   f"{verdict} {case}: {reason}"))  # fmt: skip
        return sorted(worst, key=lambda w: (-w.places, -w.failing, w.op))


def _severity(one: Judgement) -> tuple[int, str]:
    """Worst verdict first, then by the place's name."""
    return _RANK[one.verdict], one.place


def bounded(lost: Iterator[Key]) -> tuple[list[Key], Counter[str]]:
    """The first lost cases, and how many each place lost."""
    named: list[Key] = []
    counts: Counter[str] = Counter()
    for key in lost:
        counts[key[2]] += 1
        if len(named) < _LOST:
            named.append(key)
    return named, counts
