"""Owns torch.compiler's names: eager code is what runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

_told: set[str] = set()


def compile(model: Callable[..., Any] | None = None, **_: object) -> Callable[..., Any]:
    """`model` unchanged (torch.compile), with one warning in a process; a decorator without one."""
    if not _told:
        _told.add("eager")
        warnings.warn(
            "torch.compile: mindtorch has no compiler, what is compiled runs eagerly", stacklevel=2
        )
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


def set_stance(stance: str = "default", **_: object) -> None:
    """Accepted: eager is the only stance."""


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Accepted: nothing is guarded."""
    return False


def skip_guard_on_all_nn_modules_unsafe(guards: Any) -> list[bool]:
    """Nothing is guarded."""
    return [False for _ in guards]


def is_inference_compiling() -> bool:
    """False."""
    return False


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """No backend of a compiler."""
    return []
