"""Owns functionalize: a function without in-place writes inside."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .._dispatch.functionalize import functionalize as _context


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """`func` whose writes run as pure ops with a write back."""

    @wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with _context():
            return func(*args, **kwargs)

    return inside
