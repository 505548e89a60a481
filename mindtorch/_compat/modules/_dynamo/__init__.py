"""Owns torch._dynamo's names: what explains and marks graphs of compiled functions."""

from __future__ import annotations

from typing import Any

from ..compiler import (
    allow_in_graph,
    assume_constant_result,
    compile,
    disable,
    is_compiling,
    list_backends,
    reset,
)  # fmt: skip
from . import config
from .eval_frame import OptimizedModule
from .explanation import explain

__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable",
           "explain", "graph_break", "is_compiling", "list_backends", "mark_dynamic", "mark_static",
           "mark_static_address", "maybe_mark_dynamic", "reset"]  # fmt: skip


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Nothing to mark: no graph is kept."""


def mark_dynamic(t: Any, index: Any, **_: object) -> None:
    """Nothing to mark: shapes are never assumed."""


maybe_mark_dynamic = mark_unbacked = mark_dynamic


def mark_static(t: Any, index: Any = None) -> None:
    """Nothing to mark: shapes are never assumed."""


def graph_break(msg: str = "") -> None:
    """End a graph; nothing outside of compiled functions."""
    from ..compiler.capture import CURRENT

    if CURRENT.recorder is not None:
        CURRENT.recorder.break_graph("graph_break")


def is_dynamo_supported() -> bool:
    """False: calls stay eager."""
    return False


def optimize(backend: object = "inductor", *, nopython: bool = False, **_: object) -> Any:
    """A decorator: torch.compile with a backend."""
    return lambda fn: compile(fn, backend=backend, fullgraph=nopython)


def reset_code_caches() -> None:
    """Forget all graphs."""
    reset()
