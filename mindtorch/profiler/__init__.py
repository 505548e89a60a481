"""Owns torch.profiler: ranges that programs name, timed on the host, and the schedule of steps.

Each row's call is an event, as long as the host is busy with it; `mindtorch-npu run --perfetto`
shows every launch on an NPU.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import wraps
from typing import Any

from .._autograd.grad_mode import LOCAL, MODES
from .._dispatch.dispatch_modes import ask_operator
from ..ops.function_schema import function_schema
from ..ops.namespaces import define, namespace
from ._events import EventList, FunctionEvent

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
    DEVICE_STOPPED = 4  # torch's own schedules never give it


def supported_activities() -> set[ProfilerActivity]:
    """CPU."""
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """False: ranges are timed by this module."""
    return False


@dataclass
class _Recording:
    events: EventList = field(default_factory=EventList)
    record_shapes: bool = False
    origin: float = field(default_factory=time.perf_counter)

    def note(
        self, name: str, start: float, end: float, args: Sequence[object] = (), *,
        annotation: bool = False,
    ) -> None:  # fmt: skip
        """Take an event, in seconds; those inside it, which ended before, are its parts."""
        begin, inside = (start - self.origin) * 1e6, (end - self.origin) * 1e6
        event = FunctionEvent(
            name, begin, inside - begin, is_user_annotation=annotation, id=len(self.events) + 1
        )
        if self.record_shapes:
            event.input_shapes = [list(getattr(a, "shape", ())) for a in args]
        event.self_cpu_time_total = event.duration
        for part in reversed(self.events):
            if part.start < begin:
                break
            if part.start + part.duration <= inside:  # not a part of one seen already
                event.adopt(part)
                inside = part.start
        self.events.append(event)


_active: list[_Recording] = []


for _text in (
    "_record_function_enter_new(str name, str? args=None) -> Any",
    "_record_function_exit._RecordFunction(Any record) -> ()",
):
    _name, _, _overload = _text.partition("(")[0].partition(".")
    _schema = function_schema("profiler", _text)
    define("profiler", _name, _overload or "default", lambda *args: None, _schema)


def through_profiler(name: str, *args: object) -> object:
    """What the innermost mode makes of an operator that begins or ends a range."""
    if not (MODES.active and LOCAL.dispatches):
        return None
    packet, _, overload = name.partition(".")
    function = getattr(getattr(namespace("profiler"), packet), overload or "default")
    return ask_operator(function, args, {})


class record_function:  # noqa: N801 - torch's name
    """`with record_function("name"):` or a decorator: a range that profilers see."""

    def __init__(self, name: str, args: str | None = None):
        self.name = name
        self.args = args

    def __enter__(self) -> record_function:
        for what, value, kind in (("name", self.name, "str"), ("args", self.args, "Optional[str]")):
            if not isinstance(value, str) and (what == "name" or value is not None):
                raise RuntimeError(
                    "profiler::_record_function_enter_new() Expected a value of type"
                    f" '{kind}' for argument '{what}' but instead found type"
                    f" '{type(value).__name__}'."
                )
        self.start: float = time.perf_counter()
        self._record = through_profiler("_record_function_enter_new", self.name, self.args)
        return self

    def __exit__(self, *exc: object) -> None:
        end = time.perf_counter()
        through_profiler("_record_function_exit._RecordFunction", self._record)
        for recording in _active:
            recording.note(self.name, self.start, end, annotation=True)

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
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup}"
            f" (need >= 0), active={active} (need > 0), repeat={repeat} (need >= 0),"
            f" skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        text = "Profiler won't be using warmup, this can skew profiler results"
        warnings.warn(text, stacklevel=2)
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

    current_action: ProfilerAction

    step_num: int

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        **options: Any,
    ):
        requested = supported_activities() if activities is None else activities
        self.activities: set[ProfilerActivity] = set(requested)
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        self.schedule = schedule or _default_schedule_fn
        if self.schedule(0) is ProfilerAction.DEVICE_STOPPED:
            raise ValueError(
                "ProfilerAction.DEVICE_STOPPED is set internally by the profiler and must not be"
                " returned by a user-provided schedule"
            )
        self._steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.profiler: Any = None
        self._recording = _Recording(record_shapes=record_shapes)
        self._step: record_function | None = None
        self._recorded = False
        self._saved = False

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
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before stopping trace")
        recorded = self._end()
        if recorded and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self) -> None:
        """End this step, begin the next."""
        recorded = self._end()
        self.step_num += 1
        if recorded and self.current_action is ProfilerAction.RECORD_AND_SAVE:
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
            self._saved = True
        self.current_action = self.schedule(self.step_num)
        self._begin()

    def _begin(self) -> None:
        if self.current_action in _RECORDS:
            if self._saved:  # what was saved stays until the next cycle records
                self._recording = _Recording(record_shapes=self._recording.record_shapes)
                self._saved = False
            _active.append(self._recording)
            MODES.active += 1
            LOCAL.profilers = (*LOCAL.profilers, self._recording.note)
            self._recorded = True
            if self._steps:
                self._step = record_function(f"ProfilerStep#{self.step_num}").__enter__()

    def _end(self) -> bool:
        if not self._recorded:
            return False
        if self._step is not None:
            self._step.__exit__()
        self._step, self._recorded = None, False
        _active.remove(self._recording)
        MODES.active -= 1
        mine = self._recording.note
        LOCAL.profilers = tuple(note for note in LOCAL.profilers if note != mine)
        return True

    def events(self) -> EventList:
        """The ranges, in order of their starts; one around others is before them."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before accessing events")
        by_start = sorted(self._recording.events, key=lambda e: (e.start, -e.duration, -e.id))
        return EventList(by_start)

    def key_averages(self, group_by_input_shape: bool = False, **_: object) -> EventList:
        """The ranges by name, or by name and shapes of inputs."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before getting key averages")
        return self.events().key_averages(group_by_input_shape)

    def export_chrome_trace(self, path: str) -> None:
        """Write the ranges as a trace."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before exporting chrome trace")
        self.events().export_chrome_trace(path)

    def add_metadata(self, key: str, value: str) -> None:
        """Nothing: traces hold ranges only; AttributeError for what is no str."""
        value.replace('"', '\\"')

    add_metadata_json = add_metadata
