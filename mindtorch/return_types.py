"""Owns the names of torch.return_types: one structure sequence for each row with named results."""

from __future__ import annotations

from typing import Any

from ._tensor.loading import load
from .ops.returns import by_name

load()


def __getattr__(name: str) -> Any:
    kind = None if name.startswith("__") else by_name(name)
    if kind is None:
        raise AttributeError(f"module 'mindtorch.return_types' has no attribute '{name}'")
    globals()[name] = kind
    return kind
