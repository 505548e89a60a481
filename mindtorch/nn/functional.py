"""Owns the names of torch.nn.functional; each is a row, its body for a composite of a layer."""

from __future__ import annotations

import functools
import inspect
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
_GROUPED = ("ScalingType", "SwizzleType", "grouped_mm", "scaled_grouped_mm", "scaled_mm")
GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def assert_int_or_pair(arg: list[int], arg_name: str, message: str) -> None:
    """AssertionError of `message` for what is no whole number and no two."""
    if not (isinstance(arg, int) or len(arg) == 2):
        raise AssertionError(message.format(arg_name))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'mindtorch.nn.functional' has no attribute '{name}'")
    function: Callable[..., Any]
    if name == "grad":
        return import_module("mindtorch.nn.grad")
    if name in _OF_ATTENTION:
        function = getattr(import_module("mindtorch.ops.rows.nn.attention"), name)
    elif name in _GROUPED:
        function = getattr(import_module("mindtorch.nn._grouped"), name)
    elif name.endswith("_with_indices") and name not in LAYERS:
        pool = layer(name.removesuffix("_with_indices"))
        function = functools.partial(pool, return_indices=True)
        signature = inspect.signature(pool)
        vars(function)["__signature__"] = signature
    else:
        function = layer(name)
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return __all__
