"""Makes the memory through which processes hand over records, and empties it into a recording.

Layout: `native/spool.h`. It lies in memory where that can be (`scratch.py`): the system then never
writes it back to a disk, and writers meet no page faults for that. A slot is filled by one thread;
what it has written stands in the kernel's pages, whatever becomes of the process. Threads without a
slot close those of others. The collector takes full slots at once and the filled part of others
four times a second; what one thread wrote it takes in the order of writing.
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

MAGIC: Final = 0x324F4F50534C434D  # "MCLSPOO2"
SLOTS: Final = 128
SLOT_SIZE: Final = 128 * 1024
ROW: Final = 64
UNFINISHED: Final = 7
_HEAD: Final = struct.Struct("<QIIIIQIIQQQ")
_SLOT: Final = struct.Struct("<IIIIIIIIQQQ")
_SLOTS_AT: Final = 4096
_SLOT_HEAD: Final = 64
_HEARTBEAT_AT, _STOPPED_AT = 5, 9  # 32-bit numbers from the start
_DRAINED = 5  # and from a slot's head
_FREE, _FULL = 0, 2
_STATE_BITS: Final = 3
_PAUSE_S: Final = 0.01
_PARTS_EVERY_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class _Slot:
    word: int  # its state, and how often it was taken
    process: int
    pid: int
    thread: int
    used: int
    drained: int
    function: int
    detail: int
    number: int
    sequence: int
    pid_namespace: int

    @property
    def state(self) -> int:
        return self.word & _STATE_BITS


class Spool:
    """A spool and its only reader: in the empty file at `path`, else in memory without a name,
    which only this process's own code opens."""

    slots: int
    slot_size: int

    def __init__(
        self, path: Path | None = None, slots: int = SLOTS, slot_size: int = SLOT_SIZE
    ) -> None:
        self.slots, self.slot_size = slots, slot_size
        self._data_at = _SLOTS_AT + _SLOT_HEAD * slots
        size = self._data_at + slots * slot_size
        if path is None:
            self._file = os.memfd_create("mindtorch-layers", os.MFD_CLOEXEC)
        else:
            self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.posix_fallocate(self._file, 0, size)  # later a full memory would end the program
            self._map = mmap.mmap(self._file, size)
        except OSError:
            os.close(self._file)
            raise
        self.owner: int = os.getpid()
        self.path: Path = path or Path(f"/proc/{self.owner}/fd/{self._file}")
        # Items are stored whole, while `struct.pack_into` clears them first: a thread would take a
        # slot whose state is 0 for a moment.
        self._numbers = memoryview(self._map).cast("I")
        self._namespace = _pid_namespace()
        _HEAD.pack_into(self._map, 0, MAGIC, slots, slot_size, os.getpid(), 0, 0, 0, 0, 0, 0,
                        self._namespace)  # fmt: skip

    @property
    def lost(self) -> int:
        """Records that found no room."""
        return int(_HEAD.unpack_from(self._map, 0)[8])

    def stop(self) -> None:
        """Tell writers that nothing is taken any more."""
        self._numbers[_STOPPED_AT] = 1

    def beat(self) -> None:
        """Tell writers that the collector runs."""
        self._numbers[_HEARTBEAT_AT] = self._numbers[_HEARTBEAT_AT] + 1 & 0xFFFFFFFF

    def close(self) -> None:
        """Release the memory; it goes with the last process that has mapped it."""
        self._numbers.release()
        self._map.close()
        os.close(self._file)

    def take(self, parts: bool) -> Iterator[Chunk]:
        """Rows of full slots, which become free; with `parts`, also what others have so far.

        What one thread wrote comes in the order of writing: a thread leaves a slot before it takes
        the next, so that a second look finds all that precede what the first look found.
        """
        ready = {i: slot for i, slot in self._in_use() if parts or slot.state == _FULL}
        if not ready:
            return
        last: dict[tuple[int, int], int] = {}
        for slot in ready.values():
            key = slot.process, slot.thread
            last[key] = max(last.get(key, 0), slot.sequence)
        before = sorted(
            (slot.sequence, i)
            for i, slot in self._in_use()
            if i in ready or slot.sequence < last.get((slot.process, slot.thread), 0)
        )
        for sequence, index in before:
            yield from self._take(index, sequence)

    def _words(self) -> list[int]:
        """The state words of all slots."""
        return self._numbers[_SLOTS_AT // 4 : self._data_at // 4 : _SLOT_HEAD // 4].tolist()

    def _in_use(self) -> list[tuple[int, _Slot]]:
        return [(i, self._slot(i)) for i, word in enumerate(self._words()) if word & _STATE_BITS]

    def _slot(self, index: int) -> _Slot:
        return _Slot(*_SLOT.unpack_from(self._map, _SLOTS_AT + _SLOT_HEAD * index))

    def _take(self, index: int, sequence: int) -> Iterator[Chunk]:
        slot = self._slot(index)
        if slot.sequence != sequence:
            return  # seen while a thread was taking it: it comes in its order the next time
        gone = slot.state != _FULL and not self._lives(slot)
        if gone:
            slot = self._slot(index)  # read again: what it wrote before it went
        start = self._data_at + index * self.slot_size
        data = self._map[start + slot.drained : start + slot.used]
        if data:
            yield Chunk(ROWS, slot.process, slot.pid, slot.thread, data)
        at = (_SLOTS_AT + _SLOT_HEAD * index) // 4
        self._numbers[at + _DRAINED] = slot.used
        if gone:
            yield from self._unfinished(slot)
        if gone or slot.state == _FULL:
            self._free(at, slot.word)

    def _free(self, at: int, word: int) -> None:
        for field in range(1, 7):  # process to function
            self._numbers[at + field] = 0
        self._numbers[at] = word & ~_STATE_BITS | _FREE

    def _lives(self, slot: _Slot) -> bool:
        """Whether a slot's process may still write; of other namespaces' processes nobody knows."""
        return slot.pid_namespace != self._namespace or _lives(slot.pid)

    def unfinished(self) -> Iterator[Chunk]:
        """After the program: the calls that its threads were in, as rows."""
        for _, slot in self._in_use():
            yield from self._unfinished(slot)

    @staticmethod
    def _unfinished(slot: _Slot) -> Iterator[Chunk]:
        if slot.function:
            row = struct.pack("<BBHIQQIiII3Q", UNFINISHED, 0, 0, slot.function - 1,
                              slot.number, 0, 0, 0, slot.detail, 0, 0, 0, 0)  # fmt: skip
            yield Chunk(ROWS, slot.process, slot.pid, slot.thread, row)

    def busy(self) -> bool:
        """Whether more than half of the slots wait to be taken."""
        full = sum(word & _STATE_BITS == _FULL for word in self._words())
        return full > self.slots // 2


def _pid_namespace() -> int:
    """What process ids count in; 0 where the system does not say."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


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
