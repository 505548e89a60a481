"""Owns the three clocks: device time, host time of queueing, end to end; on npu and on the host."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

_MICRO: Final = 1e6
_BATCH_SECONDS: Final = 2e-3
_MOST: Final = 1000


class Clock:
    """Times calls of `run` on one device; `wait()` blocks until queued work is done."""

    def __init__(self, run: Callable[[], Any], wait: Callable[[], None]) -> None:
        self.run, self.wait = run, wait
        self.batch = self._batch()

    def _batch(self) -> int:
        """How many calls make a batch long enough for the clock."""
        self.run()
        self.wait()
        started = time.perf_counter()
        self.run()
        self.wait()
        once = max(time.perf_counter() - started, 1e-7)
        return max(1, min(_MOST, int(_BATCH_SECONDS / once)))

    def end_to_end(self) -> float:
        """µs of one call and waiting for it."""
        started = time.perf_counter()
        self.run()
        self.wait()
        return (time.perf_counter() - started) * _MICRO

    def host(self) -> float:
        """µs that queueing one call takes, without waiting; the queue is emptied afterwards."""
        run, count = self.run, max(2, min(200, self.batch))
        started = time.perf_counter()
        for _ in range(count):
            run()
        elapsed = time.perf_counter() - started
        self.wait()
        return elapsed / count * _MICRO

    def device(self) -> float:
        """µs per call with the queue full; without events the wall clock over a batch."""
        started = time.perf_counter()
        for _ in range(self.batch):
            self.run()
        self.wait()
        return (time.perf_counter() - started) / self.batch * _MICRO


class NpuClock(Clock):
    """Device time from events around many launches, queued while a blocker holds the stream.

    The blocker keeps the start event from being recorded until the launches are queued, so that
    host latency does not count (nvbench's method).
    """

    def __init__(self, run: Callable[[], Any], index: int, blocker: Callable[[], Any]) -> None:
        from mindtorch.npu import install

        self._device = install.device(index)
        self._stream = install.current_stream(index)
        self._blocker = blocker
        super().__init__(run, self._stream.synchronize)
        self._start, self._end = self._device.event(timing=True), self._device.event(timing=True)

    def device(self) -> float:
        count = max(self.batch, 2)
        self._blocker()
        self._start.record(self._stream)
        for _ in range(count):
            self.run()
        self._end.record(self._stream)
        self._stream.synchronize()
        return self._start.elapsed(self._end) * 1e3 / count


def cold(run: Callable[[int], Any], copies: int) -> Callable[[], Any]:
    """A call that walks over `copies` sets of inputs, larger together than twice the cache."""
    at = 0

    def next_one() -> Any:
        nonlocal at
        at = (at + 1) % copies
        return run(at)

    return next_one
