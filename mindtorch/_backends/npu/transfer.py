"""Owns copies to and from npu tensors: across devices, dtypes and layouts.

On one device: a memory copy where both sides are contiguous and alike, else aclnnInplaceCopy, which
casts and follows strides. Host copies wait for the stream, as torch's do for pageable memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._tensor.device import CPU
from ..._tensor.geometry import Geometry, contiguous
from ..._tensor.tensor import Tensor, adopt
from ..._tensor.types import Array
from ...ops.rules import data_dependent
from ..cpu import backend as cpu
from . import memory, runtime
from .binding import spec_of

_LIMIT = 4096
_plans: dict[tuple[Geometry, Geometry], Any] = {}


def copy(dest: Tensor, source: Tensor) -> None:
    """Write `source` to `dest`, one of which is on an npu; `source` broadcasts."""
    to, of = dest._geom.device, source._geom.device
    if "meta" in (to.type, of.type):
        raise data_dependent(NotImplementedError("Cannot copy out of meta tensor; no data!"))
    if to is of:
        _same_device(dest, source)
    elif to.type == "cpu":
        _to_host(dest, source)
    elif of.type == "cpu":
        _from_host(dest, source)
    else:
        # Between devices through the host: peer access needs setting up on real machines.
        _from_host(dest, on_host(source))


def _same_device(dest: Tensor, source: Tensor) -> None:
    g, s = dest._geom, source._geom
    if g.contiguous and s.contiguous and g.dtype is s.dtype and g.shape == s.shape:
        if dest._storage is not source._storage or g.offset != s.offset:
            memory.on_device(dest, source)
        return
    plan = _plans.get((g, s))
    if plan is None or not plan.valid:
        if len(_plans) >= _LIMIT:
            _plans.clear()
        plan = runtime.cann().op("aclnnInplaceCopy").plan(spec_of(g), spec_of(s))
        _plans[g, s] = plan
    stream = runtime.current_stream(g.device.index)
    plan.launch(stream, (dest._storage.memory.address, source._storage.memory.address))


def _packed(source: Tensor) -> Tensor:
    """`source` itself if it is contiguous, else a contiguous copy on its device."""
    geom = source._geom
    if geom.contiguous:
        return source
    packed = memory.allocate(contiguous(geom.shape, geom.dtype, geom.device))
    _same_device(packed, source)
    return packed


def host_copy(source: Tensor) -> Array:
    """The elements as a new numpy array; waits for the stream."""
    return memory.to_host(_packed(source))


def on_host(source: Tensor) -> Tensor:
    return adopt(contiguous(source._geom.shape, source._geom.dtype, CPU), host_copy(source))


def _to_host(dest: Tensor, source: Tensor) -> None:
    cpu.copy(dest, on_host(source))


def _from_host(dest: Tensor, source: Tensor) -> None:
    g = dest._geom
    if source._geom.dtype is g.dtype and g.contiguous:
        array = np.ascontiguousarray(np.broadcast_to(source._array, g.shape))
        memory.from_host(dest, array)
        return
    array = np.ascontiguousarray(source._array).reshape(source._geom.shape)
    staged = memory.allocate(contiguous(source._geom.shape, source._geom.dtype, g.device))
    memory.from_host(staged, array)
    _same_device(dest, staged)
