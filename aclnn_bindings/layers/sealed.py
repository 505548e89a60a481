"""Owns folders of files and links that say themselves what they hold; trusts none that differs."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

_SEAL: Final = "seal"
_MOST: Final = 64 << 20  # bytes of a seal


def seal(folder: Path) -> None:
    """Write down what `folder` holds."""
    contents = {name: _state(folder / name) for name in _names(folder)}
    text = json.dumps(contents, ensure_ascii=True, separators=(",", ":")).encode()
    (folder / _SEAL).write_bytes(_digest(text).encode() + b"\n" + text)


def is_whole(folder: Path) -> bool:
    """Whether everything that was sealed is there, and as it was."""
    try:
        file = folder / _SEAL
        if file.is_symlink() or file.stat().st_size > _MOST:
            return False
        digest, _, text = file.read_bytes().partition(b"\n")
        if digest != _digest(text).encode():
            return False
        contents: dict[str, Any] = json.loads(text)
        return all(_state(folder / name) == state for name, state in contents.items())
    except (OSError, ValueError):
        return False


def replace(whole: Path, folder: Path) -> None:
    """Put everything of the sealed folder `whole` into `folder`, each piece at once, the seal
    last; a folder where a file belongs is removed, and the other way round."""
    for name in [*_names(whole), _SEAL]:
        target = folder / name
        for parent in reversed(target.relative_to(folder).parents[:-1]):
            above = folder / parent
            if above.is_symlink() or not above.is_dir():
                above.unlink(missing_ok=True)
                above.mkdir()
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        os.replace(whole / name, target)


def _names(folder: Path) -> list[str]:
    """Paths of all files and links, relative; links to folders are links."""
    return sorted(_walk(folder, ""))


def _walk(folder: Path, above: str) -> Iterator[str]:
    for entry in os.scandir(folder):
        name = f"{above}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), f"{name}/")
        elif name != _SEAL:
            yield name


def _state(path: Path) -> list[Any]:
    """A link's target, or a file's size and digest; OSError for one that is neither."""
    facts = path.lstat()
    mode = facts.st_mode
    if facts.st_uid not in (os.geteuid(), 0):
        raise OSError(f"{path}: somebody else's")
    if stat.S_ISLNK(mode):
        return ["link", os.readlink(path)]
    if not stat.S_ISREG(mode):
        raise OSError(f"{path}: no file")
    data = path.read_bytes()
    return ["file", len(data), _digest(data)]


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
