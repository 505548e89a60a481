"""Owns what stands in place of the storage of a tensor that has no memory of its own."""

from __future__ import annotations

from typing import Any


class NoMemory:
    """Counts versions and has no bytes: NotImplementedError with `refusal` for all else."""

    __slots__ = ("refusal", "value", "views")

    def __init__(self, refusal: str) -> None:
        self.refusal, self.value, self.views = refusal, 0, None

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(self.refusal)
