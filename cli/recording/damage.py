"""Owns what a recording with a damaged or forged middle does to a reader: one error, by name."""

from __future__ import annotations

import functools
import inspect
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar, cast

from aclnn_bindings.layers.recording_file import RecordingError

# What reading bytes that mean nothing raises; nothing here calls into a library that could fail.
_NONSENSE: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError,
                    ValueError, struct.error, zlib.error)  # fmt: skip
# What others read of a header, and as what.
_HEADER: Final[dict[str, type | tuple[type, ...]]] = {
    "started": str, "monotonic_ns": int, "unix_ns": int, "command": list, "folder": str,
    "host": str, "machine": str, "install": dict, "dtypes": dict,
}  # fmt: skip
_INSTALL: Final[dict[str, type | tuple[type, ...]]] = {
    "root": str, "version": (str, type(None)), "kind": str,
}  # fmt: skip


class _Readable(Protocol):
    path: Path


Function = TypeVar("Function", bound=Callable[..., Any])


def named(function: Function) -> Function:
    """`function`, a method of what reads `path`, with RecordingError for what means nothing."""

    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def stream(reader: _Readable, *args: Any) -> Iterator[Any]:
            try:
                yield from function(reader, *args)
            except _NONSENSE as error:
                raise _error(reader.path, error) from error

        return cast(Function, stream)

    @functools.wraps(function)
    def whole(reader: _Readable, *args: Any) -> Any:
        try:
            return function(reader, *args)
        except _NONSENSE as error:
            raise _error(reader.path, error) from error

    return cast(Function, whole)


def _error(path: Path, error: Exception) -> RecordingError:
    if isinstance(error, RecordingError):
        return error
    return RecordingError(
        f"{path}: damaged, or no recorder wrote it: {type(error).__name__}: {error}; record again"
    )


def check_header(header: dict[str, Any]) -> None:
    """ValueError where a header lacks what it is asked for, or has it as something else."""
    for table, kinds in ((header, _HEADER), (header.get("install"), _INSTALL)):
        for name, kind in kinds.items():
            sound = isinstance(table, dict) and name in table and isinstance(table[name], kind)
            if not sound:
                raise ValueError(f"{name!r} of its header is missing or of another kind")
    if not all(isinstance(word, str) for word in header["command"]):
        raise ValueError("a word of the recorded command is no text")
