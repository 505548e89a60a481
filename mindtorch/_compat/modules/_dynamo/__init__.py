"""Owns torch._dynamo's names for code that marks what a compiler is to do: there is none."""

from __future__ import annotations

from typing import Any

from ..compiler import allow_in_graph, assume_constant_result, disable, is_compiling, reset
from . import config
from .eval_frame import OptimizedModule

__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable",
           "graph_break", "is_compiling", "mark_dynamic", "mark_static", "mark_static_address",
           "maybe_mark_dynamic", "reset"]  # fmt: skip


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Nothing to mark: no graph is kept."""


def mark_dynamic(t: Any, index: Any, **_: object) -> None:
    """Nothing to mark: shapes are never assumed."""


maybe_mark_dynamic = mark_unbacked = mark_dynamic


def mark_static(t: Any, index: Any = None) -> None:
    """Nothing to mark: shapes are never assumed."""


def graph_break(msg: str = "") -> None:
    """Nothing to break."""


def is_dynamo_supported() -> bool:
    """False: calls stay eager."""
    return False


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """No backend of a compiler."""
    return []


def optimize(*_: object, **__: object) -> Any:
    """A decorator that leaves functions as they are."""
    return lambda fn: fn


def reset_code_caches() -> None:
    """Nothing to forget."""
