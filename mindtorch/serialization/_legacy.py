"""Owns reading files older than the zip format: five pickles, then the bytes of each storage.

The layout is that of torch/serialization.py's `_legacy_save`: a magic number, a protocol, facts of
the machine, the object, the keys of the storages; then per key its count of elements and its bytes.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .._tensor import dtype as dt
from ._archive import swapped
from ._globals import STORAGES
from ._guarded import Guarded
from ._locations import Place
from ._storages import Storages, described

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
ZIP_MAGIC = b"PK\x03\x04"
_SMALLEST_ZIP = 22  # bytes: the end of central directory (APPNOTE 4.3.16)
_FOREIGN = "Invalid magic number; corrupt file?"


class _Nothing:
    """Stands for whatever a pickle makes while only its storages are looked for."""

    def __init__(self, *args: Any, **options: Any):
        pass

    def __call__(self, *args: Any) -> _Nothing:
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        return None

    def append(self, value: Any) -> None:
        """Take a list's element."""

    def extend(self, values: Any) -> None:
        """Take a list's elements."""

    def add(self, value: Any) -> None:
        """Take a set's element."""


class Noting(Guarded):
    """Reads past a pickle and notes the names in it; nothing of them is imported or called."""

    dispatch = dict(Guarded.dispatch)

    def __init__(self, file: BinaryIO):
        super().__init__(file)
        self.names: set[tuple[str, str]] = set()

    def load_build(self) -> None:
        self.stack.pop()

    dispatch[pickle.BUILD[0]] = load_build

    def writable(self, target: Any, kinds: tuple[type, ...]) -> bool:
        return super().writable(target, (*kinds, _Nothing))

    def _callable(self, function: Any, args: Any, options: Any = None) -> Any:
        if isinstance(function, _Nothing) and args.__class__ is tuple:
            return function
        return super()._callable(function, args, options)

    def named(self, module: str, name: str) -> Any:
        self.names.add((module, name))
        return _Nothing

    def persistent_load(self, pid: Any) -> Any:
        return _Nothing()


class _Skimming(Noting):
    """Notes the storages that a pickle names."""

    def __init__(self, file: BinaryIO):
        super().__init__(file)
        self.described: dict[str, tuple[dt.dtype | None, int]] = {}

    def named(self, module: str, name: str) -> Any:
        return name if name in STORAGES else _Nothing

    def persistent_load(self, pid: Any) -> Any:
        if isinstance(pid, tuple) and pid and pid[0] == "module":
            return _Nothing
        key, dtype, _, count = described(pid)
        self.described[key] = dtype, count
        return None


class _LegacyStorages(Storages):
    """Storages whose bytes were read."""

    def __init__(self, where: Place, arrays: dict[str, Any]):
        super().__init__(where)
        self.arrays = arrays

    def read(self, key: str, dtype: dt.dtype | None, count: int) -> Any:
        return self.arrays[key]


def damaged_zip(size: int) -> RuntimeError:
    """What torch says of `size` bytes that start as a zip archive and are none."""
    what = "not a ZIP archive" if size < _SMALLEST_ZIP else "failed finding central directory"
    return damaged_archive(f"reading zip archive: {what}")


def damaged_archive(what: str) -> RuntimeError:
    """What torch says where `what` failed."""
    return RuntimeError(
        f"PytorchStreamReader failed {what}. This is an internal miniz error."
        " If you are seeing this error, there is a high likelihood that your checkpoint file is"
        " corrupted. This can happen if the checkpoint was not saved properly, was transferred"
        " incorrectly, or the file was modified after saving."
    )


def read_legacy(
    file: BinaryIO, where: Place, kind: Any, options: dict[str, Any],
    unreadable: Callable[[Exception, bytes], Exception],
) -> Any:  # fmt: skip
    """The object of a file; EOFError for an empty one, `unreadable(error, head)` for no pickle.

    RuntimeError for a pickle that torch did not write.
    """
    start = file.tell()
    if not file.read(1):
        raise EOFError
    file.seek(start)
    head = file.read(4)
    file.seek(start)
    try:
        first = _Skimming(file).load()
        second = _Skimming(file).load() if first == MAGIC else None
    except Exception as error:
        raise unreadable(error, head) from error
    if (first, second) != (MAGIC, PROTOCOL):
        raise RuntimeError(_FOREIGN)
    facts = _skim(file).value
    order: Any = "big" if isinstance(facts, dict) and facts.get("little_endian") is False else (
        "little")  # fmt: skip
    body = file.tell()
    named = _skim(file).storages
    keys = _skim(file).value
    texts = isinstance(keys, list) and all(isinstance(key, str) for key in keys)
    if not texts or set(keys) != set(named):
        raise RuntimeError("load: the file's storages are not those that its object uses")
    arrays = {key: _bytes(file, key, *named[key], order) for key in keys}
    file.seek(body)
    return kind(file, _LegacyStorages(where, arrays), **options).everything()


class _Skim(NamedTuple):
    value: Any
    storages: dict[str, tuple[dt.dtype | None, int]]


def _skim(file: BinaryIO) -> _Skim:
    unpickler = _Skimming(file)
    try:
        return _Skim(unpickler.load(), unpickler.described)
    except RuntimeError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise RuntimeError(f"load: the file cannot be read ({what}); it is damaged") from error


def _bytes(file: BinaryIO, key: str, dtype: dt.dtype | None, count: int, order: Any) -> Any:
    """A storage: its count of elements, then its bytes."""
    size = count * (1 if dtype is None else dtype.itemsize)
    if int.from_bytes(file.read(8), order) != count:
        raise RuntimeError(f"load: storage {key} has not {count} elements, as the file says")
    here = file.tell()
    room = file.seek(0, os.SEEK_END) - here
    file.seek(here)
    if size > room:
        raise RuntimeError(f"load: storage {key} needs {size} bytes, {room} are left; cut short")
    data = np.frombuffer(bytearray(file.read(size)), np.uint8)
    return swapped(data, dtype) if order != sys.byteorder else data
