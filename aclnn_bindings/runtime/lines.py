"""Searches the lines of one text for many patterns, and only the lines that can fit.

A pattern is tried where a word that it needs stands; the answers are those of `finditer` over the
whole text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

from . import literals


class Lines:
    """One text, its lines, and where words stand in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lower = text.lower()
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._places: dict[str, frozenset[int]] = {}

    def matches(self, pattern: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
        """Every match in order, with the number of the line that it ends in."""
        words, crosses = _needs(pattern.pattern)
        if not words or len(self._lower) != len(self.text):
            yield from self._everywhere(pattern)
            return
        lines: frozenset[int] = frozenset().union(*map(self._lines_with, words))
        if crosses and lines:
            yield from self._everywhere(pattern)
        elif not crosses:
            for line in sorted(lines):
                for match in pattern.finditer(self.text, *self._span(line)):
                    yield line, match

    def _everywhere(self, pattern: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
        for match in pattern.finditer(self.text):
            yield bisect_right(self._starts, match.end()) - 1, match

    def _span(self, line: int) -> tuple[int, int]:
        following = self._starts[line + 1] - 1 if line + 1 < len(self._starts) else len(self.text)
        return self._starts[line], following

    def _lines_with(self, word: str) -> frozenset[int]:
        """The lines that have `word`, each searched once."""
        if word not in self._places:
            places = []
            at = self._lower.find(word)
            while at >= 0:
                line = bisect_right(self._starts, at) - 1
                places.append(line)
                at = self._lower.find(word, self._span(line)[1])
            self._places[word] = frozenset(places)
        return self._places[word]


@cache
def _needs(pattern: str) -> tuple[frozenset[str], bool]:
    return literals.required(pattern), literals.crosses_lines(pattern)
