"""Owns tensors that are placed and read without a kernel of their device: a check of a kernel must
not depend on the kernels that would copy and cast for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .._autograd.grad_mode import no_grad
from .._tensor.device import CPU, DeviceLike, resolve
from .._tensor.dtype import from_numpy_dtype
from .._tensor.geometry import contiguous, geometry
from .._tensor.tensor import Tensor, adopt, host_array, wrap
from .._tensor.types import Array

__all__ = ["fill_free_memory", "from_host", "overruns", "strided", "to_host"]


def from_host(array: Array, device: DeviceLike = "cpu") -> Tensor:
    """A contiguous tensor with a copy of these elements."""
    where = resolve(device)
    if where.type == "npu":
        from .._backends.npu import memory

        dense = np.ascontiguousarray(array)
        result = memory.allocate(contiguous(array.shape, from_numpy_dtype(dense.dtype), where))
        memory.from_host(result, dense)
        return result
    owned = np.array(array, order="C")
    near = adopt(contiguous(owned.shape, from_numpy_dtype(owned.dtype), CPU), owned)
    moved: Tensor = near if where.type == "cpu" else near.to(where)
    return moved


def to_host(tensor: Tensor) -> Array:
    """The elements of a tensor on any device as a numpy array; bfloat16 by ml_dtypes."""
    geom = tensor._geom
    if geom.device.type == "npu":
        from .._backends.npu import memory

        if geom.contiguous or not geom.numel:
            return memory.to_host(tensor)
        # Strides are followed here: the kernel that would copy them is in question too.
        whole = contiguous((geom.extent,), geom.dtype, geom.device)
        flat = memory.to_host(wrap(whole, tensor._storage))
        steps = [s * flat.itemsize for s in geom.strides]
        return np.array(as_strided(flat[geom.offset :], tuple(geom.shape), steps))
    with no_grad():
        near = tensor.detach().cpu()
    return np.array(host_array(near._geom, near._storage))


def strided(base: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int) -> Tensor:
    """A view of `base`'s storage, as torch.as_strided makes it (strides in elements)."""
    device = base._geom.device
    if device.type != "npu":
        view: Tensor = base.as_strided(shape, strides, offset)
        return view
    seen = geometry(tuple(shape), tuple(strides), offset, base._geom.dtype, device)
    return wrap(seen, base._storage)


def overruns(device: DeviceLike) -> list[str]:
    """What was written over the ends of blocks of a device since the last call, in words; none
    where memory is not guarded (MINDTORCH_MEMORY_GUARD)."""
    where = resolve(device)
    if where.type != "npu":
        return []
    from .._backends.npu import runtime

    return [str(trespass) for trespass in runtime.device(where.index).trespasses()]


def fill_free_memory(device: DeviceLike, sizes: Iterable[int], value: int) -> None:
    """Leave the byte `value` where the next outputs may lie: in guarded memory anywhere, else in
    free blocks of these sizes (bytes); without effect on devices other than npu."""
    where = resolve(device)
    if where.type == "npu":
        from .._backends.npu import memory

        if memory.fill_fresh(value):
            return
        blocks = [from_host(np.full(n, value, np.uint8), where) for n in sizes if n]
        blocks.clear()
