"""torch.monitor: counted numbers and events of a program, given to handlers in this process."""

from __future__ import annotations

import datetime
import enum
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from mindtorch.utils.tensorboard import SummaryWriter

__all__ = [
    "STAT_EVENT",
    "Aggregation",
    "Event",
    "EventHandlerHandle",
    "Stat",
    "TensorboardEventHandler",
    "data_value_t",
    "log_event",
    "register_event_handler",
    "unregister_event_handler",
]  # fmt: skip

STAT_EVENT = "torch.monitor.Stat"
data_value_t: TypeAlias = str | float | int | bool


class Aggregation(enum.Enum):
    """What is kept of the numbers of one window of time."""

    VALUE = 0
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6


VALUE, MEAN, COUNT = Aggregation.VALUE, Aggregation.MEAN, Aggregation.COUNT
SUM, MAX, MIN = Aggregation.SUM, Aggregation.MAX, Aggregation.MIN


class Event:
    """Something that happened: a name, a time, and numbers or texts by name."""

    def __init__(
        self, name: str, timestamp: datetime.datetime, data: dict[str, data_value_t]
    ) -> None:
        self.name, self.timestamp, self.data = name, timestamp, data


class EventHandlerHandle:
    """What `register_event_handler` gives, to be unregistered."""

    def __init__(self, handler: Callable[[Event], None]) -> None:
        self._handler = handler


_handlers: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Let `callback` have each event."""
    handle = EventHandlerHandle(callback)
    _handlers.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Give it no further events."""
    if handler in _handlers:
        _handlers.remove(handler)


def log_event(event: Event) -> None:
    """Give an event to all handlers."""
    for handle in list(_handlers):
        handle._handler(event)


class Stat:
    """Numbers of windows of `window_size`; an event is logged of each window that is over.

    It is logged with `max_samples` numbers, and further ones of its window are left out. VALUE is
    taken and, as in torch, kept of nothing.
    """

    def __init__(
        self, name: str, aggregations: Sequence[Aggregation], window_size: datetime.timedelta,
        max_samples: int = 2**63 - 1,
    ) -> None:  # fmt: skip
        self.name, self._aggregations = name, list(aggregations)
        self._window, self._most = window_size.total_seconds(), max_samples
        self._lock = threading.Lock()
        self._values: list[float] = []
        self._at = self._now()
        self._full = False
        self._last = dict.fromkeys((a for a in self._aggregations if a is not VALUE), 0.0)

    def _now(self) -> int:
        return int(time.time() // self._window) if self._window else 0

    def add(self, v: float) -> None:
        """Count a number."""
        with self._lock:
            self._end_window()
            if self._full:
                return
            self._values.append(float(v))
            if len(self._values) >= self._most:
                self._log()
                self._full = True

    def get(self) -> dict[Aggregation, float]:
        """What the last window gave."""
        with self._lock:
            self._end_window()
            return dict(self._last)

    @property
    def count(self) -> int:
        """Numbers in this window."""
        with self._lock:
            self._end_window()
            return len(self._values)

    def _end_window(self) -> None:
        if self._at != self._now():
            self._log()
            self._at, self._full = self._now(), False

    def _log(self) -> None:
        values, self._values = self._values, []
        if not values:
            return
        every: dict[Aggregation, Callable[[], float]] = {
            MEAN: lambda: sum(values) / len(values), COUNT: lambda: float(len(values)),
            SUM: lambda: sum(values), MAX: lambda: max(values), MIN: lambda: min(values),
        }  # fmt: skip
        self._last = {kind: every[kind]() for kind in self._last}
        data: dict[str, Any] = {
            f"{self.name}.{kind.name.lower()}": value for kind, value in self._last.items()
        }
        log_event(Event(STAT_EVENT, datetime.datetime.now(), data))


class TensorboardEventHandler:
    """A handler that writes each number of statistics with a SummaryWriter."""

    def __init__(self, writer: SummaryWriter) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())
