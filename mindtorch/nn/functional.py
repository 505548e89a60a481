"""Owns the names of torch.nn.functional; each is a row, its body for a composite of a layer."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .._functional.publish import LAYERS, layer
from .._tensor.loading import load

load()

__all__ = sorted(LAYERS)
_OF_ATTENTION = (
    "_canonical_mask", "_in_projection", "_in_projection_packed", "_mha_shape_check",
    "_none_or_dtype",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'mindtorch.nn.functional' has no attribute '{name}'")
    function: Callable[..., Any]
    if name == "grad":
        return import_module("mindtorch.nn.grad")
    if name in _OF_ATTENTION:
        function = getattr(import_module("mindtorch.ops.rows.nn.attention"), name)
    elif name.endswith("_with_indices") and name not in LAYERS:
        pool = layer(name.removesuffix("_with_indices"))
        function = functools.partial(pool, return_indices=True)
    else:
        function = layer(name)
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return __all__
