"""Owns what a checkpoint's save or load raises: the errors of all processes, by rank."""

from __future__ import annotations

import traceback
from typing import Any

__all__ = ["CheckpointException"]
Failure = tuple[BaseException, traceback.StackSummary]


class CheckpointException(BaseException):
    """Some processes failed: `failures` has the error of each, and where it was raised."""

    def __init__(self, msg: str, failures: dict[int, Failure]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, Failure]:
        """Rank → (error, stack)."""
        return self._failures

    def __str__(self) -> str:
        lines = [f"CheckpointException ranks:{self._failures.keys()}\n"]
        for rank, (error, stack) in self._failures.items():
            lines.append(f"Traceback (most recent call last): (RANK {rank})\n")
            lines += traceback.format_list(stack)
            lines += traceback.format_exception_only(type(error), error)
        return "".join(lines)


def failure(error: BaseException) -> Failure:
    """An error as other processes are told it."""
    return error, traceback.extract_tb(error.__traceback__)


def is_failure(value: Any) -> bool:
    """Whether `failure` made it."""
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and isinstance(value[0], BaseException)
        and isinstance(value[1], traceback.StackSummary)
    )
