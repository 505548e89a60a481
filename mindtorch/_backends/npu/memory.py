"""Owns device memory of tensors: allocation, release, and copies between host and device."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from aclnn_bindings import address_of, allocate as obtain, ffi, lib, throw_on
from aclnn_bindings.runtime.status import OutOfMemoryError as OutOfMemoryError

from ..._tensor.geometry import Geometry
from ..._tensor.host_values import remember
from ..._tensor.storage import Storage
from ..._tensor.tensor import Tensor, wrap
from ..._tensor.types import Array
from . import runtime


def fail(index: int) -> NoReturn:
    """Raise what the bindings' last call on this thread failed with."""
    throw_on(runtime.device(index))


def numbered(index: int | None) -> int:
    assert index is not None, "a tensor's npu always has an index"
    return index


def allocate(geom: Geometry) -> Tensor:
    """An uninitialised tensor; OutOfMemory as the bindings report it."""
    index = numbered(geom.device.index)
    nbytes = geom.extent * geom.dtype.itemsize
    # The session first: where another thread restarts the runtime meanwhile, the block is refused
    # as the old session's, never taken for the new one's.
    stream = runtime.SHARED[index] or runtime.stream_address(index)
    session = lib.mt_session()
    block = obtain(stream, nbytes, session)
    if block is None:
        fail(index)
    return wrap(geom, Storage(block))


def fill_fresh(value: int) -> bool:
    """Fill guarded memory with the byte `value` when it is allocated; whether memory is guarded."""
    return bool(lib.mt_memory_garbage(value))


_KINDS = {"to_device": "HOST_TO_DEVICE", "to_host": "DEVICE_TO_HOST", "on": "DEVICE_TO_DEVICE"}
_DEFAULTS = {"to_device": 1, "to_host": 2, "on": 3}


def _copy(
    index: int | None,
    direction: str,
    to: Tensor | int,
    source: Tensor | int,
    nbytes: int,
    wait: bool,
) -> None:
    """Copies between tensors and host addresses. The stream is taken before the tensors'
    addresses: a runtime that another thread restarts meanwhile then refuses the stream."""
    kind = runtime.cann().runtime.constant(f"ACL_MEMCPY_{_KINDS[direction]}", _DEFAULTS[direction])
    at = numbered(index)
    stream = runtime.SHARED[at] or runtime.stream_address(at)
    if lib.mt_copy(stream, _first(to), nbytes, _first(source), nbytes, kind, wait):
        fail(at)


def _first(t: Tensor | int) -> int:
    if isinstance(t, int):
        return t
    return int(t._storage.memory.address) + t._geom.offset * t._geom.dtype.itemsize


def _host_address(array: Array) -> int:
    """Where a C-contiguous array begins. numpy's `__array_interface__` reads a null pointer where
    the host's memory runs out (numpy 2.4); the buffer protocol raises MemoryError."""
    return address_of(ffi.from_buffer(array))


def from_host(dest: Tensor, array: Array) -> None:
    """Copy a C-contiguous host array of the same dtype to a contiguous tensor; waits."""
    if array.nbytes:
        _copy(dest._geom.device.index, "to_device", dest, _host_address(array), array.nbytes, True)
        remember(dest, array)


def to_host(source: Tensor) -> Array:
    """A contiguous tensor's elements as a new host array; waits."""
    array = np.empty(source._geom.shape, source._geom.dtype.np)
    if array.nbytes:
        _copy(
            source._geom.device.index, "to_host", _host_address(array), source, array.nbytes, True
        )
    return array


def on_device(dest: Tensor, source: Tensor) -> None:
    """Copy between contiguous tensors of one device, dtype and size, in stream order."""
    nbytes = dest._geom.numel * dest._geom.dtype.itemsize
    if nbytes:
        _copy(dest._geom.device.index, "on", dest, source, nbytes, False)
