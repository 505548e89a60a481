"""Owns the storages of a file: what a pickle says of them, read and moved once each."""

from __future__ import annotations

from typing import Any

from .._tensor import dtype as dt
from .._tensor.storage import Storage
from .._tensor.typed_storage import TypedStorage
from .._tensor.untyped_storage import UntypedStorage
from ._globals import STORAGES
from ._guarded import represent
from ._locations import Place, placed


class Storages:
    """The storages of a file, each read and moved once; subclasses say how they are read."""

    def __init__(self, where: Place):
        self.where = where
        self.moved: dict[str, UntypedStorage] = {}

    def by(self, pid: Any) -> UntypedStorage | TypedStorage:
        """The storage that a pickle describes; RuntimeError for what is no description."""
        key, dtype, location, count = described(pid)
        face = self.moved.get(key)
        if face is None:
            memory, device = placed(Storage(self.read(key, dtype, count)), location, self.where)
            face = self.moved[key] = UntypedStorage.of(memory, device)
        return TypedStorage(wrap_storage=face, dtype=dtype or dt.uint8, _internal=True)

    def read(self, key: str, dtype: dt.dtype | None, count: int) -> Any:
        """The bytes of a storage, an array on the cpu."""
        raise NotImplementedError


def described(pid: Any) -> tuple[str, dt.dtype | None, str, int]:
    """Key, dtype, saved device and count of elements of a storage."""
    try:
        what, kind, key, location, count = pid[:5]
        dtype = STORAGES[kind]
        fits = what == "storage" and key.__class__ is str and count.__class__ is int
    except (ValueError, KeyError, TypeError):
        fits = False
    if not fits or count < 0:
        raise RuntimeError(f"load: {represent(pid)} describes no storage; the file is damaged")
    return key, dtype, str(location), count
