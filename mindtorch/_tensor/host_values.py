"""Owns what the host knows of small real tensors on devices: those that it copied there itself.

An index out of range is a fault of the device, told late and without the call. Where the
values came from the host and nothing wrote over them, they are here; asking waits for nothing.
"""

from __future__ import annotations

from .device import CPU
from .geometry import geometry
from .storage import Memory, Storage
from .tensor import Tensor, wrap
from .types import Array

_MOST = 4096  # elements: copying these costs less than the transfer's own call


class HostCopy:
    """What was copied to a memory when its storage had a version; the range of it, once asked."""

    __slots__ = ("highest", "lowest", "memory", "values", "version")

    def __init__(self, memory: Memory, version: int, values: Array):
        self.memory, self.version, self.values = memory, version, values
        self.lowest, self.highest = float("-inf"), float("inf")

    def within(self, low: float, high: float) -> bool:
        """Whether every value, of views too, is at least `low` and below `high`."""
        values = self.values
        if values.size <= 64 and values.dtype.kind != "f":
            few = values.ravel().tolist()
            self.lowest, self.highest = min(few), max(few)
        else:  # NaN is within nothing
            self.lowest, self.highest = values.min().item(), values.max().item()
        return low <= self.lowest and self.highest < high


def remember(tensor: Tensor, values: Array) -> None:
    """Keep `values`, which were copied to the whole of `tensor`, if they are few and real."""
    if values.dtype.kind in "biuf" and 0 < values.size <= _MOST and not tensor._geom.offset:
        storage = tensor._storage
        storage.host_copy = HostCopy(storage.memory, storage.value, values.copy())


def host_copy(tensor: Tensor) -> HostCopy | None:
    """What the host knows of the tensor's storage, if nothing wrote to it since."""
    storage = tensor._storage
    copied: HostCopy | None = getattr(storage, "host_copy", None)
    if copied is None or copied.memory is not storage.memory or copied.version != storage.value:
        return None
    return copied


def host_values(tensor: Tensor) -> Tensor | None:
    """The tensor on the host: itself if it is there, None where the device alone has the values."""
    geom = tensor._geom
    if geom.device.type == "cpu":
        return tensor
    copied = host_copy(tensor)
    if copied is None or geom.extent * geom.dtype.itemsize > copied.values.nbytes:
        return None
    there = geometry(geom.shape, geom.strides, geom.offset, geom.dtype, CPU)
    return wrap(there, Storage(copied.values))
