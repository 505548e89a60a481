"""Owns the board that this process shares with the instrumented libraries of one worker."""

import mmap
import os
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np

SITES: Final = 1 << 20  # as in mutants.h
_HEAD: Final = 16  # active, recording, marked, met: int32 each
_OFF: Final = -1


class Board:
    """A file in memory; `path` goes to workers as ACLSIM_MUTANTS."""

    def __init__(self) -> None:
        folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        handle, name = tempfile.mkstemp(prefix="mutants-", dir=folder)
        self.path = Path(name)
        os.ftruncate(handle, _HEAD + SITES)
        self._map = mmap.mmap(handle, _HEAD + SITES)
        os.close(handle)
        self._head = np.frombuffer(self._map, np.int32, 4)
        self._reached = np.frombuffer(self._map, np.uint8, SITES, _HEAD)
        self.off()

    def choose(self, mutant: int, marked: bool = False) -> None:
        """Switch one mutant on. `marked`: it says by MET when it changes
        something; else it does so wherever it is reached."""
        self._head[2:] = marked, False
        self._head[0] = mutant

    def off(self) -> None:
        """Switch all off; whether the last one was met stays."""
        self._head[0] = _OFF

    @property
    def met(self) -> bool:
        """Whether the chosen mutant changed something since it was chosen."""
        return bool(self._head[3])

    def record(self, wanted: bool) -> None:
        """Forget what was reached; from now on note it, or do not."""
        self._reached[:] = 0
        self._head[1] = wanted

    def reached(self) -> Any:
        """Ids of the sites that were reached since `record(True)`."""
        return np.flatnonzero(self._reached.copy()).astype(np.int32)  # kernels may run on

    def close(self) -> None:
        self.path.unlink(missing_ok=True)
