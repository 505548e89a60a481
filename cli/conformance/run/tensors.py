"""Owns how tensors of a row's case are made on a device and read back; the engine's only door to
mindtorch's insides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

import mindtorch as torch
from mindtorch._backends.npu import memory
from mindtorch._tensor.device import CPU, resolve
from mindtorch._tensor.dtype import dtype as Dtype
from mindtorch._tensor.dtype import from_numpy_dtype
from mindtorch._tensor.geometry import contiguous, geometry
from mindtorch._tensor.tensor import Tensor, adopt, host_array, wrap
from mindtorch._tensor.types import Array
from mindtorch.ops import Op

from ..cases.layouts import Place, place, sentinel_storage, strayed, view


@dataclass(slots=True)
class Placed:
    """A test tensor: a view of a sentinel-filled storage, and what the storage held before."""

    tensor: Any
    base: Any
    before: Any
    at: Place
    shape: tuple[int, ...]
    layout: str
    may_change: bool = False

    def trespass(self) -> int:
        """Elements that changed and may not have: all of an input, padding of an output."""
        return strayed(self.before, host(self.base), self.at, self.shape, self.may_change)


def host(tensor: Tensor) -> Array:
    """The elements of a tensor on any device as a numpy array; bfloat16 by ml_dtypes."""
    geom = tensor._geom
    if geom.device.type == "npu":
        if geom.contiguous or not geom.numel:
            return memory.to_host(tensor)
        # Strides are followed here: the kernel that would copy them is in question too.
        whole = contiguous((geom.extent,), geom.dtype, geom.device)
        flat = memory.to_host(wrap(whole, tensor._storage))
        return np.array(view(flat, tuple(geom.shape), Place(geom.strides, geom.offset, flat.size)))
    with torch.no_grad():
        near = tensor.detach().cpu()
    return np.array(host_array(near._geom, near._storage))


def on_cpu(array: Array) -> Tensor:
    """A contiguous cpu tensor with these elements."""
    owned = np.array(array, order="C")
    return adopt(contiguous(owned.shape, from_numpy_dtype(owned.dtype), CPU), owned)


def poison(device: str, sizes: Iterable[int], value: int) -> None:
    """Leave `value` in free blocks of these sizes (bytes), where the next outputs may lie."""
    where = resolve(device)
    blocks = []
    for n in sizes:
        if n and where.type == "npu":
            blocks.append(memory.allocate(contiguous((n,), torch.uint8, where)))
            memory.from_host(blocks[-1], np.full(n, value, np.uint8))
    blocks.clear()


def on_device(array: Array, device: str, layout: str, may_change: bool = False) -> Placed:
    """A tensor with these elements in a layout, in memory whose surroundings are watched."""
    shape = tuple(array.shape)
    at = place(layout, shape)
    storage = sentinel_storage(at.numel, array.dtype)
    if prod(shape):
        view(storage, shape, at)[...] = array
    where = resolve(device)
    if where.type == "npu":
        # Straight into device memory: what casts and copies on the way is in question too.
        base = memory.allocate(contiguous((at.numel,), from_numpy_dtype(array.dtype), where))
        memory.from_host(base, storage)
        seen = geometry(shape, at.strides, at.offset, base.dtype, where)
        return Placed(wrap(seen, base._storage), base, storage, at, shape, layout, may_change)
    base = torch.from_numpy(storage.copy()).to(device)
    tensor = torch.as_strided(base, shape, at.strides, at.offset)
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


def dtype_of(name: str) -> Dtype:
    return getattr(torch, name)
