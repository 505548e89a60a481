"""Owns host memory that processes share: tensors are moved into it and sent as file descriptors.

torch's strategy file_descriptor: a child process has the memory, and so has who receives a tensor
from a queue or pipe of `multiprocessing`, as long as the sender runs. Memory of other devices stays
where it is, and its tensors are sent as copies.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from .._tensor.device import CPU
from .._tensor.geometry import geometry
from .._tensor.loading import load
from .._tensor.no_memory import NoMemory
from .._tensor.storage import Storage
from .._tensor.tensor import Tensor, wrap
from .._tensor.typed_storage import TypedStorage
from .._tensor.types import Array
from .._tensor.untyped_storage import UntypedStorage
from .publish import surface


class SharedMap(mmap.mmap):
    """A mapping of a file without a name; `descriptor` stays open as long as it lives."""

    descriptor: int

    def __del__(self) -> None:
        os.close(self.descriptor)


def _nameless_file(nbytes: int) -> int:
    """The descriptor of a new file, in memory where the system has such."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("mindtorch")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, nbytes)
    return descriptor


def _mapped(descriptor: int, nbytes: int) -> Array:
    """The file's first `nbytes` bytes [nbytes]; the memory owns the descriptor from here on."""
    mapping = SharedMap(descriptor, nbytes)
    mapping.descriptor = descriptor
    return np.frombuffer(mapping, np.uint8, nbytes)


def _mapping(storage: Storage) -> SharedMap | None:
    """The mapping that is a storage's memory; None where its memory is not shared."""
    base = getattr(storage.memory, "base", None)
    mapping = base.obj if isinstance(base, memoryview) else None
    return mapping if isinstance(mapping, SharedMap) else None


def _share(storage: Storage) -> None:
    """Move a cpu storage into shared memory; others, and those without a byte, stay."""
    nbytes = storage.nbytes
    if not isinstance(storage.memory, np.ndarray) or not nbytes or _mapping(storage) is not None:
        return
    memory = _mapped(_nameless_file(nbytes), nbytes)
    memory[...] = storage.bytes
    storage.replace(memory)


@surface(function=False, internal=False)
def share_memory_(self: Tensor) -> Tensor:
    """Move the storage into memory that processes share (cpu); the tensor itself."""
    send_shared(type(self))
    _share(self._storage)
    return self


@surface(function=False, internal=False)
def is_shared(self: Tensor) -> bool:
    """Whether processes share the memory."""
    return _mapping(self._storage) is not None


def _share_storage(self: UntypedStorage) -> UntypedStorage:
    """Move the bytes into memory that processes share (cpu); the storage itself."""
    _share(self._storage)
    return self


def _is_shared_storage(self: UntypedStorage | TypedStorage) -> bool:
    return _mapping(self._storage) is not None


for _kind in (UntypedStorage, TypedStorage):
    setattr(_kind, "is_shared", _is_shared_storage)  # noqa: B010
    setattr(_kind, "share_memory_", _share_storage)  # noqa: B010


def reduce_tensor(tensor: Tensor) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
    """What is sent of a tensor: its memory's descriptor; RuntimeError for one with a history."""
    from multiprocessing.reduction import DupFd

    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd"
            " does not support crossing process boundaries.  If you just want to transfer the data,"
            " call detach() on the tensor before serializing (e.g., putting it on the queue)."
        )
    storage = tensor._storage
    if tensor.device.type == "cpu" and not isinstance(storage, NoMemory):
        _share(storage)
    mapping = _mapping(storage)
    if mapping is None:
        reduced: Any = tensor.__reduce_ex__(2)
        return reduced
    geom = tensor._geom
    memory = DupFd(mapping.descriptor), storage.nbytes
    layout = geom.dtype, tuple(geom.shape), geom.strides, geom.offset
    return rebuild_tensor, (
        type(tensor), memory, (*layout, tensor.requires_grad, tensor.__dict__ or None),
    )  # fmt: skip


def rebuild_tensor(
    kind: type[Tensor], memory: tuple[Any, int], metadata: tuple[Any, ...]
) -> Tensor:
    """The tensor of another process, over the same memory: (descriptor, bytes)."""
    load()
    descriptor, nbytes = memory
    dtype, size, stride, offset, leaf, state = metadata
    storage = Storage(_mapped(descriptor.detach(), nbytes))
    tensor = wrap(geometry(size, stride, offset, dtype, CPU), storage)
    if kind is not Tensor:
        tensor = Tensor._make_subclass(kind, tensor)
    if state:
        tensor.__dict__.update(state)
    return tensor.requires_grad_() if leaf else tensor


def send_shared(*kinds: type[Tensor]) -> None:
    """Let queues, pipes and arguments of processes carry tensors of these classes by memory."""
    from multiprocessing.reduction import ForkingPickler

    for kind in kinds:
        ForkingPickler.register(kind, reduce_tensor)


def send_copies(*kinds: type[Tensor]) -> None:
    """Undo send_shared, in a process whose tensors are read after it has ended."""
    from multiprocessing.reduction import ForkingPickler

    reducers: dict[type, object] = vars(ForkingPickler)["_extra_reducers"]
    for kind in kinds:
        reducers.pop(kind, None)
