"""Owns finding headers on disk and reading their bytes; refuses to look inside."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

_SUFFIXES: Final = (".h", ".hpp", ".hh")
_LARGEST: Final = 64 << 20
# Where an install's public headers stand below its include folder. The same folder holds internal
# ones by the thousand (`experiment/`, securec, graph and tool interfaces) that no library exports.
PUBLIC: Final = ("acl", "aclnn", "aclnnop", "acldvppop", "hccl")


class HeaderFile(NamedTuple):
    """A header on disk: its name inside the folder it was found in, and its path."""

    name: str
    path: str


def find_headers(folders: Iterable[str | os.PathLike[str]]) -> list[HeaderFile]:
    """All headers under some folders, in their order and sorted within each.

    Of a folder that holds any of `PUBLIC` only those are read. A name that stands in two folders
    is there twice: `read_all` tells copies apart.
    """
    headers: list[HeaderFile] = []
    seen: set[str] = set()
    for folder in folders:
        root = os.path.abspath(os.fspath(folder))
        if os.path.realpath(root) in seen:
            continue
        seen.add(os.path.realpath(root))
        if os.path.isfile(root):
            headers.append(HeaderFile(os.path.basename(root), root))
        else:
            public = [name for name in PUBLIC if os.path.isdir(os.path.join(root, name))]
            parts = [(os.path.join(root, name), f"{name}/") for name in public] or [(root, "")]
            headers.extend(sorted(header for part in parts for header in _walk(*part)))
    return headers


def _walk(root: str, below: str) -> Iterator[HeaderFile]:
    """Headers under a folder; links to folders are followed, but not in a circle."""
    waiting = [(root, below)]
    seen: set[str] = set()
    while waiting:
        folder, prefix = waiting.pop()
        real = os.path.realpath(folder)
        if real in seen:
            continue
        seen.add(real)
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            if entry.name.endswith(_SUFFIXES):
                yield HeaderFile(prefix + entry.name, entry.path)
            elif os.path.isdir(entry.path):
                waiting.append((entry.path, f"{prefix}{entry.name}/"))


def read_bytes(path: str) -> bytes | str:
    """A header's bytes, or the reason why they cannot be had."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for its writer
            return "no regular file"
        with open(path, "rb") as stream:
            data = stream.read(_LARGEST + 1)
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    return data if len(data) <= _LARGEST else f"larger than {_LARGEST >> 20} MiB"


def read_all(headers: Sequence[HeaderFile]) -> tuple[dict[str, bytes], dict[str, str]]:
    """The bytes of headers by name, and those that cannot be read with the reason.

    A second header of one name is left out if it is a copy of the first, else its path is its
    name.
    """
    texts: dict[str, bytes] = {}
    unread: dict[str, str] = {}
    for name, path in headers:
        data = read_bytes(path)
        if name in texts or name in unread:
            if texts.get(name) == data or unread.get(name) == data:
                continue
            name = path
        if isinstance(data, bytes):
            texts[name] = data
        else:
            unread[name] = data
    return texts, unread
