"""Owns compressed journals: gzip by Python's own module, zstd by `zstandard`, read by their first
bytes, written as their names end.

A run appends plain lines, which survive a crash; its journal is compressed when it has ended.
"""

from __future__ import annotations

import gzip
import io
import shutil
import sys
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from aclnn_bindings.interface import atomic_write

from ...foreign import ForeignError

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_LEVEL: Final = 9  # of zstd: beyond it journals get hardly smaller
_MISSING: Final = "zstd journals need zstandard: pip install 'mindtorch-npu[cluster]'"
SUFFIXES: Final = (".gz", ".zst")


class CompressionError(ValueError):
    """The bytes are compressed in a way that cannot be read or written here; the message says what
    is missing."""


def opened(file: BinaryIO) -> BinaryIO:
    """The plain bytes of a file that may be compressed."""
    buffered = file if isinstance(file, io.BufferedReader) else io.BufferedReader(cast(Any, file))
    magic = buffered.peek(4)[:4]
    if magic[:2] == _GZIP:
        return cast(BinaryIO, gzip.GzipFile(fileobj=buffered))
    if magic == _ZSTD:
        return _zstd(buffered)
    return buffered


def _zstd(file: BinaryIO) -> BinaryIO:
    try:
        import zstandard
    except ImportError:
        raise CompressionError(_MISSING) from None
    reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return cast(BinaryIO, io.BufferedReader(cast(Any, reader)))


def damage() -> tuple[type[Exception], ...]:
    """What reading damaged or foreign bytes raises, beside OSError."""
    zstandard = sys.modules.get("zstandard")
    errors = (EOFError, zlib.error, CompressionError, ForeignError)
    return (*errors, zstandard.ZstdError) if zstandard else errors


def is_compressed(path: Path) -> bool:
    """Whether a file's first bytes say so; pipes are not asked."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        magic = file.read(4)
    return magic[:2] == _GZIP or magic == _ZSTD


def suffix() -> str:
    """Of the best that can be written here."""
    return ".zst" if find_spec("zstandard") else ".gz"


def live(path: Path) -> Path:
    """Where a run writes whose journal is to be `path`: beside it, plain, where that is compressed.
    CompressionError where nothing here can write it."""
    if path.suffix == ".zst" and suffix() != ".zst":
        raise CompressionError(_MISSING)
    return path.with_suffix("") if path.suffix in SUFFIXES else path


def pack(path: Path, target: Path) -> None:
    """Compress a journal into `target`, in one step, and remove it; nothing where they are one."""
    if path == target:
        return
    with path.open("rb") as plain, atomic_write.writing(target) as file:
        if target.suffix == ".zst":
            import zstandard

            compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
            compressor.copy_stream(plain, file)
        else:
            with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as zipped:
                shutil.copyfileobj(plain, zipped)
    path.unlink()
