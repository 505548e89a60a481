"""Owns torch.compiler's names: eager code is what runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def compile(model: Callable[..., Any] | None = None, **_: Any) -> Callable[..., Any]:
    """`model` unchanged (torch.compile); a decorator without one."""
    return (lambda m: m) if model is None else model


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """`fn` unchanged; a decorator without one."""
    return (lambda f: f) if fn is None else fn


allow_in_graph = assume_constant_result = substitute_in_graph = disable


def is_compiling() -> bool:
    """False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset() -> None:
    """Nothing to forget."""


def cudagraph_mark_step_begin() -> None:
    """Nothing to mark."""


def set_stance(stance: str = "default", **_: Any) -> None:
    """Accepted: eager is the only stance."""
