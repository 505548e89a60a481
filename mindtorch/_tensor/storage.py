"""Owns Storage: the bytes that tensors share and their version; refuses to know shapes."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, ClassVar, Protocol, TypeAlias
from weakref import WeakValueDictionary, ref

import numpy as np

from .._tensor.types import Array
from .device import CPU, DeviceLike, resolve
from .device import device as Device
from .dtype import dtype as Dtype
from .dtype import get_default_dtype as default_dtype
from .no_memory import NoMemory
from .slots import StorageSlots


class MetaMemory:
    """Memory that is only a size, in bytes."""

    __slots__ = ("nbytes",)

    def __init__(self, nbytes: int):
        self.nbytes: int = nbytes


class DeviceMemory(Protocol):
    """Memory elsewhere: a block of bytes at an address."""

    nbytes: int

    @property
    def address(self) -> int: ...


# What a storage holds: a numpy array on cpu, a size on meta, a block on other devices.
Memory: TypeAlias = Array | MetaMemory | DeviceMemory


class Storage(StorageSlots):
    """Bytes on one device, and the version counter that base and views share.

    `memory` is a numpy array on cpu, `MetaMemory` on meta, and an object with `nbytes` and
    `address` elsewhere. `value` counts in-place writes: a Storage is its own version counter.
    `views` holds weak references to differentiable views, None while there are none.
    `host_copy` is what `host_values` owns.
    """

    __slots__ = ("host_copy",)
    _bytes: Array
    memory: Any
    value: int
    views: list[ref[Any]] | None
    host_copy: Any

    def __init__(self, memory: Memory):
        self.memory = memory
        self.value = 0
        self.views = None

    @property
    def nbytes(self) -> int:
        return int(self.memory.nbytes)

    @property
    def bytes(self) -> Array:
        """The cpu memory as one uint8 array in storage order, made on first use."""
        try:
            return self._bytes
        except AttributeError:
            self._bytes = whole = _as_bytes(self.memory)
            return whole

    def replace(self, memory: Memory) -> None:
        """Put other memory in place of this one (resize_); tensors that share it see the new."""
        before, self.memory = self.memory, memory
        with suppress(AttributeError):
            del self._bytes
        if not (isinstance(before, np.ndarray) and before.nbytes):
            return  # there is no numpy view of it, or none with an element
        for holder in gc.get_referrers(self):
            if hasattr(type(holder), "_array"):
                with suppress(AttributeError):
                    del holder._array  # the numpy view of what was before


def _as_bytes(array: Array) -> Array:
    if not array.flags.c_contiguous:
        order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
        array = array.transpose(order)
    return array.reshape(-1).view(np.uint8)


VIEWS_BEFORE_PRUNING = 64


def add_view(storage: Storage, view: Any) -> None:
    """Remember a view, so that a write through another one can mark its history stale."""
    views = storage.views
    if views is None:
        storage.views = [ref(view)]
        return
    views.append(ref(view))
    size = len(views)
    if size >= VIEWS_BEFORE_PRUNING and size & (size - 1) == 0:
        storage.views = [r for r in views if r() is not None]


def _opened(path: str, shared: bool, nbytes: int) -> int:
    """The size of a file that can be opened so; a shared one is made, and made longer."""
    try:
        with open(path, "ab" if shared else "rb") as file:
            if shared and file.tell() < nbytes:
                file.truncate(nbytes)
    except OSError as error:
        mode = "read-write" if shared else "read-only"
        raise RuntimeError(
            f"unable to open file <{path}> in {mode} mode: {error.strerror} ({error.errno})"
        ) from None
    return os.path.getsize(path)


def _within(index: int, size: int) -> int:
    """The index; IndexError in torch's words for one that a storage has not."""
    if isinstance(index, int) and not -size <= index < size:
        raise IndexError(f"index {index} out of range for storage of size {size}")
    return index


# Memory of storages that `pin_memory` made.
_PINNED: WeakValueDictionary[int, Any] = WeakValueDictionary()


def pin(storage: Storage) -> None:
    """Say of a storage of the cpu that it is pinned."""
    _PINNED[id(storage.memory)] = storage.memory


def is_pinned(storage: Storage) -> bool:
    """Whether `pin` was said of it."""
    if isinstance(storage, NoMemory):
        return False
    return storage.memory is not None and _PINNED.get(id(storage.memory)) is storage.memory


class UntypedStorage:
    """Bytes without a dtype: `UntypedStorage(nbytes)`, or what `tensor.untyped_storage()` gives."""

    __module__ = "mindtorch.storage"
    _storage: Storage
    device: Any
    filename: str | None = None  # of a storage whose writes reach a file

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'torch.storage.UntypedStorage' object has no attribute '{name}'")

    def __init__(self, *args: Any, device: DeviceLike | None = None):
        source = args[0] if args else 0
        target = CPU if device is None else Device(device)
        if isinstance(source, list | tuple | bytes):
            memory: Any = np.frombuffer(bytearray(source), np.uint8)
        elif target.type == "meta":
            memory = MetaMemory(int(source))
        elif target.type == "cpu":
            memory = np.empty(int(source), np.uint8)
        else:
            raise RuntimeError(f"UntypedStorage: make a tensor on {target} and take its storage")
        self._storage, self.device = Storage(memory), target

    @classmethod
    def of(cls, storage: Storage, device: Device) -> UntypedStorage:
        """The face of a storage."""
        result = cls.__new__(cls)
        result._storage, result.device = storage, device
        return result

    @classmethod
    def from_file(
        cls, filename: Any, shared: bool = False, nbytes: int = 0, **names: Any
    ) -> UntypedStorage:
        """A file mapped into memory; writes reach it where `shared`. RuntimeError if too short."""
        nbytes = names.get("size", nbytes)
        path = os.fspath(filename)
        there = _opened(path, shared, nbytes)
        if nbytes < 0:
            raise RuntimeError(
                f"unable to mmap {nbytes} bytes from file <{path}>: Cannot allocate memory (12)"
            )
        if there < nbytes:
            raise RuntimeError(
                f"file <{path}> size <{there}> is smaller than the required mapping size <{nbytes}>"
            )
        size = nbytes or there
        mode: Any = "r+" if shared else "c"
        memory = np.memmap(path, np.uint8, mode, shape=(size,)) if size else np.empty(0, np.uint8)
        mapped = cls.of(Storage(memory.view(np.ndarray)), CPU)
        mapped.filename = path if shared else None
        return mapped

    @classmethod
    def _from_buffer(cls, buffer: Any) -> UntypedStorage:
        return cls.of(Storage(np.frombuffer(buffer, np.uint8)), CPU)

    def nbytes(self) -> int:
        return self._storage.nbytes

    def size(self) -> int:
        return self._storage.nbytes

    def __len__(self) -> int:
        return self._storage.nbytes

    def data_ptr(self) -> int:
        return address(self._storage)

    def element_size(self) -> int:
        """1."""
        return 1

    def untyped(self) -> UntypedStorage:
        return self

    # A device's storage as a tensor of its bytes, which `tensor.py` gives.
    as_tensor: ClassVar[Callable[[UntypedStorage], Any]]

    def _on_device(self) -> bool:
        return self.device.type not in ("cpu", "meta")

    def resize_(self, nbytes: int) -> UntypedStorage:
        """Change the size, in bytes, keeping what fits."""
        if self._on_device():
            old, common = self.as_tensor(), min(nbytes, self.nbytes())
            new = old.new_empty(nbytes)
            new[:common].copy_(old[:common])
            self._storage.replace(new._storage.memory)
        else:
            resize(self._storage, nbytes)
        return self

    def _bytes(self, what: str) -> Array:
        if self.device.type != "cpu":
            raise NotImplementedError(f"UntypedStorage.{what}: this one is on {self.device}")
        return self._storage.bytes

    def __getitem__(self, index: Any) -> Any:
        """One byte; a slice shares the memory."""
        if not isinstance(index, slice):
            return int(self._bytes("__getitem__")[_within(index, len(self))])
        if index.step not in (None, 1):
            raise RuntimeError(f"Trying to slice with a step of {index.step}, but only 1 fits")
        return UntypedStorage.of(Storage(self._bytes("__getitem__")[index]), self.device)

    def __setitem__(self, index: Any, value: Any) -> None:
        array = value._bytes("__setitem__") if isinstance(value, UntypedStorage) else value
        self._bytes("__setitem__")[index] = array

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        return list((self.as_tensor() if self._on_device() else self._bytes("tolist")).tolist())

    def fill_(self, value: int) -> UntypedStorage:
        if self._on_device():
            self.as_tensor().fill_(value)
        else:
            self._bytes("fill_")[...] = value
        return self

    def copy_(self, source: UntypedStorage, non_blocking: bool | None = None) -> UntypedStorage:
        if self._on_device() or source._on_device():
            self.as_tensor().copy_(source.as_tensor())
        elif len(self) != len(source):
            raise RuntimeError(
                f"size does not match, self was {len(self)} bytes but src was {len(source)} bytes"
            )
        else:
            self._bytes("copy_")[...] = source._bytes("copy_")
        return self

    def clone(self) -> UntypedStorage:
        if self._on_device():
            return self.of(self.as_tensor().clone()._storage, self.device)
        return UntypedStorage.of(Storage(self._bytes("clone").copy()), self.device)

    def cpu(self) -> UntypedStorage:
        if self._on_device():
            return self.of(self.as_tensor().cpu()._storage, CPU)
        self._bytes("cpu")
        return self

    def npu(self, device: int | str | None = None, non_blocking: bool = False) -> UntypedStorage:
        """The bytes on an NPU, as `torch.load(f, lambda storage, place: storage.npu())` asks."""
        target = "npu" if device is None else f"npu:{device}" if isinstance(device, int) else device
        return self.of(self.as_tensor().to(target)._storage, resolve(target))

    def is_pinned(self) -> bool:
        return is_pinned(self._storage)

    is_cuda = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and other._storage is self._storage

    def __hash__(self) -> int:
        return id(self._storage)

    def __repr__(self) -> str:
        values = self._storage.bytes if self.device.type == "cpu" else None
        return _listing(values, f"UntypedStorage(device={self.device})", len(self))


class TypedStorage:
    """What `tensor.storage()` returns; `data` is the flat numpy array on cpu, None on meta."""

    __module__ = "mindtorch.storage"

    def is_pinned(self) -> bool:
        """Whether `pin_memory` made its memory."""
        return self._untyped_storage.is_pinned()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'torch.storage.TypedStorage' object has no attribute '{name}'")

    def __init__(
        self, *args: Any, wrap_storage: UntypedStorage | None = None, dtype: Dtype | None = None,
        device: DeviceLike | None = None, **_: object,
    ):  # fmt: skip
        self.dtype: Dtype = dtype or type(self)._dtype or default_dtype()
        if wrap_storage is None:
            if args and isinstance(args[0], list | tuple):
                values = np.array(args[0], self.dtype.np)
                wrap_storage = UntypedStorage.of(Storage(values), CPU)
            else:
                size = int(args[0]) if args else 0
                wrap_storage = UntypedStorage(size * self.dtype.itemsize, device=device)
        self._storage = wrap_storage._storage
        self.device: Device = wrap_storage.device

    _dtype: Dtype | None = None

    @classmethod
    def _from_buffer(cls, buffer: Any) -> TypedStorage:
        return cls(wrap_storage=UntypedStorage._from_buffer(buffer))

    from_buffer = _from_buffer

    @property
    def data(self) -> Any:
        if self.device.type == "meta":
            return None
        if self.device.type != "cpu":
            raise RuntimeError(
                f"storage().data is host memory; this is on {self.device}: call .cpu() first"
            )
        return self._storage.bytes.view(self.dtype.np)

    def size(self) -> int:
        return self._storage.nbytes // self.dtype.itemsize

    __len__ = _size = size

    def nbytes(self) -> int:
        return self._storage.nbytes

    _nbytes = nbytes

    def element_size(self) -> int:
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        return address(self._storage)

    _data_ptr = data_ptr

    def untyped(self) -> UntypedStorage:
        return UntypedStorage.of(self._storage, self.device)

    @property
    def _untyped_storage(self) -> UntypedStorage:
        return self.untyped()

    def tolist(self) -> list[Any]:
        return list(self.data.tolist())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        return self.data[_within(index, len(self))].tolist()

    def __repr__(self) -> str:
        values = self.data if self.device.type == "cpu" else None
        kind = f"TypedStorage(dtype={self.dtype!r}, device={self.device})"
        return _listing(values, kind, len(self))


def _listing(values: Array | None, kind: str, size: int) -> str:
    """A storage as `print` shows it, an element a line; "..." for values on another device."""
    listing = "..." if values is None else " " + "\n ".join(map(str, values.tolist()))
    return f"{listing}\n[torch.storage.{kind} of size {size}]"


def typed(dtype: Dtype) -> type[TypedStorage]:
    """`torch.FloatStorage` and its kin."""
    name = f"{dtype.legacy}Storage"
    words = f"A typed storage of {dtype}; older than `UntypedStorage`."
    scope = {"_dtype": dtype, "__module__": "mindtorch", "__doc__": words}
    return type(name, (TypedStorage,), scope)


def address(storage: Storage) -> int:
    """Where the storage begins: a host or device address, 0 on meta."""
    memory = storage.memory
    if isinstance(memory, np.ndarray):
        return int(storage.bytes.ctypes.data)
    storage.host_copy = None  # whoever has the address may write there
    return int(getattr(memory, "address", 0))


def resize(storage: Storage, nbytes: int) -> None:
    """Grow or shrink a cpu or meta storage, keeping what fits."""
    if isinstance(storage.memory, MetaMemory):
        storage.replace(MetaMemory(nbytes))
        return
    if not isinstance(storage.memory, np.ndarray):
        raise RuntimeError("resizing a storage is not implemented for this device")
    old = storage.bytes
    if nbytes == old.size:
        return
    try:
        new = np.empty(nbytes, np.uint8)
    except MemoryError as error:  # torch's class
        raise RuntimeError(
            f"cpu allocator: can't allocate memory: {error}; ask for less"
        ) from error
    common = min(nbytes, old.size)
    new[:common] = old[:common]
    storage.replace(new)


# torch's base of storages, for isinstance.
StorageBase = UntypedStorage
