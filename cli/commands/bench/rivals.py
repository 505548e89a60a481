"""Owns the other side of a comparison: torch or numpy on the CPU, or a stored baseline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from mindtorch.ops import Op
from mindtorch.testing.placement import from_host

from ...conformance.cases.recipe import Recipe, Slot
from ...conformance.run.tensors import call
from ...foreign import parsed, text_of
from .statistics import TimeSpread, from_json

BASELINE: Final = "mindtorch-npu/bench/1"


class NoRivalError(LookupError):
    """The other side does not have this op, or is not installed; the message says which."""


def in_torch(op: Op, recipe: Recipe) -> Callable[[], Any]:
    """The call in torch on the CPU; NoRivalError where torch has no function of that name."""
    try:
        import torch
    except ImportError:
        raise NoRivalError("torch is not installed") from None
    name = op.base_name
    function = _function(torch, name) or _function(torch, name.strip("_"))
    if function is None:
        raise NoRivalError(f"torch has no function {name}")

    def tensor(slot: Slot) -> Any:
        kind = getattr(torch, slot.arg.dtype)
        if slot.arg.dtype == "bfloat16":
            return torch.from_numpy(slot.array.astype(np.float32)).to(kind)
        return torch.from_numpy(np.ascontiguousarray(slot.array)).to(kind)

    args, _ = recipe.fill(tensor)
    kwargs = {k: getattr(torch, v) if k == "dtype" else v for k, v in recipe.kwargs.items()}
    return _checked(lambda: function(*args, **kwargs), f"torch.{name}")


def _function(torch: ModuleType, name: str) -> Any:
    function = getattr(torch, name, None) or getattr(torch.nn.functional, name, None)
    return function if callable(function) else None


def in_numpy(op: Op, recipe: Recipe) -> Callable[[], Any]:
    """The row's own reference on the CPU, which is numpy."""
    args, kwargs = recipe.fill(lambda slot: from_host(slot.array))
    return _checked(lambda: call(op, args, kwargs), f"the reference of {op.name}")


def _checked(run: Callable[[], Any], what: str) -> Callable[[], Any]:
    try:
        run()
    except Exception as error:
        raise NoRivalError(f"{what} refuses these arguments: {error}") from None
    return run


def baseline(path: Path) -> dict[str, dict[str, TimeSpread]]:
    """Times by workload name and kind of a stored run; NoRivalError for another file."""
    try:
        data = parsed(text_of(path))
    except (OSError, ValueError) as error:
        raise NoRivalError(f"{path}: no baseline: {error}") from None
    if not isinstance(data, dict) or data.get("schema") != BASELINE:
        raise NoRivalError(f"{path}: no baseline: schema must be {BASELINE}, "
                           "which --json writes for one device")  # fmt: skip
    try:
        return {
            str(row["name"]): {kind: from_json(t) for kind, t in row["times"].items()}
            for row in data["results"]
        }
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise NoRivalError(f"{path}: a result is none of ours: {error!r}") from None
