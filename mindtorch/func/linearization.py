"""Owns linearize: a function's derivative at a place, as a graph whose constant part runs once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._autograd.forward import refuse_whole
from .._tensor.tensor import Tensor
from ..ops.namespaces import namespace
from ..utils._pytree import tree_flatten, tree_map_only, tree_unflatten
from ._batched import BatchedTensor
from .derivatives import jvp

_IN_BATCHES = (
    "Batching rule not implemented for aten::_make_dual; the fallback path doesn't work on out= or"
    " view ops."
)


def linearize(func: Callable[..., Any], *primals: Any) -> Any:
    """`func(*primals)`, and the function of tangents that is its derivative there.

    RuntimeError inside `vmap`, and for tangents of another structure, shape, device or dtype than
    the primals'.
    """
    from ..fx.experimental.const_fold import split_const_subgraphs
    from ..fx.experimental.proxy_tensor import make_fx

    alias = namespace("aten").alias.default
    leaves, spec = tree_flatten(primals)
    refuse_whole("primal", *leaves)
    if any(isinstance(leaf, BatchedTensor) for leaf in leaves):
        raise RuntimeError(_IN_BATCHES)
    value = func(*primals)
    value_spec = tree_flatten(value)[1]

    def derivative(*tangents: Any) -> list[Any]:
        places = tree_unflatten([alias(leaf) for leaf in leaves], spec)
        product = jvp(func, places, tree_unflatten(tangents, spec))[1]
        return tree_flatten(product)[0]

    zeros = tree_map_only(Tensor, lambda p: p.new_zeros(p.shape), leaves)
    graph = split_const_subgraphs(make_fx(derivative)(*zeros))

    def product(*tangents: Any) -> Any:
        moved, its_spec = tree_flatten(tangents)
        if its_spec != spec:
            raise RuntimeError(
                f"Expected the tangents {its_spec} to have the same argspec as the primals {spec}"
            )
        for i, (tangent, leaf) in enumerate(zip(moved, leaves, strict=True)):
            for what in ("shape", "device", "dtype"):
                its, expected = getattr(tangent, what), getattr(leaf, what)
                if its != expected:
                    raise RuntimeError(
                        f"tangent:{i} with {what} {its} in flattened pytree doesn't match the"
                        f" {what} {expected} of the corresponding primal."
                    )
        return tree_unflatten(graph(*moved), value_spec)

    return value, product
