"""Owns torch._dynamo's names: what explains and marks graphs of compiled functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..compiler import (
    REGISTERED,
    allow_in_graph,
    assume_constant_result,
    compile,
    disable,
    is_compiling,
    list_backends,
    reset,
)  # fmt: skip
from . import config, exc
from .decorators import (
    mark_dynamic,
    mark_static,
    mark_static_address,
    mark_unbacked as mark_unbacked,
    maybe_mark_dynamic,
)  # fmt: skip
from .eval_frame import OptimizedModule, is_dynamo_supported as is_dynamo_supported
from .explanation import explain
from .whole_graphs import export

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "exc",
    "explain", "export", "graph_break", "is_compiling", "list_backends", "lookup_backend",
    "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic", "register_backend",
    "reset", "run",
]  # fmt: skip


def graph_break(msg: str = "") -> None:
    """End a graph; nothing outside of compiled functions."""
    from ..compiler.capture import CURRENT
    from ..compiler.graph_breaks import asked_for

    if CURRENT.recorder is not None:
        CURRENT.recorder.break_graph(asked_for(msg))


def register_backend(
    compiler_fn: Callable[..., object] | None = None, name: str | None = None,
    tags: Sequence[str] = (),
) -> object:  # fmt: skip
    """Give a backend a name that torch.compile takes; a decorator too."""
    if compiler_fn is None:
        return lambda fn: register_backend(fn, name, tags)
    REGISTERED[name or compiler_fn.__name__] = compiler_fn
    return compiler_fn


def lookup_backend(compiler_fn: object) -> object:
    """The backend of a name; InvalidBackend where there is none."""
    if not isinstance(compiler_fn, str):
        return compiler_fn
    if compiler_fn not in list_backends(None):
        raise exc.InvalidBackend(compiler_fn)
    return REGISTERED.get(compiler_fn, lambda module, inputs: module.forward)


def run(fn: object = None) -> object:
    """`fn` as it is: what is compiled runs, nothing else is compiled."""
    return fn if fn is not None else run


def optimize(backend: object = "inductor", *, nopython: bool = False, **_: object) -> Any:
    """A decorator: torch.compile with a backend."""
    return lambda fn: compile(fn, backend=backend, fullgraph=nopython)


def reset_code_caches() -> None:
    """Forget all graphs."""
    reset()
