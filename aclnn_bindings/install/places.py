"""Asks a file system what may be answered by an error: unreadable, looping or vanished is "no".

`pathlib` raises PermissionError from `is_dir` and `glob` below a folder that this user may not
enter; one such entry of LD_LIBRARY_PATH must not end a search.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path


def is_dir(path: Path) -> bool:
    """Whether `path` is a folder that this user can reach."""
    return os.path.isdir(path)


def exists(path: Path) -> bool:
    """Whether `path`, links followed, is there and can be reached."""
    return os.path.exists(path)


def listed(folder: Path, pattern: str = "*") -> list[Path]:
    """Entries of `folder` whose name matches, sorted; none where it cannot be listed."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [folder / name for name in sorted(names) if fnmatchcase(name, pattern)]


def matching(root: Path, pattern: str) -> list[Path]:
    """Paths below `root` that match, sorted; `*` stays within one name, as in `Path.glob`."""
    paths = [root]
    for part in pattern.split("/"):
        if "*" in part or "[" in part:
            paths = [path for folder in paths for path in listed(folder, part)]
        else:
            paths = [path for folder in paths if os.path.lexists(path := folder / part)]
    return sorted(paths)


def text(path: Path) -> str:
    """The file's text, "" where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def closed(path: Path) -> Path | None:
    """The first folder on the way to `path`, or `path` itself, that is there and refuses this
    user; None when none does."""
    for place in [*reversed(path.parents), path]:
        try:
            folder = os.path.isdir(place)
            os.stat(place)
        except PermissionError:
            return place.parent
        except OSError:
            return None
        if not os.access(
            place, os.R_OK | os.X_OK if folder and place == path else os.X_OK if folder else os.R_OK
        ):
            return place
    return None
