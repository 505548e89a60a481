"""Owns where a process's output goes, that of C and of its children too."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

__all__ = ["redirect", "redirect_stderr", "redirect_stdout"]
_STREAMS = {"stdout", "stderr"}


@contextmanager
def redirect(std: str, to_file: str) -> Iterator[None]:
    """Inside, what is written to `stdout` or `stderr` goes to a file, which is made anew.

    ValueError for another stream.
    """
    if std not in _STREAMS:
        raise ValueError(f"unknown standard stream <{std}>, must be one of {_STREAMS}")
    python, library = getattr(sys, std), ctypes.CDLL(None)
    number = python.fileno()

    def lead(to: int) -> None:
        library.fflush(None)
        python.flush()
        os.dup2(to, number)

    before = os.dup(number)
    try:
        with open(to_file, "w+b") as file:
            lead(file.fileno())
            try:
                yield
            finally:
                lead(before)
    finally:
        os.close(before)


redirect_stdout = partial(redirect, "stdout")
redirect_stderr = partial(redirect, "stderr")
