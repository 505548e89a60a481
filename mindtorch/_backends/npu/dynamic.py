"""Owns launches whose result's shape the device decides: room is allocated, the shape asked after.

aclGetViewShape tells the shape that the operator left in its output descriptor (aclnnNonzero
document); it is known only when the stream has run, so these wait, as torch's do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aclnn_bindings import launch_dynamic

from ..._tensor.device import device as Device
from ..._tensor.geometry import contiguous, contiguous_strides, geometry
from ..._tensor.tensor import Tensor, wrap
from ...ops.rules import Dynamic
from ...ops.spec import Op
from . import memory, runtime, transfer
from .binding import Binder


def dynamic(
    op: Op, args: Sequence[Any], outs: Sequence[Dynamic], device: Device
) -> Callable[..., Any]:
    """`run(*args)` of an op with results of unknown shape."""
    rooms = tuple(contiguous(o.room, o.dtype, device) for o in outs)
    binding = Binder(op, args, rooms, device).bind(rooms)

    def run(*values: Any) -> Any:
        rooms_full = [memory.allocate(room) for room in rooms]
        addresses = []
        for kind, i in binding.addresses:
            addresses.append((rooms_full if kind == "d" else values)[i]._storage.memory.address)
        shapes = launch_dynamic(
            runtime.cann().runtime, binding.bound, binding.arguments, addresses,
            runtime.current_stream(device.index),
        )  # fmt: skip
        order = [i for kind, i in binding.addresses if kind == "d"]
        by_output = dict(zip(order, shapes[-len(order) :], strict=True))
        fitted = tuple(_fitted(rooms_full[i], by_output[i], out) for i, out in enumerate(outs))
        return fitted[0] if len(op.schema.returns) == 1 else fitted

    return run


def _fitted(room: Tensor, shape: tuple[int, ...], out: Dynamic) -> Tensor:
    """The elements in a tensor of their own, of the layout that the op's rule says."""
    geom = room._geom
    shaped = wrap(
        geometry(shape, contiguous_strides(shape), 0, geom.dtype, geom.device), room._storage
    )
    packed = memory.allocate(out.geometry(shape))
    transfer.copy(packed, shaped)
    return packed
