"""Owns Tensor's methods about sparse layouts: what an ordinary tensor has of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from .._compat.argument_errors import parsed
from .publish import attach

# Their functions are loaded when one is first called: few programs do.
_NAMES = (
    "_dimI", "_dimV", "_embedding_sparse_backward", "_indices", "_nnz", "_to_sparse", "_values",
    "ccol_indices", "coalesce", "col_indices", "crow_indices", "dense_dim", "indices",
    "is_coalesced", "row_indices", "smm", "sparse_dim", "sparse_mask", "sspaddmm", "to_dense",
    "to_sparse", "to_sparse_bsc", "to_sparse_bsr", "to_sparse_coo", "to_sparse_csc",
    "to_sparse_csr", "values",
)  # fmt: skip


def _method(name: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        handlers = importlib.import_module(f"{_ROOT}.sparse._tensor").HANDLERS
        importlib.import_module(f"{_ROOT}.sparse")
        return handlers[name](self, *args, **kwargs)

    call.__doc__ = f"torch.Tensor.{name}."
    return parsed(name, method=True)(call)


_ROOT = __package__.rpartition(".")[0]
for _name in _NAMES:
    attach(_name, _method(_name))
