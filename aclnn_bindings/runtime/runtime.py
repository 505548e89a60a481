"""Owns the life of the ACL runtime in this process: start when first needed, one at a time, stop
at exit; refuses to run in a fork of a process that had started it.
"""

from __future__ import annotations

import atexit
import os
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol
from weakref import WeakSet

from ..errors import RuntimeStateError, StillUsedError
from ..install.environment import misplaced_opp, unset
from ..interface.dtypes import enum_values
from ..interface.signature import Declarations
from .device import Device
from .locks import Lock
from .memory import PinnedBuffer
from .native import SESSION, lib, text_of, throw, vary_lanes
from .session import Place
from .status import AclError, StatusCodes
from .stream import Stream
from .symbols import SymbolLookup

__all__ = ["Runtime", "running"]

# Without this configuration batch_norm followed by group_norm fails with 561103 (reported on
# hardware, CANN 8.3).
# A file of ours: none is written, so that a full disk or an interrupt leaves nothing half done.
_CONFIG: Final = Path(__file__).with_name("acl.json")

_COUNTERS: Final = (
    "launches",
    "failed_launches",
    "host_syncs",
    "copies_to_device",
    "copies_to_host",
    "copies_on_device",
    "bytes_to_device",
    "bytes_to_host",
)

# The second is what a Python peer reads.
_GUARDS: Final = {"exact": 1, "room": 2}  # as mt_memory_guard numbers them
_BLOCKING: Final = ("ASCEND_LAUNCH_BLOCKING", "ACL_LAUNCH_BLOCKING")

_active_lock: Final = Lock()
_active: Runtime | None = None


class Closable(Protocol):
    """What the runtime closes before it stops."""

    def close(self) -> None: ...


def running() -> Runtime | None:
    """The runtime that is started in this process, if one is."""
    with _active_lock:
        return _active if _active is not None and _active.started else None


class _Current(threading.local):
    """A thread's current device, and its current stream on each device."""

    def __init__(self) -> None:
        self.device = 0
        self.streams: dict[int, Stream] = {}


class Runtime:
    """Devices, streams and memory of one install; nothing is initialised until a device is used."""

    def __init__(self, symbols: SymbolLookup, declarations: Callable[[], Declarations]) -> None:
        self.symbols = symbols
        self._declarations = declarations
        self._devices: dict[int, Device] = {}
        self._lock = Lock()
        self._current = _Current()
        self._codes: StatusCodes | None = None
        self._formats: dict[str, int] | None = None
        self._dtypes: dict[str, int] | None = None
        self._constants: dict[str, int] = {}
        self._session = 0
        self._at_close: list[Callable[[], None]] = []
        self._owned: WeakSet[Closable] = WeakSet()
        self.handles: set[int] = set()  # of ACL: those that this session gave out as numbers
        self.root: Path = symbols.root

    def __repr__(self) -> str:
        return f"Runtime({'started' if self.started else 'not started'}, of {self.root})"

    @property
    def declarations(self) -> Declarations:
        return self._declarations()

    @property
    def codes(self) -> StatusCodes:
        """Names and exceptions of this install's status codes."""
        if self._codes is None:
            self._codes = StatusCodes(self.declarations, self._custom_library)
        return self._codes

    def _custom_library(self, op: str) -> str:
        """The library of the custom package that an operator is called from, "" if none is."""
        provider = self.symbols.provider(op)
        return str(provider.path) if provider is not None and provider.role == "custom" else ""

    @property
    def lost(self) -> AclError | None:
        """The first failure since the start that may have broken a device; close() is the way back
        (see AclDeviceLostError)."""
        return self.codes.lost

    @property
    def dtypes(self) -> dict[str, int]:
        """ACL dtype name → value of aclDataType in this install's headers."""
        if self._dtypes is None:
            self._dtypes = enum_values(self.declarations, "aclDataType", "ACL_")
        return self._dtypes

    @property
    def formats(self) -> dict[str, int]:
        """Format name such as ND → value of aclFormat in this install's headers."""
        if self._formats is None:
            self._formats = enum_values(self.declarations, "aclFormat", "ACL_FORMAT_")
        return self._formats

    def constant(self, name: str, default: int) -> int:
        """A constant of this install's headers; `default` where they predate it."""
        value = self._constants.get(name)
        if value is None:
            try:
                value = self.declarations.constant(name)
            except KeyError:
                return default
            self._constants[name] = value
        return value

    @property
    def started(self) -> bool:
        return self._session != 0 and lib.mt_session() == self._session

    def start(self) -> None:
        """Initialise ACL now rather than at the first use; does nothing the second time."""
        if self.started:
            return
        with self._lock:
            if self.started:
                return
            self._claim()
            try:
                self._complete_environment()
                self._bind()
                self._initialise()
            except BaseException:
                self._release()
                raise

    def _claim(self) -> None:
        global _active
        with _active_lock:
            if _active is not None and _active is not self and _active.started:
                raise RuntimeStateError(
                    f"start the runtime of {self.root}: that of {_active.root} is running in this "
                    "process, and ACL has one per process: start another process for this one"
                )
            _active = self

    def _release(self) -> None:
        global _active
        with _active_lock:
            if _active is self:
                _active = None

    def _complete_environment(self) -> None:
        """Set what CANN reads and nobody set: an install that was given by its home need not be
        the one that this shell is set up for."""
        install = self.symbols.install
        if wrong := misplaced_opp(install, os.environ):
            warnings.warn(
                f"{wrong}: operators take their kernels from there; source {install.root}/"
                "set_env.sh or unset it",
                RuntimeWarning,
                stacklevel=2,
            )
        os.environ.update(unset(install, os.environ))

    def bind_again(self) -> None:
        """Take the runtime's functions from where `symbols` finds them now."""
        with self._lock:
            if self.started:
                self._bind()

    def _bind(self) -> None:
        index = 0
        while name := text_of(lib.mt_function_name(index)):
            required = lib.mt_function_required(index)
            find = self.symbols.require_core if required else self.symbols.core
            lib.mt_function_bind(index, find(name))
            index += 1

    def _initialise(self) -> None:
        if lib.mt_start(os.fsencode(_CONFIG)):
            throw(self.codes)
        # As torch_npu names them (Ascend Extension for PyTorch, Environment Variables);
        # without caching a memory checker sees the ends of each block.
        lib.mt_launch_blocking(any(os.environ.get(name) == "1" for name in _BLOCKING))
        lib.mt_memory_caching(os.environ.get("PYTORCH_NO_NPU_MEMORY_CACHING", "0") != "1")
        lib.mt_memory_guard(_GUARDS.get(os.environ.get("MINDTORCH_MEMORY_GUARD", ""), 0))
        self._session = SESSION[0] = int(lib.mt_session())
        self.codes.lost = None
        self._devices.clear()
        self._current = _Current()
        atexit.register(self._end)

    def close(self) -> None:
        """Wait for the devices, return what they hold, finalize ACL; harmless when repeated.

        Buffers, streams and plans that are still referenced become unusable, not dangling.
        StillUsedError, and nothing is closed, while views of pinned memory live.
        """
        with self._lock:
            if not self.started:
                return
            if viewed := [str(buffer.nbytes) for buffer in self._viewed()]:
                raise StillUsedError(
                    f"close the runtime: views of pinned buffers ({', '.join(viewed)} bytes) are "
                    "in use; drop them (memoryview, numpy arrays) first"
                )
            errors = self._let_go()
            self.handles.clear()  # what closed above may name its own
            if lib.mt_stop():
                if self.started:  # a thread is still in the device: nothing was released
                    throw(self.codes)
                errors.append(self._failure())
            atexit.unregister(self._end)
            self._session = SESSION[0] = 0
            self._devices.clear()
            for action in self._at_close:  # again: other threads may have made plans meanwhile
                action()
            self._release()
            if errors:
                raise errors[0]

    def _viewed(self) -> list[PinnedBuffer]:
        buffers = (h for h in list(self._owned) if isinstance(h, PinnedBuffer))
        return [buffer for buffer in buffers if not buffer.closed and buffer.viewed]

    def _end(self) -> None:
        """Close as the process ends; pinned memory that is looked into is left to its views."""
        for buffer in self._viewed():
            buffer.abandon()
        self.close()

    def _let_go(self) -> list[Exception]:
        """Close what belongs to the session; a failure keeps none of the others open."""
        errors: list[Exception] = []
        for action in [*self._at_close, *(handle.close for handle in list(self._owned))]:
            try:
                action()
            except Exception as error:
                errors.append(error)
        return errors

    def _failure(self) -> Exception:
        try:
            throw(self.codes)
        except Exception as error:
            return error

    def on_close(self, action: Callable[[], None]) -> None:
        """Run `action` before the runtime stops, with its handles valid, and once more after."""
        self._at_close.append(action)

    def own(self, handle: Closable) -> None:
        """Close `handle` just before the runtime stops, if it is still there."""
        self._owned.add(handle)

    def device(self, index: int | None = None) -> Device:
        """Device `index`, opened at its first use; the thread's current one by default."""
        index = self._current.device if index is None else index
        device = self._devices.get(index)
        if device is not None and lib.mt_session() == self._session:
            return device
        self.start()
        with self._lock:
            if index not in self._devices:
                self._devices[index] = Device(self, index)
            return self._devices[index]

    def is_open(self, index: int) -> bool:
        """Whether device `index` was opened in this process; opens nothing."""
        return self.started and index in self._devices

    def device_count(self) -> int:
        """How many devices ACL sees (aclrtGetDeviceCount)."""
        return Device.count(self)

    @property
    def current_device(self) -> int:
        """The calling thread's device index; threads begin with 0."""
        return self._current.device

    def set_device(self, index: int) -> None:
        """Make `index` the calling thread's device; it is opened here if it was not."""
        self.device(index)
        self._current.device = index

    def current_stream(self, index: int | None = None) -> Stream:
        """The calling thread's stream on a device: its default stream unless one is in use."""
        return self.stream_on(self.device(index))

    def stream_on(self, device: Place) -> Stream:
        """The calling thread's stream on an open device."""
        streams = self._current.streams
        default: Stream = device.default_stream
        return streams.get(device.index, default) if streams else default

    def set_stream(self, stream: Stream) -> None:
        """Make `stream` the calling thread's stream on its device, and that device current."""
        stream.address  # noqa: B018 - refuses a closed one
        vary_lanes()
        self._current.streams[stream.device.index] = stream
        self._current.device = stream.device.index

    def stream(self, index: int | None = None, priority: int = 0) -> Stream:
        """A new stream on a device."""
        return self.device(index).stream(priority)

    def pinned(self, nbytes: int) -> PinnedBuffer:
        """Page-locked host memory, from and to which copies are asynchronous."""
        return PinnedBuffer(self.device(), nbytes)

    @property
    def launch_blocking(self) -> bool:
        """Whether each launch waits for its end (ASCEND_LAUNCH_BLOCKING=1 at the start)."""
        return bool(lib.mt_is_launch_blocking())

    @launch_blocking.setter
    def launch_blocking(self, on: bool) -> None:
        lib.mt_launch_blocking(on)

    def counters(self) -> dict[str, int]:
        """Launches, failed ones, host synchronisations and copies since the process began."""
        counts = lib.mt_counters()
        return {name: int(getattr(counts, name)) for name in _COUNTERS}
