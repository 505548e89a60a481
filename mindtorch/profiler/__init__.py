"""Owns torch.profiler: ranges that programs name, timed on the host, and the schedule of steps.

Each row's call is an event, as long as the host is busy with it; `mindtorch-npu run --perfetto`
shows every launch on an NPU.
"""

from __future__ import annotations

import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import wraps
from math import prod
from typing import Any

from .._autograd.grad_mode import LOCAL, MODES
from .._compat.warn_once import warn_once
from .._dispatch.dispatch_modes import ask_operator
from .._tensor.tensor import Tensor
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
    MTIA = 2
    CUDA = 3
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


_ELEMENTWISE = ("aten::add", "aten::mul")
_PRODUCTS = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1}


def _flops(name: str, args: Sequence[Any]) -> int:
    """The operations of products, 2-d convolutions, sums and products by element; 0 for others."""
    if name in _ELEMENTWISE:
        return int(args[0].numel()) if isinstance(args[0], Tensor) else 0
    if name in _PRODUCTS:
        left, right = args[_PRODUCTS[name] :][:2]
        return 2 * prod(left.shape) * right.shape[-1]
    if name != "aten::conv2d" or args[6]:
        return 0
    input, weight, _, stride, padding, dilation, *_ = args
    places = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(
            input.shape[-2:], weight.shape[2:], stride, padding, dilation, strict=True
        )
    ]
    return 2 * prod(input.shape[:-3]) * prod(places) * prod(weight.shape)


def _new_bytes(result: object, args: Sequence[object]) -> tuple[int, int]:
    """Bytes of new tensors in memory of the host, and of devices."""
    known = {id(a._storage) for a in args if isinstance(a, Tensor)}
    sizes = [0, 0]
    for tensor in result if isinstance(result, tuple | list) else (result,):
        if not isinstance(tensor, Tensor) or tensor.is_meta or tensor._base is not None:
            continue
        if id(tensor._storage) not in known:
            sizes[tensor.device.type != "cpu"] += tensor.nbytes
    return sizes[0], sizes[1]


@dataclass(eq=False)
class _Recording:
    record_shapes: bool = False
    profile_memory: bool = False
    with_flops: bool = False
    exported: bool = False
    events: list[FunctionEvent] = field(default_factory=list)
    origin: float = field(default_factory=time.perf_counter)

    def note(
        self, name: str, start: float, end: float, args: Sequence[object] = (), *,
        annotation: bool = False, result: object = None,
    ) -> None:  # fmt: skip
        """Take an event, in seconds; those inside it, which ended before, are its parts."""
        begin, inside = (start - self.origin) * 1e6, (end - self.origin) * 1e6
        event = FunctionEvent(
            name, begin, inside - begin, is_user_annotation=annotation, id=len(self.events) + 1
        )
        if self.record_shapes:
            event.input_shapes = [list(getattr(a, "shape", ())) for a in args]
        if self.with_flops and args:
            event.flops = _flops(name, args)
        if self.profile_memory and result is not None:
            host, device = _new_bytes(result, args)
            event.cpu_memory_usage = event.self_cpu_memory_usage = host
            event.device_memory_usage = event.self_device_memory_usage = device
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

    __module__ = "mindtorch.autograd.profiler"

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
        self._seen = tuple(_active)
        self.start: float = time.perf_counter()
        options = () if self.args is None else (self.args,)
        self._record = through_profiler("_record_function_enter_new", self.name, *options)
        return self

    def __exit__(self, *exc: object) -> None:
        end = time.perf_counter()
        through_profiler("_record_function_exit._RecordFunction", self._record)
        for recording in self._seen:
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

    def schedule_fn(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        step -= skip_first
        if step < 0 or (repeat and step // cycle >= repeat):
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return schedule_fn


def _default_schedule_fn(_: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[Any], None]:
    """A handler that writes each finished trace into a folder."""

    def handler_fn(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + ".gz" * use_gzip
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handler_fn


def _distinct(requested: Iterable[Any]) -> set[ProfilerActivity]:
    """Activities, named or keys of dicts of their parts; ValueError for one that is there twice."""
    listed = [a for item in requested for a in (item if isinstance(item, dict) else (item,))]
    known = [a for a in listed if isinstance(a, ProfilerActivity)]
    for activity in known:
        if known.count(activity) > 1:
            raise ValueError(f"Activity {activity} specified more than once")
    for item in listed if known else ():
        if not isinstance(item, ProfilerActivity):
            raise TypeError(f"Expected ProfilerActivity or dict, got {type(item)}")
    return set(known)


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
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: object = None,
        execution_trace_observer: object = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ):
        self.activities = _distinct(supported_activities() if activities is None else activities)
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        if use_cuda is not None:
            warnings.warn(
                "`use_cuda` is deprecated, use `activities` argument instead",
                FutureWarning, stacklevel=2,
            )  # fmt: skip
        self.record_shapes, self.profile_memory = record_shapes or with_flops, profile_memory
        self.with_stack, self.with_flops, self.with_modules = with_stack, with_flops, with_modules
        self.acc_events = acc_events
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
        self._recording = self._new_recording()
        self._step: record_function | None = None
        self._recorded = False
        self._saved = False

    def _new_recording(self) -> _Recording:
        return _Recording(self.record_shapes, self.profile_memory, self.with_flops)

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
            if self._saved and not self.acc_events:  # it stays until the next cycle records
                warn_once(
                    "Warning: Profiler clears events at the end of each cycle. Only events from the"
                    " current cycle will be reported. To keep events across cycles, set"
                    " acc_events=True."
                )
                self._recording = self._new_recording()
            self._saved = False
            self._watch(True)
            self._recorded = True
            if self._steps:
                self._step = record_function(f"ProfilerStep#{self.step_num}").__enter__()

    def _end(self) -> bool:
        if not self._recorded:
            return False
        if self._step is not None:
            self._step.__exit__()
        self._step, self._recorded = None, False
        self._watch(False)
        return True

    def _watch(self, watching: bool) -> None:
        """Let events come into this recording, or no more."""
        if watching == (self._recording in _active):
            return
        others = tuple(note for note in LOCAL.profilers if note != self._recording.note)
        if watching:
            _active.append(self._recording)
            MODES.active += 1
            LOCAL.profilers = (*others, self._recording.note)
        else:
            _active.remove(self._recording)
            MODES.active -= 1
            LOCAL.profilers = others

    def toggle_collection_dynamic(
        self, enable: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Go on, or no longer, watching operators and ranges where `activities` has CPU."""
        if self._recorded and ProfilerActivity.CPU in set(activities):
            self._watch(enable)

    def events(self) -> EventList:
        """The ranges, in order of their starts; one around others is before them."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before accessing events")
        by_start = sorted(self._recording.events, key=lambda e: (e.start, -e.duration, -e.id))
        return EventList(by_start, self.profile_memory, self.with_flops)

    def key_averages(self, group_by_input_shape: bool = False, **_: object) -> EventList:
        """The ranges by name, or by name and shapes of inputs."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before getting key averages")
        return self.events().key_averages(group_by_input_shape)

    def export_chrome_trace(self, path: str) -> None:
        """Write the ranges as a trace, once; a name that ends in .gz is of a compressed file."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before exporting chrome trace")
        if self._recording.exported:
            raise RuntimeError("Trace is already saved.")
        self._recording.exported = True
        self.events().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """An empty file: frames are not recorded; ValueError for no metric."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before exporting stacks")
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.events().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Refused: frees are not recorded; ValueError without what torch needs for it."""
        if not (self.record_shapes and self.profile_memory and self.with_stack):
            raise ValueError(
                "record_shapes=True, profile_memory=True, with_stack=True required for memory"
                " profiling."
            )
        raise NotImplementedError("export_memory_timeline: frees of memory are not recorded")

    def add_metadata(self, key: str, value: str) -> None:
        """Nothing: traces hold ranges only; AttributeError for what is no str."""
        value.replace('"', '\\"')

    add_metadata_json = add_metadata
