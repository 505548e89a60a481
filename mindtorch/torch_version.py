"""Owns torch.torch_version: a version that is a string and compares as versions do."""

from __future__ import annotations

import re
from typing import Any


def _parts(value: Any) -> tuple[Any, ...]:
    """Release numbers, with those of a pre-release before those of the release."""
    if not isinstance(value, str):
        value = ".".join(str(v) for v in value) if isinstance(value, tuple | list) else str(value)
    public = value.partition("+")[0]
    match = re.match(r"v?(\d+(?:\.\d+)*)(.*)", public)
    if match is None:
        raise ValueError(f"Invalid version: '{value}'")
    numbers = [int(n) for n in match[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    rest = match[2].lstrip(".-_")
    rank = 1 if not rest or rest.startswith(("post", "r")) else 0 if rest[0] in "abcr" else -1
    return (tuple(numbers), rank, rest)


class TorchVersion(str):
    """A version: compares with strings, tuples and packaging's versions by its numbers.

    The local part (`+cpu`) does not count.
    """

    __slots__ = ()

    def __lt__(self, other: Any) -> bool:
        return _parts(str(self)) < _parts(other)

    def __le__(self, other: Any) -> bool:
        return _parts(str(self)) <= _parts(other)

    def __gt__(self, other: Any) -> bool:
        return _parts(str(self)) > _parts(other)

    def __ge__(self, other: Any) -> bool:
        return _parts(str(self)) >= _parts(other)

    def __eq__(self, other: object) -> bool:
        try:
            return str.__eq__(self, str(other)) or _parts(str(self)) == _parts(other)
        except ValueError:
            return False

    def __hash__(self) -> int:
        return str.__hash__(self)
