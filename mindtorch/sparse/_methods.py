"""Owns where the handlers stand as methods of sparse tensors."""

from __future__ import annotations

from . import _gradients, _products
from ._tensor import HANDLERS, SparseTensor

_PROPERTIES = ("T", "mT", "mH", "data", "real", "imag")
# Tensor's own are left: they ask both operands, and a method of this name would hide that.
_OPERATORS = ("__radd__", "__rmul__", "__matmul__", "__rmatmul__")


def attach() -> None:
    """Give SparseTensor a method for each handler; those of products and gradients are put by
    their import."""
    assert _products.addmm is HANDLERS["addmm"]
    assert HANDLERS["_embedding_sparse_backward"] is _gradients.embedding_sparse_backward
    for name, handler in HANDLERS.items():
        if name in _PROPERTIES:
            setattr(SparseTensor, name, property(handler))
        elif name not in _OPERATORS:
            setattr(SparseTensor, name, handler)
