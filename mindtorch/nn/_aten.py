"""Owns the one door from nn to op rows, by aten name; refuses
to hold kernels or rules of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch
from mindtorch._tensor import Tensor

# Names that were looked up and have no row; a row registered later is found by `forget()`.
_ABSENT: set[str] = set()


def __getattr__(name: str) -> Any:
    """Finds the row's function once; later uses are plain module attributes."""
    if name.startswith("__"):
        raise AttributeError(name)
    function = getattr(mindtorch.ops.aten, name)
    globals()[name] = function
    return function


def has(name: str) -> bool:
    """Says whether a row of this aten name exists."""
    if name in globals():
        return True
    if name in _ABSENT:
        return False
    try:
        __getattr__(name)
    except AttributeError:
        _ABSENT.add(name)
        return False
    return True


def forget() -> None:
    """Forgets the names that were absent; call it after registering rows."""
    _ABSENT.clear()


def inplace(name: str, input: Any, *args: Any) -> Any:
    """Writes the op's result into `input` and gives it, through
    the row's in-place form if it has one."""
    if hasattr(Tensor, name + "_"):
        return getattr(input, name + "_")(*args)
    function: Callable[..., Any] = globals().get(name) or __getattr__(name)
    # The op saves what it was given for backward: a copy, as its input is written to.
    return input.copy_(function(input.clone(), *args))
