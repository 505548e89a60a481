"""Owns torch.profiler: ranges that programs name, timed on the host, and the schedule of steps.

Operators are not traced one by one: `mindtorch-npu run --perfetto` shows every launch on an NPU.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from functools import wraps
from typing import Any

__all__ = ["EventList", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile",
           "record_function", "schedule", "supported_activities",
           "tensorboard_trace_handler"]  # fmt: skip


class ProfilerActivity(Enum):
    """What can be watched; here only CPU."""

    CPU = 0
    XPU = 1
    CUDA = 2
    MTIA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(Enum):
    """What is done with a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """CPU."""
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """False: ranges are timed by this module."""
    return False


@dataclass
class Event:
    """One range: `start` and `duration` in µs."""

    name: str
    start: float
    duration: float
    thread: int = 0

    @property
    def key(self) -> str:
        return self.name

    @property
    def cpu_time_total(self) -> float:
        return self.duration

    @property
    def cpu_time(self) -> float:
        return self.duration


@dataclass
class Average:
    """Ranges of one name: times in µs."""

    key: str
    count: int = 0
    cpu_time_total: float = 0.0

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count

    self_cpu_time_total = property(lambda self: self.cpu_time_total)


class EventList(list[Any]):
    """Events, or averages of them."""

    def key_averages(self, *_: object, **__: object) -> EventList:
        """One entry for each name."""
        averages: dict[str, Average] = {}
        for event in self:
            average = averages.setdefault(event.key, Average(event.key))
            average.count += getattr(event, "count", 1)
            average.cpu_time_total += event.cpu_time_total
        return EventList(averages.values())

    def total_average(self) -> Average:
        """All as one."""
        total = Average("Total", len(self))
        total.cpu_time_total = sum(e.cpu_time_total for e in self)
        return total

    def table(self, sort_by: str | None = None, row_limit: int = 100, **_: object) -> str:
        """A table of names, calls and host times."""
        rows = sorted(self.key_averages(), key=lambda a: -a.cpu_time_total)[:row_limit]
        lines = [f"{'Name':<40} {'Calls':>8} {'CPU total':>12} {'CPU mean':>12}"]
        lines += [
            f"{a.key:<40} {a.count:>8} {a.cpu_time_total:>10.1f}us {a.cpu_time:>10.1f}us"
            for a in rows
        ]
        return "\n".join(lines)

    def export_chrome_trace(self, path: str) -> None:
        """Write the ranges as a trace that chrome://tracing and Perfetto open."""
        events = [
            {"name": e.name, "ph": "X", "ts": e.start, "dur": e.duration, "pid": os.getpid(),
             "tid": e.thread}
            for e in self
        ]  # fmt: skip
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events}, file)


@dataclass
class _Recording:
    events: EventList = field(default_factory=EventList)


_active: list[_Recording] = []


class record_function:  # noqa: N801 - torch's name
    """`with record_function("name"):` or a decorator: a range that profilers see."""

    def __init__(self, name: str, args: str | None = None):
        self.name = name
        self.args = args

    def __enter__(self) -> record_function:
        self.start = time.perf_counter()
        return self

    def __exit__(self, *exc: object) -> None:
        if _active:
            took = time.perf_counter() - self.start
            event = Event(self.name, self.start * 1e6, took * 1e6)
            for recording in _active:
                recording.events.append(event)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return inside


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:  # fmt: skip
    """Steps to skip, wait, warm up and record, over and over or `repeat` times."""
    if min(wait, warmup, active, repeat, skip_first) < 0 or active == 0:
        raise AssertionError("Invalid profiler schedule arguments")
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0 or (repeat and step // cycle >= repeat):
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def _default_schedule_fn(_: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[Any], None]:
    """A handler that writes each finished trace into a folder."""

    def handle(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        name = f"{worker_name or os.getpid()}.{time.time_ns()}.pt.trace.json"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handle


_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile:  # noqa: N801 - torch's name
    """`with profile(...) as prof:`; `step()` ends one step of the schedule."""

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        **options: Any,
    ):
        self.activities = set(activities or supported_activities())
        self.schedule = schedule or _default_schedule_fn
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.profiler: Any = None
        self._recording = _Recording()
        self._step: record_function | None = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin the first step."""
        self.profiler = self
        self._begin()

    def stop(self) -> None:
        """End the last step."""
        recorded = self._end()
        if recorded and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self) -> None:
        """End this step, begin the next."""
        recorded = self._end()
        if recorded and self.current_action is ProfilerAction.RECORD_AND_SAVE:
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
            self._recording = _Recording()
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._begin()

    def _begin(self) -> None:
        if self.current_action in _RECORDS:
            _active.append(self._recording)
            self._step = record_function(f"ProfilerStep#{self.step_num}").__enter__()

    def _end(self) -> bool:
        if self._step is None:
            return False
        self._step.__exit__()
        self._step = None
        _active.remove(self._recording)
        return True

    def events(self) -> EventList:
        """The ranges, in order of their ends."""
        return self._recording.events

    def key_averages(self, *_: object, **__: object) -> EventList:
        """The ranges by name."""
        return self.events().key_averages()

    def export_chrome_trace(self, path: str) -> None:
        """Write the ranges as a trace."""
        self.events().export_chrome_trace(path)

    def add_metadata(self, key: str, value: str) -> None:
        """Nothing: traces hold ranges only."""

    add_metadata_json = add_metadata
