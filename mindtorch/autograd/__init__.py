"""Owns `torch.autograd`: a view of `_autograd` under torch's names."""

import importlib as _importlib
from typing import Any as _Any, NoReturn as _NoReturn

from .._autograd import graph
from .._autograd.function import Function, once_differentiable
from .._autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .._autograd.surface import backward, grad
from .._compat.shadowed import keep as _keep
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .variable import Variable


def _profiler_enabled() -> bool:
    """Whether a profiler runs."""
    return False


def _disable_profiler() -> None:
    """Nothing: a profiler ends with its context."""


def _checking(name: str) -> _Any:
    package = __package__.rpartition(".")[0]
    return getattr(_importlib.import_module("._autograd.gradcheck", package), name)


def _deprecated(*args: object, **options: object) -> _NoReturn:
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


_deprecated.__name__ = _deprecated.__qualname__ = "variable"
vars(_deprecated)["Variable"] = Variable


_keep(__name__, {"variable": lambda: _deprecated, "gradcheck": lambda: _checking("gradcheck")})


def __getattr__(name: str) -> _Any:
    if name == "gradgradcheck":
        return _checking(name)
    if name in ("function", "functional", "grad_mode"):
        return _importlib.import_module("._autograd." + name, __package__.rpartition(".")[0])
    if name in ("forward_ad", "profiler"):
        return _importlib.import_module("." + name, __package__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["Function", "Variable", "backward", "detect_anomaly", "enable_grad", "grad", "graph",
           "inference_mode", "no_grad", "once_differentiable", "set_detect_anomaly",
           "set_grad_enabled", "set_multithreading_enabled"]  # fmt: skip
