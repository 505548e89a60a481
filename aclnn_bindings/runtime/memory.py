"""Owns buffers: device memory from the caching allocator, pinned host memory, and copies."""

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn
from weakref import ref

from ..errors import ArgumentError, ClosedHandleError, StillUsedError
from .accounting import account
from .native import SESSION, Memory, address_of, ffi, lib, throw
from .session import Place
from .stream import Stream


def throw_on(device: Place) -> NoReturn:
    """Raise the last failure, with the account of `device` if its memory ran out."""
    codes = device.runtime.codes
    throw(codes, account=partial(account, device.address, codes))


class Buffer(Memory):
    """Device memory in the order of one stream: reused by later work there as soon as it is closed.

    `address` is a device address, 64-byte aligned; `nbytes` what was asked for. AclOutOfMemoryError
    tells who holds the device's memory.
    """

    stream: Stream
    nbytes: int

    def __init__(self, stream: Stream, nbytes: int) -> None:
        if nbytes < 0:
            raise ArgumentError(f"Buffer of {nbytes} bytes: give 0 or more")
        self.stream, self.nbytes = stream, nbytes
        self._session = SESSION[0]
        if not self._obtain(stream.address, nbytes, lib.MT_BUFFER):
            throw_on(stream.device)
        self._lane = (stream if stream.default else stream.device.default_stream).address

    @property
    def device(self) -> Place:
        return self.stream.device

    @property
    def closed(self) -> bool:
        return self._address == 0 or self._session != SESSION[0]

    @property
    def address(self) -> int:
        """The device address; ClosedHandleError after close."""
        if self._session != SESSION[0] or not self._address:
            raise ClosedHandleError(f"buffer of {self.nbytes} bytes: it was closed")
        return self._address

    def record_stream(self, stream: Stream) -> None:
        """Tell that `stream` uses this memory: it is not reused before that work is done.

        Launches and copies through these bindings record it by themselves.
        """
        if lib.mt_record_stream(self.address, stream.address):
            throw(self.device.runtime.codes)

    def write(self, source: Any, offset: int = 0, stream: Stream | None = None) -> None:
        """Copy host bytes (any buffer) to `offset`; returns when `source` may be changed."""
        host = ffi.from_buffer(source)
        self._check(offset, len(host), "write")
        self._copy(stream, self.address + offset, address_of(host), len(host), to_host=False)

    def read(self, target: Any, offset: int = 0, stream: Stream | None = None) -> None:
        """Copy bytes from `offset` into a writable host buffer and wait for them."""
        host = ffi.from_buffer(target, require_writable=True)
        self._check(offset, len(host), "read")
        self._copy(stream, address_of(host), self.address + offset, len(host), to_host=True)

    def to_bytes(self) -> bytes:
        """The contents, after waiting for the stream."""
        target = bytearray(self.nbytes)
        self.read(target)
        return bytes(target)

    def fill(self, value: int = 0, stream: Stream | None = None) -> None:
        """Set every byte to `value`, in stream order, without waiting."""
        on = stream or self.stream
        if lib.mt_fill(on.address, self.address, self.nbytes, value, self.nbytes):
            throw(self.device.runtime.codes)

    def copy_from(self, source: Buffer, stream: Stream | None = None) -> None:
        """Copy another buffer of the same size, in stream order, without waiting.

        It may be on another device; its own stream's work is waited for on the device.
        """
        if source.nbytes != self.nbytes:
            raise ArgumentError(
                f"copy {source.nbytes} bytes to a buffer of {self.nbytes}: sizes must be equal"
            )
        on = stream or self.stream
        if source.device.index != self.device.index:
            self.device.reach(source.device)
            on.wait_stream(source.stream)
        kind = copy_kind(self.device, "DEVICE_TO_DEVICE", 3)
        if lib.mt_copy(on.address, self.address, self.nbytes, source.address, self.nbytes, kind, 0):
            throw(self.device.runtime.codes)

    def _check(self, offset: int, count: int, verb: str) -> None:
        if offset < 0 or offset + count > self.nbytes:
            raise ArgumentError(
                f"{verb} {count} bytes at {offset} of a buffer of {self.nbytes}: outside of it"
            )

    def _copy(self, stream: Stream | None, to: int, source: int, n: int, to_host: bool) -> None:
        on = stream or self.stream
        name, value = ("DEVICE_TO_HOST", 2) if to_host else ("HOST_TO_DEVICE", 1)
        if lib.mt_copy(on.address, to, n, source, n, copy_kind(self.device, name, value), 1):
            throw(self.device.runtime.codes)

    def close(self) -> None:
        """Give the memory back to the stream's pool, without waiting; harmless when repeated."""
        address, self._address = self._address, 0
        if address and lib.mt_release(address, self._session):
            throw(self.device.runtime.codes)

    def __enter__(self) -> Buffer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self, lib: Any = lib) -> None:
        if getattr(self, "_address", 0):
            lib.mt_release(self._address, self._session)

    def __repr__(self) -> str:
        where = "closed" if self.closed else f"at {self._address:#x}"
        return f"Buffer({self.nbytes} bytes on device {self.device.index}, {where})"


class PinnedBuffer:
    """Page-locked host memory; copies from and to it return at once."""

    device: Place
    nbytes: int

    def __init__(self, device: Place, nbytes: int) -> None:
        if nbytes <= 0:
            raise ArgumentError(f"PinnedBuffer of {nbytes} bytes: give more than 0")
        self.device, self.nbytes = device, nbytes
        self._users: set[Stream] = set()
        self._views: list[ref[Any]] = []
        self._session = SESSION[0]
        self._address = int(lib.mt_host_alloc(device.address, nbytes))
        if not self._address:
            throw(device.runtime.codes)
        device.runtime.own(self)

    @property
    def closed(self) -> bool:
        return self._address == 0 or self._session != SESSION[0]

    @property
    def address(self) -> int:
        if self.closed:
            raise ClosedHandleError(f"pinned buffer of {self.nbytes} bytes: it was closed")
        return self._address

    @property
    def memory(self) -> memoryview:
        """The bytes. While this view, or what was made of it, lives the buffer stays: `close`
        refuses with StillUsedError, and the runtime's end leaves the memory alone."""
        data = ffi.gc(ffi.cast("char *", self.address), partial(_let_go, self))
        buffer = ffi.buffer(data, self.nbytes)
        self._views.append(ref(buffer))
        return memoryview(buffer).cast("B")

    @property
    def viewed(self) -> bool:
        """Whether somebody looks into the memory."""
        self._views[:] = [view for view in self._views if view() is not None]
        return bool(self._views)

    def copy_to(self, target: Buffer, stream: Stream | None = None) -> None:
        """Start copying to the beginning of `target`; do not change the bytes before it is done."""
        self._copy(target, stream or target.stream, to_host=False)

    def copy_from(self, source: Buffer, stream: Stream | None = None) -> None:
        """Start copying the beginning of `source` here; wait for the stream before reading."""
        self._copy(source, stream or source.stream, to_host=True)

    def _copy(self, buffer: Buffer, stream: Stream, to_host: bool) -> None:
        count = min(buffer.nbytes, self.nbytes)
        ends = (self.address, buffer.address) if to_host else (buffer.address, self.address)
        name, value = ("DEVICE_TO_HOST", 2) if to_host else ("HOST_TO_DEVICE", 1)
        kind = copy_kind(self.device, name, value)
        self._users.add(stream)
        if lib.mt_copy(stream.address, ends[0], count, ends[1], count, kind, 0):
            throw(self.device.runtime.codes)

    def close(self) -> None:
        """Wait for the copies that use this memory, then return it; StillUsedError while a view
        of it lives."""
        if self.closed:
            return
        if self.viewed:
            raise StillUsedError(
                f"close a pinned buffer of {self.nbytes} bytes: views of its memory are in use; "
                "drop them (memoryview, numpy arrays) first"
            )
        address, self._address = self._address, 0
        for stream in self._users:
            if not stream.closed:
                stream.synchronize()
        if lib.mt_host_free(self.device.address, address):
            throw(self.device.runtime.codes)

    def __enter__(self) -> PinnedBuffer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def abandon(self) -> None:
        """Leave the memory to its views for good, as the process ends."""
        address, self._address = self._address, 0
        if address:
            lib.mt_host_keep(address)

    def __del__(self) -> None:
        if getattr(self, "_address", 0):
            self.close()


def _let_go(buffer: PinnedBuffer, data: Any) -> None:
    """Ends a view, which kept `buffer` alive until now."""
    del buffer, data


def copy_kind(device: Place, name: str, default: int) -> int:
    """A member of aclrtMemcpyKind as the install's headers number it."""
    return device.runtime.constant(f"ACL_MEMCPY_{name}", default)
