"""Owns what two sets of times say about each other, with the interval that it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .statistics import Times

_SAME: Final = 0.02
_GAP: Final = 0.005


@dataclass(frozen=True, slots=True)
class Comparison:
    """`ratio` is ours / theirs (below 1: ours is faster) between `low` and `high`."""

    word: str
    ratio: float
    low: float
    high: float


def compare(ours: Times, theirs: Times) -> Comparison:
    """FASTER or SLOWER when [min, Q3] of both are apart by more than 0.5 %; SAME when they overlap
    and medians agree within 2 %; else UNCLEAR (nvbench's comparison, with its advice followed).
    """
    ratio = ours.median / theirs.median if theirs.median else 1.0
    low = ours.least / theirs.q3 if theirs.q3 else ratio
    high = ours.q3 / theirs.least if theirs.least else ratio
    return Comparison(_word(ours, theirs, ratio), ratio, low, high)


def _word(ours: Times, theirs: Times, ratio: float) -> str:
    if ours.q3 < theirs.least and ratio < 1 - _GAP:
        return "FASTER"
    if theirs.q3 < ours.least and ratio > 1 + _GAP:
        return "SLOWER"
    if abs(ratio - 1) <= _SAME and not (ours.noisy or theirs.noisy):
        return "SAME"
    return "UNCLEAR"
