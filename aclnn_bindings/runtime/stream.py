"""Owns streams and events, the two things that order work; refuses use after close."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ..errors import ClosedHandleError, StillUsedError
from .native import ffi, lib, throw
from .session import Place
from .words import call

_STOP: Final = 1  # ACL_STOP_ON_FAILURE (acl_rt.h)
# (session, address) of streams that nobody refers to any more and whose work may go on.
_dropped: Final[deque[tuple[int, int]]] = deque()


def sweep() -> None:
    """Close dropped streams whose work is done; waits for none. Others close with the runtime."""
    for _ in range(len(_dropped)):
        try:
            session, address = _dropped.popleft()
        except IndexError:
            return
        if session != lib.mt_session():
            continue
        if lib.mt_stream_query(address) == 0:
            _dropped.append((session, address))
        else:
            lib.mt_stream_close(address)


class Stream:
    """An in-order queue of device work. Use `use()` to make it the thread's current stream."""

    def __init__(self, device: Place, address: int, default: bool = False) -> None:
        self.device = device
        self.default = default
        self._session = int(lib.mt_session())
        self._address = address
        self._stop_on_failure()

    def _stop_on_failure(self) -> None:
        """Let nothing run after work that failed, if MINDTORCH_STOP_ON_FAILURE=1 asks for that.

        It stops all streams of the context for good (aclrtSetStreamFailureMode, CANN 9.0
        documents). A program that tries operators one after another wants the rest; hence no
        default. A runtime that lacks the mode, or refuses it, goes on.
        """
        if os.environ.get("MINDTORCH_STOP_ON_FAILURE", "0") != "1":
            return
        setter = self.device.runtime.symbols.core("aclrtSetStreamFailureMode")
        if setter and self._address:
            call(setter, [(False, self.handle), (False, _STOP)])

    @classmethod
    def open(cls, device: Place, context: int, priority: int = 0) -> Stream:
        """A new stream in `context`; AclError when the device has no more (207008)."""
        sweep()
        flags = device.runtime.constant("ACL_STREAM_FAST_LAUNCH", 1)
        flags |= device.runtime.constant("ACL_STREAM_FAST_SYNC", 2)
        address = int(lib.mt_stream_open(context, priority, flags))
        if not address:
            throw(device.runtime.codes)
        return cls(device, address)

    def __repr__(self) -> str:
        state = "closed" if self.closed else "default" if self.default else hex(self.handle)
        return f"Stream(device {self.device.index}, {state})"

    @property
    def closed(self) -> bool:
        return self._address == 0 or lib.mt_session() != self._session

    @property
    def address(self) -> int:
        """The number that launches and copies take; ClosedHandleError after close."""
        if not self._address:
            raise ClosedHandleError(f"stream on device {self.device.index}: it was closed")
        return self._address

    @property
    def handle(self) -> int:
        """The aclrtStream, for calling ACL directly."""
        handle = int(lib.mt_stream_handle(self.address))
        if not handle:
            throw(self.device.runtime.codes)
        self.device.runtime.handles.add(handle)
        return handle

    def synchronize(self, timeout: float | None = None) -> None:
        """Wait for all work queued here, at most `timeout` seconds.

        Raises the first error of the stream's asynchronous work, or 507046 on expiry.
        """
        milliseconds = -1 if timeout is None else max(1, int(timeout * 1000))
        if lib.mt_stream_synchronize(self.address, milliseconds):
            throw(self.device.runtime.codes)

    def query(self) -> bool:
        """Whether all work queued here is done."""
        done = int(lib.mt_stream_query(self.address))
        if done < 0:
            throw(self.device.runtime.codes)
        return done == 1

    def record(self, event: Event | None = None) -> Event:
        """Record `event`, or a new one, after what is queued here so far."""
        event = event or Event(self.device)
        event.record(self)
        return event

    def wait(self, event: Event) -> None:
        """Let later work here wait for what `event` recorded; the host does not wait."""
        if lib.mt_event_wait(event.address, self.address):
            throw(self.device.runtime.codes)

    def wait_stream(self, other: Stream) -> None:
        """Let later work here wait for what is queued on `other` so far."""
        with other.record() as event:
            self.wait(event)

    @contextmanager
    def use(self) -> Iterator[Stream]:
        """Make this the calling thread's stream on its device while the block runs."""
        runtime = self.device.runtime
        before, device = runtime.current_stream(self.device.index), runtime.current_device
        runtime.set_stream(self)
        try:
            yield self
        finally:
            runtime.set_stream(before)
            runtime.set_device(device)

    def close(self) -> None:
        """Wait for the stream, then destroy it; its memory goes to the default stream's pool."""
        if self.default:
            raise StillUsedError("close the default stream: it lives as long as its device")
        address, self._address = self._address, 0
        if address and lib.mt_session() == self._session and lib.mt_stream_close(address):
            throw(self.device.runtime.codes)

    def __del__(self, dropped: deque[tuple[int, int]] = _dropped) -> None:
        # Closing waits for the stream's work; a collector must not.
        if getattr(self, "_address", 0) and not self.default:
            dropped.append((self._session, self._address))

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Event:
    """A point in a stream's work that others can wait for or measure from."""

    def __init__(self, device: Place, timing: bool = False) -> None:
        self.device = device
        self.timing = timing
        flags = device.runtime.constant("ACL_EVENT_SYNC", 1)
        if timing:
            flags |= device.runtime.constant("ACL_EVENT_TIME_LINE", 8)
        self._session = int(lib.mt_session())
        self._closed = False
        self._address = int(lib.mt_event_open(device.address, flags))
        if not self._address:
            throw(device.runtime.codes)

    def __repr__(self) -> str:
        timing, closed = ", timing" if self.timing else "", ", closed" if self.closed else ""
        return f"Event(device {self.device.index}{timing}{closed})"

    @property
    def closed(self) -> bool:
        return self._closed or lib.mt_session() != self._session

    @property
    def address(self) -> int:
        if self.closed:
            raise ClosedHandleError(f"event on device {self.device.index}: it was closed")
        return self._address

    @property
    def handle(self) -> int:
        """The aclrtEvent, for calling ACL directly."""
        handle = int(lib.mt_event_handle(self.address))
        if not handle:
            throw(self.device.runtime.codes)
        self.device.runtime.handles.add(handle)
        return handle

    def record(self, stream: Stream) -> None:
        """Mark the work queued on `stream` so far; a second record replaces the first."""
        if lib.mt_event_record(self.address, stream.address):
            throw(self.device.runtime.codes)

    def query(self) -> bool:
        """Whether what was recorded is done; true before the first record."""
        done = int(lib.mt_event_query(self.address))
        if done < 0:
            throw(self.device.runtime.codes)
        return done == 1

    def synchronize(self) -> None:
        """Wait until what was recorded is done."""
        if lib.mt_event_synchronize(self.address):
            throw(self.device.runtime.codes)

    def elapsed(self, end: Event) -> float:
        """Milliseconds from this event to `end`; both made with `timing`, recorded and done."""
        ms = ffi.new("float *")
        if lib.mt_event_elapsed(self.address, end.address, ms):
            throw(self.device.runtime.codes)
        return float(ms[0])

    def close(self) -> None:
        if not self.closed and lib.mt_event_close(self._address):
            throw(self.device.runtime.codes)
        self._closed = True

    def __enter__(self) -> Event:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self, lib: object = lib) -> None:
        # Other threads may be in a method until here: only now nobody has the handle.
        if getattr(self, "_address", 0):
            lib.mt_event_free(self._address)  # type: ignore[attr-defined]
