"""Owns torch.npu's Stream, Event and stream contexts over the bindings' own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from ..._autograd.scope import StepScope
from ..._tensor.device import DeviceLike, current_npu, device as Device
from .. import streams
from . import runtime
from .runtime import is_available as is_available

if TYPE_CHECKING:
    from aclnn_bindings import Event as _Event, Stream as _Stream


def index_of(device: Device | str | int | None) -> int:
    """The index that a device argument means: None is the current one.

    ValueError for a device that is no npu.
    """
    if device is None:
        return current_npu()
    if isinstance(device, int):
        return device
    resolved = Device(device)
    if resolved.type != "npu":
        raise ValueError(f"Expected a npu device, but got: {resolved}")
    return current_npu() if resolved.index is None else resolved.index


class Stream(streams.Stream):
    """An in-order queue of work on one device; as a context it becomes the thread's stream.

    Source: the torch.cuda.Stream document; `stream` here is the bindings' stream.
    """

    def __init__(
        self, device: DeviceLike | None = None, priority: int = 0, *, _bound: _Stream | None = None
    ):
        self._bound = _bound or runtime.device(index_of(device)).stream(max(priority, 0))

    def __reduce__(self) -> NoReturn:
        raise TypeError("Stream: it is of this process and has one owner; make another instead")

    @property
    def device(self) -> Device:
        return Device("npu", self._bound.device.index)

    @property
    def stream_id(self) -> int:
        return self.npu_stream

    @property
    def npu_stream(self) -> int:
        """The aclrtStream's address."""
        return self._bound.handle

    def synchronize(self) -> None:
        """Wait for all work queued on this stream; raises its first error."""
        self._bound.synchronize()

    def query(self) -> bool:
        """Whether all work queued so far is done."""
        return self._bound.query()

    def record_event(self, event: Event | None = None) -> Event:
        """Record `event` (a new one if none is given) after the work queued so far."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let work queued from now on wait for what `event` recorded."""
        if event._bound is not None:
            self._bound.wait(event._bound)

    def wait_stream(self, stream: Stream) -> None:
        """Let work queued from now on wait for what is queued on `stream` now."""
        self._bound.wait_stream(stream._bound)

    def steps(self) -> Iterator[Stream]:
        before = runtime.current_stream(self._bound.device.index)
        try:
            runtime.set_stream(self._bound)
            yield self
        finally:
            try:
                runtime.set_stream(before)
            except KeyboardInterrupt:  # it may not have come to an end
                runtime.set_stream(before)
                raise

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other._bound is self._bound

    def __hash__(self) -> int:
        return hash(id(self._bound))

    def __repr__(self) -> str:
        return f"<torch_npu.npu.Stream device={self.device} npu_stream={self.npu_stream:#x}>"


class Event(streams.Event):
    """A mark in a stream's work; `enable_timing` gives it a time stamp.

    Source: the torch.cuda.Event document. The device event is made at the first record.
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ):
        if interprocess:
            raise NotImplementedError("Event: interprocess events are not implemented for NPU")
        del blocking  # waiting always blocks the thread, as aclrtSynchronizeEvent does
        self._place: Device | None = None
        self._timing = enable_timing
        self._bound: _Event | None = None

    @property
    def device(self) -> Device:
        """Where it was recorded, before that the device that it was made for."""
        if self._bound is not None:
            return Device("npu", self._bound.device.index)
        return self._place or Device("npu", current_npu())

    @property
    def event_id(self) -> int:
        return 0 if self._bound is None else id(self._bound)

    def __reduce__(self) -> NoReturn:
        raise TypeError("Event: it is of this process and has one owner; make another instead")

    def record(self, stream: Stream | None = None) -> None:
        """Mark the work queued so far on `stream`, by default the current one."""
        on = stream._bound if stream is not None else current_stream()._bound
        if self._bound is None or self._bound.device is not on.device:
            self._bound = on.device.event(timing=self._timing)
        self._bound.record(on)

    def wait(self, stream: Stream | None = None) -> None:
        """Let `stream` (the current one) wait for what was recorded."""
        (stream or current_stream()).wait_event(self)

    def query(self) -> bool:
        """Whether what was recorded is done; true before the first record."""
        return self._bound is None or self._bound.query()

    def synchronize(self) -> None:
        """Wait until what was recorded is done."""
        if self._bound is not None:
            self._bound.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to `end_event`; ValueError without timing or record."""
        if not (self._timing and end_event._timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._bound is None or end_event._bound is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return self._bound.elapsed(end_event._bound)

    def __repr__(self) -> str:
        if self._bound is None:
            return "<torch_npu.npu.Event uninitialized>"
        return f"<torch_npu.npu.Event {id(self._bound):#x}>"


def of_device(name: str, device: DeviceLike | None, options: dict[str, Any]) -> Stream | Event:
    """A Stream or an Event of a device, None for the current one."""
    if name == "Stream":
        return Stream(device, **options)
    event = Event(**options)
    event._place = Device("npu", index_of(device))
    return event


def current_stream(device: Device | str | int | None = None) -> Stream:
    """The calling thread's stream on a device."""
    return Stream(_bound=runtime.current_stream(index_of(device)))


def default_stream(device: Device | str | int | None = None) -> Stream:
    """The stream that a device's work goes to unless another is chosen."""
    return Stream(_bound=runtime.device(index_of(device)).default_stream)


def set_stream(stream: Stream) -> None:
    """Make `stream` the calling thread's stream."""
    runtime.set_stream(stream._bound)


class StreamContext(StepScope):
    """`with torch.npu.stream(s):`; None changes nothing."""

    def __init__(self, stream: Stream | None):
        self.stream = stream

    def steps(self) -> Iterator[Stream | None]:
        if self.stream is None:
            yield None
        else:
            yield from self.stream.steps()
