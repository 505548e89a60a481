"""Asks a file system what may be answered by an error: unreadable, looping or vanished is "no".

`pathlib` raises PermissionError from `is_dir` and `glob` below a folder that this user may not
enter; one such entry of LD_LIBRARY_PATH must not end a search.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path


def is_dir(path: Path) -> bool:
    """Whether `path` is a folder that this user can reach."""
    return os.path.isdir(path)


def exists(path: Path) -> bool:
    """Whether `path`, links followed, is there and can be reached."""
    return os.path.exists(path)


def loader_path(environ: Mapping[str, str]) -> list[Path]:
    """The folders of LD_LIBRARY_PATH; colons and semicolons part them (ld.so(8))."""
    return [Path(entry) for entry in re.split("[:;]", environ.get("LD_LIBRARY_PATH", "")) if entry]


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
    """The file's text, "" where it cannot be read or is none, such as a pipe."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def has_content(folder: Path) -> bool:
    """Whether a file with anything in it stands below `folder`; True where that is not shown."""
    refused: list[OSError] = []
    for place, _, names in os.walk(folder, onerror=refused.append):
        for name in names:
            try:
                if os.stat(os.path.join(place, name)).st_size:
                    return True
            except OSError as error:
                refused.append(error)
    return any(isinstance(error, PermissionError) for error in refused)


def broken_link(path: Path) -> Path | None:
    """The first link on the way to `path`, itself included, that leads nowhere; None if none."""
    for place in [*reversed(path.parents), path]:
        if os.path.islink(place) and not os.path.exists(place):
            return place
    return None


def why_absent(path: Path) -> str:
    """Why `path` is no folder that can be entered, as a sentence that begins with it."""
    if exists(path):
        return f"{path} is a file, not a folder"
    if refuser := closed(path):
        return f"{path} cannot be read: this user may not enter {refuser}"
    if reason := misspelt(str(path)):
        return f"{str(path)!r} {reason.partition(': ')[0]}"
    if link := broken_link(path):
        return f"{link} is a link to {os.readlink(link)}, which does not exist"
    try:
        os.stat(path)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            return f"{path} cannot be read: {error.strerror}"
    return f"{path} does not exist"


def misspelt(value: str) -> str:
    """What in a variable's value is no part of a path, as a verb and its object; "" if nothing.

    Files of variables with DOS line ends, and those whose reader keeps quotes (`--env-file` of
    docker), leave such values.
    """
    if "\r" in value or "\n" in value:
        return "holds the end of a line: convert the file that sets it (`sed -i 's/\\r$//'`)"
    if value[:1] in ("'", '"') or value[-1:] in ("'", '"'):
        return "stands in quotes: take them out where it is set; docker's --env-file keeps them"
    if value != value.strip():
        return "begins or ends with a space: take it out where the variable is set"
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
