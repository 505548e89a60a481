"""Owns how a batch is cut into parts, and how parts make one again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindtorch

from ..._tensor.tensor import Tensor
from ...utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]


class TensorChunkSpec:
    """A tensor is cut along `split_dim`."""

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        kind = type(self)
        return (
            f"{kind.__module__.replace('mindtorch', 'torch', 1)}.{kind.__name__}({self.split_dim})"
        )

    def __str__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]) -> Any:
        """One for each of the dimensions."""
        return tree_map(TensorChunkSpec, chunk_dims)

    from_dict = from_tuple


class _Replicate:
    """Every part has the value."""


def _default(value: object) -> TensorChunkSpec | _Replicate:
    return TensorChunkSpec(0) if isinstance(value, Tensor) else _Replicate()


def _cut(values: dict[Any, Any], specs: Any, chunks: int) -> list[dict[Any, Any]]:
    """Dicts of the parts; fewer where a tensor has fewer elements along its dimension."""
    if not values:
        return [{} for _ in range(chunks)]
    if len(values) != len(specs):
        raise AssertionError(
            f"args_dict.keys() = {list(values)} args_chunk_spec.keys() = {list(specs)}"
        )
    flat, form = tree_flatten(values)
    kinds = tree_flatten(specs)[0]
    count = chunks
    for value, kind in zip(flat, kinds, strict=True):
        if isinstance(kind, _Replicate) or kind is _Replicate:
            continue
        if not isinstance(value, Tensor):
            raise ValueError(f"Unsupported chunk spec: {kind} and value: {value} combination.")
        if not isinstance(kind, TensorChunkSpec):
            raise AssertionError(f"Expected TensorChunkSpec, got {type(kind)}")
        count = min(count, value.size(kind.split_dim))
    columns = []
    for value, kind in zip(flat, kinds, strict=True):
        if not isinstance(kind, TensorChunkSpec):
            columns.append([value] * count)
            continue
        columns.append(list(mindtorch.tensor_split(value, count, kind.split_dim)))
        if value.requires_grad and value.is_leaf:
            for part in columns[-1]:
                part.retain_grad()
    return [tree_unflatten(list(row), form) for row in zip(*columns, strict=True)]


def split_args_kwargs_into_chunks(
    args: tuple[Any, ...], kwargs: dict[str, Any] | None, chunks: int, args_chunk_spec: Any = None,
    kwargs_chunk_spec: Any = None,
) -> tuple[list[tuple[Any, ...]], list[dict[str, Any]]]:  # fmt: skip
    """(positional arguments, named ones) of each part; tensors are cut along their first dimension
    where no spec says another, other values are there in each part."""
    named = kwargs or {}
    specs = tree_map(_default, args) if args_chunk_spec is None else args_chunk_spec
    named_specs = tree_map(_default, named) if kwargs_chunk_spec is None else kwargs_chunk_spec
    whole, whole_specs = dict(enumerate(args)), dict(enumerate(specs))
    parts = _cut(whole, whole_specs, chunks)
    named_parts = _cut(named, named_specs, len(parts))
    if len(named_parts) < len(parts):
        parts = _cut(whole, whole_specs, len(named_parts))
    return [tuple(part.values()) for part in parts], named_parts


def merge_chunks(chunks: Sequence[Any], chunk_spec: Any) -> Any:
    """Parts one after the other along their dimensions, the first for None; values that are not
    cut are one for all parts. ValueError for a part with other values than the spec,
    AssertionError for values that differ."""
    flat = [tree_flatten(chunk)[0] for chunk in chunks]
    if chunk_spec is None:
        form = tree_flatten(chunks[0])[1]
        kinds: list[Any] = [TensorChunkSpec(0)] * len(flat[0])
    else:
        kinds, form = tree_flatten(chunk_spec)
    for chunk, values in zip(chunks, flat, strict=True):
        if len(values) != len(kinds):
            raise ValueError(f"Chunk {chunk} did not match chunk spec {chunk_spec}")
    whole = []
    for kind, column in zip(kinds, zip(*flat, strict=True), strict=True):
        if isinstance(kind, TensorChunkSpec):
            whole.append(mindtorch.cat(list(column), kind.split_dim))
            continue
        other = next((value for value in column if value != column[0]), column[0])
        if other is not column[0]:
            raise AssertionError(f"Expected {column[0]}, got {other}")
        whole.append(column[0])
    return tree_unflatten(whole, form)
