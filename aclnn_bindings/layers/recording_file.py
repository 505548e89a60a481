"""Owns a recording's file: chunks that are only ever appended, each readable by itself.

A file is the magic, then chunks: a head, then the bytes that it counts, checked by CRC-32 and
usually deflated (zlib). What a crash left torn at the end is not read. docs/layers.md has the
format; what the rows in a chunk are, `mindtorch_npu.recording` reads.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..errors import BindingError

MAGIC: Final = b"ACLREC1\n"
_HEAD: Final = struct.Struct("<4sBBHIIIIIQ")
_CHUNK: Final = b"CHNK"
HEADER, FUNCTIONS, ROWS, END, FINDING = 1, 2, 3, 4, 5
_RAW, _DEFLATED = 0, 1
_LEVEL: Final = 1
# What a chunk may hold: rows are cut at the size of a slot, tables of functions are smaller.
CHUNK_BYTES: Final = 64 << 20


class RecordingError(BindingError, ValueError):
    """A file that is no recording, or of another version."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk: `process` counts processes of the run, `pid` and `thread` are the system's."""

    kind: int
    process: int
    pid: int
    thread: int
    data: bytes

    def json(self) -> Any:
        """What the chunk holds; halves of surrogate pairs, which nothing can write, become `?`."""
        value = json.loads(self.data)
        if b"\\u" not in self.data:
            return value
        return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


class Writer:
    """A recording being written; each chunk is one write.

    Until it has begun well it lies beside a `path` that holds an older one: `publish` puts it in
    place. RecordingError for what is no file, and while another process writes there.
    """

    size: int

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists() and not path.is_file():
            raise RecordingError(f"{path}: a folder, a device, a pipe or a socket: name a file")
        self._beside = path.with_name(f".{path.name[:200]}.part")
        try:
            self._file = self._reserved()
        except OSError as error:
            raise RecordingError(f"{path}: cannot be written: {error.strerror}") from None
        self._begun, self._published = False, False
        if not path.exists():
            self._put_in_place()
        os.write(self._file, MAGIC)
        self.size = len(MAGIC)

    def _reserved(self) -> int:
        """The file beside, empty and locked: of nobody else, and what a killed writer left."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        while True:
            file = os.open(self._beside, flags, 0o644)
            try:
                self._lock(file)
                facts = os.fstat(file)
                if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid():
                    raise RecordingError(f"{self._beside}: somebody else's: remove it")
                if _same_file(self._beside, facts) and facts.st_nlink == 1:
                    self._refuse_if_written()
                    os.ftruncate(file, 0)
                    return file
                if facts.st_nlink > 1:
                    raise RecordingError(f"{self._beside}: has other names too: remove it")
            except BaseException:
                os.close(file)
                raise
            os.close(file)

    def _lock(self, file: int) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RecordingError(
                f"{self.path}: another process records into it: wait for it, or name another file"
            ) from None
        except OSError:
            pass  # a file system without locks

    def _refuse_if_written(self) -> None:
        """RecordingError while the writer of an older recording is still at it."""
        try:
            old = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return
        try:
            self._lock(old)
        except RecordingError:
            self._beside.unlink(missing_ok=True)
            raise
        finally:
            os.close(old)

    def publish(self) -> None:
        """Put the recording in place of what `path` held; a link is replaced, not followed."""
        self._begun = True
        self._put_in_place()

    def _put_in_place(self) -> None:
        if not self._published:
            os.replace(self._beside, self.path)
            self._published = True

    @property
    def is_there(self) -> bool:
        """Whether the file is still where it was put."""
        path = self.path if self._published else self._beside
        return _same_file(path, os.fstat(self._file))

    def add(self, chunk: Chunk, deflate: bool = True) -> None:
        """Append one chunk; without `deflate` as it is, when time is short. Rows publish it."""
        if chunk.kind in (ROWS, END):
            self.publish()
        stored = zlib.compress(chunk.data, _LEVEL) if deflate else chunk.data
        head = _HEAD.pack(_CHUNK, chunk.kind, _DEFLATED if deflate else _RAW, 0, len(stored),
                          len(chunk.data), zlib.crc32(stored), chunk.process, chunk.pid,
                          chunk.thread)  # fmt: skip
        left = memoryview(head + stored)
        self.size += len(left)
        while left:
            left = left[os.write(self._file, left) :]

    def add_json(self, kind: int, data: Mapping[str, Any] | list[Any]) -> None:
        """Append a chunk of JSON."""
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        self.add(Chunk(kind, 0, 0, 0, text.encode("utf-8", "backslashreplace")))

    def close(self) -> None:
        """End the file; one that never began well leaves what `path` held."""
        if not self._begun:
            (self.path if self._published else self._beside).unlink(missing_ok=True)
        os.close(self._file)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _same_file(path: Path, facts: os.stat_result) -> bool:
    try:
        now = path.lstat()
    except OSError:
        return False
    return (now.st_dev, now.st_ino) == (facts.st_dev, facts.st_ino)


def chunks(path: Path, kinds: Collection[int] | None = None) -> Iterator[Chunk]:
    """The chunks of a file, one in memory at a time; ends before the first torn one.

    Those of other `kinds` than asked for are passed; they are checked, so that no chunk comes from
    behind a damaged one.
    """
    if path.exists() and not path.is_file():
        raise RecordingError(f"{path}: no recording: a folder, a device, a pipe or a socket")
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise RecordingError(
                f"{path}: no recording of version 1 (it does not begin with "
                f"{MAGIC.decode().strip()}); make one with "
                "`mindtorch-npu run --record FILE -- COMMAND`"
            )
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            magic, kind, codec, _, stored, size, crc, process, pid, thread = _HEAD.unpack(head)
            if magic == _CHUNK and max(stored, size) > CHUNK_BYTES:
                raise RecordingError(
                    f"{path}: a chunk of {max(stored, size):,} bytes, more than any writer makes"
                )
            data = file.read(stored) if magic == _CHUNK else b""
            if magic != _CHUNK or len(data) != stored or zlib.crc32(data) != crc:
                return
            if kinds is not None and kind not in kinds:
                continue
            plain = _inflated(data, size, path) if codec == _DEFLATED else data
            yield Chunk(kind, process, pid, thread, plain)


def _inflated(data: bytes, size: int, path: Path) -> bytes:
    """The `size` bytes that a chunk holds; no more are made of it, whatever its head says."""
    unpacking = zlib.decompressobj()
    try:
        plain = unpacking.decompress(data, size + 1)  # grows as it is filled
    except zlib.error as error:
        raise RecordingError(f"{path}: a chunk that does not unpack: {error}") from None
    if len(plain) != size:
        raise RecordingError(f"{path}: a chunk does not hold the {size} bytes that it says")
    return plain
