"""Owns what happens on the device before a launch: casts, numbers and host scalars brought there.

A cast is aclnnCast; a number becomes a 0-d tensor by aclnnInplaceFillScalar, whose value travels as
aclScalar: no host memory is copied and nothing waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aclnn_bindings import ScalarSpec

from ..._tensor.geometry import Geometry
from ..._tensor.tensor import Tensor
from ..._tensor.types import Number
from . import runtime
from .binding import Preparation, spec_of
from .memory import allocate

_LIMIT = 256


def make_step(step: Preparation, geom: Geometry | None) -> Callable[[Any], Tensor]:
    """The function of one step; `geom` is the argument's own Geometry, None for a number."""
    if step.kind == "cast":
        assert geom is not None
        return cast(geom, step.geom)
    fill = filler(step.geom)
    if step.kind == "upload":
        return lambda t: fill(t._array.item())
    return fill


def cast(source: Geometry, target: Geometry) -> Callable[[Tensor], Tensor]:
    """`run(t)`: `t` of Geometry `source` as a new tensor of Geometry `target`."""
    assert source.device.index is not None
    index = source.device.index
    plan = (
        runtime.cann()
        .op("aclnnCast")
        .plan(spec_of(source), runtime.acl_dtype(target.dtype), spec_of(target))
    )

    def run(tensor: Tensor) -> Tensor:
        cast_to = allocate(target)
        stream = runtime.current_stream(index)
        plan.launch(stream, (tensor._storage.memory.address, cast_to._storage.memory.address))
        return cast_to

    return run


def filler(geom: Geometry) -> Callable[[Any], Tensor]:
    """`run(number)`: a new tensor of Geometry `geom` filled with it."""
    assert geom.device.index is not None
    index = geom.device.index
    bound = runtime.cann().op("aclnnInplaceFillScalar")
    plans: dict[ScalarSpec, Any] = {}

    def run(number: Number) -> Tensor:
        scalar = ScalarSpec(number)
        plan = plans.get(scalar)
        if plan is None:
            if len(plans) >= _LIMIT:
                plans.clear()
            plan = plans[scalar] = bound.plan(spec_of(geom), scalar)
        filled = allocate(geom)
        plan.launch(runtime.current_stream(index), (filled._storage.memory.address,))
        return filled

    return run
