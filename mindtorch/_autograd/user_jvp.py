"""Owns forward-mode derivatives of users' Functions: what their `jvp` says of the outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from .._tensor.dtype import FLOAT
from .._tensor.geometry import Geometry
from .._tensor.tensor import Tensor
from ..ops.spec import aten
from .codegen import edge
from .forward import refuse_sizes, set_tangent, tangent_of
from .node import Node

Jvp = Callable[..., object]


class FunctionCall(Protocol):
    """What is asked of the node of a Function's call."""

    materialize_grads: bool
    non_differentiable: set[int]
    dirty_tensors: tuple[object, ...]
    saved_for_forward: tuple[Any, ...]
    saved: object
    edges: Sequence[tuple[Node, int] | None]
    geoms: tuple[Geometry | None, ...]


def tangents_of(args: Sequence[Any]) -> list[Any]:
    """The tangent of each argument, None for one that has none."""
    return [tangent_of(a) if isinstance(a, Tensor) else None for a in args]


def run_jvp(jvp: Jvp, ctx: FunctionCall, tangents: list[Any], args: Sequence[Any]) -> list[Any]:
    """What the user's `jvp` says of the outputs; missing tangents are zeros if the node says so."""
    if ctx.materialize_grads:
        tangents = [
            aten.zeros_like(a) if t is None and isinstance(a, Tensor) else t
            for a, t in zip(args, tangents, strict=True)
        ]
    return _called(jvp, ctx, tangents)


def _called(jvp: Jvp, ctx: FunctionCall, tangents: Sequence[Any]) -> list[Any]:
    saved, ctx.saved = (
        ctx.saved,
        tuple(None if t is None else (t, t._storage.value, None) for t in ctx.saved_for_forward),
    )
    try:
        moved = jvp(ctx, *tangents)
    finally:
        ctx.saved = saved
    products = list(moved) if isinstance(moved, tuple | list) else [moved]
    for i, product in enumerate(products):
        if not (product is None or isinstance(product, Tensor)):
            kind = type(product).__name__
            raise RuntimeError(f"expected Variable or None (got {kind}) for grad output {i}.")
    return products


class Moving:
    """An argument, its tangent and the version of that before `jvp` runs."""

    def __init__(self, value: Any, tangent: Any):
        self.value, self.tangent = value, tangent
        self.version = None if tangent is None else tangent._storage.value

    def gives(self, out: Any) -> bool:
        """Whether an output is this argument, or a view of it or of its base."""
        if self.tangent is None:
            return False
        base = self.value if self.value._base is None else self.value._base
        return out is self.value or (out._base is not None and out._base is base)


def carry(
    ctx: FunctionCall, result: object, moved: list[Any], inputs: Sequence[Moving], raw: object
) -> None:
    """Give the outputs their tangents; RuntimeError in torch's words for those of other sizes.

    `raw` is what `forward` gave. Tangents of inputs that were written to, of views and of inputs
    as they are must be the same of theirs.
    """
    outs = result if isinstance(result, tuple) else (result,)
    raws = raw if isinstance(raw, tuple) else (raw,)
    if len(moved) != len(outs):
        raise RuntimeError(
            "Function's jvp returned an invalid number of forward gradients (expected"
            f" {len(outs)} but got {len(moved)})"
        )
    dirty = {id(t) for t in ctx.dirty_tensors}
    for i, (out, tangent, plain) in enumerate(zip(outs, moved, raws, strict=True)):
        if tangent is None:
            continue
        apart = id(plain) in ctx.non_differentiable or not isinstance(out, Tensor)
        if apart or out._geom.dtype.category < FLOAT:
            raise RuntimeError(
                f"Function's jvp returned a gradient at position {i}, but  the corresponding"
                " forward output is not a differentiable Tensor.You should return None at that"
                " position instead."
            )
        source = next((s for s in inputs if s.gives(plain)), None)
        if source is not None and id(plain) in dirty:
            if tangent is not source.tangent or tangent._storage.value == source.version:
                raise RuntimeError(_NOT_IN_PLACE)
        elif source is not None:
            _refuse_no_view(tangent, source.tangent)
        refuse_sizes(out, tangent)
        set_tangent(out, tangent)


_NOT_IN_PLACE = (
    "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward"
    " is modifying an input inplace, then the jvp function must modify the corresponding gradient"
    " inplace."
)


def _refuse_no_view(tangent: Tensor, source: Any) -> None:
    """RuntimeError in torch's words for the tangent of a view that is no view of its source's."""
    if tangent._base is None:
        raise RuntimeError(
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is not"
            " returning a view."
        )
    base = source if source._base is None else source._base
    if tangent._base is not base:
        which = "" if source._base is None else "same base as the "
        raise RuntimeError(
            "A custom Function is returning a view but the jvp is not returning a view of the"
            f" {which}given grad input."
        )


class Transposed(Node):
    """The vector-Jacobian product of a Function at vectors of zeros, whose gradient is its `jvp`.

    `torch.func.jvp` derives a product that is linear in its vectors by these.
    """

    def __init__(self, jvp: Jvp, ctx: FunctionCall, vectors: Sequence[Tensor]):
        super().__init__()
        self._jvp, self._ctx = jvp, ctx
        self.edges = tuple(edge(v) for v in vectors)
        self.outs = tuple(g for g, e in zip(ctx.geoms, ctx.edges, strict=True) if e is not None)

    def apply(self, grads: list[Any]) -> list[Any]:
        ctx, incoming = self._ctx, iter(grads)
        tangents = [None if e is None else next(incoming) for e in ctx.edges]
        if ctx.materialize_grads:
            tangents = [
                _zeros(geom) if geom is not None and tangent is None else tangent
                for geom, tangent in zip(ctx.geoms, tangents, strict=True)
            ]
        return _called(self._jvp, ctx, tangents)


def _zeros(geom: Geometry) -> Tensor:
    zeros: Tensor = aten.zeros(geom.shape, dtype=geom.dtype, device=geom.device)
    return zeros


def transposed(jvp: Jvp, ctx: FunctionCall, vectors: Sequence[Tensor]) -> list[Tensor | None]:
    """Zeros for each input of a Function's call, of which the derivative by `vectors` is known."""
    node = Transposed(jvp, ctx, vectors)
    results: list[Tensor | None] = [None] * len(ctx.edges)
    places = [i for i, e in enumerate(ctx.edges) if e is not None]
    for number, place in enumerate(places):
        value = _zeros(node.outs[number])
        value._fn, value._nr = node, number
        results[place] = value
    return results
