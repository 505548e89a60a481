"""Owns the names of torch.utils: data, hooks, checkpoint; loads each when it is first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._tensor.tensor import Tensor

_SUBMODULES = (
    "_contextlib",
    "_foreach_utils",
    "_mode_utils",
    "_pytree",
    "_python_dispatch",
    "checkpoint",
    "data",
    "deterministic",
    "dlpack",
    "hooks",
    "model_zoo",
)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange two tensors, with all that hangs on them; RuntimeError for those of a graph."""
    from ._swapping import swap

    swap(t1, t2)


def set_module(obj: type, mod: str) -> None:
    """Say that an object lives in a module."""
    obj.__module__ = mod


def rename_privateuse1_backend(backend_name: str) -> None:
    """Refused: the backend is npu."""
    raise NotImplementedError("torch.utils.rename_privateuse1_backend: the backend is npu")


def generate_methods_for_privateuse1_backend(*_: object, **__: object) -> None:
    """Nothing to do: tensors, modules and storages have npu's methods."""
