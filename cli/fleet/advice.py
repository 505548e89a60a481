"""Owns what an operator should do with which device, and the evidence for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..conformance.record import votes
from .device_stats import DeviceStats
from .host_faults import rows
from .merge import Fleet

TAKE_OUT: Final = "take out"
AGAIN: Final = "test again"
INSPECT: Final = "inspect"
ACTIONS: Final = (TAKE_OUT, AGAIN, INSPECT)
# Counters that a healthy chip does not raise, by a part of npu-smi's name for them.
_ERRORS: Final = ("double bit", "isolated", "single bit aggregate")
_BROKEN: Final = frozenset(("Alarm", "Critical"))  # what npu-smi calls a chip that fails
_DISPLAY_LIMIT: Final = 3


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do with a device (node and device, and its serial number where one is known)."""

    action: str
    place: str
    serial: str
    evidence: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        return self.place + (f" (serial {self.serial})" if self.serial else "")

    def as_json(self) -> dict[str, Any]:
        return {"action": self.action, "place": self.place, "serial": self.serial,
                "evidence": [": ".join(pair) for pair in self.evidence]}  # fmt: skip


def advice(fleet: Fleet) -> list[Advice]:
    """Devices that need somebody: those to take out first, those with most evidence first."""
    deviations: dict[str, list[votes.Deviation]] = defaultdict(list)
    for one in fleet.deviations:
        if one.kind in votes.ABOUT_DEVICES:
            deviations[one.place].append(one)
    faults: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in rows(fleet):
        if row.name in ("device hung", "device lost"):
            faults[row.place].append((row.name, row.text))
    known = {stats.name: stats for stats in fleet.tally.stats}
    advised = []
    for place in {*deviations, *faults, *(s.name for s in fleet.devices if s.faulty or s.counters)}:
        stats = known.get(place, DeviceStats(place, ""))
        item = _advice(place, stats, deviations.get(place, ()), faults.get(place, ()))
        if item is not None:
            advised.append(item)
    weight = {place: len(deviations_here) for place, deviations_here in deviations.items()}
    return sorted(
        advised, key=lambda a: (ACTIONS.index(a.action), -weight.get(a.place, 0), a.place)
    )


def _advice(
    place: str, stats: DeviceStats, deviations_here: Sequence[votes.Deviation],
    faults: Sequence[tuple[str, str]],
) -> Advice | None:  # fmt: skip
    errors = list(_of_chip(stats))
    evidence = [*faults, *errors, *_deviating(deviations_here)]
    proven = faults or errors or any(d.kind != votes.UNREPEATED for d in deviations_here)
    action = TAKE_OUT if proven else AGAIN
    if stats.speed is not None and stats.speed.slow:
        evidence.append(("slow", f"{stats.speed.median:.2f} times the median"))
        action = action if deviations_here or faults or errors else INSPECT
    if evidence and stats.beside:
        evidence.append(("ran beside", ", ".join(stats.beside)))
    if not evidence:
        return None  # cases that fail here fail elsewhere too: that is the operators' fault
    return Advice(action, place, str(stats.chip.get("serial", "")), tuple(evidence))


def _deviating(deviations_here: Sequence[votes.Deviation]) -> Iterator[tuple[str, str]]:
    by_kind: dict[str, list[votes.Deviation]] = defaultdict(list)
    for one in deviations_here:
        by_kind[one.kind].append(one)
    for kind, same in by_kind.items():
        wrong, launches = sum(d.wrong for d in same), sum(d.launches for d in same)
        rate = f"; {wrong:,} of {launches:,} launches" if launches else ""
        words = next((f"; {d.first}" for d in same if d.first), "")
        cases = ", ".join(d.case for d in same[:_DISPLAY_LIMIT])
        more = f" and {len(same) - _DISPLAY_LIMIT:,} more" if len(same) > _DISPLAY_LIMIT else ""
        yield kind, f"{cases}{more}{rate}{words}"


def _of_chip(stats: DeviceStats) -> Iterator[tuple[str, str]]:
    """What the system itself says against a chip: errors that its memory counted, its state."""
    for key in sorted(stats.counters):
        for name, before, after in stats.counters[key].risen(_ERRORS):
            yield name, f"{before:g} before, {after:g} after"
    if stats.state in _BROKEN:
        yield "health", stats.state
