"""Owns folders that last as long as one run; removes those whose owner was killed.

Each holds a locked file: a folder whose file nobody locks is nobody's. Of the superuser, whose
programs may go on as somebody else, folders can be entered by all who know the names in them.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_LOCK: Final = "lock"
_MEMORY: Final = Path("/dev/shm")
_YOUNG_S: Final = 60  # a folder without a lock may be about to get it


def places() -> list[Path]:
    """Where small shared files may lie, the best first: in memory, then among temporary files."""
    memory = [_MEMORY] if os.access(_MEMORY, os.W_OK | os.X_OK) else []
    return [*memory, Path(tempfile.gettempdir())]


@contextmanager
def folder(prefix: str, place: Path | None = None) -> Iterator[Path]:
    """A new folder in `place` (by default the one for temporary files), removed at the end."""
    place = place or Path(tempfile.gettempdir())
    _remove_abandoned(place, prefix)
    folder_path = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
    try:
        lock = os.open(
            folder_path / _LOCK, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600
        )
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.geteuid() == 0:
                folder_path.chmod(0o711)
            yield folder_path
        finally:
            os.close(lock)
    finally:
        shutil.rmtree(folder_path, ignore_errors=True)


def create(folder_path: Path, name: str) -> Path:
    """A new empty file of a scratch folder that every process of the program may write to."""
    if os.geteuid() == 0:
        name = f"{name}-{secrets.token_hex(16)}"
    path = folder_path / name
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    if os.geteuid() == 0:
        path.chmod(0o666)
    return path


def _remove_abandoned(place: Path, prefix: str) -> None:
    with suppress(OSError):
        for entry in os.scandir(place):
            with suppress(OSError):
                is_ours = entry.stat(follow_symlinks=False).st_uid == os.geteuid()
                if (
                    entry.name.startswith(prefix)
                    and is_ours
                    and entry.is_dir(follow_symlinks=False)
                ):
                    _remove_if_abandoned(Path(entry.path))


def _remove_if_abandoned(folder_path: Path) -> None:
    """Remove a folder whose lock is free, or that has had none for a minute."""
    try:
        lock = os.open(folder_path / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        if time.time() - folder_path.stat().st_mtime > _YOUNG_S:
            shutil.rmtree(folder_path, ignore_errors=True)
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder_path, ignore_errors=True)
    except BlockingIOError:
        pass
    finally:
        os.close(lock)
