"""Owns vmap: a function of one element, called for each of a batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .._tensor.tensor import Tensor
from ..ops.spec import aten
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """`func` over dimensions `in_dims` of its arguments; results are stacked at `out_dims`.

    Random draws differ from call to call ("different") whatever `randomness` says. ValueError for
    dimensions that do not fit the arguments.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got"
            f" {randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten(args)
        dims = _dims(func, in_dims, args, leaves, spec)
        size = _size(func, leaves, dims)
        named, named_spec = tree_flatten(kwargs)
        named_dims = [0 if isinstance(v, Tensor) else None for v in named]
        results = [
            func(
                *tree_unflatten(_at(leaves, dims, i), spec),
                **tree_unflatten(_at(named, named_dims, i), named_spec),
            )
            for i in range(size)
        ]
        return _stacked(func, results, out_dims)

    return inside


def _dims(func: Any, in_dims: Any, args: Any, leaves: list[Any], spec: Any) -> list[Any]:
    """For each leaf the dimension to map over, not negative, or None."""
    name = getattr(func, "__name__", repr(func))
    given = tuple(in_dims) if isinstance(in_dims, list) else in_dims
    flat = _broadcast_to_and_flatten(given, spec)
    if flat is None:
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the"
            " structure of `inputs`."
        )
    dims: list[Any] = []
    for leaf, dim in zip(leaves, flat, strict=True):
        if dim is None:
            dims.append(None)
            continue
        if not isinstance(leaf, Tensor):
            if isinstance(in_dims, int):
                dims.append(None)
                continue
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input"
                f" but the input is of type {type(leaf)}."
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for some input,"
                f" but that input is a Tensor of dimensionality {leaf.dim()} so expected in_dim to"
                f" satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}."
            )
        dims.append(dim % leaf.dim())
    return dims


def _size(func: Any, leaves: list[Any], dims: list[Any]) -> int:
    sizes = [t.shape[d] for t, d in zip(leaves, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError(
            f"vmap({getattr(func, '__name__', func)}): at least one input must be mapped over"
        )
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes"
            f" {sizes} for the mapped dimension"
        )
    return int(sizes[0])


def _at(leaves: list[Any], dims: list[Any], index: int) -> list[Any]:
    return [
        leaf if dim is None else aten.select(leaf, dim, index)
        for leaf, dim in zip(leaves, dims, strict=True)
    ]


def _stacked(func: Any, results: list[Any], out_dims: Any) -> Any:
    if not results:
        raise RuntimeError("vmap: the batch is empty, so the results' shapes are not known")
    rows = [tree_flatten(result) for result in results]
    spec = rows[0][1]
    dims = _broadcast_to_and_flatten(
        tuple(out_dims) if isinstance(out_dims, list) else out_dims, spec
    )
    if dims is None:
        raise ValueError(
            f"vmap({getattr(func, '__name__', func)}, ..., out_dims={out_dims}): out_dims is not"
            " compatible with the structure of `outputs`."
        )
    made = []
    for values, dim in zip(zip(*[leaves for leaves, _ in rows], strict=True), dims, strict=True):
        if not isinstance(values[0], Tensor):
            raise ValueError(
                f"vmap({getattr(func, '__name__', func)}, ...): `{func}` must only return Tensors,"
                f" got type {type(values[0])}."
            )
        made.append(values[0] if dim is None else aten.stack(values, dim))
    return tree_unflatten(made, spec)


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and buffers of models of one kind, stacked at dimension 0."""
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(kind: str) -> dict[str, Any]:
        tables = [dict(getattr(m, kind)()) for m in models]
        return {
            k: aten.stack([t[k].detach() for t in tables]).requires_grad_(v.requires_grad)
            for k, v in tables[0].items()
        }

    return stacked("named_parameters"), stacked("named_buffers")


__all__ = ["stack_module_state", "vmap"]
