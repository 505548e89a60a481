"""Owns making views: a new Geometry over the same Storage, on any device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import ref

from ..._tensor.dtype import FLOAT
from ..._tensor.slots import over
from ..._tensor.storage import add_view
from ..._tensor.tensor import Tensor

if TYPE_CHECKING:
    from ..._tensor.geometry import Geometry
    from ...ops.spec import Op


def view_of(source: Tensor, geom: Geometry) -> Tensor:
    """A view of `source`: shares storage, version counter and base."""
    storage, base = source._storage, source._base
    view = over(geom, storage, source if base is None else base)
    if geom.dtype.category >= FLOAT:
        add_view(storage, view)
    return view


def view_plan(op: Op, outs: tuple[Any, ...]) -> Callable[..., Any]:
    """The run of a view op: one tensor, or a tuple of them for ops with a list result."""
    if op.schema.returns[0].list:

        def run_many(source: Tensor, *_: object) -> tuple[Tensor, ...]:
            return tuple([view_of(source, g) for g in outs])

        return run_many
    geom = outs[0]
    if op.writes.unbounded:
        return _bounded(geom)
    differentiable = geom.dtype.category >= FLOAT

    def run(source: Tensor, *_: object) -> Tensor:
        storage, base = source._storage, source._base
        view = over(geom, storage, source if base is None else base)
        if differentiable:
            views = storage.views
            if views is None:
                storage.views = [ref(view)]
            elif len(views) < 63:
                views.append(ref(view))
            else:
                add_view(storage, view)
        return view

    return run


def _bounded(geom: Geometry) -> Callable[..., Any]:
    """The run of a view that says its own geometry: RuntimeError past the end of the storage."""
    places = sum((n - 1) * s for n, s in zip(geom.shape, geom.strides, strict=True))
    need = (geom.offset + places + 1) * geom.dtype.itemsize if geom.numel else 0

    def run(source: Tensor, *_: object) -> Tensor:
        if need > source._storage.nbytes:
            raise RuntimeError(
                f"setStorage: sizes {list(geom.shape)}, strides {list(geom.strides)}, storage"
                f" offset {geom.offset}, and itemsize {geom.dtype.itemsize} requiring a storage"
                f" size of {need} are out of bounds for storage of size {source._storage.nbytes}"
            )
        return view_of(source, geom)

    return run
