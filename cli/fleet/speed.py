"""Owns which devices are slow: each against the median of all in the same work, with an interval.

The intervals are made for all devices together: as long as a device's times are independent, and
its usual time is not above the others' by more than the margin, no device of a fleet is called
slow in all but one of 100 reports, however many devices there are.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, lgamma, log, sqrt
from typing import Final

from ..conformance.cases.case import BENCH, PROBE, SOAK
from ..conformance.record.result import FAILING, NEUTRAL, Result

# How often a report of healthy devices names one, at most.
ALARM: Final = 0.01
# What a device's time may be above the others': workloads are timed by device events, cases by the
# host's clock, with reading back and comparing in it.
MARGINS: Final = {BENCH: 1.05, "check": 1.25}
# Chips of one kind differ: of 8,000 that follow a normal law, the slowest is 3.8 standard
# deviations above the mean; what is nearer than this many is no outlier.
_DEVIATIONS: Final = 4.5
_NORMAL_MAD: Final = 1.4826  # standard deviations in a median absolute deviation (normal law)
_MEDIAN_ERROR: Final = 1.2533  # of a median, in standard errors of a mean (normal law)
_ENOUGH: Final = 3  # devices: of two, nobody can say which is the odd one
_KINDS: Final = ("device", "e2e", "host")

Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Speed:
    """Time of a device over that of most in the same work: its median, between `low` and `high`;
    `limit` is what `low` must exceed to be slow. `enough`: there are samples for an interval."""

    median: float
    low: float
    high: float
    n: int
    limit: float
    of: str
    enough: bool = True

    @property
    def slow(self) -> bool:
        return self.enough and self.low > self.limit

    def as_json(self) -> dict[str, float | int | bool | str]:
        return {"median": round(self.median, 4), "low": round(self.low, 4),
                "high": round(self.high, 4), "n": self.n, "limit": round(self.limit, 4),
                "of": self.of, "enough": self.enough, "slow": self.slow}  # fmt: skip


def time_of(result: Result) -> float:
    """µs of a workload's fastest call in a round, by the device's events where it has those; 0
    where it has no times. The fastest is the device's own: what else ran on the host only adds."""
    times: Mapping[str, Mapping[str, float]] = (result.measure or {}).get("times", {})
    return next((float(times[k]["least"]) for k in _KINDS if k in times), 0.0)


def ratios(results: Iterable[tuple[Result, bool]]) -> dict[str, dict[Place, list[float]]]:
    """Of workloads and of cases: times of each device over the median of all in the same work.

    `results` are paired with whether every device was given the same cases; where they were dealt,
    the same operator and form are the same work. Soaks last as long as was asked for: left out.
    """
    groups: dict[tuple[str, ...], list[tuple[Place, float]]] = defaultdict(list)
    for r, same in results:
        if r.verdict in NEUTRAL or r.verdict in FAILING or r.form in (SOAK, PROBE):
            continue
        value = time_of(r) if r.form == BENCH else r.seconds
        if value:
            work = (r.case, str(r.seed)) if same or r.form == BENCH else (r.op, r.form)
            groups[(BENCH if r.form == BENCH else "check", *work)].append(
                ((r.node, r.device), value)
            )
    told: dict[str, dict[Place, list[float]]] = {}
    for (of, *_), group in groups.items():
        if len({place for place, _ in group}) > 1:
            usual = statistics.median(value for _, value in group)
            for place, value in group:
                told.setdefault(of, {}).setdefault(place, []).append(value / usual)
    return told


def speeds(results: Iterable[tuple[Result, bool]]) -> dict[Place, Speed]:
    """The speed of every device; by workloads where it has those, else by cases."""
    told: dict[Place, Speed] = {}
    for of, by_place in sorted(ratios(results).items(), reverse=True):
        told |= _speeds(by_place, of)
    return told


def _speeds(by_place: Mapping[Place, Sequence[float]], of: str) -> dict[Place, Speed]:
    medians = {place: statistics.median(own) for place, own in by_place.items()}
    limit = max(MARGINS[of], 1 + _DEVIATIONS * _spread(by_place, medians))
    tail = ALARM / len(by_place)
    told = {}
    for place, own in by_place.items():
        ordered, n = sorted(own), len(own)
        at = rank(n, tail)
        enough = at > 0 and len(by_place) >= _ENOUGH
        told[place] = Speed(medians[place], ordered[max(at - 1, 0)], ordered[n - max(at, 1)], n,
                            limit, of, enough)  # fmt: skip
    return told


def _spread(by_place: Mapping[Place, Sequence[float]], medians: Mapping[Place, float]) -> float:
    """The standard deviation of devices: that of their medians, without what a busy host adds to
    those by chance, which each device's interval tells already."""
    errors = [_MEDIAN_ERROR * _deviation(own) / sqrt(len(own)) for own in by_place.values()]
    seen, chance = _deviation(list(medians.values())), statistics.median(errors)
    return sqrt(max(0.0, seen**2 - chance**2))


def _deviation(values: Sequence[float]) -> float:
    """The standard deviation of a normal law with these values' median absolute deviation."""
    middle = statistics.median(values)
    return _NORMAL_MAD * statistics.median(abs(v - middle) for v in values)


@cache
def rank(n: int, tail: float) -> int:
    """The largest k for which the k-th smallest of n samples lies above their law's median with a
    probability of at most `tail`; 0 where not even the smallest does.

    At most k - 1 of n samples are then below the median: binomial with 1/2, whatever the law.
    """
    below, k = 0.0, 0
    while k < n:
        below += exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2))
        if below > tail:
            break
        k += 1
    return k
