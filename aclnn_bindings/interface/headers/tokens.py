"""Owns a position in the tokens of a declaration: brackets, attributes, depth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .raw import RawEnum
from .words import ATTRIBUTES, CXX

_DEPTH: Final = 40


class NotUnderstood(ValueError):
    """A declaration that is not in the subset of C that headers use; the text says why."""


class Tokens:
    """A position in the tokens of one declaration."""

    def __init__(self, tokens: Sequence[str], pack: int = 0, line: int = 0) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.pack = pack
        self.line = line
        # Enums defined inside structs, which C declares outside of them.
        self.enums: list[RawEnum] = []

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def expect(self, token: str) -> None:
        if (next_token := self.take()) != token:
            raise NotUnderstood(f"expected '{token}', found '{next_token[:40] or 'the end'}'")

    def enter(self) -> None:
        self.depth += 1
        if self.depth > _DEPTH:
            raise NotUnderstood(f"nested deeper than {_DEPTH}")

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
