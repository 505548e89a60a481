"""Owns where this user's caches, catalogs and journals are; refuses folders that others may change.

A container's user often has no home, or one that cannot be written. What is written then goes below
the temporary folder. Source of the names: the XDG Base Directory specification.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

_PROJECT: Final = "mindtorch-npu"


def of_user(variable: str, default: str) -> Path:
    """`mindtorch-npu` below the folder that `variable` names, or below `default` in the home
    folder; below the temporary folder where there is no home. Nothing is made."""
    base = Path(os.environ.get(variable) or f"~/{default}")
    with suppress(RuntimeError):  # a user without a name, whom no variable gives a home
        base = base.expanduser()
    return base / _PROJECT if base.is_absolute() else temporary() / base.name.lstrip(".")


def to_write(folder: Path) -> Path:
    """`folder`, made; where this user cannot write there, or others may, one of its name below the
    temporary folder."""
    if not is_changed_by_others(folder) and usable(folder):
        return folder
    other = temporary() / folder.name
    other.mkdir(exist_ok=True)
    return other


def usable(folder: Path) -> bool:
    """Whether `folder` is there, or could be made, and can be written."""
    try:
        with closed_to_others():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


@contextmanager
def closed_to_others() -> Iterator[None]:
    """Meanwhile no file is made that others may write, whatever the umask is."""
    before = os.umask(0o077)
    os.umask(before | stat.S_IWGRP | stat.S_IWOTH)
    try:
        yield
    finally:
        os.umask(before)


def is_open_to_others(folder: Path) -> bool:
    """Whether others may put something in the place of what `folder` holds: somebody else owns
    it, or all may write there."""
    try:
        state = folder.stat()
    except OSError:
        return False
    shared = bool(state.st_mode & stat.S_IWOTH) and not state.st_mode & stat.S_ISVTX
    return shared or state.st_uid not in (os.geteuid(), 0)


def is_changed_by_others(folder: Path) -> bool:
    """Whether somebody else chose, or may change, what lies at `folder`: it, what it is in, or what
    that is in."""
    return of_others(folder) or any(map(is_open_to_others, folder.parents[:2]))


def of_others(folder: Path) -> bool:
    """Whether somebody else chose what lies at `folder`: it is a link, or neither this user's nor
    root's."""
    try:
        state = folder.lstat()
    except OSError:
        return False
    return stat.S_ISLNK(state.st_mode) or state.st_uid not in (os.geteuid(), 0)


@cache
def temporary() -> Path:
    """This user's own folder among temporary ones; a fresh one where somebody else has its name."""
    folder = Path(tempfile.gettempdir(), f"{_PROJECT}-{os.getuid()}")
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
    with suppress(OSError):
        state = folder.lstat()
        private = not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid() and private:
            return folder
    return Path(tempfile.mkdtemp(prefix=f"{_PROJECT}-"))
