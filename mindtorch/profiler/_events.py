"""Owns the events of a profiler, and their averages: times in µs, of the host alone."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from ._table import time_text, write_table


class Interval(NamedTuple):
    """When something began and ended, µs since its recording began."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """How long it took."""
        return self.end - self.start


def _text_of(name: str) -> property:
    """A time with its unit."""
    return property(lambda event: time_text(getattr(event, name)), doc=f"`{name}` with its unit.")


class _Times:
    """What an event and an average tell alike: nothing of devices' times, nor of other hosts."""

    device_time = device_time_total = self_device_time_total = 0.0
    cuda_time = cuda_time_total = self_cuda_time_total = 0.0
    cpu_memory_usage: int = 0
    self_cpu_memory_usage: int = 0
    device_memory_usage: int = 0
    self_device_memory_usage: int = 0
    flops: int = 0
    is_async = is_legacy = is_remote = False
    node_id: ClassVar[int] = -1
    overload_name: ClassVar[str] = ""
    use_device: ClassVar[str | None] = None

    cpu_time_str = _text_of("cpu_time")
    cpu_time_total_str = _text_of("cpu_time_total")
    self_cpu_time_total_str = _text_of("self_cpu_time_total")
    device_time_str = _text_of("device_time")
    device_time_total_str = _text_of("device_time_total")
    self_device_time_total_str = _text_of("self_device_time_total")

    @property
    def stack(self) -> list[str]:
        """Nothing: frames are not recorded."""
        return []


@dataclass(eq=False)
class FunctionEvent(_Times):
    """One range of the host: `start` and `duration` in µs; those inside it are its children."""

    name: str
    start: float
    duration: float
    thread: int = 0
    is_user_annotation: bool = False
    id: int = 0
    self_cpu_time_total: float = 0.0
    input_shapes: list[list[int]] = field(default_factory=list)
    cpu_children: list[FunctionEvent] = field(default_factory=list, repr=False)
    cpu_parent: FunctionEvent | None = field(default=None, repr=False)
    count = 1
    fwd_thread = 0
    sequence_nr = -1

    @property
    def time_range(self) -> Interval:
        """From its start to its end."""
        return Interval(self.start, self.start + self.duration)

    @property
    def trace_name(self) -> str:
        """The name in a trace: the same."""
        return self.name

    @property
    def key(self) -> str:
        """What averages are by: steps are one."""
        return "ProfilerStep*" if self.name.startswith("ProfilerStep#") else self.name

    @property
    def cpu_time_total(self) -> float:
        return self.duration

    @property
    def cpu_time(self) -> float:
        return self.duration

    @property
    def scope(self) -> int:
        """7 for a range that the program names, 0 for an operator."""
        return 7 if self.is_user_annotation else 0

    @property
    def kernels(self) -> list[object]:
        """Nothing: devices are not watched."""
        return []

    concrete_inputs = kernels

    @property
    def kwinputs(self) -> dict[str, object]:
        """Nothing: values of arguments are not recorded."""
        return {}

    def adopt(self, part: FunctionEvent) -> None:
        """Take an earlier event as the first of those inside this one."""
        part.cpu_parent = self
        self.cpu_children.insert(0, part)
        self.self_cpu_time_total -= part.duration
        self.cpu_memory_usage += part.cpu_memory_usage
        self.device_memory_usage += part.device_memory_usage


@dataclass
class FunctionEventAvg(_Times):
    """Ranges of one name: times in µs."""

    key: str
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    input_shapes: list[list[int]] | str = ""
    is_user_annotation: bool = False
    scope: int = 0

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0


class EventList(list[Any]):
    """Events, or averages of them; `table` has columns of memory and operations where asked for."""

    def __init__(
        self, events: Iterable[Any] = (), profile_memory: bool = False, with_flops: bool = False
    ):
        super().__init__(events)
        self._profile_memory, self._with_flops = profile_memory, with_flops

    def key_averages(
        self, group_by_input_shape: bool = False, *_: object, **__: object
    ) -> EventList:
        """One entry for each name, or for each name and shapes of inputs."""
        averages: dict[tuple[str, str], FunctionEventAvg] = {}
        for event in self:
            shapes = event.input_shapes if group_by_input_shape else ""
            average = averages.setdefault(
                (event.key, str(shapes)),
                FunctionEventAvg(
                    event.key, input_shapes=shapes, scope=event.scope,
                    is_user_annotation=event.is_user_annotation,
                ),
            )  # fmt: skip
            for name in _SUMS:
                setattr(average, name, getattr(average, name) + getattr(event, name))
        return EventList(averages.values(), self._profile_memory, self._with_flops)

    @property
    def self_cpu_time_total(self) -> float:
        """The host's time in all events, µs."""
        return sum(e.self_cpu_time_total for e in self)

    def total_average(self) -> FunctionEventAvg:
        """All as one."""
        total = FunctionEventAvg("Total", len(self))
        for name in _SUMS[1:]:
            setattr(total, name, sum(getattr(e, name) for e in self))
        return total

    @staticmethod
    def supported_export_stacks_metrics() -> list[str]:
        """What export_stacks takes."""
        kinds = ("cpu", "cuda", "xpu", "privateuse1")
        return [f"self_{kind}_time_total" for kind in kinds]

    def export_stacks(self, path: str, metric: str) -> None:
        """An empty file: frames are not recorded; ValueError for no metric."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        with open(path, "w", encoding="utf-8"):
            pass

    def __str__(self) -> str:
        return self.table()

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
        max_name_column_width: int | None = 55, max_shapes_column_width: int | None = 80,
        header: str | None = None, top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:  # fmt: skip
        """Names, times and calls, as torch shows them; `sort_by` is a field of the events."""
        return write_table(
            self, sort_by, row_limit, max_name_column_width, max_shapes_column_width, header,
            top_level_events_only, time_unit, self._profile_memory, self._with_flops,
        )  # fmt: skip

    def export_chrome_trace(self, path: str) -> None:
        """Write the ranges as a trace that chrome://tracing and Perfetto open."""
        events = [
            {"name": e.name, "ph": "X", "ts": e.start, "dur": e.duration, "pid": os.getpid(),
             "tid": e.thread, "cat": "user_annotation" if e.is_user_annotation else "cpu_op",
             "args": {"External id": e.id, "Ev Idx": at,
                      **({"Input Dims": e.input_shapes} if e.input_shapes else {})}}
            for at, e in enumerate(self)
        ]  # fmt: skip
        opened = gzip.open if str(path).endswith(".gz") else open
        with opened(path, "wt", encoding="utf-8") as file:
            facts = {"schemaVersion": 1, "deviceProperties": [], "traceName": str(path),
                     "displayTimeUnit": "ms", "baseTimeNanoseconds": 0}  # fmt: skip
            json.dump({**facts, "traceEvents": events}, file)


# What averages are sums of.
_SUMS = ("count", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage",
         "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage",
         "flops")  # fmt: skip
