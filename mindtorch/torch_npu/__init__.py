"""torch_npu's names: what programs import that were written for Ascend's extension of PyTorch.

Source: Ascend Extension for PyTorch, "Custom API reference"; names, signatures and which operator
of CANN a function calls are as torch_npu 2.13.0 gives and calls them. Functions run on npu; those
that are made of torch's own run on every device. What is not here raises AttributeError.
"""

from __future__ import annotations

import importlib
from typing import Any

from .. import npu
from .formats import Format, get_npu_format, npu_format_cast, npu_format_cast_

__version__ = "2.13.0"
__all__ = ["Format", "get_npu_format", "npu", "npu_format_cast", "npu_format_cast_"]

_MODULES = ("attention", "contrib", "functions", "optim", "profiler", "rows", "utils")
_FUNCTIONS = ("attention", "functions", "rows")  # where functions are looked for


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module("." + name, __name__)
    for place in _FUNCTIONS:
        module = importlib.import_module("." + place, __name__)
        if name in module.__all__:
            return getattr(module, name)
    raise AttributeError(f"module 'torch_npu' has no attribute '{name}'")


def __dir__() -> list[str]:
    names = {n for m in _FUNCTIONS for n in importlib.import_module("." + m, __name__).__all__}
    return sorted({*globals(), *_MODULES, *names})
