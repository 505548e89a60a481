"""Owns torch.multiprocessing: the standard library's, whose queues carry tensors by memory."""

from __future__ import annotations

from multiprocessing import *  # noqa: F403
from multiprocessing import __all__ as _standard, get_context, get_start_method, set_start_method

from .._functional.sharing import send_shared
from .._tensor.tensor import Tensor
from ..nn.parameter import Parameter
from .spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

_STRATEGIES = ("file_descriptor", "file_system")
_strategy = [_STRATEGIES[0]]

send_shared(Tensor, Parameter)


def get_all_sharing_strategies() -> set[str]:
    """The names that set_sharing_strategy takes."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """The name that was set; tensors of cpu travel as file descriptors."""
    return _strategy[0]


def set_sharing_strategy(new_strategy: str) -> None:
    """Noted; both strategies use descriptors of files without names. AssertionError for others."""
    if new_strategy not in _STRATEGIES:
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {set(_STRATEGIES)}"
        )
    _strategy[0] = new_strategy


__all__ = [
    *_standard, "ProcessContext", "ProcessExitedException", "ProcessRaisedException",
    "SpawnContext", "spawn", "start_processes", "get_all_sharing_strategies", "get_context",
    "get_sharing_strategy",
    "get_start_method", "set_sharing_strategy", "set_start_method",
]  # fmt: skip
