"""Owns what is known of each device of a fleet: verdicts, speed against the others, faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..conformance.record.result import Counts
from .speed import Speed

_BESIDE: Final = 8  # processes beside a run that are named


@dataclass(slots=True)
class Counters:
    """What a chip's health counters said before and after a run."""

    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)

    def risen(self, words: Sequence[str]) -> Iterator[tuple[str, float, float]]:
        """Counters with one of these words in their name that rose: name, before, after."""
        for name, value in self.after.items():
            known = self.before.get(name)
            if not isinstance(value, int | float) or not isinstance(known, int | float):
                continue
            if value > known and any(word in name for word in words):
                yield name, known, value


@dataclass(slots=True)
class DeviceStats:
    """One device of one host; `bit` is 1 << `index`. `chip` is what the system says of it,
    `serials` are those of every chip that a run met under this name,
    `counters` those of its health by run, in order of their starts, `beside` the other processes
    seen on it; `days` are (day, judged, failing); `probe`: a host, no device."""

    node: str
    device: str
    counts: Counts = field(default_factory=Counts)
    seconds: float = 0.0
    speed: Speed | None = None
    kinds: tuple[str, ...] = ()
    deviating: int = 0
    chip: dict[str, Any] = field(default_factory=dict)
    serials: dict[str, None] = field(default_factory=dict)
    counters: dict[str, Counters] = field(default_factory=dict)
    beside: dict[str, None] = field(default_factory=dict)
    days: list[tuple[str, int, int]] = field(default_factory=list)
    index: int = 0
    bit: int = 1
    probe: bool = False

    @property
    def name(self) -> str:
        return f"{self.node} {self.device}".strip()

    def take_beside(self, processes: Iterable[Mapping[str, Any]]) -> None:
        """Remember processes of others by name and user."""
        for one in processes:
            user = f" of {one['user']}" if one.get("user") else ""
            if len(self.beside) < _BESIDE:
                self.beside[f"{one.get('name') or 'a process'}{user}"] = None

    @property
    def health(self) -> dict[str, dict[str, Any]]:
        """The counters before the first run and after the last one that has some."""
        ordered = [self.counters[key] for key in sorted(self.counters)]
        before = next((c.before for c in ordered if c.before), {})
        after = next((c.after for c in reversed(ordered) if c.after), {})
        return {name: v for name, v in (("before", before), ("after", after)) if v}

    @property
    def state(self) -> str:
        """What the system last called its health, such as OK or Alarm; "" where it says nothing."""
        health = self.health
        return str({**health.get("before", {}), **health.get("after", {})}.get("state", ""))

    @property
    def faulty(self) -> bool:
        """Whether something speaks against the device."""
        return bool(self.counts.failing or self.kinds or (self.speed and self.speed.slow))

    def as_json(self) -> dict[str, Any]:
        speed = {} if self.speed is None else {"speed": self.speed.as_json()}
        facts = {k: v for k in ("chip", "health") if (v := getattr(self, k))}
        facts |= {"beside": [*self.beside]} if self.beside else {}
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
