"""Owns the events of a profiler, and their averages: times in µs, of the host alone."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple


class Interval(NamedTuple):
    """When something began and ended, µs since its recording began."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """How long it took."""
        return self.end - self.start


def _time_text(time: float) -> str:
    """A time of µs in the unit that torch shows it in."""
    if time >= 1e6:
        return f"{time / 1e6:.3f}s"
    return f"{time / 1e3:.3f}ms" if time >= 1e3 else f"{time:.3f}us"


def _text_of(name: str) -> property:
    """A time with its unit."""
    return property(lambda event: _time_text(getattr(event, name)), doc=f"`{name}` with its unit.")


class _Times:
    """What an event and an average tell alike: nothing of devices, of memory, of other hosts."""

    device_time = device_time_total = self_device_time_total = 0.0
    cuda_time = cuda_time_total = self_cuda_time_total = 0.0
    cpu_memory_usage = self_cpu_memory_usage = flops = 0
    device_memory_usage = self_device_memory_usage = 0
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
    """Events, or averages of them."""

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
            average.count += getattr(event, "count", 1)
            average.cpu_time_total += event.cpu_time_total
            average.self_cpu_time_total += event.self_cpu_time_total
        return EventList(averages.values())

    @property
    def self_cpu_time_total(self) -> float:
        """The host's time in all events, µs."""
        return sum(e.self_cpu_time_total for e in self)

    def total_average(self) -> FunctionEventAvg:
        """All as one."""
        total = FunctionEventAvg("Total", len(self))
        total.cpu_time_total = sum(e.cpu_time_total for e in self)
        total.self_cpu_time_total = self.self_cpu_time_total
        return total

    def table(self, sort_by: str | None = None, row_limit: int = 100, **_: object) -> str:
        """A table of names, times and calls, as torch's; `sort_by` is a field of the averages."""
        rows = list(self.key_averages())
        if not rows:
            return ""
        if sort_by is not None:
            rows.sort(key=lambda a: getattr(a, sort_by), reverse=True)
        mine = sum(a.self_cpu_time_total for a in rows)
        rows = rows[: row_limit if row_limit >= 0 else None]
        wide = max([4, *(len(a.key) for a in rows)]) + 2
        line = "  ".join(["-" * wide, *["-" * 12] * (len(_COLUMNS) - 1)]) + "  "
        head = "  ".join([f"{_COLUMNS[0]:>{wide}}", *(f"{c:>12}" for c in _COLUMNS[1:])]) + "  "
        body = [
            "  ".join([f"{a.key:>{wide}}", *(f"{cell:>12}" for cell in _cells(a, mine))]) + "  "
            for a in rows
        ]
        end = f"Self CPU time total: {_time_text(mine)}\n"
        return "\n".join([line, head, line, *body, line, end])

    def export_chrome_trace(self, path: str) -> None:
        """Write the ranges as a trace that chrome://tracing and Perfetto open."""
        events = [
            {"name": e.name, "ph": "X", "ts": e.start, "dur": e.duration, "pid": os.getpid(),
             "tid": e.thread, "cat": "user_annotation" if e.is_user_annotation else "cpu_op",
             "args": {"External id": e.id, "Ev Idx": at}}
            for at, e in enumerate(self)
        ]  # fmt: skip
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"schemaVersion": 1, "traceEvents": events}, file)


_COLUMNS = ("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg",
            "# of Calls")  # fmt: skip


def _cells(average: FunctionEventAvg, whole: float) -> list[str]:
    """What the table says of one name, without the name."""
    mine, total = average.self_cpu_time_total, average.cpu_time_total
    share = 100 / whole if whole else 0.0
    return [f"{mine * share:.2f}%", _time_text(mine), f"{total * share:.2f}%", _time_text(total),
            _time_text(average.cpu_time), str(average.count)]  # fmt: skip
