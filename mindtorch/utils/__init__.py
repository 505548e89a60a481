"""Owns the names of torch.utils: data, hooks, checkpoint; loads each when it is first used."""

from __future__ import annotations

import importlib
from typing import Any

_SUBMODULES = (
    "_mode_utils",
    "_pytree",
    "_python_dispatch",
    "checkpoint",
    "data",
    "dlpack",
    "hooks",
    "model_zoo",
)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
