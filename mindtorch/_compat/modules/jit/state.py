"""Owns whether a scripted or a traced function is at work."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _JitState(threading.local):
    scripting = 0
    tracing = 0
    decisions: Any = None
    mode: Any = None  # what sees the calls of a traced function


CURRENT = _JitState()


@contextmanager
def scripting() -> Iterator[None]:
    """Inside, a scripted function is at work."""
    CURRENT.scripting += 1
    try:
        yield
    finally:
        CURRENT.scripting -= 1


@contextmanager
def tracing() -> Iterator[None]:
    """Inside, a function is being traced."""
    CURRENT.tracing += 1
    try:
        yield
    finally:
        CURRENT.tracing -= 1


def deprecated(
    name: str, advice: str = "switch to `torch.compile` or `torch.export`"
) -> None:  # fmt: skip
    """Warn of a function of torch.jit; at its own line, as torch does: Python hides it."""
    warnings.warn(  # noqa: B028
        f"`torch.jit.{name}` is deprecated. Please {advice}.", DeprecationWarning
    )
