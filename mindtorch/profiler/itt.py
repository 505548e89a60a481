"""torch.profiler.itt: marks for Intel's tracer, which is not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """False."""
    return False


def _refuse(name: str) -> None:
    raise RuntimeError(
        f"torch.profiler.itt.{name}: there is no ITT here, use torch.profiler.record_function"
    )


def range_push(msg: str) -> None:
    """Refused: there is no tracer."""
    _refuse("range_push")


def range_pop() -> None:
    """Refused: there is no tracer."""
    _refuse("range_pop")


def mark(msg: str) -> None:
    """Refused: there is no tracer."""
    _refuse("mark")


@contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:
    """Refused: there is no tracer."""
    range_push(msg)
    yield
