"""Owns samples of a time: when there are enough of them, and what they say."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

# Warm-up ends when two windows' medians agree; sampling when the spread is small or stable.
_AGREE: Final = 0.02
_WINDOW: Final = 3
_LEAST: Final = 20
_LEAST_SECONDS: Final = 0.1
_CALM: Final = 0.02
_NOISY: Final = 0.10
_FEW: Final = 5  # samples: fewer have no spread


@dataclass(frozen=True, slots=True)
class SamplingLimits:
    """Caps in seconds: of the warm-up, and of the sampling of one number."""

    warm_up: float = 1.0
    sampling: float = 1.0


@dataclass(frozen=True, slots=True)
class TimeSpread:
    """One number with its spread, in µs per call; `noisy` when IQR / median stayed above 10 %."""

    median: float
    p20: float
    p80: float
    q1: float
    q3: float
    least: float
    n: int
    noisy: bool
    waiting: float = 0.0  # share of the time that threads, ready to run, waited for a core

    @property
    def few(self) -> bool:
        """Whether these are too few samples for a spread."""
        return self.n < _FEW

    @property
    def spread(self) -> float:
        """IQR / median."""
        return (self.q3 - self.q1) / self.median if self.median else 0.0

    def as_json(self) -> dict[str, Any]:
        return {k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(self).items()}


def from_json(data: Mapping[str, Any]) -> TimeSpread:
    """Times of a baseline; TypeError or ValueError for other data."""
    spread = TimeSpread(**data)
    if not all(isinstance(n, int | float) and 0 <= n < math.inf for n in asdict(spread).values()):
        raise ValueError(f"times are finite numbers of at least 0: {dict(data)!r:.200}")
    if not spread.median:
        raise ValueError(f"a median of 0 is no time: {dict(data)!r:.200}")
    return spread


def summarize(samples: list[float], waiting: float = 0.0) -> TimeSpread:
    """Times of samples in µs."""
    a = np.array(samples)
    p20, q1, median, q3, p80 = np.percentile(a, (20, 25, 50, 75, 80))
    spread = (q3 - q1) / median if median else 0.0
    return TimeSpread(float(median), float(p20), float(p80), float(q1), float(q3), float(a.min()),
                 len(samples), bool(spread > _NOISY), waiting)  # fmt: skip


def measure(sample: Callable[[], float], limits: SamplingLimits) -> TimeSpread:
    """Times of as many samples as they need, and how long threads waited for a core meanwhile."""
    waited, started = _core_wait(), time.perf_counter()
    samples = collect(sample, limits)
    return summarize(samples, (_core_wait() - waited) / (time.perf_counter() - started))


def _core_wait() -> float:
    """Seconds that threads of this process have waited on a run queue; 0 where the kernel does not
    say (Documentation/scheduler/sched-stats.rst: the second number of schedstat, in ns)."""
    total = 0
    for path in Path("/proc/self/task").glob("*/schedstat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            total += int(path.read_text().split()[1])
    return total * 1e-9


def warm_up(sample: Callable[[], float], limits: SamplingLimits) -> None:
    """Call until two successive windows' medians agree within 2 %, at most the cap."""
    end = time.perf_counter() + limits.warm_up
    before = 0.0
    while True:
        now = float(np.median([sample() for _ in range(_WINDOW)]))
        if before and abs(now - before) <= _AGREE * before:
            return
        if time.perf_counter() > end:
            return
        before = now


def collect(sample: Callable[[], float], limits: SamplingLimits) -> list[float]:
    """Samples in µs until they converge: enough of them, and IQR / median below 2 %, or the cap."""
    times: list[float] = []
    started = time.perf_counter()
    while True:
        times.append(sample())
        elapsed = time.perf_counter() - started
        if elapsed > limits.sampling:
            return times
        if len(times) >= _LEAST and elapsed > _LEAST_SECONDS and len(times) % 8 == 0:
            q1, median, q3 = np.percentile(times, (25, 50, 75))
            if median and (q3 - q1) / median < _CALM:
                return times
