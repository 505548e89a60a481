"""Owns `cann.ops` and `cann.functions`, whose names an install decides; knows none of them itself.

`mindtorch-npu stubs` writes, for type checkers, what this module has on one install.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from ..runtime.locks import Lock


class Namespace:
    """Attribute access to operators or functions: `cann.ops.aclnnAdd`. `dir()` lists the names."""

    def __init__(
        self, names: Callable[[], Collection[str]], find: Callable[[str], Any], root: Path
    ) -> None:
        self._names, self._find, self._root = names, find, root
        self._lock = Lock()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with self._lock:
            if name not in self.__dict__:
                self.__dict__[name] = self._find(name)  # the next time Python looks no further
            return self.__dict__[name]

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(of {self._root}; dir() lists them)"

    def __contains__(self, name: object) -> bool:
        return name in self._names()

    def __dir__(self) -> list[str]:
        return sorted(self._names())


class Operators(Namespace):
    """The operators that the install's headers declare, as `BoundOp`."""


class Functions(Namespace):
    """The C functions that the install's headers declare, as `BoundFunction`."""
