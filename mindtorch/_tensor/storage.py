"""Owns Storage: the bytes that tensors share and their version; refuses to know shapes."""

from __future__ import annotations

import gc
from contextlib import suppress
from typing import Any, Protocol, TypeAlias
from weakref import WeakValueDictionary, ref

import numpy as np

from .._tensor.types import Array
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
