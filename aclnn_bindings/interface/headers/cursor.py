"""Owns a position in tokens: look, take, expect, and a bound on nesting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class Cursor:
    """A position in tokens; `error` is raised for what is not expected, past `deepest` too."""

    tokens: Sequence[str]
    at: int
    depth: int

    error: ClassVar[type[ValueError]] = ValueError
    deepest: ClassVar[int] = 64

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens, self.at, self.depth = tokens, 0, 0

    def peek(self, ahead: int = 0) -> str:
        """A token from here, "" past the end."""
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def expect(self, token: str) -> None:
        if (next_token := self.take()) != token:
            raise self.error(f"expected '{token}', found '{next_token[:40] or 'the end'}'")

    def enter(self) -> None:
        """One level deeper."""
        self.depth += 1
        if self.depth > self.deepest:
            raise self.error(f"nested deeper than {self.deepest}")
