"""Owns what loading allows and assumes: safe globals, byte order, mapping, data left out."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, TypeAlias


class LoadEndianness(Enum):
    """The byte order to assume of files that do not say theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


# A class or function, or one with the name that files call it by.
Allowed: TypeAlias = "Callable[..., Any] | tuple[Callable[..., Any], str]"

SAFE: list[Allowed] = []


class Options:
    """What the setters below set."""

    endianness: LoadEndianness | None = None
    mmap_flags: int = mmap.MAP_PRIVATE
    crc32: bool = True
    skipping = False


def add_safe_globals(safe_globals: Iterable[Allowed]) -> None:
    """Let `load(weights_only=True)` accept these functions and classes."""
    for item in safe_globals:
        if item not in SAFE:
            SAFE.append(item)


def clear_safe_globals() -> None:
    """Take back all that `add_safe_globals` allowed."""
    SAFE.clear()


def get_safe_globals() -> list[Allowed]:
    """What `add_safe_globals` allowed."""
    return list(SAFE)


class safe_globals:  # noqa: N801 - torch's name
    """Allow functions and classes inside this context."""

    def __init__(self, safe_globals: Iterable[Allowed]):
        self.globals = list(safe_globals)
        self.before: list[Allowed] = []

    def __enter__(self) -> None:
        self.before = list(SAFE)
        add_safe_globals(self.globals)

    def __exit__(self, *error: object) -> None:
        SAFE[:] = self.before


def safe_names() -> dict[tuple[str, str], Any]:
    """(module, name) as files write it → what was allowed."""
    names = {}
    for item in SAFE:
        if isinstance(item, tuple):
            value, path = item
            module, _, name = path.rpartition(".")
            names[module, name] = value
        else:
            module = item.__module__
            names[module, item.__qualname__] = item
            if module.startswith("mindtorch"):
                names["torch" + module.removeprefix("mindtorch"), item.__qualname__] = item
    return names


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order assumed of files without a record of it; None: this machine's."""
    return Options.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Assume a byte order of files without a record of it; TypeError for anything else."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    Options.endianness = endianness


def get_default_mmap_options() -> int:
    """The flags that `load(mmap=True)` maps files with."""
    return Options.mmap_flags


class set_default_mmap_options:  # noqa: N801 - torch's name
    """Map files with MAP_PRIVATE or MAP_SHARED; a function, and a context that restores."""

    def __init__(self, flags: int):
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE"
                f" or mmap.MAP_SHARED, but got {flags}"
            )
        self.before: int = Options.mmap_flags
        Options.mmap_flags = flags

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        Options.mmap_flags = self.before


def get_crc32_options() -> bool:
    """What set_crc32_options was given."""
    return Options.crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Kept without effect: checksums are always written."""
    Options.crc32 = compute_crc32


class skip_data:  # noqa: N801 - torch's name
    """Inside, `save` writes zeros in place of storages' bytes, and `load` leaves bytes unread."""

    before: bool

    def __init__(self, materialize_fake_tensors: bool = False):
        self.before = False

    def __enter__(self) -> None:
        self.before, Options.skipping = Options.skipping, True

    def __exit__(self, *error: object) -> None:
        Options.skipping = self.before
