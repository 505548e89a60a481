"""Owns the zip file that tensors are saved in: one pickle, storages, their byte order."""

from __future__ import annotations

import lzma
import mmap
import os
import struct
import sys
import zipfile
import zlib
from collections import Counter
from typing import Any

import numpy as np

from .._tensor import dtype as dt
from ._options import LoadEndianness, Options

# A pickle says what there is, not what it holds, and is saved unpacked: one that is larger than
# its file was packed by others, to be long to read.
_LARGEST_PICKLE = 1 << 30
_SMALL = 1 << 24


_UNREADABLE = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, NotImplementedError,
    OSError, ValueError, MemoryError,
)  # fmt: skip


class Archive:
    """A zip file as `save` writes it; `mapped` is its path where storages are to be mapped."""

    def __init__(self, archive: zipfile.ZipFile, mapped: str | None):
        self.archive = archive
        self.mapped = mapped
        names = archive.namelist()
        if len(set(names)) != len(names):
            twice = Counter(names).most_common(1)[0][0]
            raise RuntimeError(f"load: {twice} stands twice in the file; it is damaged")
        body = next((n for n in names if n.endswith("data.pkl")), None)
        if body is None:
            raise RuntimeError(
                'Expected hasRecord("version") to be true, but got false.  (Could this error'
                " message be improved?  If so, please report an enhancement request to PyTorch.)"
            )
        self.root = body[: -len("data.pkl")]
        self._look_for_overlaps()
        if f"{self.root}constants.pkl" in names:
            raise RuntimeError(
                "load: the file is a program of TorchScript, which does not run here"
            )
        order = f"{self.root}byteorder"
        byteorder = (
            self._read(order, 16).strip().decode("latin1") if order in names else byte_order()
        )
        if byteorder not in ("little", "big"):
            raise RuntimeError(f"load: {byteorder!r} is no byte order; the file is damaged")
        self.swapped = byteorder != sys.byteorder

    def pickle(self) -> bytes:
        """The pickle."""
        name = f"{self.root}data.pkl"
        whole = sum(entry.compress_size for entry in self.archive.infolist())
        return self._read(name, min(max(_SMALL, whole), _LARGEST_PICKLE))

    def _look_for_overlaps(self) -> None:
        """RuntimeError where entries share bytes: a small file would unpack to anything."""
        end, before = 0, ""
        for entry in sorted(self.archive.infolist(), key=lambda entry: entry.header_offset):
            if entry.header_offset < end:
                raise RuntimeError(f"load: {entry.filename} lies within {before}; it is damaged")
            end = entry.header_offset + 30 + len(entry.orig_filename) + entry.compress_size
            before = entry.filename

    def storage(self, key: str, dtype: dt.dtype | None, count: int) -> Any:
        """The bytes of a storage of `count` elements, in this machine's order."""
        size = count * (1 if dtype is None else dtype.itemsize)
        name = f"{self.root}data/{key}"
        if Options.skipping:
            return np.zeros(min(size, self._entry(name).file_size), np.uint8)
        data = self._mapped(name, size) if self.mapped is not None and not self.swapped else None
        if data is None:
            data = np.frombuffer(bytearray(self._read(name, size)), np.uint8)
        if data.size != size:
            raise RuntimeError(
                f"load: storage {key} has {data.size} bytes, the file says {size}; it is damaged"
            )
        return swapped(data, dtype) if self.swapped else data

    def _mapped(self, name: str, size: int) -> Any:
        """The entry's part of the file, mapped; None for one that is packed, empty or unaligned."""
        entry = self._entry(name)
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != size or not size:
            return None
        assert self.mapped is not None
        assert self.archive.fp is not None
        self.archive.fp.seek(entry.header_offset + 26)
        lengths = self.archive.fp.read(4)
        start = entry.header_offset + 30
        start += int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
        if start % 16 or start + size > os.path.getsize(self.mapped):
            return None
        mode: Any = "c" if Options.mmap_flags == mmap.MAP_PRIVATE else "r+"
        return np.memmap(self.mapped, np.uint8, mode, start, (size,)).view(np.ndarray)

    def _entry(self, name: str) -> zipfile.ZipInfo:
        try:
            return self.archive.getinfo(name)
        except KeyError as error:
            raise RuntimeError(f"load: {name} cannot be read: {error}") from None

    def _read(self, name: str, most: int) -> bytes:
        """An entry of at most `most` bytes; checked before it is unpacked."""
        declared = self._entry(name).file_size
        if declared > most:
            raise RuntimeError(f"load: {name} unpacks to {declared} bytes, at most {most} fit")
        try:
            return self.archive.read(name)
        except TimeoutError:  # no file's: a handler of signals gave up
            raise
        except _UNREADABLE as error:
            raise RuntimeError(f"load: {name} cannot be read: {error}") from None


def byte_order() -> str:
    """The byte order of files that do not say theirs."""
    kind = Options.endianness
    if kind in (None, LoadEndianness.NATIVE):
        return sys.byteorder
    return "little" if kind is LoadEndianness.LITTLE else "big"


def swapped(data: Any, dtype: dt.dtype | None) -> Any:
    """Bytes of the other order, in this machine's."""
    unit = 1 if dtype is None else dtype.itemsize // (2 if dtype.is_complex else 1)
    if unit == 1:
        return data
    return np.ascontiguousarray(data.reshape(-1, unit)[:, ::-1]).reshape(-1)
