"""Owns functionalize's writes on the device: which of three ways puts a result into a view.

A contiguous view takes a device copy; a view that is a strided slice of its base takes
aclnnStridedSliceAssignV2; any other takes linear indices, made on the device by aclnnArange, and
aclnnIndexPutImpl on the flattened base.
"""

from __future__ import annotations

from typing import Any

from aclnn_bindings import MissingSymbolError

from ..._autograd.grad_mode import below_autograd
from ..._tensor.dtype import int64
from ..._tensor.geometry import Geometry, contiguous, geometry
from ..._tensor.tensor import Tensor, wrap
from ...ops.spec import Op, aten
from . import memory, runtime, transfer
from .binding import spec_of


def write_back(op: Op, dest: Tensor, source: Tensor) -> None:
    """Make `dest` hold `source`; RuntimeError naming `op` where this install lacks a kernel."""
    g = dest._geom
    if source._geom.dtype is not g.dtype or source._geom.shape != g.shape:
        source = _cast(source, g)
    try:
        if g.contiguous:
            transfer.copy(dest, source)
            return
        base = base_geometry(dest)
        slices = strided_slice(g, base)
        if slices is not None:
            _assign_slice(dest, source, base, slices)
        else:
            _assign_indices(dest, source)
    except MissingSymbolError as error:
        raise RuntimeError(f"aten::{op.base_name}_ is not implemented for NPU: {error}") from error


def _cast(source: Tensor, target: Geometry) -> Tensor:
    converted = memory.allocate(contiguous(target.shape, target.dtype, target.device))
    transfer.copy(converted, source)
    return converted


def base_geometry(dest: Tensor) -> Geometry:
    """The Geometry that slices are told in: the base's, or the flat storage's."""
    base = dest._base
    if base is not None and base._geom.contiguous and base._geom.dtype is dest._geom.dtype:
        return base._geom
    g = dest._geom
    return contiguous((g.extent,), g.dtype, g.device)


class Slices:
    """A strided slice: begin, end and step per dimension of the base, and the sliced shape."""

    __slots__ = ("begin", "end", "shape", "step")

    def __init__(self) -> None:
        self.begin: list[int] = []
        self.end: list[int] = []
        self.step: list[int] = []
        self.shape: list[int] = []


def strided_slice(view: Geometry, base: Geometry) -> Slices | None:
    """`view` as a strided slice of the contiguous `base`, None where it is no such thing.

    Dimensions of the base that the view leaves out count as slices of one element.
    """
    rest = view.offset - base.offset
    if rest < 0:
        return None
    left = [(n, s) for n, s in zip(view.shape, view.strides, strict=True) if n != 1]
    slices = Slices()
    for size, stride in zip(base.shape, base.strides, strict=True):
        begin, rest = divmod(rest, stride)
        count, step = 1, 1
        if left and left[0][1] and left[0][1] % stride == 0:
            n, length = left[0][0], left[0][1] // stride
            if begin + (n - 1) * length < size:
                count, step = n, length
                left.pop(0)
        if begin >= size:
            return None
        slices.begin.append(begin)
        slices.end.append(begin + (count - 1) * step + 1)
        slices.step.append(step)
        slices.shape.append(count)
    return None if left or rest else slices


def _assign_slice(dest: Tensor, source: Tensor, base: Geometry, slices: Slices) -> None:
    g = dest._geom
    values = transfer._packed(source)
    shaped = contiguous(tuple(slices.shape), g.dtype, g.device)
    shaped = geometry(shaped.shape, shaped.strides, values._geom.offset, g.dtype, g.device)
    axes = tuple(range(len(slices.shape)))
    plan = runtime.cann().op("aclnnStridedSliceAssignV2").plan(
        spec_of(base), spec_of(shaped), tuple(slices.begin), tuple(slices.end),
        tuple(slices.step), axes,
    )  # fmt: skip
    stream = runtime.current_stream(g.device.index)
    plan.launch(stream, (dest._storage.memory.address, values._storage.memory.address))


def linear_index(g: Geometry) -> Tensor:
    """Where each element of `g` lies in its storage, as an int64 tensor of `g`'s shape."""
    index: Any = aten.full((), g.offset, dtype=int64, device=g.device)
    for d, (n, stride) in enumerate(zip(g.shape, g.strides, strict=True)):
        if stride == 0:  # an expanded dimension: every step is to the same element
            continue
        steps = aten.arange(0, n * stride, stride, dtype=int64, device=g.device)
        shape = [1] * g.ndim
        shape[d] = n
        index = aten.add(index, aten.view(steps, tuple(shape)))
    return aten.contiguous(aten.expand(index, g.shape))


def _assign_indices(dest: Tensor, source: Tensor) -> None:
    g = dest._geom
    flat = wrap(contiguous((g.extent,), g.dtype, g.device), dest._storage)
    index = below_autograd(linear_index)(g)
    values = transfer._packed(source)
    plan = (
        runtime.cann()
        .op("aclnnIndexPutImpl")
        .plan(spec_of(flat._geom), (spec_of(index._geom),), spec_of(values._geom), False, False)
    )
    addresses = [t._storage.memory.address for t in (flat, index, values)]
    plan.launch(runtime.current_stream(g.device.index), addresses)
