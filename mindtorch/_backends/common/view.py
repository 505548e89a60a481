"""Owns making views: a new Geometry over the same Storage, on any device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import ref

from ..._dtype import FLOAT
from ..._storage import add_view
from ..._tensor import Tensor

if TYPE_CHECKING:
    from ..._geometry import Geometry
    from ...ops.spec import Op

_make = object.__new__


def view_of(source: Tensor, geom: Geometry) -> Tensor:
    """A view of `source`: shares storage, version counter and base."""
    made = _make(Tensor)
    made._geom = geom
    made._storage = storage = source._storage
    made._fn = None
    made._nr = 0
    base = source._base
    made._base = source if base is None else base
    if geom.dtype.category >= FLOAT:
        add_view(storage, made)
    return made


def view_plan(op: Op, outs: tuple[Any, ...]) -> Callable[..., Any]:
    """The run of a view op: one tensor, or a tuple of them for ops with a list result."""
    if op.schema.returns[0].list:

        def run_many(source: Tensor, *_: Any) -> Any:
            return tuple([view_of(source, g) for g in outs])

        return run_many
    geom = outs[0]
    differentiable = geom.dtype.category >= FLOAT

    def run(source: Tensor, *_: Any) -> Tensor:
        made = _make(Tensor)
        made._geom = geom
        made._storage = storage = source._storage
        made._fn = None
        made._nr = 0
        base = source._base
        made._base = source if base is None else base
        if differentiable:
            views = storage.views
            if views is None:
                storage.views = [ref(made)]
            elif len(views) < 63:
                views.append(ref(made))
            else:
                add_view(storage, made)
        return made

    return run
