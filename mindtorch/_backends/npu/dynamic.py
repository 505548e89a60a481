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
        held = [memory.allocate(room) for room in rooms]
        addresses = []
        for kind, i in binding.addresses:
            addresses.append((held if kind == "d" else values)[i]._storage.memory.address)
        shapes = launch_dynamic(
            runtime.cann().runtime, binding.bound, binding.arguments, addresses,
            runtime.current_stream(device.index),
        )  # fmt: skip
        order = [i for kind, i in binding.addresses if kind == "d"]
        found = dict(zip(order, shapes[-len(order) :], strict=True))
        made = tuple(_fitted(held[i], found[i], out) for i, out in enumerate(outs))
        return made[0] if len(op.schema.returns) == 1 else made

    return run


def _fitted(held: Tensor, shape: tuple[int, ...], out: Dynamic) -> Tensor:
    """The elements in a tensor of their own, of the layout that the op's rule says."""
    geom = held._geom
    found = wrap(
        geometry(shape, contiguous_strides(shape), 0, geom.dtype, geom.device), held._storage
    )
    made = memory.allocate(out.geometry(shape))
    transfer.copy(made, found)
    return made
