"""torch.cuda.nvtx: marks for a profiler of CUDA, without effect."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def range_push(msg: str) -> int:
    """-1: no range is open."""
    return -1


def range_pop() -> int:
    """-1: no range is open."""
    return -1


def range_start(msg: str) -> int:
    """0: no range is kept."""
    return 0


def range_end(range_id: int) -> None:
    """Nothing to end."""


def mark(msg: str) -> None:
    """Nothing to mark."""


@contextlib.contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:
    """A context without effect."""
    yield
