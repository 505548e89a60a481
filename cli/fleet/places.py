"""Owns what is known of each device of a fleet: verdicts, speed against the others, faults."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, sqrt
from typing import Any, Final

from ..conformance.record import votes
from ..conformance.record.result import FAILING, NEUTRAL, Counts, Result
from .merge import Fleet

# A device is called slow when even the lower end of its interval is this much above the others.
SLOW: Final = 1.25
_LEAST: Final = 10
_Z: Final = 1.96  # 95 %


@dataclass(frozen=True, slots=True)
class Speed:
    """Time of a device over that of all devices in the same work: median and 95 % interval."""

    median: float
    low: float
    high: float
    n: int

    @property
    def slow(self) -> bool:
        return self.low > SLOW


@dataclass(slots=True)
class Place:
    """One device of one host."""

    node: str
    device: str
    counts: Counts = field(default_factory=Counts)
    seconds: float = 0.0
    speed: Speed | None = None
    kinds: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.node} {self.device}"

    def as_json(self) -> dict[str, Any]:
        speed = self.speed
        stated = {} if speed is None else {"speed": {
            "median": round(speed.median, 4), "low": round(speed.low, 4),
            "high": round(speed.high, 4), "n": speed.n, "slow": speed.slow,
        }}  # fmt: skip
        return {"node": self.node, "device": self.device, "counts": self.counts.by_verdict,
                "failing": self.counts.failing, "seconds": round(self.seconds, 3),
                "deviates": list(self.kinds), **stated}  # fmt: skip


def places(fleet: Fleet) -> list[Place]:
    """Every device that judged a case, by host."""
    by_name: dict[tuple[str, str], Place] = {}
    for result in fleet.results.values():
        place = by_name.setdefault((result.node, result.device), Place(result.node, result.device))
        place.counts.add(result)
        place.seconds += result.seconds
    speeds = relative(fleet.results.values(), fleet.compares)
    faults: dict[str, list[str]] = defaultdict(list)
    for deviation in fleet.deviations:
        faults[deviation.place].append(deviation.kind)
    for place in by_name.values():
        place.speed = speeds.get((place.node, place.device))
        place.kinds = tuple(k for k in votes.CLASSES if k in faults.get(place.name, ()))
    return [by_name[key] for key in sorted(by_name, key=natural)]


def natural(key: Sequence[str]) -> list[tuple[int, str]]:
    """Sorts host10 behind host9: runs of digits by value."""
    parts: list[tuple[int, str]] = []
    for text in key:
        digits = ""
        for c in f"{text}\0":
            if c.isdecimal():
                digits += c
                continue
            if digits:
                parts.append((int(digits), ""))
                digits = ""
            parts.append((-1, c))
    return parts


def relative(results: Iterable[Result], same_cases: bool) -> Mapping[tuple[str, str], Speed]:
    """Speeds of devices: each case against the median of all devices in it, or, where each case
    ran once, in its operator and form. Soaks last as long as was asked for, and do not count."""
    groups: dict[tuple[str, ...], list[Result]] = defaultdict(list)
    for r in results:
        if r.verdict in NEUTRAL or r.verdict in FAILING or r.form == "soak" or not r.seconds:
            continue
        groups[(r.case, str(r.seed)) if same_cases else (r.op, r.form)].append(r)
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    for group in groups.values():
        if len({(r.node, r.device) for r in group}) > 1:
            usual = statistics.median(r.seconds for r in group)
            for r in group:
                ratios[r.node, r.device].append(r.seconds / usual)
    return {place: interval(own) for place, own in ratios.items() if len(own) >= _LEAST}


def interval(samples: Sequence[float]) -> Speed:
    """The median with an interval from order statistics (binomial, normal approximation)."""
    ordered = sorted(samples)
    n = len(ordered)
    reach = _Z * sqrt(n) / 2
    low = max(0, floor(n / 2 - reach))
    return Speed(statistics.median(ordered), ordered[low], ordered[n - 1 - low], n)


@dataclass(frozen=True, slots=True)
class Worst:
    """An operator with failures: how many cases, at how many devices, and the first of them."""

    op: str
    failing: int
    judged: int
    places: int
    first: str


def worst_ops(fleet: Fleet) -> list[Worst]:
    """Operators with failures, most places and cases first."""
    by_op: dict[str, list[Result]] = defaultdict(list)
    for result in fleet.results.values():
        by_op[result.op].append(result)
    worst = []
    for op, results in by_op.items():
        failing = [r for r in results if r.failing]
        if failing:
            at = {(r.node, r.device) for r in failing}
            judged = sum(r.verdict not in NEUTRAL for r in results)
            first = min(failing, key=lambda r: (r.case, r.seed))
            why = f"{first.verdict} {first.case}: {first.reason}"
            worst.append(Worst(op, len(failing), judged, len(at), why))
    return sorted(worst, key=lambda w: (-w.places, -w.failing, w.op))
