"""Owns who is told of collectives that give new tensors: what a CommDebugMode counts."""

from __future__ import annotations

from collections.abc import Callable

LISTENERS: list[Callable[[str], None]] = []


def counted(name: str) -> None:
    """Tell those who listen that a collective begins, by its name in torch.ops.c10d_functional."""
    for listener in LISTENERS:
        listener(name)
