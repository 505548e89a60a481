"""Owns reading files that others wrote: bounded in size and depth; knows none of our formats."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

# A file may be as large as a journal becomes; a device or a pipe may have no end.
_FILE_BYTES: Final = 1 << 30
_STREAM_BYTES: Final = 16 << 20


class ForeignError(ValueError):
    """A file is larger, or nested deeper, than any that we write."""


def text_of(path: Path, errors: str = "strict") -> str:
    """The text of a UTF-8 file; OSError, UnicodeDecodeError or ForeignError where it is none."""
    most = _FILE_BYTES if path.is_file() else _STREAM_BYTES
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ForeignError(f"more than {most >> 20} MiB, which no file of ours has")
    return data.decode("utf-8", errors)


def parsed(text: str, loads: Callable[[str], Any] = json.loads) -> Any:
    """What a JSON (or TOML) text says; ValueError where it is none, ForeignError for one whose
    nesting would end in the interpreter's own limit."""
    try:
        return loads(text)
    except RecursionError:
        raise ForeignError("nested deeper than any file of ours") from None
