"""Owns writing a file whole or not at all; refuses to leave half, or to take an older one away."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def write(path: Path, text: str, errors: str = "replace") -> None:
    """`text` in UTF-8 in the place of what `path` held; OSError, with that name, changes nothing.

    What UTF-8 lacks (halves of a surrogate pair) is written as `errors` says.
    """
    with writing(path) as file:
        file.write(text.encode("utf-8", errors))


@contextlib.contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` as the block ends; after an error all is as it was.

    A link is replaced, not followed, and a file keeps its permissions. What is no file (a pipe, a
    terminal), or lies in a folder where nothing may be made, is written where it is. OSErrors of
    the block that name no file, as those of a full disk, get this one's name.
    """
    try:
        target = _place(path)
        whole = not target.exists() or target.is_file()
        beside = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.part")
        try:
            file = _new_file(beside, target) if whole else None
        except PermissionError:
            file = None
        if file is None:
            with _as_it_is(path) as file:
                yield file
            return
        try:
            with file:
                yield file
            beside.replace(target)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        if error.errno and error.filename is None:
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def _place(path: Path) -> Path:
    """Where a file is put: at a link itself, but for the system's own (/dev/stdout); OSError for
    links in a circle, on each version of Python."""
    try:
        target = path.resolve()
    except RuntimeError:
        target = path
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return target if path.parts[:2] in _OF_SYSTEM else path


_OF_SYSTEM = (("/", "dev"), ("/", "proc"))


_PATIENCE = 10  # seconds until somebody reads a pipe


def _as_it_is(path: Path) -> BinaryIO:
    """What is no file, or may not be replaced, to be written to; OSError for an unread pipe, and
    for a link that leads to a file."""
    if path.is_symlink() and path.is_file() and path.parts[:2] not in _OF_SYSTEM:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    until = time.monotonic() + _PATIENCE
    while path.is_fifo():
        try:
            pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO or time.monotonic() > until:
                raise
            time.sleep(0.05)
            continue
        os.set_blocking(pipe, True)
        return os.fdopen(pipe, "wb")
    return path.open("wb")


def _new_file(beside: Path, target: Path) -> BinaryIO:
    """`beside`, new, with the permissions of `target`, or those that this process gives files."""
    file = os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb")
    if target.exists():
        with contextlib.suppress(OSError):
            os.fchmod(file.fileno(), target.stat().st_mode & 0o7777)
    return file
