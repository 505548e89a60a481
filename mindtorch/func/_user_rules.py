"""Owns how rules that users write for vmap are called: on whole batches, with their dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .._autograd.function import BY_RULE
from .._autograd.grad_mode import LOCAL
from .._tensor.tensor import Tensor
from ..ops.spec import aten
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from ._batched import BatchedTensor, at, batched, innermost, sizes


class VmapInfo(NamedTuple):
    """What a rule is told of the vmap that it runs under."""

    batch_size: int
    randomness: str


def by_rule(
    rule: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any] | None = None
) -> Any:
    """`rule(info, in_dims, *args)` on the batches of the innermost vmap, its results batched."""
    named = dict(kwargs or {})
    level = innermost((*args, *named.values()))
    info = VmapInfo(sizes((*args, *named.values()), level), LOCAL.randomness)
    dims = tuple(_dim(a, level) for a in args)
    returned = rule(
        info, dims, *(_whole(a, level) for a in args),
        **{k: _whole(v, level) for k, v in named.items()},
    )  # fmt: skip
    if not (isinstance(returned, tuple) and len(returned) == 2):
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with"
            f" pytree structure compatible with the output. Got a {type(returned)} instead"
        )
    result, out_dims = returned
    leaves, spec = tree_flatten(result)
    places = _broadcast_to_and_flatten(out_dims, spec)
    if places is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims)"
            f" tuple. Expected out_dims={out_dims} to be compatible with the structure of `output`."
            f" out_dims has structure {tree_flatten(out_dims)[1]} but output has structure {spec}."
            " For more details, please see"
            " https://pytorch.org/docs/main/notes/extending.func.html"
        )
    return tree_unflatten(
        [
            value if dim is None or not isinstance(value, Tensor)
            else batched(aten.movedim(value, dim, 0), level)
            for value, dim in zip(leaves, places, strict=True)
        ],
        spec,
    )  # fmt: skip


def _as_passed(value: BatchedTensor) -> tuple[Tensor, int]:
    """The whole batch and its dimension: as vmap was given them, in front for what came of them."""
    source, dim = vars(value).get("_source", (value._value, 0))
    if dim:
        moved, whole = aten.movedim(source, dim, 0)._geom, value._value._geom
        if (moved.shape, moved.strides, moved.offset) != (
            whole.shape, whole.strides, whole.offset
        ):  # fmt: skip
            return value._value, 0
    return source, dim


def _dim(value: object, level: int) -> object:
    if isinstance(value, list | tuple):
        return type(value)(_dim(v, level) for v in value)
    return _as_passed(value)[1] if isinstance(value, BatchedTensor) and at(value, level) else None


def _whole(value: object, level: int) -> object:
    if isinstance(value, list | tuple):
        return type(value)(_whole(v, level) for v in value)
    return _as_passed(value)[0] if isinstance(value, BatchedTensor) and at(value, level) else value


BY_RULE["level"], BY_RULE["call"] = innermost, by_rule
