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
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from types import CodeType

_MOST = 1 << 13  # functions in a file; a full one begins anew


class Codes:
    """Marshalled code by a digest of its source, read at the first question."""

    def __init__(self, path: str | os.PathLike[str]):
        self._path = os.fspath(path)
        self._stored: dict[bytes, bytes] | None = None
        self._new: dict[bytes, bytes] = {}

    def of(self, source: str, filename: str) -> CodeType:
        """The code of a source in a place, compiled where it was never met."""
        if self._stored is None:
            self._stored = self._read()
        text = f"{filename}\n{source}".encode()
        key = source_hash(text) + len(text).to_bytes(4, "little")
        data = self._stored.get(key)
        if data is not None:
            with suppress(ValueError, EOFError, TypeError):
                stored: CodeType = marshal.loads(data)
                return stored
        code = compile(source, filename, "exec")
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
        beside = f"{self._path}.{os.getpid()}"
        with suppress(OSError):
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            with open(beside, "wb") as file:
                file.write(MAGIC_NUMBER + marshal.dumps({**codes, **self._new}))
            os.replace(beside, self._path)
        self._new = {}

    def _read(self) -> dict[bytes, bytes]:
        with suppress(OSError, ValueError, EOFError, TypeError):
            with open(self._path, "rb") as file:
                data = file.read()
            if data.startswith(MAGIC_NUMBER):
                return dict(marshal.loads(data[len(MAGIC_NUMBER) :]))
        return {}


CODES = Codes(cache_from_source(os.path.join(os.path.dirname(__file__), "written.py")))
