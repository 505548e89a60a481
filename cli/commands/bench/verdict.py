"""Owns what two sets of times say about each other, with the interval that it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, TypeAlias

import numpy as np

from .statistics import TimeSpread

_SAME: Final = 0.02
_GAP: Final = 0.005
_CHANCE: Final = 1e-3
_LEAST: Final = 10  # samples: fewer have no [min, Q3] that another run's can be apart from
_WAITING: Final = 0.02
Rounds: TypeAlias = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class TimeComparison:
    """`ratio` is ours / theirs (below 1: ours is faster) between `low` and `high`."""

    word: str
    ratio: float
    low: float
    high: float


def compare(ours: TimeSpread, theirs: TimeSpread, rounds: Rounds = ()) -> TimeComparison:
    """FASTER or SLOWER when [min, Q3] of both are apart by more than 0.5 %; SAME when they overlap
    and medians agree within 2 %; else UNCLEAR (nvbench's comparison, with its advice followed).

    `rounds` are medians of alternating rounds, ours and theirs: where Student's test takes their
    ratios for chance (above once in 1,000), a difference is a drift and UNCLEAR.
    """
    ratio = ours.median / theirs.median if theirs.median else 1.0
    low = ours.least / theirs.q3 if theirs.q3 else ratio
    high = ours.q3 / theirs.least if theirs.least else ratio
    word = _word(ours, theirs, ratio)
    if word in ("FASTER", "SLOWER") and rounds and chance(rounds) > _CHANCE:
        word = "UNCLEAR"
    return TimeComparison(word, ratio, low, high)


def with_baseline(ours: TimeSpread, theirs: TimeSpread) -> TimeComparison:
    """`compare` with an earlier run, which cannot take turns: a difference of few samples, or of a
    machine whose cores others used, is UNCLEAR."""
    comparison = compare(ours, theirs)
    sure = all(side.n >= _LEAST and side.waiting <= _WAITING for side in (ours, theirs))
    return comparison if sure or comparison.word == "SAME" else replace(comparison, word="UNCLEAR")


def chance(rounds: Rounds) -> float:
    """How likely ratios as far from 1 are when both sides take equally long: Student's paired
    test of their logarithms, both ways."""
    from scipy import stats

    ratios = np.log([a / b for a, b in rounds])
    spread = float(ratios.std(ddof=1)) / len(rounds) ** 0.5
    if not spread:
        return float(not ratios.any())
    return float(2 * stats.t.sf(abs(float(ratios.mean())) / spread, len(rounds) - 1))


def paired(pairs: Sequence[Rounds], comparisons: int = 1) -> TimeComparison:
    """What alternating rounds say, for each pair of processes that was timed.

    FASTER or SLOWER where every pair differs to the same side by more than 0.5 %, and by chance
    (Student's paired test) not once in 1,000 runs of so many comparisons. SAME where the interval
    of every pair lies within 2 % at the same rate; else UNCLEAR. `low` and `high` span the
    intervals.
    """
    level = _CHANCE / max(comparisons, 1)
    ratios = [np.log([a / b for a, b in rounds]) for rounds in pairs]
    means = [float(r.mean()) for r in ratios]
    widths = [_exceeded(level / 2, len(r) - 1) * float(r.std(ddof=1)) / len(r) ** 0.5
              for r in ratios]  # fmt: skip
    low = min(m - w for m, w in zip(means, widths, strict=True))
    high = max(m + w for m, w in zip(means, widths, strict=True))
    gap = float(np.log1p(_GAP))
    sure = all(abs(m) > max(w, gap) for m, w in zip(means, widths, strict=True))
    word = "UNCLEAR"
    if sure and (max(means) < 0 or min(means) > 0):
        word = "FASTER" if max(means) < 0 else "SLOWER"
    elif max(abs(low), abs(high)) <= np.log1p(_SAME):
        word = "SAME"
    ratio, low, high = (float(np.exp(v)) for v in (np.mean(means), low, high))
    return TimeComparison(word, ratio, low, high)


@cache
def _exceeded(chance: float, degrees: int) -> float:
    """What Student's t exceeds with this chance."""
    from scipy import stats

    return float(stats.t.isf(chance, degrees))


def doubt(times: Mapping[str, TimeSpread]) -> str:
    """What speaks against a workload's times, "" if nothing does: other programs used the cores, or
    a call takes less than the part of it that the device works."""
    waiting = max((t.waiting for t in times.values()), default=0.0)
    if waiting > _WAITING:
        return (f"threads waited for a core {waiting:.0%} of the time: other programs use this "
                "machine, and these times say little of an idle one")  # fmt: skip
    device, whole = times.get("device"), times.get("e2e")
    if device is None or whole is None or device.least <= whole.q3:
        return ""
    return (f"device time {device.least:.3g} µs exceeds {whole.q3:.3g} µs end to end: other work "
            "shared the device, or its queue ran dry")  # fmt: skip


def _word(ours: TimeSpread, theirs: TimeSpread, ratio: float) -> str:
    if ours.q3 < theirs.least and ratio < 1 - _GAP:
        return "FASTER"
    if theirs.q3 < ours.least and ratio > 1 + _GAP:
        return "SLOWER"
    if abs(ratio - 1) <= _SAME and not (ours.noisy or theirs.noisy):
        return "SAME"
    return "UNCLEAR"
