"""Owns the value of a C constant expression on an LP64 machine; refuses what is not constant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol

from .numbers import NotConstant, Value, combine, literal, wrap
from .raw import Macro

TOKEN: Final = re.compile(
    r"""[A-Za-z_$]\w*+|\.?\d(?:[eEpP][+-]|[\w.])*+|"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'"""
    r"""|\.\.\.|::|<<=?|>>=?|->|[<>=!+\-*/&|^%]=|&&|\|\||\#\#|[^\s\w]"""
)
_DEPTH: Final = 64
_PRECEDENCE: Final = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7,
    ">=": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip


class Scope(Protocol):
    """What names mean where an expression stands."""

    def value(self, name: str) -> Value | None:
        """The value of a name, None if it has none."""

    def macro(self, name: str) -> Macro | None:
        """The function-like macro of that name, if any."""

    def width(self, ctype: str) -> tuple[int, bool] | None:
        """Size in bytes and signedness of a type; None if `ctype` names no known type."""


def tokenize(text: str) -> list[str]:
    """The C tokens of `text`, comments excluded."""
    return TOKEN.findall(text)


class _Parser:
    """Precedence climbing over tokens, with a bound on nesting."""

    def __init__(self, tokens: Sequence[str], scope: Scope, depth: int) -> None:
        self.tokens, self.scope, self.depth, self.at = tokens, scope, depth, 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def expect(self, token: str) -> None:
        if (found := self.take()) != token:
            raise NotConstant(f"expected {token} before {found[:40] or 'the end'}")

    def enter(self) -> None:
        self.depth += 1
        if self.depth > _DEPTH:
            raise NotConstant(f"nested deeper than {_DEPTH}")

    def ternary(self) -> Value:
        self.enter()
        chosen = self.binary(1)
        if self.peek() == "?":
            self.take()
            yes = self.ternary()
            self.expect(":")
            no = self.ternary()
            chosen = yes if chosen.number else no
        self.depth -= 1
        return chosen

    def binary(self, floor: int) -> Value:
        left = self.unary()
        while (level := _PRECEDENCE.get(self.peek(), 0)) >= floor:
            sign = self.take()
            left = combine(sign, left, self.binary(level + 1))
        return left

    def unary(self) -> Value:
        signs = []
        while self.peek() in ("-", "+", "~", "!"):
            signs.append(self.take())
        value = self.primary()
        for sign in reversed(signs):
            value = self.apply(sign, value)
        return value

    def apply(self, sign: str, value: Value) -> Value:
        number, bits, unsigned = value
        if sign == "!":
            return Value(int(not number))
        if isinstance(number, float):
            return Value(-number if sign == "-" else number, 0)
        changed = -number if sign == "-" else ~number if sign == "~" else number
        return Value(wrap(changed, bits, unsigned), bits, unsigned)

    def primary(self) -> Value:
        token = self.take()
        if token == "(":
            return self.parenthesis()
        if token[:1].isdigit() or token[:1] in (".", "'"):
            return literal(token)
        if token == "sizeof":
            self.expect("(")
            return Value(self.type_width(self.until_closed())[0], 64, True)
        if token == "static_cast" and self.peek() == "<":
            ctype = self.angle()
            self.expect("(")
            return self.cast(ctype, self.parenthesis())
        if not (token[:1].isalpha() or token[:1] == "_"):
            raise NotConstant(f"unexpected {token[:40] or 'end'}")
        return self.name(token)

    def name(self, token: str) -> Value:
        if self.peek() == "(" and (macro := self.scope.macro(token)):
            self.take()
            return self.call(token, macro)
        value = self.scope.value(token)
        if value is None:
            raise NotConstant(f"{token[:60]} has no known value")
        return value

    def parenthesis(self) -> Value:
        """What follows an opening parenthesis: a cast, or an expression."""
        start = self.at
        words = []
        while self.peek() and (self.peek().isidentifier() or self.peek() == "*"):
            words.append(self.take())
        if words and self.peek() == ")" and self.is_operand(self.at + 1):
            width = self.scope.width(" ".join(words))
            if width is not None:
                self.take()
                self.enter()
                value = self.cast(" ".join(words), self.unary())
                self.depth -= 1
                return value
        self.at = start
        value = self.ternary()
        self.expect(")")
        return value

    def is_operand(self, at: int) -> bool:
        token = self.tokens[at] if at < len(self.tokens) else ""
        return token[:1].isalnum() or token[:1] in ("_", "(", "-", "+", "~", "!", ".", "'")

    def type_width(self, ctype: str) -> tuple[int, bool]:
        width = self.scope.width(ctype)
        if width is None:
            raise NotConstant(f"type {ctype[:60]} is not known")
        return width

    def cast(self, ctype: str, value: Value) -> Value:
        size, signed = self.type_width(ctype)
        if ctype in ("float", "double"):
            return Value(float(value.number), 0)
        bits = size * 8
        number = wrap(int(value.number), bits, not signed)
        # Narrow types are promoted to int, which keeps their value.
        return Value(number, max(bits, 32), not signed and bits >= 32)

    def angle(self) -> str:
        self.take()
        words = []
        while self.peek() not in (">", ""):
            words.append(self.take())
        self.expect(">")
        return " ".join(words)

    def until_closed(self) -> str:
        depth = 1
        words: list[str] = []
        while True:
            token = self.take()
            if not token:
                raise NotConstant("parenthesis is not closed")
            depth += (token == "(") - (token == ")")
            if not depth:
                return " ".join(words)
            words.append(token)

    def call(self, name: str, macro: Macro) -> Value:
        self.enter()
        arguments: list[list[str]] = [[]]
        depth = 1
        while True:
            token = self.take()
            if not token:
                raise NotConstant(f"arguments of {name} are not closed")
            depth += (token == "(") - (token == ")")
            if not depth:
                break
            if token == "," and depth == 1:
                arguments.append([])
            else:
                arguments[-1].append(token)
        bound = dict(zip(macro.params or (), arguments, strict=False))
        body: list[str] = []
        for token in tokenize(macro.body):
            body.extend(bound.get(token, [token]))
        if len(body) > 10_000:
            raise NotConstant(f"{name} expands to {len(body)} tokens")
        value = evaluate_tokens(body, self.scope, self.depth)
        self.depth -= 1
        return value


def evaluate_tokens(tokens: Sequence[str], scope: Scope, depth: int = 0) -> Value:
    """The value of an expression given as tokens; NotConstant if it has none."""
    parser = _Parser(tokens, scope, depth)
    value = parser.ternary()
    if parser.at < len(tokens):
        raise NotConstant(f"unexpected {parser.peek()[:40]}")
    return value


def evaluate(text: str, scope: Scope) -> Value:
    """The value of an expression given as text; NotConstant if it has none."""
    try:
        return literal(text)
    except (NotConstant, IndexError):
        pass
    return evaluate_tokens(tokenize(text), scope)
