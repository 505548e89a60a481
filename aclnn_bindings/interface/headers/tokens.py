"""Owns a position in the tokens of a declaration: brackets, attributes, depth."""

from __future__ import annotations

from collections.abc import Sequence

from .cursor import Cursor
from .raw import RawEnum
from .words import ATTRIBUTES, CXX


class NotUnderstood(ValueError):
    """A declaration that is not in the subset of C that headers use; the text says why."""


class Tokens(Cursor):
    """A position in the tokens of one declaration."""

    error, deepest = NotUnderstood, 40

    def __init__(self, tokens: Sequence[str], pack: int = 0, line: int = 0) -> None:
        super().__init__(tokens)
        self.pack = pack
        self.line = line
        # Enums defined inside structs, which C declares outside of them.
        self.enums: list[RawEnum] = []

    def balanced(self) -> list[str]:
        """Takes a bracketed group and gives the tokens inside it."""
        opening = self.take()
        closing = {"(": ")", "[": "]", "{": "}"}[opening]
        depth = 1
        inside: list[str] = []
        while True:
            token = self.take()
            if not token:
                raise NotUnderstood(f"'{opening}' is not closed")
            depth += (token == opening) - (token == closing)
            if not depth:
                return inside
            inside.append(token)

    def attribute(self) -> str:
        """Takes an attribute in any spelling at the cursor; empty text if there is none."""
        token = self.peek()
        if token in ATTRIBUTES:
            self.take()
            inside = self.balanced() if self.peek() == "(" else []
            return f"{token}({' '.join(inside)})"
        if token == "[" and self.peek(1) == "[":
            return " ".join(self.balanced()) or "[]"
        return ""

    def attributes(self) -> list[str]:
        """Takes all attributes at the cursor."""
        out = []
        while attribute := self.attribute():
            out.append(attribute)
        return out

    def trailing_attribute(self) -> str:
        """Takes an attribute or a macro that stands for one."""
        if attribute := self.attribute():
            return attribute
        token = self.peek()
        if token in CXX or not token.isidentifier():
            what = "C++: " if token in CXX else "unexpected "
            raise NotUnderstood(f"{what}'{token[:40] or 'end'}'")
        self.take()
        return f"{token}({' '.join(self.balanced())})" if self.peek() == "(" else token

    def until(self, *stops: str) -> list[str]:
        """Takes tokens up to a stop that stands outside all brackets."""
        depth, out = 0, []
        while (token := self.peek()) and (depth or token not in stops):
            depth += (token in "([{") - (token in ")]}")
            if depth < 0:
                break
            out.append(self.take())
        return out
