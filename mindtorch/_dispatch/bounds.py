"""Owns the check of values before a launch on a device, whose kernels tell late of a wrong one.

It looks at what the host knows (`host_values`) and waits for nothing. Where a row's `bounds` do not
hold, its cpu kernel says so in torch's words, with zeros for what only the device has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._tensor.device import CPU
from .._tensor.geometry import Geometry, geometry
from .._tensor.host_values import host_copy, host_values
from .._tensor.storage import Storage
from .._tensor.tensor import Tensor, wrap
from ..ops.spec import Op


def guard(
    op: Op, args: tuple[Any, ...], run: Callable[..., Any], reference: Callable[..., Any],
    ahead: int = 0,
) -> Callable[..., Any]:  # fmt: skip
    """`run`, after a check of the indices where these Geometries have any to check.

    `reference(op, args)` is the plan of a call on the host; `ahead`: how many arguments of `run`
    stand in front of those of the row.
    """
    bounds = op.kernels.bounds
    types = {g.device.type for g in args if g.__class__ is Geometry}
    if bounds is None or not types - {"cpu", "meta"}:
        return run
    limits = [limit for limit in bounds(*args) if _at(args, limit[0]).numel]
    if not limits:
        return run

    def check(*values: Any) -> None:
        for place, low, high, *ignored in limits:
            index = _at(values, place)
            copied = host_copy(index)
            if low < high and copied is not None and copied.within(low, high):
                continue
            if low == high or _leaves(index, low, high, ignored):
                hosts = tuple(_host(value) for value in values)
                reference(op, hosts).run(*hosts)  # which raises
                return

    def checked(*values: Any) -> Any:
        check(*values[ahead:])
        return run(*values)

    place, low, high, *_ = limits[0]
    if len(limits) > 1 or low == high or _at(args, place).device.type == "cpu":
        return checked
    at, item = (place, None) if isinstance(place, int) else place
    at += ahead

    def guarded(*values: Any) -> Any:
        index = values[at] if item is None else values[at][item]
        known = getattr(index._storage, "host_copy", None)
        if known is None or (low <= known.lowest and known.highest < high):
            return run(*values)  # without a look at what was written since: that is not known
        return checked(*values)

    return guarded


def _at(values: tuple[Any, ...], place: int | tuple[int, int]) -> Any:
    return values[place] if isinstance(place, int) else values[place[0]][place[1]]


def _leaves(index: Tensor, low: float, high: float, ignored: list[int]) -> bool:
    known = host_values(index)
    if known is None:
        return False
    values = known._array
    outside = ~((values >= low) & (values < high))
    return bool((outside & ~np.isin(values, ignored)).any())


def _host(value: Any) -> Any:
    if value.__class__ is tuple:
        return tuple(_host(v) for v in value)
    if not isinstance(value, Tensor):
        return value
    g = value._geom
    known = host_values(value)
    if known is not None:
        return known
    zero = Storage(np.zeros(1, g.dtype.np))
    return wrap(geometry(g.shape, (0,) * g.ndim, 0, g.dtype, CPU), zero)
