"""Owns torch.Stream and torch.Event: of any device; the host has one stream, which never waits.

Source: the documents of torch.Stream and torch.Event (2.13).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from .._autograd.scope import StepScope
from .._compat.class_names import CClass
from .._tensor.device import DeviceLike, device as Device

_NUMBERS = {"cpu": 0, "npu": 20}


class _OfDevice(CClass):
    """Calls of the class itself make what the device has; subclasses are made as usual."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        if cls.__dict__.get("general") is None:
            return super().__call__(*args, **kwargs)
        if len(args) > 1:
            raise TypeError(
                f"{cls.__name__}() takes from 0 to 1 positional arguments but {len(args)} were"
                " given"
            )
        place: DeviceLike | None = args[0] if args else kwargs.pop("device", None)
        if isinstance(place, str):
            place = Device(place)
        if not isinstance(place, Device) or place.type == "npu":
            npu = importlib.import_module(".npu.streams", __package__)
            if place is not None or npu.is_available():
                return npu.of_device(cls.__name__, place, kwargs)
        return super().__call__(place or Device("cpu"), **kwargs)


class Event(metaclass=_OfDevice):
    """A mark in a stream's work: `Event(device=None, *, enable_timing=False, blocking=False,
    interprocess=False)`; without a device, of the accelerator."""

    __module__ = "torch"
    general = True
    _timing: bool

    def __init__(
        self, device: Device, enable_timing: bool = False, blocking: bool = False,
        interprocess: bool = False,
    ):  # fmt: skip
        self._device, self._timing = device, enable_timing

    @property
    def device(self) -> Device:
        return self._device

    @property
    def event_id(self) -> int:
        """The number by which programs tell events apart; 0 before the first record."""
        return 0

    def record(self, stream: Any = None) -> None:
        """RuntimeError: only accelerators have events to record."""
        raise RuntimeError(f"{self.device.type} backend doesn't support events.")

    def wait(self, stream: Any = None) -> None:
        """Let a stream wait for what was recorded: nothing."""

    def query(self) -> bool:
        """Whether what was recorded is done: true, nothing was."""
        return True

    def synchronize(self) -> None:
        """Wait for what was recorded: nothing."""

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds to `end_event`; ValueError without timing or record."""
        if not (self._timing and end_event._timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        raise ValueError("Both events must be recorded before calculating elapsed time.")

    def __repr__(self) -> str:
        index = -1 if self.device.index is None else self.device.index
        return (
            f"torch.Event device_type={self.device.type}, device_index={index},"
            f" event_flag={int(self._timing)}, event_id={self.event_id}"
        )


class Stream(StepScope, metaclass=_OfDevice):
    """A queue of work: `Stream(device=None, *, priority=0)`; by default of the accelerator."""

    __module__ = "torch"
    general = True

    def __init__(self, device: Device, priority: int = 0):
        self._device = device

    @property
    def device(self) -> Device:
        return self._device

    @property
    def stream_id(self) -> int:
        """The number by which programs tell streams apart."""
        return 0

    @property
    def device_index(self) -> int:
        """The device's index, -1 where it has none."""
        return -1 if self.device.index is None else self.device.index

    @property
    def device_type(self) -> int:
        """The number of the type of device."""
        return _NUMBERS.get(self.device.type, -1)

    def synchronize(self) -> None:
        """Wait for all work queued on this stream: it was done when it was called."""

    def query(self) -> bool:
        """Whether all work queued so far is done."""
        return True

    def record_event(self, event: Any = None) -> Any:
        """Record `event` (a new one if none is given) after the work queued so far."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Any) -> None:
        """Let work queued from now on wait for what `event` recorded."""

    def wait_stream(self, stream: Any) -> None:
        """Let work queued from now on wait for what is queued on `stream` now."""

    def steps(self) -> Iterator[Stream]:
        yield self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.device == self.device

    def __hash__(self) -> int:
        return hash(self.device)

    def __repr__(self) -> str:
        return (
            f"torch.Stream device_type={self.device.type}, device_index={self.device_index},"
            f" stream_id={self.stream_id}"
        )
