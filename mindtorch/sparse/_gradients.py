"""Owns sparse gradients of tables: how they are made, and how they are added to what is dense."""

from __future__ import annotations

from typing import Any

import mindtorch

from .._functional.queries import sparse_coo
from .._tensor.tensor import Tensor
from ._convert import arange, flat, unflat
from ._functions import handles
from ._tensor import HANDLERS, SparseTensor, make


@handles("_embedding_sparse_backward")
def embedding_sparse_backward(
    self: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> SparseTensor:
    """A gradient `[*, d]` of looked-up rows as a table `[num_weights, d]` of those rows.

    An index that comes twice has two rows. RuntimeError for rows scaled by frequency, as in torch.
    """
    if scale_grad_by_freq:
        raise RuntimeError(
            "embedding_backward: scale_grad_by_freq not supported with sparse gradients"
        )
    size = self.shape[-1]
    where, rows = indices.reshape(-1), self.reshape(indices.numel(), size)
    if padding_idx != -1:
        rows_left = (where != padding_idx).nonzero().reshape(-1)
        where, rows = where.index_select(0, rows_left), rows.index_select(0, rows_left)
    places = where.reshape(1, -1).to(mindtorch.int64)
    return make(sparse_coo, (places,), rows, (num_weights, size))


@handles("_first_of_each")
def first_of_each(gradient: SparseTensor) -> SparseTensor:
    """Each place once: what came for a place that is listed twice is the same both times."""
    sizes = gradient.shape[: gradient._parts[0].shape[0]]
    places = flat(gradient._parts[0], sizes)
    numbers, where = mindtorch.unique(places, sorted=True, return_inverse=True)
    at = mindtorch.zeros_like(numbers).scatter_(0, where, arange(len(where), where.device))
    values = gradient._vals.index_select(0, at)
    return make(sparse_coo, (unflat(numbers, sizes),), values, gradient.shape, True)


def _into_rows(name: str, sign: int) -> Any:
    """The writing sum: only the rows of a dense `self` that the other has are touched."""
    whole = HANDLERS[name]

    def run(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
        table = isinstance(other, SparseTensor) and other._layout is sparse_coo
        if isinstance(self, SparseTensor) or not table or self.shape != other.shape:
            return whole(self, other, alpha=alpha)
        if other._parts[0].shape[0] != 1 or self.dtype is not other.dtype:
            return whole(self, other, alpha=alpha)
        self.index_add_(0, other._parts[0][0], other._vals, alpha=sign * alpha)
        return self

    return run


for _name, _sign in (("add_", 1), ("sub_", -1)):
    HANDLERS[_name] = _into_rows(_name, _sign)
