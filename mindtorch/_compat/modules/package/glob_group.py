"""Owns patterns of dotted names or paths: `*` is part of a segment, `**` any number of segments."""

from __future__ import annotations

import re
from collections.abc import Iterable

GlobPattern = str | Iterable[str]


def _segment(text: str, separator: str) -> str:
    other = f"[^{separator}]"
    if text == "**":
        return f"(?:{re.escape(separator)}{other}+)*"
    if "**" in text:
        raise ValueError("** can only appear as an entire path segment")
    return re.escape(separator) + f"{other}*".join(map(re.escape, text.split("*")))


def _expressions(patterns: GlobPattern, separator: str) -> list[re.Pattern[str]]:
    listed = [patterns] if isinstance(patterns, str) else patterns
    return [
        re.compile("".join(_segment(s, separator) for s in pattern.split(separator)))
        for pattern in listed
    ]


class GlobGroup:
    """Names that match one of `include` and none of `exclude`.

    ValueError for `**` that is not a whole segment.
    """

    def __init__(self, include: GlobPattern, *, exclude: GlobPattern = (), separator: str = "."):
        self._text = f"GlobGroup(include={include}, exclude={exclude})"
        self.include = _expressions(include, separator)
        self.exclude = _expressions(exclude, separator)
        self.separator = separator

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def matches(self, candidate: str) -> bool:
        """Whether a name matches."""
        name = self.separator + candidate
        return any(p.fullmatch(name) for p in self.include) and not any(
            p.fullmatch(name) for p in self.exclude
        )
