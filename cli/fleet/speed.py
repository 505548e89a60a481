"""Owns which devices are slow: each against the median of all in the same work, with an interval.

The intervals are made for all devices together: as long as a device's times are independent, and
its usual time is not above the others' by more than the margin, no device of a fleet is called
slow in all but one of 100 reports, however many devices there are.
"""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, lgamma, log, sqrt
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from ..conformance.cases.case import BENCH
from ..conformance.record.result import Result
from .bits import Numbers

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

# Times that are looked at: of 8,000 devices 125 each, where 20 make an interval.
_SAMPLES: Final = 1_000_000
_MIX: Final = 0x9E3779B1  # spreads seeds over all bits

T = TypeVar("T")


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


class Times:
    """Times of work on devices, a sample of bounded size: of all work where that is little, else
    of the cases whose names' sums end in zeros, the same ones on every device."""

    def __init__(self, limit: int = _SAMPLES) -> None:
        self._limit, self._mask = limit, 0
        self._work, self._device = array("Q"), array("I")
        self._value, self._sum = array("d"), array("I")

    def add(self, bench: bool, work: int, seed: int, sum_: int, device: int, value: float) -> None:
        """The time of a device for a work's number: the same work has the same number and seed."""
        mixed = (sum_ + seed * _MIX) & 0xFFFFFFFF
        if mixed & self._mask:
            return
        self._work.append(bench << 63 | (work & 0x7FFFFFFF) << 32 | seed & 0xFFFFFFFF)
        self._device.append(device)
        self._value.append(value)
        self._sum.append(mixed)
        if len(self._work) > self._limit:
            self._halve()

    def add_many(
        self, works: Numbers, seed: int, sums: npt.NDArray[np.uint32], device: int,
        values: npt.NDArray[np.float64],
    ) -> None:  # fmt: skip
        """Times of a device for cases' numbers."""
        mixed = sums + np.uint32(seed * _MIX & 0xFFFFFFFF)
        sampled = mixed & np.uint32(self._mask) == 0
        keys = (works[sampled] & 0x7FFFFFFF) << 32 | seed & 0xFFFFFFFF
        self._work.frombytes(keys.astype(np.uint64).tobytes())
        self._device.extend([device] * len(keys))
        self._value.frombytes(values[sampled].tobytes())
        self._sum.frombytes(mixed[sampled].tobytes())
        if len(self._work) > self._limit:
            self._halve()

    def _halve(self) -> None:
        while len(self._work) > self._limit:
            self._mask = self._mask << 1 | 1
            keep = np.frombuffer(self._sum, np.uint32) & self._mask == 0
            for name in ("_work", "_device", "_value", "_sum"):
                column = getattr(self, name)
                setattr(self, name, array(column.typecode, np.asarray(column)[keep].tobytes()))

    def ratios(self) -> dict[str, dict[int, list[float]]]:
        """Of workloads and of cases: times of each device over the median of all in the same
        work."""
        by_kind: dict[str, dict[int, list[float]]] = {}
        for of, _, devices, values in self._groups():
            if len(set(devices)) > 1:
                usual = statistics.median(values)
                for device, value in zip(devices, values, strict=True):
                    by_kind.setdefault(of, {}).setdefault(device, []).append(value / usual)
        return by_kind

    def workloads(self) -> dict[int, dict[int, list[float]]]:
        """Times in µs of every workload's number, by device."""
        samples: dict[int, dict[int, list[float]]] = {}
        for of, work, devices, values in self._groups():
            if of == BENCH:
                by_work = samples.setdefault(work, {})
                for device, value in zip(devices, values, strict=True):
                    by_work.setdefault(device, []).append(value)
        return samples

    def _groups(self) -> Iterator[tuple[str, int, list[int], list[float]]]:
        """(bench or check, work's number, devices, times) of all that is the same work."""
        if not self._work:
            return
        work = np.asarray(self._work)
        order = np.argsort(work, kind="stable")
        device, value = np.asarray(self._device)[order], np.asarray(self._value)[order]
        starts = np.flatnonzero(np.diff(work[order], prepend=work[order][0] ^ np.uint64(1)))
        for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
            key = int(work[order[start]])
            of = BENCH if key >> 63 else "check"
            number = key >> 32 & 0x7FFFFFFF
            yield of, number, device[start:end].tolist(), value[start:end].tolist()


def speeds(times: Times) -> dict[int, Speed]:
    """The speed of every device's number; by workloads where it has those, else by cases."""
    known: dict[int, Speed] = {}
    for of, by_device in sorted(times.ratios().items(), reverse=True):
        known |= _speeds(by_device, of)
    return known


def _speeds(by_place: Mapping[T, Sequence[float]], of: str) -> dict[T, Speed]:
    medians = {place: statistics.median(values) for place, values in by_place.items()}
    limit = max(MARGINS[of], 1 + _DEVIATIONS * _spread(by_place, medians))
    tail = ALARM / len(by_place)
    by_name: dict[T, Speed] = {}
    for place, values in by_place.items():
        ordered, n = sorted(values), len(values)
        at = rank(n, tail)
        enough = at > 0 and len(by_place) >= _ENOUGH
        by_name[place] = Speed(medians[place], ordered[max(at - 1, 0)], ordered[n - max(at, 1)], n,
                            limit, of, enough)  # fmt: skip
    return by_name


def _spread(by_place: Mapping[T, Sequence[float]], medians: Mapping[T, float]) -> float:
    """The standard deviation of devices: that of their medians, without what a busy host adds to
    those by chance, which each device's interval tells already."""
    errors = [
        _MEDIAN_ERROR * _deviation(values) / sqrt(len(values)) for values in by_place.values()
    ]
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
