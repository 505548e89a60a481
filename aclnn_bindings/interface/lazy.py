"""A read-only mapping whose values are built from rows when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class LazyMapping(Mapping[str, T], Generic[T]):
    """Keys of `rows`, values `build(key, row)`, each built once."""

    def __init__(self, rows: Mapping[str, Any], build: Callable[[str, Any], T]) -> None:
        self._rows = rows
        self._build = build
        self._made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        entry = self._made.get(name)
        if entry is None:
            entry = self._made[name] = self._build(name, self._rows[name])
        return entry

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
