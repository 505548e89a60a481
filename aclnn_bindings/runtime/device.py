"""Owns devices and contexts: what a thread works on; refuses handles of a closed runtime."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from ..errors import RuntimeStateError
from ..install.products import product_of
from .accounting import MemoryReport, Trespass, report, trespasses
from .memory import Buffer
from .native import address_of, ffi, lib, text_of, throw
from .session import Place, Session
from .stream import Event, Stream, sweep
from .words import call

# Values of aclrtFloatOverflowMode (acl_rt.h).
_OVERFLOW_MODES: Final = ("saturation", "inf_nan")
_INF_NAN_CHIPS: Final = ("910b", "A3")


class DeviceOwner(Session, Protocol):
    """The runtime that opens devices."""

    def start(self) -> None:
        """Initialise ACL; does nothing the second time."""


class Device:
    """One NPU. It is opened once per process; every thread that uses it gets its context."""

    runtime: DeviceOwner
    index: int
    default_stream: Stream

    def __init__(self, runtime: DeviceOwner, index: int) -> None:
        self.runtime, self.index = runtime, index
        stream_flags = runtime.constant("ACL_STREAM_FAST_LAUNCH", 1)
        stream_flags |= runtime.constant("ACL_STREAM_FAST_SYNC", 2)
        event_flags = runtime.constant("ACL_EVENT_SYNC", 1)
        self._peers: set[int] = set()
        self._set_overflow_mode()
        self.address: int = int(lib.mt_device_open(index, stream_flags, event_flags))
        if not self.address:
            throw(runtime.codes)
        self._set_overflow_mode()  # again: some releases know no device before
        self.default_stream = Stream(self, int(lib.mt_device_stream(self.address)), default=True)

    def _set_overflow_mode(self) -> None:
        """Infinities and NaN where the chip has them (A2, A3), as torch_npu and MindSpore set it;
        INF_NAN_MODE_ENABLE=0 asks for saturation. Other chips have one mode and keep it. It holds
        for streams made later (aclrtSetDeviceSatMode document)."""
        setter, soc = (
            self.runtime.symbols.core(name) for name in ("aclrtSetDeviceSatMode", "aclrtGetSocName")
        )
        if not setter or not soc:
            return
        name = text_of(ffi.cast("char *", call(soc, [])))
        if product_of(name) in _INF_NAN_CHIPS:
            enabled = os.environ.get("INF_NAN_MODE_ENABLE", "1") != "0"
            call(setter, [(False, _OVERFLOW_MODES.index("inf_nan" if enabled else "saturation"))])

    @property
    def overflow_mode(self) -> str | None:
        """What becomes of float16 results out of range: `saturation` to 65504, `inf_nan`, or
        None where the runtime does not say (aclrtGetDeviceSatMode)."""
        getter, mode = self.runtime.symbols.core("aclrtGetDeviceSatMode"), ffi.new("int32_t *", -1)
        if not getter or lib.mt_context_use(lib.mt_device_context(self.address)):
            return None
        if call(getter, [(False, address_of(mode))]) & 0xFFFFFFFF:
            return None
        known = 0 <= mode[0] < len(_OVERFLOW_MODES)
        return _OVERFLOW_MODES[mode[0]] if known else None

    @staticmethod
    def count(runtime: DeviceOwner) -> int:
        runtime.start()
        count = ffi.new("uint32_t *")
        if lib.mt_device_count(count):
            throw(runtime.codes)
        return int(count[0])

    def __repr__(self) -> str:
        return f"Device({self.index})"

    def use(self) -> None:
        """Make this device the calling thread's, in Python and in ACL."""
        self.runtime.set_device(self.index)
        if lib.mt_context_use(lib.mt_device_context(self.address)):
            throw(self.runtime.codes)

    def synchronize(self) -> None:
        """Wait for all work on this device (aclrtSynchronizeDevice)."""
        if lib.mt_device_synchronize(self.address):
            throw(self.runtime.codes)
        sweep()

    def stream(self, priority: int = 0) -> Stream:
        """A new stream in the device's primary context."""
        return Stream.open(self, int(lib.mt_device_context(self.address)), priority)

    def context(self) -> Context:
        """A new context, which becomes the calling thread's current one (aclrtCreateContext)."""
        return Context(self)

    def event(self, timing: bool = False) -> Event:
        """A new event; only one made with `timing` has a time stamp."""
        return Event(self, timing)

    def buffer(self, nbytes: int, stream: Stream | None = None) -> Buffer:
        """Device memory of `nbytes`, owned by the result, in the order of `stream`."""
        return Buffer(stream or self.runtime.current_stream(self.index), nbytes)

    def reach(self, other: Place) -> None:
        """Let this device and `other` copy from each other; RuntimeStateError if they cannot.

        aclrtDeviceCanAccessPeer, aclrtDeviceEnablePeerAccess documents, CANN 9.1.
        """
        if other.index == self.index or other.index in self._peers:
            return
        allowed = ffi.new("int32_t *")
        pair = [(False, self.index), (False, other.index)]
        self._peer_call("aclrtDeviceCanAccessPeer", [(False, address_of(allowed)), *pair])
        if not allowed[0]:
            raise RuntimeStateError(
                f"copy between devices {self.index} and {other.index}: they cannot reach each "
                "other's memory; copy through the host"
            )
        self.admit(other.index)
        other.admit(self.index)

    def admit(self, index: int) -> None:
        """Let this device read and write the memory of device `index`."""
        self._peer_call("aclrtDeviceEnablePeerAccess", [(False, index), (False, 0)])
        self._peers.add(index)

    def _peer_call(self, name: str, words: list[tuple[bool, int]]) -> None:
        function = self.runtime.symbols.require(name)
        if lib.mt_context_use(lib.mt_device_context(self.address)):
            throw(self.runtime.codes)
        if status := call(function, words) & 0xFFFFFFFF:
            message = text_of(lib.mt_recent_message())
            raise self.runtime.codes.error(name, status, message=message)

    def memory_info(self) -> tuple[int, int]:
        """(free, total) bytes of the device, other processes included (aclrtGetMemInfo)."""
        free, total = ffi.new("uint64_t *"), ffi.new("uint64_t *")
        if lib.mt_device_memory(self.address, free, total):
            throw(self.runtime.codes)
        return int(free[0]), int(total[0])

    def memory(self) -> MemoryReport:
        """What the caching allocator holds, by pool, purpose and stream."""
        return report(self.address, self.runtime.codes)

    def trespasses(self) -> list[Trespass]:
        """Wait for the device, then tell which blocks were written over their ends since the last
        call; none without MINDTORCH_MEMORY_GUARD."""
        return trespasses(self.address)

    def empty_cache(self) -> None:
        """Wait for the device and return cached memory to it."""
        if lib.mt_memory_empty(self.address):
            throw(self.runtime.codes)

    def limit_memory(self, nbytes: int) -> None:
        """Let the allocator reserve at most `nbytes`; 0 lifts the limit."""
        if lib.mt_memory_limit(self.address, nbytes):
            throw(self.runtime.codes)

    def reset_peak(self) -> None:
        """Set every peak of the allocator's statistics to the present value."""
        if lib.mt_memory_reset_peak(self.address):
            throw(self.runtime.codes)


class Context:
    """A context of one's own on a device; closing it needs its streams closed first."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._session = int(lib.mt_session())
        self._address = int(lib.mt_context_open(device.address))
        if not self._address:
            throw(device.runtime.codes)

    @property
    def handle(self) -> int:
        """The aclrtContext."""
        handle = int(lib.mt_context_handle(self._address))
        if not handle:
            throw(self.device.runtime.codes)
        self.device.runtime.handles.add(handle)
        return handle

    @property
    def closed(self) -> bool:
        return self._address == 0 or lib.mt_session() != self._session

    def stream(self, priority: int = 0) -> Stream:
        """A new stream in this context."""
        return Stream.open(self.device, self._address, priority)

    @contextmanager
    def use(self) -> Iterator[Context]:
        """Make this context the calling thread's; the primary one afterwards."""
        if lib.mt_context_use(self._address):
            throw(self.device.runtime.codes)
        try:
            yield self
        finally:
            lib.mt_context_forget()

    def close(self) -> None:
        """Destroy the context; StillUsedError while a stream of it is open."""
        if not self.closed and lib.mt_context_close(self._address):
            throw(self.device.runtime.codes)
        self._address = 0

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
