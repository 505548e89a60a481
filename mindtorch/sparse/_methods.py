"""Owns where the handlers stand as methods of sparse tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._functional.queries import sparse_coo
from .._tensor.tensor import Tensor
from . import _gradients, _products
from ._functions import label_last
from ._tensor import HANDLERS, LAYOUT_NAMES, SparseTensor, refusal, refusal_of_places

_PROPERTIES = ("T", "mT", "mH", "data", "real", "imag")
# Tensor's own are left: they ask both operands, and a method of this name would hide that.
_OPERATORS = ("__radd__", "__rmul__", "__matmul__", "__rmatmul__")


# What torch calls the node of a result, where the last of ours is another.
_LABELS = {
    "coalesce": "CoalesceBackward0", "to_dense": "ToDenseBackward0", "t": "TBackward0",
    "T": "PermuteBackward0", "transpose": "TransposeBackward0", "permute": "PermuteBackward0",
    "mm": "MmBackward0", "sub": "SubBackward0", "div": "DivBackward0",
    "select": "SelectBackward0", "unsqueeze": "UnsqueezeBackward0", "to_sparse": "ToSparseBackward",
    "to_sparse_coo": "ToSparseBackward",
    "to_sparse_csr": "ToSparseCsrBackward0", "to_sparse_csc": "ToSparseCscBackward0",
    "to_sparse_bsr": "ToSparseBsrBackward0", "to_sparse_bsc": "ToSparseBscBackward0",
    "sparse_mask": "SparseMaskBackward0", "__getitem__": "SelectBackward0",
}  # fmt: skip


_BY_DIM = ("ToSparseBackward",)  # another overload where a dim is given


# What has no form for compressed rows and columns: the kernel that torch misses, or its words.
_LAYOUT, _STRIDES = "unsupported tensor layout: {}", "strides"
_COORDINATES_ONLY = {
    "sub": _LAYOUT, "subtract": _LAYOUT, "div": _LAYOUT, "divide": _LAYOUT, "true_divide": _LAYOUT,
    "floor_divide": _LAYOUT, "pow": _LAYOUT, "square": _LAYOUT, "unsqueeze": _STRIDES,
    "T": "as_strided", "permute": "as_strided", "movedim": "as_strided", "norm": "norm.out",
    "any": "any.all_out", "bmm": "bmm.out", "_values": "_values", "_indices": "_indices",
}  # fmt: skip


def _of_coordinates(handler: Callable[..., Any], lack: str) -> Callable[..., Any]:
    """The handler, refused for compressed rows and columns."""

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, SparseTensor) and self._layout is not sparse_coo:
            if lack is _LAYOUT:
                raise RuntimeError(lack.format(LAYOUT_NAMES[self._layout]))
            if lack is _STRIDES:
                raise refusal_of_places(self, lack)
            raise refusal(lack, self)
        return handler(self, *args, **kwargs)

    run.__name__ = run.__qualname__ = handler.__name__
    run.__doc__ = handler.__doc__
    return run


def _labelled(handler: Callable[..., Any], label: str) -> Callable[..., Any]:
    """The handler, whose new results have torch's name for their node."""

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = handler(self, *args, **kwargs)
        if isinstance(result, Tensor) and result.requires_grad:
            values = result._vals if isinstance(result, SparseTensor) else result
            before = self._vals if isinstance(self, SparseTensor) else self
            if values._fn is not before._fn:
                label_last(result, label + "10"[bool(args)] if label in _BY_DIM else label)
        return result

    run.__name__ = run.__qualname__ = handler.__name__
    run.__doc__ = handler.__doc__
    return run


def attach() -> None:
    """Give SparseTensor a method for each handler; those of products and gradients are put by
    their import."""
    assert _products.addmm is HANDLERS["addmm"]
    assert HANDLERS["_embedding_sparse_backward"] is _gradients.embedding_sparse_backward
    for name, label in _LABELS.items():
        HANDLERS[name] = _labelled(HANDLERS[name], label)
    for name, lack in _COORDINATES_ONLY.items():
        HANDLERS[name] = _of_coordinates(HANDLERS[name], lack)
    for name, handler in HANDLERS.items():
        if name in _PROPERTIES:
            setattr(SparseTensor, name, property(handler))
        elif name not in _OPERATORS:
            setattr(SparseTensor, name, handler)
