"""Owns compressed journals: gzip by Python's own module, zstd by `zstandard`, told by their first
bytes.
"""

from __future__ import annotations

import gzip
import io
from typing import Any, BinaryIO, Final, cast

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"


class CompressionError(ValueError):
    """The bytes are compressed in a way that cannot be read here; the message says what is
    missing."""


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
        raise CompressionError(
            "zstd journals need zstandard: pip install 'mindtorch-npu[cluster]'"
        ) from None
    reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return cast(BinaryIO, io.BufferedReader(cast(Any, reader)))
