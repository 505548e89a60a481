"""Owns forward-mode derivatives of users' Functions: what their `jvp` says of the outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

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


def carry(result: object, moved: list[Any]) -> None:
    """Give the outputs their tangents; RuntimeError in torch's words for those of other sizes."""
    outs = result if isinstance(result, tuple) else (result,)
    if len(moved) != len(outs):
        raise RuntimeError(
            "Function's jvp returned an invalid number of forward gradients (expected"
            f" {len(outs)} but got {len(moved)})"
        )
    for out, tangent in zip(outs, moved, strict=True):
        if tangent is not None and isinstance(out, Tensor):
            refuse_sizes(out, tangent)
            set_tangent(out, tangent)


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
