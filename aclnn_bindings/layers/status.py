"""Owns the file by which processes say whether they loaded the layers, and what those changed.

Layout: `native/status.h`.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path
from typing import Final

MAGIC: Final = 0x315441545354434D  # "MCTSTAT1"
_HEAD: Final = struct.Struct("<QIIQ232s")
_COUNT: Final = 8


def _mappings(pid: int) -> bytes:
    """What a process has in memory, by name; nothing for one that ended or is another user's."""
    try:
        return Path(f"/proc/{pid}/maps").read_bytes()
    except OSError:
        return b""


class StatusFile:
    """The file at `path`, which exists and is empty, for that many rules of faults."""

    path: Path

    def __init__(self, path: Path, rules: int) -> None:
        self.path, self._rules = path, rules
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            size = _HEAD.size + _COUNT * max(rules, 1)
            os.posix_fallocate(file, 0, size)
            self._map = mmap.mmap(file, size)
        finally:
            os.close(file)
        _HEAD.pack_into(self._map, 0, MAGIC, 0, 0, rules, b"")

    @property
    def started(self) -> int:
        """How many processes loaded the layers."""
        return int(_HEAD.unpack_from(self._map)[1])

    @property
    def failure(self) -> str:
        """What a process could not do of what was asked, and how many times; "" when nothing."""
        _, _, count, _, reason = _HEAD.unpack_from(self._map)
        text = str(reason.partition(b"\0")[0].decode("utf-8", "replace"))
        return text + f" ({count} times)" * (count > 1) if count else ""

    @property
    def matches(self) -> tuple[int, ...]:
        """How many calls each rule changed."""
        return struct.unpack_from(f"<{self._rules}Q", self._map, _HEAD.size)

    def running(self) -> tuple[int, ...]:
        """Processes other than this one that have the file in memory."""
        name = os.fsencode(self.path)
        pids = [int(entry) for entry in os.listdir("/proc") if entry.isdecimal()]
        return tuple(p for p in pids if p != os.getpid() and name in _mappings(p))

    def close(self) -> None:
        """Release the memory."""
        self._map.close()
