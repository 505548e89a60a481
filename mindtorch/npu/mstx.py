"""torch.npu.mstx: marks of a program for CANN's profiler; nothing records them here."""

from __future__ import annotations

_open: list[str] = []


def mark(message: str, stream: object = None, domain: str = "default") -> None:
    """One moment."""


def range_start(message: str, stream: object = None, domain: str = "default") -> int:
    """A range begins; gives its number."""
    _open.append(message)
    return len(_open)


def range_end(range_id: int, domain: str = "default") -> None:
    """A range ends."""
