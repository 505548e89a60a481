"""Owns torch.multiprocessing: the standard library's, whose queues carry pickled tensors."""

from __future__ import annotations

from multiprocessing import *  # noqa: F403
from multiprocessing import __all__ as _standard
from multiprocessing import get_context, get_start_method, set_start_method

from .spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

_STRATEGY = "file_system"


def get_all_sharing_strategies() -> set[str]:
    """How tensors may travel between processes: pickled."""
    return {_STRATEGY}


def get_sharing_strategy() -> str:
    """How tensors travel between processes: pickled."""
    return _STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted without effect: tensors travel pickled. AssertionError for unknown ones."""
    assert new_strategy in ("file_descriptor", "file_system")


__all__ = [
    *_standard, "ProcessContext", "ProcessExitedException", "ProcessRaisedException",
    "SpawnContext", "spawn", "start_processes", "get_all_sharing_strategies", "get_context",
    "get_sharing_strategy",
    "get_start_method", "set_sharing_strategy", "set_start_method",
]  # fmt: skip
