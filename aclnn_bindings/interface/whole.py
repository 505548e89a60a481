"""Owns writing a file whole or not at all; refuses to leave half, or to take an older one away."""

from __future__ import annotations

import contextlib
import os
import secrets
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

    A link's target is written, and a file keeps its permissions. What is no file (a pipe, a
    terminal), or lies in a folder where nothing may be made, is written where it is. OSErrors of
    the block that name no file, as those of a full disk, get this one's name.
    """
    try:
        target = path.resolve()
        whole = not target.exists() or target.is_file()
        beside = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.part")
        try:
            file = _made(beside, target) if whole else None
        except PermissionError:
            file = None
        if file is None:
            with path.open("wb") as file:
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


def _made(beside: Path, target: Path) -> BinaryIO:
    """`beside`, new, with the permissions of `target`, or those that this process gives files."""
    file = os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb")
    if target.exists():
        with contextlib.suppress(OSError):
            os.fchmod(file.fileno(), target.stat().st_mode & 0o7777)
    return file
