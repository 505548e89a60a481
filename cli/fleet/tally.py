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

import numpy as np
import numpy.typing as npt

from ..conformance.cases.case import BENCH, ITEMS, PROBE, SOAK
from ..conformance.record import votes
from ..conformance.record.result import FAILING, NEUTRAL, VERDICTS, Counts, Result, from_json
from .bits import BitMatrix, Mask, Numbers
from .device_stats import DeviceStats, Worst
from .speed import Times, time_of

_ORDER: Final = tuple(VERDICTS)  # worst first
_RANK: Final = {verdict: i for i, verdict in enumerate(_ORDER)}
_REASON: Final = 300  # characters of a failure's reason
_REASONS: Final = 200_000  # failures of compared devices whose reason is known
_LOST: Final = 10_000  # lost cases that are named; the others are counted
_HEX: Final = 16
_NEUTRAL_RANKS: Final = tuple(_RANK[verdict] for verdict in NEUTRAL)

Key = tuple[str, int, str]


class Judgement(NamedTuple):
    """One of several verdicts of a case."""

    case: str
    seed: int
    verdict: str
    place: str


class ResultRows(NamedTuple):
    """Results without a failure, of one place and seed, as columns."""

    numbers: Numbers
    ranks: npt.NDArray[np.uint8]
    digests: npt.NDArray[np.uint64]
    seconds: npt.NDArray[np.float64]

    def where(self, mask: Mask) -> ResultRows:
        numbers, ranks, digests, seconds = self
        return ResultRows(numbers[mask], ranks[mask], digests[mask], seconds[mask])


_NO_VOTE: Final = 255


class Ballots:
    """Votes on the cases of one seed, by the cases' numbers: the digest, verdict and devices of the
    first vote, and those that differ, whose devices are bits of a number."""

    def __init__(self) -> None:
        self.digests = np.zeros(64, np.uint64)
        self.ranks = np.full(64, _NO_VOTE, np.uint8)
        self.split = np.zeros(64, np.bool_)
        self.members = BitMatrix()
        self.others: dict[int, dict[tuple[int, int], int]] = {}

    def _fit(self, number: int) -> None:
        size = len(self.ranks)
        if number < size:
            return
        more = max(size, number + 1 - size)
        self.digests = np.concatenate([self.digests, np.zeros(more, np.uint64)])
        self.ranks = np.concatenate([self.ranks, np.full(more, _NO_VOTE, np.uint8)])
        self.split = np.concatenate([self.split, np.zeros(more, np.bool_)])

    def add_rows(self, rows: ResultRows, stats: DeviceStats) -> tuple[Mask, Mask]:
        """Which votes of a device are new, and which are to be looked at one by one."""
        numbers, ranks, digests, _ = rows
        self._fit(int(numbers.max()))
        first = self.ranks[numbers] == _NO_VOTE
        self.digests[numbers[first]] = digests[first]
        self.ranks[numbers[first]] = ranks[first]
        alike = (self.digests[numbers] == digests) & (self.ranks[numbers] == ranks)
        alike &= ~self.split[numbers]
        new = alike & ~self.members.test(stats.index, numbers)
        self.members.set(stats.index, numbers[new])
        return new, ~alike

    def add(self, number: int, digest: int, rank: int, stats: DeviceStats) -> list[int] | None:
        """The ranks of votes that the device gave before; None for this very vote."""
        self._fit(number)
        if self.ranks[number] == _NO_VOTE:
            self.digests[number], self.ranks[number] = digest, rank
        one, bit = int(self.ranks[number]), stats.bit
        member = self.members.has(stats.index, number)
        camps = self.others.get(number, {})
        before = [one] if member else []
        before += [r for (_, r), bits in camps.items() if bits & bit]
        vote = (digest, rank)
        if int(self.digests[number]) == digest and one == rank:
            if member:
                return None
            self.members.add(stats.index, number)
            return before
        if camps.get(vote, 0) & bit:
            return None
        self.split[number] = True
        camps[vote] = camps.get(vote, 0) | bit
        self.others[number] = camps
        return before

    def voted(self, number: int, stats: DeviceStats) -> list[int]:
        """The ranks of a device's votes on a case."""
        first = [int(self.ranks[number])] if self.members.has(stats.index, number) else []
        return first + [
            r for (_, r), bits in self.others.get(number, {}).items() if bits & stats.bit
        ]

    def camps(self, number: int) -> list[tuple[int, int, int]]:
        """(digest, rank, devices) of every vote on a case."""
        members = self.members.rows_of(number)
        first = (int(self.digests[number]), int(self.ranks[number]), members)
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
    op_index: dict[str, int] = field(default_factory=dict)
    op_numbers: array[int] = field(default_factory=lambda: array("I"))
    groups: array[int] = field(default_factory=lambda: array("I"))
    stats: list[DeviceStats] = field(default_factory=list)
    named: dict[str, DeviceStats] = field(default_factory=dict)
    compared: dict[int, Ballots] = field(default_factory=dict)
    planned: dict[int, BitMatrix] = field(default_factory=dict)
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

    def number(self, case: str) -> int:
        """The number of a case's name."""
        known = self.numbers.get(case)
        if known is None:
            known = self.numbers[case] = len(self.cases)
            self.cases.append(case)
            self.sums.append(zlib.crc32(case.encode("utf-8", "replace")))
            op = case.partition("/")[0]
            self.op_numbers.append(self.op_index.setdefault(op, len(self.op_index)))
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

    def add(self, line: Mapping[str, Any], stats: DeviceStats, compares: bool) -> int:
        """Count a result's line of a device: 0 where it is known, 1 where it is new, 2 where it is
        new and fails.

        KeyError, TypeError or ValueError for a line that is none.
        """
        result = from_json(line) if line["verdict"] in FAILING or line["form"] in ITEMS else None
        case, seed, rank = line["case"], line.get("seed", 0), _RANK[line["verdict"]]
        if case.__class__ is not str or seed.__class__ is not int:
            raise TypeError(f"case {case!r:.100}, seed {seed!r:.100}")
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
        return 2 if line["verdict"] in FAILING else 1

    def add_block(self, rows: ResultRows, stats: DeviceStats, seed: int, compares: bool) -> int:
        """Count results of a place, none of which fails; how many are new."""
        numbers = rows.numbers
        if not len(numbers):
            return 0
        if len(np.unique(numbers)) < len(numbers):
            new, rest = np.zeros(len(numbers), np.bool_), np.ones(len(numbers), np.bool_)
        elif compares:
            new, rest = self.compared.setdefault(seed, Ballots()).add_rows(rows, stats)
        else:
            new, rest = self._deal_rows(rows, stats, seed)
        self._count_rows(rows.where(new), stats, seed, compares)
        return int(new.sum()) + sum(
            self.add(self._line(rows, int(at), seed), stats, compares) > 0
            for at in np.flatnonzero(rest)
        )

    def _line(self, rows: ResultRows, at: int, seed: int) -> dict[str, Any]:
        case = self.cases[rows.numbers[at]]
        op, _, form = case.partition("/")
        return {"case": case, "op": op, "form": form.partition("/")[0], "seed": seed,
                "verdict": _ORDER[rows.ranks[at]], "seconds": float(rows.seconds[at]),
                "digest": self._digest_text(int(rows.digests[at]))}  # fmt: skip

    def _deal_rows(self, rows: ResultRows, stats: DeviceStats, seed: int) -> tuple[Mask, Mask]:
        """Which results are of cases without one, and which are to be looked at one by one."""
        cells = self._cells(seed, int(rows.numbers.max()))
        table = np.frombuffer(cells, np.uint32)
        known = table[rows.numbers]
        marks = np.uint32(stats.index + 1 << 4) | rows.ranks.astype(np.uint32)
        new = known == 0
        table[rows.numbers[new]] = marks[new]
        return new, ~new & (known != marks)

    def _count_rows(self, rows: ResultRows, stats: DeviceStats, seed: int, same: bool) -> None:
        for rank, n in enumerate(np.bincount(rows.ranks).tolist()):
            for counts in (stats.counts.by_verdict, self.counts.by_verdict) if n else ():
                counts[_ORDER[rank]] = counts.get(_ORDER[rank], 0) + n
        stats.seconds += float(rows.seconds.sum())
        judged = rows.where(~np.isin(rows.ranks, _NEUTRAL_RANKS))
        ops = np.bincount(np.frombuffer(self.op_numbers, np.uint32)[judged.numbers])
        names = list(self.op_index)
        for index in np.flatnonzero(ops):
            self.ops.setdefault(names[index], OpStats()).judged += int(ops[index])
        timed = judged.where(judged.seconds > 0)
        sums = np.frombuffer(self.sums, np.uint32)[timed.numbers]
        if same:
            self.times.add_many(timed.numbers, seed, sums, stats.index, timed.seconds)
        elif len(sums):
            groups, sums = self._grouped(timed.numbers), sums ^ np.uint32(seed & 0xFFFFFFFF)
            self.times.add_many(groups, -1, sums, stats.index, timed.seconds)

    def _grouped(self, numbers: Numbers) -> Numbers:
        """The number of each case's operator and form, of which dealt cases are samples."""
        for case in self.cases[len(self.groups) :]:
            self.groups.append(self.number("/".join(case.split("/")[:2])))
        groups: Numbers = np.frombuffer(self.groups, np.uint32)[numbers].astype(np.int64)
        return groups

    def _vote(
        self, line: Mapping[str, Any], stats: DeviceStats, number: int, seed: int, rank: int
    ) -> bool:
        ballots = self.compared.get(seed)
        if ballots is None:
            ballots = self.compared[seed] = Ballots()
        before = ballots.add(number, self._digest(line.get("digest", "")), rank, stats)
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
        cells = self._cells(seed, number)
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

    def _cells(self, seed: int, number: int) -> array[int]:
        """Of dealt cases the place and verdict that count, by number; 0 where there is none."""
        cells = self.dealt.get(seed)
        if cells is None:
            cells = self.dealt[seed] = array("I")
        if number >= len(cells):
            cells.extend([0] * (number + 1 - len(cells)))
        return cells

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

    def plan(self, numbers: Numbers, seed: int, stats: DeviceStats | None, node: str) -> None:
        """Cases that are to be judged: on a device where devices are compared, else anywhere, by
        the run that `node` started."""
        if stats is not None:
            self.planned.setdefault(seed, BitMatrix()).set(stats.index, numbers)
        elif len(numbers):
            nodes = self.dealt_plan.setdefault(seed, array("I"))
            nodes.extend([0] * (int(numbers.max()) + 1 - len(nodes)))
            table = np.frombuffer(nodes, np.uint32)
            mark = self.nodes.setdefault(node, len(self.nodes)) + 1
            table[numbers] = np.where(table[numbers] == 0, mark, table[numbers])

    def verdict(self, case: str, seed: int = 0, place: str = "") -> str:
        """What counts for a case, of a place where devices are compared; "" without a result."""
        number = self.numbers.get(case, -1)
        if not place:
            cells = self.dealt.get(seed, ())
            cell = cells[number] if 0 <= number < len(cells) else 0
            return _ORDER[cell & 15] if cell else ""
        ballots, stats = self.compared.get(seed), self.named.get(place)
        ranks = [] if ballots is None or stats is None else ballots.voted(number, stats)
        return _ORDER[min(ranks)] if ranks else ""

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
            for stats in self.stats:
                for number in plan.absent_in(stats.index, ballots.members):
                    if not ballots.voted(number, stats):
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
