"""Owns the doors to Python's own pickler and unpickler, which are not part of pickle's interface.

The ones in C neither let a global be written without being importable nor one opcode be refused.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:

    class Pickler:
        """What is used of pickle._Pickler."""

        memo: dict[int, tuple[int, Any]]

        def __init__(self, file: BinaryIO, protocol: int): ...
        def dump(self, obj: Any) -> None: ...
        def get(self, i: int) -> bytes: ...
        def memoize(self, obj: Any) -> None: ...
        def save(self, obj: Any, save_persistent_id: bool = True) -> None: ...
        def save_reduce(self, *parts: Any, obj: Any) -> None: ...
        def write(self, data: bytes) -> None: ...

    class Unpickler:
        """What is used of pickle._Unpickler."""

        dispatch: dict[int, Any]
        stack: list[Any]

        def __init__(self, file: BinaryIO, **options: Any): ...
        def find_class(self, module: str, name: str) -> Any: ...
        def load(self) -> Any: ...
        def load_build(self) -> None: ...

    Reader = Unpickler
else:
    Reader = object  # what goes before an unpickler of any pickle module
    Pickler = pickle._Pickler
    Unpickler = pickle._Unpickler
