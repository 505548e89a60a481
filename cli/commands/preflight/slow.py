"""Owns which devices of a host are slow, by a sign test over rounds of timed launches, with a
bounded rate of false alarms.

In a round every device launches the same operators; of each the fastest launch counts, by device
events. An operator's time is taken relative to the median of all devices, and the second smallest
of these ratios is the device's: what makes one device slow in some operators alone, such as where
their tensors lie, is not seen. A device is late in a round where its ratio is `FACTOR` times the
median of the others' (of an even number the greater one). It is called slow only where it is late
in so many rounds that luck does this with a chance of at most `ALARM` for all devices of a run
together, if it makes a device late in each round with a chance of 1/2, independently. What treats
all devices alike stays within that however heavy it is: at most half of the devices are behind the
median of the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import comb
from statistics import median, median_high
from typing import Final

FACTOR: Final = 1.2
ALARM: Final = 1e-4
DEVICES: Final = 3  # of two, nobody can say which is the odd one
_RANK: Final = 1  # of a device's ratios in a round, sorted

# The rounds of each device: milliseconds of each operator.
Rounds = Mapping[str, Sequence[Sequence[float]]]


@dataclass(frozen=True, slots=True)
class Slow:
    """How many times as long as the others' the launches of a device take, and in how many rounds
    it is late."""

    ratio: float
    late: int
    rounds: int

    @property
    def text(self) -> str:
        return (f"{self.ratio:.1f} times the others' time, late in {self.late} of {self.rounds} "
                "rounds")  # fmt: skip


def slow_devices(rounds: Rounds) -> dict[str, Slow]:
    """The devices that are slow in nearly all rounds and operators."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for at in range(max(map(len, rounds.values()), default=0)):
        here = {device: of_device[at] for device, of_device in rounds.items()
                if len(of_device) > at}  # fmt: skip
        for device, ratio in _ratios(here).items():
            ratios[device].append(ratio)
    found = {}
    for device, of_device in ratios.items():
        late = sum(ratio >= FACTOR for ratio in of_device)
        if late and is_slow(late, len(of_device), len(ratios)):
            found[device] = Slow(median(of_device), late, len(of_device))
    return found


def is_slow(late: int, rounds: int, devices: int) -> bool:
    """Whether luck makes any of the devices late in so many rounds in at most `ALARM` of runs."""
    chance = sum(comb(rounds, n) for n in range(late, rounds + 1)) / (1 << rounds)
    return chance <= ALARM / devices


def least_rounds(devices: int) -> int:
    """How many rounds a verdict needs."""
    return next(n for n in count(1) if is_slow(n, n, devices))


def _ratios(here: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """In a round the time of each device over the median of the others', where there are two."""
    if len(here) < DEVICES:
        return {}
    usual = [median(times) for times in zip(*here.values(), strict=True)]
    own = {
        device: sorted(time / max(at, 1e-9) for time, at in zip(times, usual, strict=True))[_RANK]
        for device, times in here.items()
    }
    return {
        device: ratio / max(1e-9, median_high(r for other, r in own.items() if other != device))
        for device, ratio in own.items()
    }
