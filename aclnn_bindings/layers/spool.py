"""Makes the memory through which processes hand over records, and empties it into a recording.

Layout: `native/spool.h`. It is memory without a name, which other processes open by this one's
descriptor: the system never writes it back to a disk, so that writers meet no page faults for that,
and nothing is left over. A slot is filled by one thread; what it has written stands in the kernel's
pages, whatever becomes of the process. The collector takes full slots at once and the filled part
of others four times a second, and so what is lost in the worst case is what it had no time to take.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .recording_file import ROWS, Chunk, Writer

MAGIC: Final = 0x314F4F50534C434D  # "MCLSPOO1"
SLOTS: Final = 128
SLOT_SIZE: Final = 128 * 1024
ROW: Final = 64
UNFINISHED: Final = 7
_HEAD: Final = struct.Struct("<QIIIIQIIQ")
_SLOT: Final = struct.Struct("<IIIIIIIIQ")
_SLOTS_AT: Final = 4096
_SLOT_HEAD: Final = 64
_FREE, _FULL = 0, 2
_PAUSE_S: Final = 0.01
_PARTS_EVERY_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class _Slot:
    state: int
    process: int
    pid: int
    thread: int
    used: int
    drained: int
    function: int
    detail: int
    number: int


class Spool:
    """A spool and its only reader."""

    def __init__(self, slots: int = SLOTS, slot_size: int = SLOT_SIZE) -> None:
        self.slots, self.slot_size = slots, slot_size
        self._data_at = _SLOTS_AT + _SLOT_HEAD * slots
        size = self._data_at + slots * slot_size
        self._file = os.memfd_create("mindtorch-layers", os.MFD_CLOEXEC)
        try:
            os.posix_fallocate(self._file, 0, size)  # later a full memory would end the program
            self._map = mmap.mmap(self._file, size)
        except OSError:
            os.close(self._file)
            raise
        self.owner = os.getpid()
        self.path = Path(f"/proc/{self.owner}/fd/{self._file}")
        _HEAD.pack_into(self._map, 0, MAGIC, slots, slot_size, os.getpid(), 0, 0, 0, 0, 0)

    @property
    def lost(self) -> int:
        """Records that found no room."""
        return int(_HEAD.unpack_from(self._map, 0)[8])

    def stop(self) -> None:
        """Tell writers that nothing is taken any more."""
        struct.pack_into("<I", self._map, 36, 1)

    def beat(self) -> None:
        """Tell writers that the collector runs."""
        (count,) = struct.unpack_from("<I", self._map, 20)
        struct.pack_into("<I", self._map, 20, count + 1 & 0xFFFFFFFF)

    def close(self) -> None:
        """Release the memory; it goes with the last process that has mapped it."""
        self._map.close()
        os.close(self._file)

    def take(self, parts: bool) -> Iterator[Chunk]:
        """Rows of full slots, which become free; with `parts`, also what others have so far."""
        for index in range(self.slots):
            at = _SLOTS_AT + _SLOT_HEAD * index
            slot = _Slot(*_SLOT.unpack_from(self._map, at))
            if slot.state == _FREE or (slot.state != _FULL and not parts):
                continue
            gone = slot.state != _FULL and not _lives(slot.pid)
            if gone:  # read again: what it wrote before it went
                slot = _Slot(*_SLOT.unpack_from(self._map, at))
            start = self._data_at + index * self.slot_size
            data = self._map[start + slot.drained : start + slot.used]
            if data:
                yield Chunk(ROWS, slot.process, slot.pid, slot.thread, data)
            struct.pack_into("<I", self._map, at + 20, slot.used)
            if slot.state == _FULL:
                self._free(at)
            elif gone:
                yield from self._unfinished(slot)
                self._free(at)

    def _free(self, at: int) -> None:
        struct.pack_into("<6I", self._map, at + 4, 0, 0, 0, 0, 0, 0)
        struct.pack_into("<I", self._map, at, _FREE)

    def unfinished(self) -> Iterator[Chunk]:
        """After the program: the calls that its threads were in, as rows."""
        for index in range(self.slots):
            slot = _Slot(*_SLOT.unpack_from(self._map, _SLOTS_AT + _SLOT_HEAD * index))
            if slot.state != _FREE:
                yield from self._unfinished(slot)

    @staticmethod
    def _unfinished(slot: _Slot) -> Iterator[Chunk]:
        if slot.function:
            row = struct.pack("<BBHIQQIiII3Q", UNFINISHED, 0, 0, slot.function - 1,
                              slot.number, 0, 0, 0, slot.detail, 0, 0, 0, 0)  # fmt: skip
            yield Chunk(ROWS, slot.process, slot.pid, slot.thread, row)

    def busy(self) -> bool:
        """Whether more than half of the slots wait to be taken."""
        states = (self._map[_SLOTS_AT + _SLOT_HEAD * i] for i in range(self.slots))
        return sum(state == _FULL for state in states) > self.slots // 2


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Collector:
    """Empties a spool into a recording, on a thread of its own."""

    def __init__(
        self, spool: Spool, writer: Writer, watch: Callable[[Chunk], None] | None = None
    ) -> None:
        self._spool, self._writer, self._watch = spool, writer, watch
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="layers-collector", daemon=True)
        self.failure: OSError | None = None
        self._thread.start()

    def _run(self) -> None:
        try:
            self._empty_until_done()
        except OSError as error:  # a full disk ends the recording, never the program
            self.failure = error
            self._spool.stop()

    def _empty_until_done(self) -> None:
        parts_at = 0.0
        while not self._done.is_set():
            self._spool.beat()
            now = time.monotonic()
            parts = now >= parts_at
            if parts:
                parts_at = now + _PARTS_EVERY_S
            if not self._take(parts):
                self._done.wait(_PAUSE_S)

    def _take(self, parts: bool) -> int:
        count = 0
        for chunk in self._spool.take(parts):
            self._write(chunk)
            count += 1
        return count

    def _write(self, chunk: Chunk) -> None:
        self._spool.beat()
        self._writer.add(chunk, deflate=not self._spool.busy())
        if self._watch is not None:
            self._watch(chunk)

    def finish(self, stop: bool = True) -> None:
        """After the program ended: take what is left, killed threads' calls included. Without
        `stop` the spool goes on, for another collector."""
        self._done.set()
        self._thread.join()
        if self.failure is None:
            self._take(parts=True)
            for chunk in self._spool.unfinished():
                self._write(chunk)
        if stop:
            self._spool.stop()
