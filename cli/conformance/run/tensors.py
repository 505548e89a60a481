"""Owns how tensors of a row's case are made on a device and read back; the engine's only door to
mindtorch's insides."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import mindtorch as torch
from mindtorch import Tensor
from mindtorch.ops import Op
from mindtorch.testing.placement import from_host, strided, to_host

from ...judge.precision import Array
from ..cases.layouts import StorageLayout, number_of, place, sentinel_storage, strayed, view


@dataclass(slots=True)
class Placed:
    """A test tensor: a view of a sentinel-filled storage, and what the storage held before."""

    tensor: Any
    base: Any
    before: Any
    at: StorageLayout
    shape: tuple[int, ...]
    layout: str
    may_change: bool = False

    def trespass(self) -> int:
        """Elements that changed and may not have: all of an input, padding of an output."""
        return strayed(self.before, to_host(self.base), self.at, self.shape, self.may_change)


def on_device(array: Array, device: str, layout: str, may_change: bool = False) -> Placed:
    """A tensor with these elements in a layout, in memory whose surroundings are watched."""
    shape = tuple(array.shape)
    at = place(layout, shape)
    storage = sentinel_storage(at.numel, array.dtype, number_of(array))
    if prod(shape):
        view(storage, shape, at)[...] = array
    # Straight into device memory: what casts and copies on the way is in question too.
    base = from_host(storage, device)
    tensor = strided(base, shape, at.strides, at.offset)
    return Placed(tensor, base, storage, at, shape, layout, may_change)


def is_tensor(value: object) -> bool:
    return isinstance(value, Tensor)


def call(op: Op, args: Any, kwargs: Any, form: str = "functional", out: Any = None) -> Any:
    """Call a row in a form: functional, out, inplace or method."""
    if form == "out":
        return op.entry("function")(*args, **kwargs, out=out)
    kind = {"functional": "aten", "inplace": "inplace", "method": "method"}[form]
    return op.entry(kind)(*args, **kwargs)


def results(value: Any) -> list[Any]:
    """The tensors of a result."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, tuple | list):
        return [t for v in value for t in results(v)]
    return []


def synchronize(device: str) -> None:
    """Wait for the device; raises what asynchronous work failed with."""
    if device.startswith("npu"):
        torch.npu.synchronize(device)


def dtype_name(tensor: Tensor) -> str:
    """`float16` of a tensor's dtype."""
    return repr(tensor.dtype).rpartition(".")[2]


def dtype_of(name: str) -> torch.dtype:
    return getattr(torch, name)
