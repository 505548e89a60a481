"""torch.npu.mstx: marks of a program for CANN's profiler; nothing records them here."""

from __future__ import annotations

from itertools import count

_numbers = count(1)


def mark(message: str, stream: object = None, domain: str = "default") -> None:
    """One moment."""


def range_start(message: str, stream: object = None, domain: str = "default") -> int:
    """A range begins; gives its number."""
    return next(_numbers)


def range_end(range_id: int, domain: str = "default") -> None:
    """A range ends."""
