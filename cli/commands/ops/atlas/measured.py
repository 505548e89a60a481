"""Owns what machines measured of operators: verdicts, calls and times by release and product.

Holds sums alone, so memory grows with what a page shows and not with what was read. Keeps no text
of a result: names are those of our own tables, and machines are numbers unless names are asked for.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Final

from ....conformance.record.result import FAILING, NEUTRAL, VERDICTS
from ...bench.statistics import TimeSpread
from ...bench.verdict import compare

# What a cell says, worst first.
FAILS, MISSING, PASSES, CALLABLE, UNSUPPORTED = STATES = (
    "fails", "missing", "passes", "callable", "not supported",
)  # fmt: skip
UNNAMED: Final = "\0"  # begins what stands for a machine whose results do not name it
_MOST_WORKLOADS: Final = 100_000


@dataclass(frozen=True, slots=True, order=True)
class MeasuredPlace:
    """One row of the page. `product` is a code of operator documents, "" where none was stated."""

    operator: str
    product: str
    simulated: bool


@dataclass(slots=True)
class MeasuredCell:
    """What one release showed at one place. Machines are bits, because there may be thousands."""

    verdicts: Counter[str] = field(default_factory=Counter)
    dtypes: set[str] = field(default_factory=set)  # of cases that failed
    judged: int = 0
    failing: int = 0
    callable: int = 0
    missing: int = 0

    @property
    def state(self) -> str:
        """The worst that a machine saw; a verdict outweighs a probe."""
        if self.failing:
            return FAILS
        if any(v not in NEUTRAL for v in self.verdicts):
            return PASSES
        if self.missing:
            return MISSING
        return CALLABLE if self.callable else UNSUPPORTED

    @property
    def failures(self) -> int:
        return sum(n for v, n in self.verdicts.items() if v in FAILING)

    @property
    def agreement(self) -> tuple[int, int]:
        """How many machines agree with the state, and how many looked."""
        by_probe = self.state in (MISSING, CALLABLE)
        looked = self.missing | self.callable if by_probe else self.judged
        return self.machines.bit_count(), looked.bit_count()

    @property
    def machines(self) -> int:
        """Those that saw the state."""
        by_state = {FAILS: self.failing, MISSING: self.missing, CALLABLE: self.callable}
        return by_state.get(self.state, self.judged)

    def text(self) -> str:
        """`FAIL, 2 of 3 machines`."""
        agree, looked = self.agreement
        word = next(v for v in VERDICTS if self.verdicts[v]) if self.failing else self.state
        share = f"{agree}" if agree == looked else f"{agree} of {looked}"
        return f"{word}, {share} machine{'' if looked == 1 else 's'}"

    def detail(self) -> str:
        """`12 of 340 cases: float16 float32`; "" where none fails."""
        if not self.failing:
            return ""
        count = f"{self.failures:,} of {self.verdicts.total():,} cases"
        return ": ".join(filter(None, (count, " ".join(sorted(self.dtypes)))))


@dataclass(frozen=True, slots=True, order=True)
class TimedWorkload:
    """What is timed: the same case, dtype and shapes on the same SoC."""

    place: MeasuredPlace
    soc: str
    dtype: str
    shapes: str


@dataclass(frozen=True, slots=True)
class TimeChange:
    """A device time of one release against the release measured before it; above 1 is slower."""

    workload: TimedWorkload
    before: str
    after: str
    ratio: float
    machines: int

    @property
    def word(self) -> str:
        return "slower" if self.ratio > 1 else "faster"

    def text(self) -> str:
        return (f"×{self.ratio:.2f} {self.word} in {self.after} than in {self.before} "
                f"({self.workload.dtype} {self.workload.shapes}, {self.workload.soc})")  # fmt: skip


@dataclass(frozen=True, slots=True)
class MeasuredReleases:
    """A place with its releases, oldest first, and what changed between them."""

    place: MeasuredPlace
    cells: Mapping[str, MeasuredCell]
    history: str
    speed: tuple[TimeChange, ...]

    @property
    def worst(self) -> int:
        """The place in STATES of the worst state of any release."""
        return min(STATES.index(cell.state) for cell in self.cells.values())

    @property
    def attention(self) -> bool:
        """Whether it fails, changed, or became slower."""
        return bool(self.history or any(c.word == "slower" for c in self.speed))


class Measured:
    """The sums of many files: `read` files, `results` in them; `left_out` by reason."""

    def __init__(self) -> None:
        self.machines: dict[str, int] = {}
        self.read = 0
        self.results = 0
        self.left_out: Counter[str] = Counter()
        self._cells: dict[MeasuredPlace, dict[str, MeasuredCell]] = {}
        self._times: dict[TimedWorkload, dict[str, array[float]]] = {}

    def machine(self, name: str) -> int:
        """The number of a machine; a probe names none and has a file's."""
        return self.machines.setdefault(name, len(self.machines))

    def cell(self, place: MeasuredPlace, release: str) -> MeasuredCell:
        return self._cells.setdefault(place, {}).setdefault(release, MeasuredCell())

    def judge(
        self, place: MeasuredPlace, release: str, machine: int, verdict: str, dtype: str
    ) -> None:
        """Count one case."""
        cell = self.cell(place, release)
        cell.verdicts[verdict] += 1
        cell.judged |= 1 << machine
        if verdict in FAILING:
            cell.failing |= 1 << machine
            if dtype:
                cell.dtypes.add(dtype)

    def time(self, workload: TimedWorkload, release: str, spread: TimeSpread) -> None:
        """Count a device time; what scatters is left out."""
        if spread.noisy:
            self.left_out["noisy times"] += 1
        elif workload not in self._times and len(self._times) >= _MOST_WORKLOADS:
            self.left_out[f"times beyond {_MOST_WORKLOADS:,} workloads"] += 1
        else:
            times = self._times.setdefault(workload, {}).setdefault(release, array("d"))
            times.extend((spread.median, spread.least, spread.q3))

    @property
    def releases(self) -> list[str]:
        """Every release that a file states, oldest first."""
        return sorted({r for cells in self._cells.values() for r in cells}, key=age)

    def rows(self) -> list[MeasuredReleases]:
        """A row a place, those to look at first: failing, changed, slower."""
        speed: dict[MeasuredPlace, list[TimeChange]] = {}
        for workload, by_release in self._times.items():
            speed.setdefault(workload.place, []).extend(changes(workload, by_release))
        rows = [_row(place, cells, speed.get(place, ())) for place, cells in self._cells.items()]
        return sorted(rows, key=lambda r: (r.worst != 0, not r.attention, r.place))

    def names(self, cell: MeasuredCell) -> list[str]:
        """The nodes that saw a cell's state, of those that have a name."""
        return sorted(
            name for name, n in self.machines.items()
            if cell.machines >> n & 1 and not name.startswith(UNNAMED)
        )  # fmt: skip


def _row(
    place: MeasuredPlace, cells: Mapping[str, MeasuredCell], speed: Iterable[TimeChange]
) -> MeasuredReleases:
    ordered = {release: cells[release] for release in sorted(cells, key=age)}
    largest = sorted(speed, key=lambda c: -max(c.ratio, 1 / c.ratio))
    return MeasuredReleases(place, ordered, history(ordered), tuple(largest))


def history(cells: Mapping[str, MeasuredCell]) -> str:
    """When it broke and when it was mended: `fails since 9.0.0, passes in 8.5.0`.

    `cells` by release, oldest first. "" where nothing fails, and nothing that was there is missing.
    """
    bad = (FAILS, MISSING)
    states = [(release, cell.state) for release, cell in cells.items()]
    first = next((i for i, (_, state) in enumerate(states)
                  if state == FAILS or (state == MISSING and i)), None)  # fmt: skip
    good = [r for r, state in states[: first or 0] if state in (PASSES, CALLABLE)]
    if first is None or (states[first][1] == MISSING and not good):
        return ""
    release, state = states[first]
    mended = next((r for r, later in states[first:] if later not in (*bad, UNSUPPORTED)), "")
    before = f"{'passes' if state == FAILS else 'callable'} in {good[-1]}" if good else (
        "the oldest release measured")  # fmt: skip
    if mended:
        return f"{state} in {release} ({before}), {dict(states)[mended]} since {mended}"
    return f"{state} since {release} ({before})"


def changes(
    workload: TimedWorkload, by_release: Mapping[str, array[float]]
) -> Iterator[TimeChange]:
    """Consecutive releases whose times differ, by the rule of `bench --against`."""
    releases = sorted(by_release, key=age)
    for before, after in pairwise(releases):
        verdict = compare(_pooled(by_release[after]), _pooled(by_release[before]))
        if verdict.word in ("FASTER", "SLOWER") and verdict.ratio > 0:
            machines = min(len(by_release[r]) // 3 for r in (before, after))
            yield TimeChange(workload, before, after, verdict.ratio, machines)


def _pooled(times: array[float]) -> TimeSpread:
    """The middle machine's median, least time and third quartile."""
    middle, least, q3 = (median(times[i::3]) for i in range(3))
    return TimeSpread(middle, middle, q3, least, q3, least, len(times) // 3, False)


def age(release: str) -> tuple[list[int], bool, str]:
    """Sorts releases, a candidate (RC) before its release."""
    numbers = [int(n) for n in re.findall(r"\d+", release.partition("RC")[0])[:4]]
    return numbers, "RC" not in release, release
