"""Owns what streams, buffers and devices ask of the runtime that they belong to.

`Session` is the runtime's face to what it owns, `Place` a device's: they stand below both, so that
a handle names its device without its module importing that device's.
"""

from __future__ import annotations

from typing import Any, Protocol

from .status import StatusCodes
from .symbols import SymbolLookup


class Session(Protocol):
    """One started runtime: its libraries, its status codes, its constants."""

    handles: set[int]

    @property
    def symbols(self) -> SymbolLookup: ...

    @property
    def codes(self) -> StatusCodes:
        """Names and exceptions of the install's status codes."""

    def own(self, handle: Any) -> None:
        """Let `handle` be told just before the runtime stops, if it is still there."""

    def constant(self, name: str, default: int) -> int:
        """A constant of the install's headers; `default` where they predate it."""

    @property
    def current_device(self) -> int:
        """The calling thread's device index."""

    def set_device(self, index: int) -> None:
        """Make `index` the calling thread's device."""

    def current_stream(self, index: int | None = None) -> Any:
        """The calling thread's Stream on device `index`."""

    def set_stream(self, stream: Any) -> None:
        """Make `stream` the calling thread's, and its device current."""


class Place(Protocol):
    """A device as streams and buffers know it."""

    @property
    def index(self) -> int: ...

    @property
    def address(self) -> int:
        """The native device, not an ACL handle."""

    @property
    def runtime(self) -> Session: ...

    @property
    def default_stream(self) -> Any:
        """The Stream that work goes to unless another is in use."""

    def event(self, timing: bool = False) -> Any:
        """A new Event."""

    def reach(self, other: Place) -> None:
        """Let this device and `other` copy from each other."""

    def admit(self, index: int) -> None:
        """Let this device read and write the memory of device `index`."""
