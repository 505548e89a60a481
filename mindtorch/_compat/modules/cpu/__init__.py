"""Owns torch.cpu's names: one device, one stream, nothing to wait for."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from . import amp as amp


class Stream:
    """The only stream."""

    def __init__(self, priority: int = -1):
        self.priority = priority

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for."""

    def record_event(self) -> None:
        """Nothing to record."""

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for."""


class Event:
    """A point in the only stream: passed at once."""

    def __init__(self, enable_timing: bool = False):
        self.enable_timing = enable_timing

    def record(self, stream: Any = None) -> None:
        """Nothing to record."""

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait(self, stream: Any = None) -> None:
        """Nothing to wait for."""


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """cpu."""
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing to choose."""


def synchronize(device: Any = None) -> None:
    """Nothing to wait for: calls return when they are done."""


def current_stream(device: Any = None) -> Stream:
    """The only stream."""
    return Stream()


class StreamContext(AbstractContextManager[None]):
    """`with torch.cpu.stream(s):` there is one stream."""

    def __init__(self, stream: Any):
        self.stream = stream

    def __exit__(self, *_: object) -> None:
        """Nothing to go back to."""


def stream(stream: Any) -> StreamContext:
    """A context without effect."""
    return StreamContext(stream)
