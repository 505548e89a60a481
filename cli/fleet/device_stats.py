"""Owns what is known of each device of a fleet: verdicts, speed against the others, faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..conformance.record.result import Counts
from .speed import Speed


@dataclass(slots=True)
class DeviceStats:
    """One device of one host; `bit` is 1 << `index`. `chip` is what the system says of it, `health`
    its counters before and after; `days` are (day, judged, failing); `probe`: a host, no device."""

    node: str
    device: str
    counts: Counts = field(default_factory=Counts)
    seconds: float = 0.0
    speed: Speed | None = None
    kinds: tuple[str, ...] = ()
    deviating: int = 0
    chip: dict[str, Any] = field(default_factory=dict)
    health: dict[str, dict[str, Any]] = field(default_factory=dict)
    days: list[tuple[str, int, int]] = field(default_factory=list)
    index: int = 0
    bit: int = 1
    probe: bool = False

    @property
    def name(self) -> str:
        return f"{self.node} {self.device}".strip()

    @property
    def faulty(self) -> bool:
        """Whether something speaks against the device."""
        return bool(self.counts.failing or self.kinds or (self.speed and self.speed.slow))

    def as_json(self) -> dict[str, Any]:
        speed = {} if self.speed is None else {"speed": self.speed.as_json()}
        facts = {k: v for k in ("chip", "health") if (v := getattr(self, k))}
        trend = [{"day": d, "judged": n, "failing": f} for d, n, f in self.days]
        return {"node": self.node, "device": self.device, "counts": self.counts.by_verdict,
                "failing": self.counts.failing, "seconds": round(self.seconds, 3),
                "deviates": list(self.kinds), "deviating": self.deviating, "trend": trend,
                **speed, **facts}  # fmt: skip


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
