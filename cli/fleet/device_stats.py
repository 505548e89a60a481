"""Owns what is known of each device of a fleet: verdicts, speed against the others, faults."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..conformance.cases.case import PROBE
from ..conformance.record import votes
from ..conformance.record.result import NEUTRAL, Counts, Result
from .merge import Fleet
from .speed import Speed, speeds


@dataclass(slots=True)
class DeviceStats:
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
        stated = {} if self.speed is None else {"speed": self.speed.as_json()}
        return {"node": self.node, "device": self.device, "counts": self.counts.by_verdict,
                "failing": self.counts.failing, "seconds": round(self.seconds, 3),
                "deviates": list(self.kinds), **stated}  # fmt: skip


def devices(fleet: Fleet) -> list[DeviceStats]:
    """Every device that judged a case, by host."""
    by_name: dict[tuple[str, str], DeviceStats] = {}
    for result in (r for r in fleet.results.values() if r.form != PROBE):
        place = by_name.setdefault(
            (result.node, result.device), DeviceStats(result.node, result.device)
        )
        place.counts.add(result)
        place.seconds += result.seconds
    by_place = speeds((r, bool(key[2])) for key, r in fleet.results.items())
    faults: dict[str, list[str]] = defaultdict(list)
    for deviation in fleet.deviations:
        faults[deviation.place].append(deviation.kind)
    for place in by_name.values():
        place.speed = by_place.get((place.node, place.device))
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
    for result in (r for r in fleet.results.values() if r.form != PROBE):
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
