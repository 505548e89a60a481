"""Owns functionalize: mutating ops as their pure op plus writeback.

Inside `functionalize()` every in-place or `out=` call runs its functional op, through autograd,
and its result is written back to the tensor that the call names: through the view's geometry on
cpu, by the device's own slice or index writes on npu, as metadata only on meta.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .._autograd.grad_mode import LOCAL, MODES, ContextDecorator
from .._autograd.layer import autograd_inplace
from .._backends.registry import registry
from .._tensor.tensor import Tensor
from ..ops.spec import OPS, Op
from . import plans


class functionalize(ContextDecorator):  # noqa: N801 - the source documents' name
    """Run mutating ops as pure ops plus writeback, inside this context."""

    def steps(self) -> Iterator[None]:
        before = LOCAL.functionalize
        try:
            MODES.active += 1
            LOCAL.functionalize = before + 1
            yield
        finally:
            LOCAL.functionalize = before
            MODES.active -= 1


def functionalize_inplace(op: Op, args: Sequence[Any]) -> Tensor:
    """The FUNCTIONALIZE layer: `op` on the arguments, then write back to the first of them."""
    target: Tensor = args[0]
    result = op.entry("aten")(*args)
    return write_back(op, target, result)


def _unused(*_: object) -> None:
    """The run of a plan that only carries metadata."""


def write_back(op: Op, target: Tensor, result: Tensor) -> Tensor:
    """Make `target` hold `result`, its history included; shapes were checked by `op`'s rule."""
    copy = OPS["copy"]
    state = LOCAL.functionalize
    LOCAL.functionalize = 0
    try:
        plan = plans.CallPlan(_unused, plans.geometries((target, result, False)), (target._geom,))

        def write() -> None:
            registry.backend(target._geom.device).write_back(op, target, result)
            target._storage.value += 1

        return autograd_inplace(copy, plan, (target, result, False), write)
    finally:
        LOCAL.functionalize = state
