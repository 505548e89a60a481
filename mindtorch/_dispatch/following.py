"""Owns what the host knows of small whole numbers that a device computed from what it knows.

`torch.arange(n, device="npu") + 3` reads nothing that only the device has. Its values are computed
on the host once somebody asks for them, which is where an index seems to be out of range.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .._tensor.device import CPU
from .._tensor.device import device as Device
from .._tensor.dtype import INTEGER
from .._tensor.geometry import Geometry, geometry
from .._tensor.host_values import CAPTURES, MOST, HostCopy, host_copy
from .._tensor.storage import Storage
from .._tensor.tensor import Tensor, wrap
from .._tensor.types import Array
from ..ops.spec import Op

_LIMIT = 256
_plans: dict[Any, Any] = {}
_DEPTH = 16  # steps from what was copied: a counter's history is not kept


def follow(
    op: Op, args: tuple[Any, ...], outs: tuple[Any, ...], run: Callable[..., Any],
    reference: Callable[..., Any], inplace: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """`run`, whose result remembers what it was computed from where the host knows all of that.

    `reference(op, args)` is the plan of a call on the host; `inplace`: `run(dests, *args)` writes
    to the first argument, whose version is counted afterwards.
    """
    if not _is_followed(op, args, outs) or (inplace and args[0] is not outs[0]):
        return run
    places = tuple(i for i, a in enumerate(args) if a.__class__ is Geometry)

    def sources(values: tuple[Any, ...]) -> list[Any] | None:
        known = list(values)
        for i in places:
            copied = host_copy(values[i])
            if copied is None or copied.depth >= _DEPTH:
                return None
            known[i] = (values[i]._geom, copied)
        return None if CAPTURES else known

    def following(*values: Any) -> Any:
        result = run(*values)
        known = sources(values)
        if known is not None:
            _remember(result._storage, 0, op, known, reference)
        return result

    def following_inplace(dests: tuple[Tensor, ...], *values: Any) -> None:
        storage = dests[0]._storage
        known = sources(values) if dests[0]._geom is args[0] else None
        run(dests, *values)
        if known is not None:
            _remember(storage, 1, op, known, reference)

    return following_inplace if inplace else following


def _remember(
    storage: Storage, counts: int, op: Op, sources: list[Any], reference: Callable[..., Any]
) -> None:
    """Keep what computes a storage's values once they are asked for, as of its version then."""
    depth = max((s[1].depth + 1 for s in sources if _is_source(s)), default=0)
    compute = partial(_computed, op, sources, reference)
    storage.host_copy = HostCopy(storage.memory, storage.value + counts, compute, depth)


def _is_source(value: Any) -> bool:
    return value.__class__ is tuple and len(value) == 2 and value[1].__class__ is HostCopy


def _is_followed(op: Op, args: tuple[Any, ...], outs: tuple[Any, ...]) -> bool:
    """Whether a row makes one small tensor of whole numbers of nothing but such tensors."""
    if len(outs) != 1 or outs[0].__class__ is not Geometry or outs[0].device.type != "npu":
        return False
    if op.kernels.cpu is None or op.testing.tolerance == "random":
        return False
    flat = [a for a in (*outs, *args) if a.__class__ in (Geometry, tuple)]
    small = all(
        g.__class__ is Geometry and g.dtype.category == INTEGER and 0 < g.numel <= MOST
        for g in flat
        if not (g.__class__ is tuple and all(isinstance(n, int) for n in g))
    )
    return small and outs[0].contiguous


def _computed(op: Op, sources: list[Any], reference: Callable[..., Any]) -> Array:
    args = tuple(_on_host(s) for s in sources)
    key = (op.name, *((a.__class__, getattr(a, "_geom", a)) for a in args))
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) >= _LIMIT:
            _plans.clear()
        plan = _plans[key] = reference(op, args)
    result: Array = plan.run(*args)._array
    return result


def _on_host(source: Any) -> Any:
    if isinstance(source, Device):
        return CPU
    if _is_source(source):
        g, copied = source
        return wrap(geometry(g.shape, g.strides, g.offset, g.dtype, CPU), Storage(copied.values))
    return source
