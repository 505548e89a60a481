"""Owns what pipes say of functions that they are given."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any


def check_picklable(fn: Callable[..., Any]) -> None:
    """UserWarning for a function that no process can be sent; TypeError for what is none."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    if isinstance(fn, functools.partial):
        fn = fn.func
    code = getattr(fn, "__code__", None)
    nested = code is not None and code.co_flags & inspect.CO_NESTED
    if nested or getattr(fn, "__name__", "") == "<lambda>":
        warnings.warn(
            f"{'Local' if nested else 'Lambda'} function is not supported by pickle, please use"
            " regular python function or functools.partial instead.",
            stacklevel=3,
        )
