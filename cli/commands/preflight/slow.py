"""Owns which devices of a host are slow, by a sign test over windows of a soak, with a bounded rate
of false alarms.

A window is a part of an operator's soak, with tensors at places of their own in memory; its time
is that of the fastest launch in it, by device events. In it a device is late where it takes
`FACTOR` times as long as the median of the others (of an even number the slower one). What lasts
through a window can make a right device late in it: load, where threads run, where tensors lie. A
device is called slow only where it is late in so many windows, of all operators, that luck does
this with a chance of at most `ALARM` for all devices of a run together, if it makes a device late
in each window with a chance of `CHANCE`, independently. What treats all devices alike stays within
`CHANCE` however heavy it is: at most half of the devices are behind the median of the others.
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

# The fastest launches of the windows of an operator's soak, by device; 0 for a window without one.
Windows = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Slow:
    """How many times as long as the others' the launches of a device take, and in how many windows
    it is late."""

    ratio: float
    late: int
    windows: int

    @property
    def text(self) -> str:
        return (f"{self.ratio:.1f} times the others' time, late in {self.late} of {self.windows} "
                "windows")  # fmt: skip


def slow_devices(soaks: Iterable[Windows]) -> dict[str, Slow]:
    """The devices that are slow in nearly all windows of all operators."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for windows in soaks:
        for device, of_device in _ratios(windows).items():
            ratios[device] += of_device
    found = {}
    for device, of_device in ratios.items():
        late = sum(ratio >= FACTOR for ratio in of_device)
        if late and is_slow(late, len(of_device), len(ratios)):
            found[device] = Slow(median(of_device), late, len(of_device))
    return found


def is_slow(late: int, windows: int, devices: int) -> bool:
    """Whether luck makes any of the devices late in so many windows in at most `ALARM` of runs."""
    return bool(binom.sf(late - 1, windows, CHANCE) <= ALARM / devices)


def _ratios(windows: Windows) -> dict[str, list[float]]:
    """In each window the time of a device over the median of the others', where there are two."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for at in range(max(map(len, windows.values()), default=0)):
        here = {device: times[at] for device, times in windows.items() if any(times[at : at + 1])}
        if len(here) < _DEVICES:
            continue
        for device, own in here.items():
            usual = median_high(time for other, time in here.items() if other != device)
            ratios[device].append(own / usual)
    return ratios
