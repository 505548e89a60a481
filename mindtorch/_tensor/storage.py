"""Owns Storage: the bytes that tensors share and their version; refuses to know shapes."""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from .._tensor.types import Array
from .dtype import dtype as Dtype


class MetaMemory:
    """Memory that is only a size, in bytes."""

    __slots__ = ("nbytes",)

    def __init__(self, nbytes: int):
        self.nbytes = nbytes


class Storage:
    """Bytes on one device, and the version counter that base and views share.

    `memory` is a numpy array on cpu, `MetaMemory` on meta, and an object with `nbytes` and
    `address` elsewhere. `value` counts in-place writes: a Storage is its own version counter.
    `views` holds weak references to differentiable views, None while there are none.
    """

    __slots__ = ("bytes", "memory", "value", "views")
    bytes: Any
    memory: Any
    value: int
    views: list[ref[Any]] | None

    def __init__(self, memory: Any):
        self.memory = memory
        self.value = 0
        self.views = None

    @property
    def nbytes(self) -> int:
        return int(self.memory.nbytes)

    def __getattr__(self, name: str) -> Array:
        """Make `bytes`, the cpu memory as one uint8 array in storage order, on first use."""
        if name != "bytes":
            raise AttributeError(name)
        self.bytes = whole = _as_bytes(self.memory)
        return whole

    def replace(self, memory: Any) -> None:
        """Put other memory in place of this one (resize_, set_)."""
        self.memory = memory
        try:
            del self.bytes
        except AttributeError:
            return


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


class UntypedStorage:
    """What `tensor.untyped_storage()` returns: the bytes, without a dtype."""

    def __init__(self, storage: Storage, device: Any):
        self._storage = storage
        self.device = device

    def nbytes(self) -> int:
        return self._storage.nbytes

    size = __len__ = nbytes

    def data_ptr(self) -> int:
        return address(self._storage)

    def resize_(self, nbytes: int) -> UntypedStorage:
        """Change the size, in bytes, keeping what fits (cpu)."""
        resize(self._storage, nbytes)
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and other._storage is self._storage

    def __hash__(self) -> int:
        return id(self._storage)


class TypedStorage:
    """What `tensor.storage()` returns; `data` is the flat numpy array on cpu, None on meta."""

    def __init__(self, storage: Storage, dtype: Dtype, device: Any):
        self._storage = storage
        self.dtype = dtype
        self.device = device

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

    __len__ = size

    def nbytes(self) -> int:
        return self._storage.nbytes

    def data_ptr(self) -> int:
        return address(self._storage)

    def untyped(self) -> UntypedStorage:
        return UntypedStorage(self._storage, self.device)

    def tolist(self) -> list[Any]:
        return list(self.data.tolist())

    def __getitem__(self, index: Any) -> Any:
        return self.data[index].tolist()


def address(storage: Storage) -> int:
    """Where the storage begins: a host or device address, 0 on meta."""
    memory = storage.memory
    if isinstance(memory, np.ndarray):
        return int(storage.bytes.__array_interface__["data"][0])
    return int(getattr(memory, "address", 0))


def resize(storage: Storage, nbytes: int) -> None:
    """Grow or shrink a cpu or meta storage, keeping what fits."""
    if isinstance(storage.memory, MetaMemory):
        storage.replace(MetaMemory(nbytes))
        return
    if not isinstance(storage.memory, np.ndarray):
        raise RuntimeError("resizing a storage is not implemented for this device")
    old = storage.bytes
    new = np.empty(nbytes, np.uint8)
    kept = min(nbytes, old.size)
    new[:kept] = old[:kept]
    storage.replace(new)
