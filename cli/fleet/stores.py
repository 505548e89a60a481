"""Owns where a fleet's journals lie: files of this host, or addresses such as `s3://bucket/run`,
which fsspec reads (the extra `cluster`, and what fsspec needs for that store).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, Final

from ..foreign import ForeignError, opened as opened_file

_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]+://")
_SECRETS: Final = re.compile(r"([a-z][a-z0-9+.-]+://)([^/\s@]*@)?([^\s?#]*)([?#]\S*)?")


def is_address(text: object) -> bool:
    """Whether a text names something in a store, and no file."""
    return isinstance(text, str) and _ADDRESS.match(text) is not None


def without_secrets(text: str) -> str:
    """A text whose addresses have neither user, query nor fragment."""
    return _SECRETS.sub(
        lambda address: f"{address[1]}{address[3]}" + "?***" * bool(address[4]), text
    )


def _fsspec() -> Any:
    if find_spec("fsspec") is None:
        raise ForeignError("addresses need fsspec: pip install 'mindtorch-npu[cluster]'")
    import fsspec

    return fsspec


def opened(source: Path | str) -> BinaryIO:
    """The bytes of a file or of an address; OSError or ForeignError where they cannot be read."""
    if isinstance(source, Path):
        return opened_file(source)
    try:
        file: BinaryIO = _fsspec().open(source, "rb").open()
    except (ImportError, ValueError) as error:
        raise ForeignError(f"{error}") from None
    return file


def size(source: Path | str) -> int:
    """Bytes; 0 where nobody knows."""
    try:
        return source.stat().st_size if isinstance(source, Path) else 0
    except OSError:
        return 0


def expanded(sources: Iterable[Path | str]) -> list[Path | str]:
    """Addresses with `*` as all that match; files as they are."""
    every: list[Path | str] = []
    for source in sources:
        if isinstance(source, Path) or "*" not in source:
            every.append(source)
            continue
        try:
            system, path = _fsspec().core.url_to_fs(source)
        except (ImportError, ValueError) as error:
            raise ForeignError(f"{without_secrets(source)}: {error}") from None
        every += [str(system.unstrip_protocol(name)) for name in sorted(system.glob(path))]
    return every


def publish(path: Path, address: str) -> None:
    """Copy a file into a folder of a store; OSError or ForeignError where that fails."""
    system, folder = _fsspec().core.url_to_fs(address)
    system.makedirs(folder, exist_ok=True)
    system.put_file(str(path), f"{folder.rstrip('/')}/{path.name}")
