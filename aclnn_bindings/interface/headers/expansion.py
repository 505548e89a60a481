"""Owns the textual replacement of macros in expressions, with bounds on depth and size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from .numbers import NotConstant
from .raw import Macro
from .tokenizer import tokenize

_DEPTH: Final = 64
_MOST: Final = 20_000
MacroOf = Callable[[str], Macro | None]


class _Expander:
    """Replaces macros as a preprocessor does: a macro is not replaced inside itself."""

    def __init__(self, macro_of: MacroOf) -> None:
        self.macro_of = macro_of
        self.expanded = 0

    def run(self, tokens: Sequence[str], hidden: frozenset[str]) -> list[str]:
        if len(hidden) > _DEPTH:
            raise NotConstant(f"macros nest deeper than {_DEPTH}")
        out: list[str] = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            at += 1
            named = token.isidentifier() and token not in hidden
            macro = self.macro_of(token) if named else None
            if macro is None:
                out.append(token)
            elif macro.params is None:
                out += self.run(tokenize(macro.body), hidden | {token})
            elif tokens[at : at + 1] == ["("]:
                arguments, at = _arguments(tokens, at, token)
                out += self.run(self.bind(macro, arguments, hidden), hidden | {token})
            else:
                out.append(token)
            self.spend(len(out))
        return out

    def spend(self, tokens: int) -> None:
        self.expanded += 1
        if tokens > _MOST or self.expanded > 10 * _MOST:
            raise NotConstant(f"macros expand to more than {_MOST} tokens")

    def bind(self, macro: Macro, arguments: list[list[str]], hidden: frozenset[str]) -> list[str]:
        """The body of a macro with its arguments in place, those expanded unless pasted."""
        bound = dict(zip(macro.params or (), arguments, strict=False))
        body = tokenize(macro.body)
        out: list[str] = []
        for at, token in enumerate(body):
            if token == "##":
                continue
            pasted = "##" in body[at + 1 : at + 2] or (at and body[at - 1] == "##")
            piece = bound.get(token, [token])
            if token in bound and not pasted:
                piece = self.run(piece, hidden)
            if at and body[at - 1] == "##" and out and piece:
                out[-1] += piece[0]
                piece = piece[1:]
            out += piece
            self.spend(len(out))
        return out


def _arguments(tokens: Sequence[str], at: int, name: str) -> tuple[list[list[str]], int]:
    """The arguments of a call whose parenthesis is at `at`, and where the call ends."""
    arguments: list[list[str]] = [[]]
    depth = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        depth += (token == "(") - (token == ")")
        if not depth:
            return arguments, at
        if token == "," and depth == 1:
            arguments.append([])
        elif depth > 1 or token != "(":
            arguments[-1].append(token)
    raise NotConstant(f"arguments of {name} are not closed")


def expand(
    tokens: Sequence[str], macro_of: MacroOf, hidden: frozenset[str] = frozenset()
) -> list[str]:
    """`tokens` with every macro replaced; those in `hidden` are left as they are."""
    return _Expander(macro_of).run(tokens, hidden)
