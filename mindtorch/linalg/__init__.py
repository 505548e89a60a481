"""Owns the names of torch.linalg; each is a row called linalg_name."""

from __future__ import annotations

from typing import Any

from .._functional.publish import module
from .._tensor.loading import load
from ..ops.rows.matrix.decompositions import LinAlgError as LinAlgError

load()

_names, _find = module("linalg")
__all__ = sorted({*_names, "LinAlgError"})


def __getattr__(name: str) -> Any:
    built = globals()[name] = _find(name)
    return built


def __dir__() -> list[str]:
    return __all__
