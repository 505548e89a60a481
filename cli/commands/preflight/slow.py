"""Owns which devices of a host are slow, by a sign test over windows of a soak, with a bounded rate
of false alarms.

A window is the fastest launch, by device events, of some time in which one operator was launched
over and over. In it a device is late where it takes `FACTOR` times as long as the median of the
others (of an even number the slower one). Load can make a right device late; it is called slow only
where it is late in so many windows that this has a chance of at most `ALARM` for all devices and
operators of a run together, if it is late in each window with a chance of `CHANCE` and windows
are independent. Load that treats all devices alike stays within `CHANCE` however heavy it is: at
most half of the devices are behind the median of the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, median_high
from typing import Final

from scipy.stats import binom

FACTOR: Final = 1.25
ALARM: Final = 1e-4
CHANCE: Final = 0.5
_DEVICES: Final = 3  # of two, nobody can say which is the odd one

# The fastest launches of the windows of an operator's soak, by device.
Windows = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Slow:
    """How many times as long as the others' the launches of a device take, in the operator (or in
    all together) in which that is most, and in how many of its windows it is late."""

    ratio: float
    case: str
    late: int
    windows: int

    @property
    def text(self) -> str:
        return (f"{self.ratio:.1f} times the others' time in {self.case}, late in {self.late} of "
                f"{self.windows} windows")  # fmt: skip


def slow_devices(soaks: Mapping[str, Windows]) -> dict[str, Slow]:
    """The devices that are slow in some operator; `soaks` by case."""
    compared = {case: _ratios(windows) for case, windows in soaks.items()}
    compared["all operators"] = _together(compared.values())
    tests = sum(len(of_device) for of_device in compared.values())
    found: dict[str, list[Slow]] = defaultdict(list)
    for case, of_device in compared.items():
        for device, ratios in of_device.items():
            late = sum(ratio >= FACTOR for ratio in ratios)
            if late and is_slow(late, len(ratios), tests):
                found[device].append(Slow(median(ratios), case, late, len(ratios)))
    return {device: max(ones, key=lambda one: one.ratio) for device, ones in found.items()}


def is_slow(late: int, windows: int, tests: int) -> bool:
    """Whether luck makes a device late in so many windows at most once in `tests` / `ALARM`."""
    return bool(binom.sf(late - 1, windows, CHANCE) <= ALARM / tests)


def _together(compared: Iterable[Mapping[str, Sequence[float]]]) -> dict[str, list[float]]:
    every: dict[str, list[float]] = defaultdict(list)
    for of_device in compared:
        for device, ratios in of_device.items():
            every[device] += ratios
    return every


def _ratios(windows: Windows) -> dict[str, list[float]]:
    """In each window the time of a device over the median of the others', where there are two."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for at in range(max(map(len, windows.values()), default=0)):
        here = {device: times[at] for device, times in windows.items() if len(times) > at}
        if len(here) < _DEVICES:
            continue
        for device, own in here.items():
            ratios[device].append(own / _usual(t for other, t in here.items() if other != device))
    return ratios


def _usual(times: Iterable[float]) -> float:
    return max(median_high(times), 1e-9)  # an event's clock may stand still
