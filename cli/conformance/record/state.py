"""Owns the journals in the user's state folder: which are there, and which are old enough to go.

The folder keeps the newest MOST_RUNS journals, of these as many as fit into MOST_BYTES; one of
the last day, or that a run is writing, always stays.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from aclnn_bindings.interface import user_dir

MOST_RUNS: Final = 200
MOST_BYTES: Final = 256 << 20
_YOUNG_S: Final = 86_400
_HEADER: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Stored:
    """A journal of the state folder: what it is of, and when it was written last."""

    path: Path
    size: int
    time: float
    header: dict[str, Any]

    @property
    def folder(self) -> str:
        """The folder that the run was started in."""
        return str(self.header.get("folder", ""))

    @property
    def what(self) -> str:
        """What was asked for, such as the operators' names."""
        options = self.header.get("options")
        return str(options.get("what", "")) if isinstance(options, dict) else ""


def default_path(name: str = "check") -> Path:
    """A new journal in the user's state folder; below the temporary one if that is read-only."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    prune()
    # Runs of one process, and of containers that share a folder, have one time and process id.
    return folder() / f"{name}-{stamp}-{os.getpid()}-{secrets.token_hex(4)}.jsonl"


def folder() -> Path:
    """The user's state folder, made."""
    return user_dir.to_write(user_dir.of_user("XDG_STATE_HOME", ".local/state"))


def stored(name: str = "*") -> Iterator[Stored]:
    """The journals of a command, or of all, newest first; a header that is not read is empty."""
    for path, status in _files(name):
        yield Stored(path, status.st_size, status.st_mtime, _header(path))


def latest(name: str = "check") -> Path | None:
    """The newest journal of a run that was started in this folder; else the newest of all."""
    newest, folder_here = None, here()
    for one in stored(name):
        if one.folder == folder_here:
            return one.path
        newest = newest or one.path
    return newest


def here() -> str:
    """The working folder; "" where it was deleted."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def prune_all() -> list[Stored]:
    """Remove all journals but the latest of each command and those that a run writes; what went."""
    seen: set[str] = set()
    removed = []
    for one in stored():
        command = one.path.name.partition("-")[0]
        if command in seen and not _is_written(one.path):
            with contextlib.suppress(OSError):
                one.path.unlink()
                removed.append(one)
        seen.add(command)
    return removed


def prune(
    most_runs: int = MOST_RUNS, most_bytes: int = MOST_BYTES, young: float = _YOUNG_S
) -> list[Path]:
    """Remove the journals beyond the limits; their paths."""
    removed, total, limit = [], 0, time.time() - young
    for i, (path, status) in enumerate(_files("*")):
        total += status.st_size
        if (i < most_runs and total <= most_bytes) or status.st_mtime > limit or _is_written(path):
            continue
        with contextlib.suppress(OSError):
            path.unlink()
            removed.append(path)
    return removed


def _files(name: str) -> list[tuple[Path, os.stat_result]]:
    journals = []
    for path in folder().glob(f"{name}-*.jsonl"):
        with contextlib.suppress(OSError):
            if path.is_file() and not path.is_symlink():
                journals.append((path, path.stat()))
    return sorted(journals, key=lambda x: -x[1].st_mtime)


def _is_written(path: Path) -> bool:
    """Whether a run holds the journal's lock."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _header(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = json.loads(file.readline(_HEADER))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
