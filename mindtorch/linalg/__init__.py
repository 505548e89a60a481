"""Owns the names of torch.linalg; each is a row called linalg_name."""

from __future__ import annotations

from typing import Any

from .._dispatch.overloads import entry_of
from .._functional.publish import MATRICES
from .._tensor.loading import load
from ..ops.rows.matrix.decompositions import LinAlgError as LinAlgError

load()

__all__ = sorted({*MATRICES, "LinAlgError"})


def __getattr__(name: str) -> Any:
    if name not in MATRICES:
        raise AttributeError(f"module 'mindtorch.linalg' has no attribute '{name}'")
    function = globals()[name] = entry_of(MATRICES[name], "function", f"linalg_{name}")
    return function


def __dir__() -> list[str]:
    return __all__
