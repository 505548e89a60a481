"""Owns reading files that others wrote: bounded in size and depth; knows none of our formats."""

from __future__ import annotations

import json
import os
import select
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

# A file may be as large as a journal becomes; a device or a pipe may have no end.
FILE_BYTES: Final = 1 << 30
_STREAM_BYTES: Final = 16 << 20
_LINE_BYTES: Final = 64 << 20
_DEFLATION: Final = 100  # journals get some 16 times smaller
_PATIENCE: Final = 10  # seconds until somebody writes to a pipe


# Some editors begin a file of UTF-8 with it.
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class ForeignError(ValueError):
    """A file is larger, or nested deeper, than any that we write, or is none."""


def opened(path: Path) -> BinaryIO:
    """The file to read; ForeignError for a pipe with a name that nobody writes to."""
    mode = os.stat(path).st_mode
    if stat.S_ISSOCK(mode):
        raise ForeignError("a socket, no file")
    if not stat.S_ISFIFO(mode) or path.parts[:2] in (("/", "dev"), ("/", "proc")):
        return path.open("rb")  # a shell's <(COMMAND) is in /dev/fd: it has its writer
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not select.select([pipe], [], [], _PATIENCE)[0]:
        os.close(pipe)
        raise ForeignError(f"a pipe that nobody wrote to for {_PATIENCE} s")
    os.set_blocking(pipe, True)
    return os.fdopen(pipe, "rb")


def text_of(path: Path, errors: str = "strict") -> str:
    """The text of a UTF-8 file; OSError, UnicodeDecodeError or ForeignError where it is none."""
    with opened(path) as file:
        most = most_of(file)
        # Python takes memory for what is asked for before it reads; files of /proc have no size.
        size = min(most, os.fstat(file.fileno()).st_size or _STREAM_BYTES)
        data = file.read(size + 1)
        if len(data) > size:  # it grew
            data += file.read(most + 1 - len(data))
    if len(data) > most:
        raise ForeignError(f"more than {most >> 20} MiB, which no file of ours has")
    return data.removeprefix(BYTE_ORDER_MARK).decode("utf-8", errors)


def lines_of(file: BinaryIO, most: int) -> Iterator[str]:
    """The lines of a file, one in memory at a time; ForeignError after `most` bytes, and for a
    line that is longer than any of ours."""
    left, mark = most, BYTE_ORDER_MARK
    while line := file.readline(min(left, _LINE_BYTES) + 1):
        left -= len(line)
        if len(line) > _LINE_BYTES:
            raise ForeignError(f"a line of more than {_LINE_BYTES >> 20} MiB, which no file has")
        if left < 0:
            raise ForeignError(f"more than {most >> 20} MiB, which no file of ours has")
        yield line.removeprefix(mark).removesuffix(b"\n").decode("utf-8", "replace")
        mark = b""


def most_unpacked(file: BinaryIO) -> int:
    """How many bytes are unpacked of a compressed file: in proportion to its size."""
    return min(FILE_BYTES, _STREAM_BYTES + _DEFLATION * os.fstat(file.fileno()).st_size)


def most_of(file: BinaryIO) -> int:
    """How many bytes are read of an open file: fewer of a device or a pipe."""
    return FILE_BYTES if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else _STREAM_BYTES


def parsed(text: str, loads: Callable[[str], Any] = json.loads) -> Any:
    """What a JSON (or TOML) text says; ValueError where it is none, ForeignError for one whose
    nesting would end in the interpreter's own limit."""
    try:
        return loads(text)
    except RecursionError:
        raise ForeignError("nested deeper than any file of ours") from None


def leads_to_file(path: Path) -> bool:
    """Whether it is a link to a file, or to nothing yet; those of /dev are what they stand for."""
    leads = path.is_symlink() and (path.is_file() or not path.exists())
    return leads and path.parts[:2] != ("/", "dev")
