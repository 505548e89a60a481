"""Owns designs of declared operators in the user's cache folder: a search takes a tenth of a run.

A file belongs to the sources that it was made by: another version of them has another. What cannot
be read or written is searched anew. Declarations of a person's own files are never stored.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from aclnn_bindings.interface import user_dir

from ...spec.declaration import Declaration

Levels = Mapping[str, str]
_PACKAGE: Final = Path(__file__).parents[2]
_TABLE: Final = "CREATE TABLE IF NOT EXISTS designs (key TEXT PRIMARY KEY, calls BLOB)"


def key_of(declaration: Declaration, dtypes: Sequence[str], full: bool) -> str:
    """A key of a design: the operator, and every level, which an install's header may restrict."""
    factors = [(f.name, *f.levels) for f in declaration.factors(dtypes, full)]
    relations = [(r.kind, str(r)) for r in declaration.relations]
    text = json.dumps([dtypes, full, factors, list(declaration.params), relations])
    return f"{declaration.name} {hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def lookup(key: str, search: Callable[[], Sequence[Levels]]) -> Sequence[Levels]:
    """The calls of a design: those of the file, else what `search` finds."""
    with contextlib.suppress(sqlite3.Error, zlib.error, OSError, ValueError, TypeError):
        row = _file().execute("SELECT calls FROM designs WHERE key = ?", (key,)).fetchone()
        if row is not None:
            return [dict(levels) for levels in json.loads(zlib.decompress(row[0]))]
    calls = search()
    with contextlib.suppress(sqlite3.Error, OSError):
        text = zlib.compress(json.dumps([list(levels.items()) for levels in calls]).encode())
        with _file() as file:
            file.execute("INSERT OR REPLACE INTO designs VALUES (?, ?)", (key, text))
    return calls


@cache
def _file() -> sqlite3.Connection:
    """The file of these sources; those of others are removed."""
    folder = user_dir.to_write(user_dir.of_user("XDG_CACHE_HOME", ".cache"))
    path = folder / f"designs-{_sources()}.sqlite"
    for other in folder.glob("designs-*.sqlite*"):
        if not other.name.startswith(path.name):
            other.unlink(missing_ok=True)
    file = sqlite3.connect(path, timeout=1.0)
    file.execute("PRAGMA synchronous = OFF")  # a lost entry is searched again
    file.execute(_TABLE)
    return file


def _sources() -> str:
    """A digest of what designs depend on: the sources' names, sizes and times, Python, numpy."""
    digest = hashlib.blake2b(f"{sys.version} {np.__version__}".encode(), digest_size=8)
    folders = (_PACKAGE / "spec", _PACKAGE / "conformance", _PACKAGE / "judge")
    for path in sorted(p for folder in folders for p in folder.rglob("*.py")):
        status = path.stat()
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()
