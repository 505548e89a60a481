"""Records what this process's own bindings call, between two moments; refuses to see other code.

The bindings look their functions up in shims meanwhile. Shims need the libraries by their paths, so
that those which run already are not loaded twice.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..cann import Cann
from ..errors import RuntimeStateError
from . import recording_file
from .interposed import Interposed, interpose
from .recording_file import Writer
from .session import settings_file, write_head
from .spool import Collector, Spool

_one = threading.Lock()
_spool: Spool | None = None  # of this process: threads may write to it for as long as they live


@contextmanager
def recorded(cann: Cann, path: Path, settings: Sequence[tuple[str, str]] = ()) -> Iterator[None]:
    """Record the calls of `cann` to `path`. `settings` are lines of `native/settings.h`.

    RuntimeStateError under `mindtorch-npu run`, inside another recording, or in a fork of a process
    that recorded.
    """
    if "MINDTORCH_LAYERS" in os.environ:
        raise RuntimeStateError(
            f"record {path}: this process runs under `mindtorch-npu run`, whose --record sees "
            "every call already"
        )
    if not _one.acquire(blocking=False):
        raise RuntimeStateError(f"record {path}: this process records already; end that first")
    try:
        interposed = interpose(cann.install)
        writer = Writer(path)
        try:
            yield from _between(cann, interposed, writer, settings)
        finally:
            writer.close()
    finally:
        _one.release()


def _between(
    cann: Cann, interposed: Interposed, writer: Writer, settings: Sequence[tuple[str, str]]
) -> Iterator[None]:
    core = ctypes.CDLL(str(interposed.core))
    write_head(writer, interposed, sys.argv)
    spool = _own_spool()
    for _ in spool.take(parts=True):
        pass  # what a thread wrote after the recording before this one had ended
    with tempfile.TemporaryDirectory(prefix="mindtorch-layers-") as folder:
        file = Path(folder) / "settings"
        lines = [("table", str(interposed.table)), ("spool", str(spool.path)), *settings]
        lines += [("internal", place) for place in interposed.internal()]
        settings_file(file, lines)
        if not core.layers_start(os.fsencode(file)):
            raise RuntimeStateError(f"record {writer.path}: another install was recorded before")
    collector = Collector(spool, writer)
    cann.go_through(interposed.shims())
    code = 1
    try:
        yield
        code = 0
    finally:
        cann.go_through({})
        core.layers_stop()
        collector.finish(stop=False)
        if collector.failure is None:
            writer.add_json(recording_file.END, {"code": code, "lost": spool.lost})
    if collector.failure is not None:
        raise collector.failure


def _own_spool() -> Spool:
    """Made once: RuntimeStateError in a fork, whose parent empties it."""
    global _spool
    if _spool is None:
        _spool = Spool()
    elif _spool.owner != os.getpid():
        raise RuntimeStateError(
            "record: this process is a fork of one that recorded; start it with spawn"
        )
    return _spool
