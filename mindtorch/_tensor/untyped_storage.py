"""Owns UntypedStorage: the bytes under tensors as an object of programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from .device import CPU, DeviceLike, device as Device, resolve
from .dtype import bool as bool_, dtype as Dtype, int8, uint8
from .storage import MetaMemory, Storage, address, is_pinned, resize
from .types import Array

_ORDERS = {"little": "<", "big": ">", "native": "="}


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


class UntypedStorage:
    """Bytes without a dtype: `UntypedStorage(nbytes)`, or what `tensor.untyped_storage()` gives."""

    __module__ = "mindtorch.storage"
    _storage: Storage
    _device: Device
    _filename: str | None = None
    is_sparse: bool = False
    is_sparse_csr: bool = False

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
        self._storage, self._device = Storage(memory), target

    @property
    def _cdata(self) -> int:
        """A number of the bytes: the same for all tensors that share them."""
        return id(self._storage)

    @classmethod
    def of(cls, storage: Storage, device: Device) -> UntypedStorage:
        """The face of a storage."""
        result = cls.__new__(cls)
        result._storage, result._device = storage, device
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
        mapped._filename = path if shared else None
        return mapped

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

    @property
    def _untyped_storage(self) -> UntypedStorage:
        """What a storage with a dtype has by this name."""
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
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        if self.device.type != "cpu":
            raise NotImplementedError(f"UntypedStorage.{what}: this one is on {self.device}")
        return self._storage.bytes

    def __sizeof__(self) -> int:
        """Those of the object and of its memory."""
        return object.__sizeof__(self) + self.nbytes()

    def __copy__(self) -> UntypedStorage:
        return self.clone()

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
        elif self.device.type != "meta":
            self._bytes("fill_")[...] = value
        return self

    def copy_(self, source: UntypedStorage, non_blocking: bool | None = None) -> UntypedStorage:
        if self._on_device() or source._on_device():
            self.as_tensor().copy_(source.as_tensor())
        elif len(self) != len(source):
            raise RuntimeError(
                f"size does not match, self was {len(self)} bytes but src was {len(source)} bytes"
            )
        elif self.device.type != "meta":
            self._bytes("copy_")[...] = source._bytes("copy_")
        return self

    def clone(self) -> UntypedStorage:
        if self._on_device():
            return self.of(self.as_tensor().clone()._storage, self.device)
        if self.device.type == "meta":
            return UntypedStorage(len(self), device=self.device)
        return UntypedStorage.of(Storage(self._bytes("clone").copy()), self.device)

    def cpu(self) -> UntypedStorage:
        if self._on_device():
            return self.of(self.as_tensor().cpu()._storage, CPU)
        if self.device.type == "meta":
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        return self

    def npu(self, device: int | str | None = None, non_blocking: bool = False) -> UntypedStorage:
        """The bytes on an NPU, as `torch.load(f, lambda storage, place: storage.npu())` asks."""
        target = "npu" if device is None else f"npu:{device}" if isinstance(device, int) else device
        return self.of(self.as_tensor().to(target)._storage, resolve(target))

    @property
    def device(self) -> Device:
        """Where the bytes are."""
        return self._device

    @property
    def filename(self) -> str | None:
        """The file that writes reach; None for memory of this process."""
        return self._filename

    @property
    def is_cuda(self) -> bool:
        """Whether the bytes are on a CUDA device."""
        return self._device.type == "cuda"

    @property
    def is_hpu(self) -> bool:
        """Whether the bytes are on an HPU."""
        return self._device.type == "hpu"

    def to(self, *, device: DeviceLike, non_blocking: bool = False) -> UntypedStorage:
        """The bytes on a device, or itself; AssertionError for one without a module here."""
        target = resolve(Device(device))
        if target == self.device:
            return self
        if target.type not in ("cpu", "npu"):
            raise AssertionError(f"{target.type.upper()} device module is not loaded")
        moved = self.as_tensor().to(target, non_blocking=non_blocking)
        return self.of(moved._storage, moved.device)

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """The bytes on a CUDA device."""
        place = Device("cuda", device) if device else Device("cuda")
        return self.to(device=place, non_blocking=non_blocking)

    def hpu(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """The bytes on an HPU; AssertionError without one."""
        raise AssertionError("HPU device module is not loaded")

    def mps(self) -> UntypedStorage:
        """RuntimeError: there is no such device."""
        raise RuntimeError("torch.UntypedStorage(): Storage device not recognized: mps")

    def new(self) -> UntypedStorage:
        """An empty storage on the same device."""
        empty = self.as_tensor().new_empty(0)
        return self.of(empty._storage, self.device)

    def get_device(self) -> int | None:
        """The device's index; None on cpu."""
        return self.device.index

    def resizable(self) -> bool:
        """Whether the memory is the storage's own."""
        memory = self._storage.memory
        return not isinstance(memory, np.ndarray) or memory.flags.owndata or self.is_shared()

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The class's name; with a class of storages or its name, the bytes in one."""
        if dtype is None:
            return "torch.storage.UntypedStorage"
        kind = _named(dtype) if isinstance(dtype, str) else dtype
        if kind is type(self):
            return self
        if kind.is_sparse:
            raise RuntimeError("Cannot cast dense tensor to sparse tensor")
        return kind(self.size()).copy_(self, non_blocking)

    def pin_memory(self, device: DeviceLike | None = None) -> UntypedStorage:
        """The bytes in memory that a device reads directly; TypeError for others than cpu's."""
        if self.device.type != "cpu":
            raise TypeError(f"cannot pin '{self.type()}' only CPU memory can be pinned")
        pinned = self.as_tensor().pin_memory(*(() if device is None else (device,)))
        return self.of(pinned._storage, CPU)

    def is_pinned(self, device: DeviceLike | None = None) -> bool:
        """Whether `pin_memory` made its memory."""
        return is_pinned(self._storage)

    def byteswap(self, dtype: Dtype) -> None:
        """Turn the bytes of each number around; of a complex one those of its parts."""
        size = dtype.itemsize // (2 if dtype.is_complex else 1)
        numbers = self._bytes("byteswap").reshape(-1, size)
        numbers[...] = numbers[:, ::-1].copy()

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, *,
        dtype: Dtype | None = None,
    ) -> UntypedStorage:  # fmt: skip
        """A copy of `count` numbers of a buffer from byte `offset` on, in the machine's order."""
        if dtype is None:
            raise RuntimeError("argument 'dtype' cannot be None")
        size = dtype.itemsize
        if byte_order is None and dtype not in (uint8, int8):
            raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
        if byte_order is not None and byte_order not in _ORDERS:
            raise ValueError(
                f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')"
            )
        whole = np.frombuffer(buffer, np.uint8) if memoryview(buffer).nbytes else np.empty(0, "u1")
        if not 0 <= offset <= whole.size:
            raise ValueError(
                f"offset must be non-negative and no greater than buffer length ({offset}) ,"
                f" but got {whole.size}"
            )
        rest = whole.size - offset
        if count < 0:
            if rest % size:
                raise ValueError(
                    f"buffer size ({whole.size}) must be a multiple of element size ({size})"
                )
            count = rest // size
        elif count * size > rest:
            raise ValueError(
                f"buffer has only {rest} elements after offset {offset}, but specified a size of"
                f" {count}"
            )
        result = cls.of(Storage(whole[offset : offset + count * size].copy()), CPU)
        if dtype is bool_:
            result._storage.bytes[...] = result._storage.bytes != 0
        elif np.dtype(f"{_ORDERS[byte_order or 'native']}i2") != np.dtype("i2"):
            result.byteswap(dtype)
        return result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and other._storage is self._storage

    def __hash__(self) -> int:
        return id(self._storage)

    def __repr__(self) -> str:
        values = self._storage.bytes if self.device.type == "cpu" else None
        return listing(values, f"UntypedStorage(device={self.device})", len(self))


def _named(name: str) -> Any:
    """The object of a dotted name."""
    first, *rest = name.split(".")
    value: Any = __import__("mindtorch" if first == "torch" else first)
    for part in rest:
        value = getattr(value, part)
    return value


def listing(values: Array | None, kind: str, size: int) -> str:
    """A storage as `print` shows it, an element a line; "..." for values on another device."""
    listing = "..." if values is None else " " + "\n ".join(map(str, values.tolist()))
    return f"{listing}\n[torch.storage.{kind} of size {size}]"


# torch's base of storages, for isinstance.
StorageBase = UntypedStorage
