"""Owns the code of written functions from one process to the next: to compile one takes half of
the time of an operator's first call.

It lies in one file where Python puts the code of `source.py`, under the same switches
(PYTHONDONTWRITEBYTECODE, PYTHONPYCACHEPREFIX), and is as much to be trusted. What cannot be read
is compiled again.
"""

from __future__ import annotations

import atexit
import marshal
import os
import sys
from contextlib import suppress
from hashlib import blake2b
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from types import CodeType

_MOST = 1 << 13  # functions in a file; a full one begins anew


class Codes:
    """Marshalled code by a digest of its source, read at the first question."""

    def __init__(self, path: Path):
        self._path = path
        self._stored: dict[bytes, bytes] | None = None
        self._new: dict[bytes, bytes] = {}

    def of(self, source: str) -> CodeType:
        """The code of a source, compiled where it was never met."""
        if self._stored is None:
            self._stored = self._read()
        key = blake2b(source.encode(), digest_size=16).digest()
        data = self._stored.get(key)
        if data is not None:
            with suppress(ValueError, EOFError, TypeError):
                stored: CodeType = marshal.loads(data)
                return stored
        code = compile(source, "<mindtorch>", "exec")
        if not sys.dont_write_bytecode:
            if not self._new:
                atexit.register(self.save)
            self._new[key] = marshal.dumps(code)
        return code

    def save(self) -> None:
        """Add what was compiled here to the file; where it cannot be written, nothing."""
        codes = self._read()
        if len(codes) + len(self._new) > _MOST:
            codes = {}
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(MAGIC_NUMBER + marshal.dumps({**codes, **self._new}))
            beside.replace(self._path)
        self._new = {}

    def _read(self) -> dict[bytes, bytes]:
        with suppress(OSError, ValueError, EOFError, TypeError):
            data = self._path.read_bytes()
            if data.startswith(MAGIC_NUMBER):
                return dict(marshal.loads(data[len(MAGIC_NUMBER) :]))
        return {}


CODES = Codes(Path(cache_from_source(str(Path(__file__).with_name("written.py")))))
