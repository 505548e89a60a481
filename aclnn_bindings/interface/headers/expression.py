"""Owns the value of a C constant expression on an LP64 machine; refuses what is not constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from .cursor import Cursor
from .numbers import Constant, NotConstant, combine, convert, literal, wrap

_PRECEDENCE: Final = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7,
    ">=": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip


class ConstantScope(Protocol):
    """What names mean where an expression stands."""

    def value(self, name: str) -> Constant | None:
        """The value of a name, None if it has none."""

    def width(self, ctype: str) -> tuple[int, bool] | None:
        """Size in bytes and signedness of a type; None if `ctype` names no known type."""


class _Parser(Cursor):
    """Precedence climbing over tokens, with a bound on nesting."""

    error, deepest = NotConstant, 64

    def __init__(self, tokens: Sequence[str], scope: ConstantScope) -> None:
        super().__init__(tokens)
        self.scope = scope

    def ternary(self) -> Constant:
        self.enter()
        condition = self.binary(1)
        if self.peek() == "?":
            self.take()
            yes = self.ternary()
            self.expect(":")
            no = self.ternary()
            condition = convert(yes if condition.number else no, yes, no)
        self.depth -= 1
        return condition

    def binary(self, floor: int) -> Constant:
        left = self.unary()
        while (level := _PRECEDENCE.get(self.peek(), 0)) >= floor:
            sign = self.take()
            left = combine(sign, left, self.binary(level + 1))
        return left

    def unary(self) -> Constant:
        signs = []
        while self.peek() in ("-", "+", "~", "!"):
            signs.append(self.take())
        value = self.primary()
        for sign in reversed(signs):
            value = self.apply(sign, value)
        return value

    def apply(self, sign: str, value: Constant) -> Constant:
        number, bits, unsigned = value
        if sign == "!":
            return Constant(int(not number))
        if isinstance(number, float):
            return Constant(-number if sign == "-" else number, 0)
        changed = -number if sign == "-" else ~number if sign == "~" else number
        return Constant(wrap(changed, bits, unsigned), bits, unsigned)

    def primary(self) -> Constant:
        token = self.take()
        if token == "(":
            return self.parenthesis()
        if token[:1].isdigit() or token[:1] in (".", "'"):
            return literal(token)
        if token == "sizeof":
            self.expect("(")
            return Constant(self.type_width(self.until_closed())[0], 64, True)
        if token == "static_cast" and self.peek() == "<":
            ctype = self.angle()
            self.expect("(")
            return self.cast(ctype, self.parenthesis())
        if not (token[:1].isalpha() or token[:1] == "_"):
            raise NotConstant(f"unexpected {token[:40] or 'end'}")
        return self.name(token)

    def name(self, token: str) -> Constant:
        value = self.scope.value(token)
        if value is None:
            raise NotConstant(f"{token[:60]} has no known value")
        return value

    def parenthesis(self) -> Constant:
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

    def cast(self, ctype: str, value: Constant) -> Constant:
        size, signed = self.type_width(ctype)
        if ctype in ("float", "double"):
            return Constant(float(value.number), 0)
        if ctype in ("bool", "_Bool"):
            return Constant(int(bool(value.number)))
        bits = size * 8
        number = wrap(int(value.number), bits, not signed)
        # Narrow types are promoted to int, which keeps their value.
        return Constant(number, max(bits, 32), not signed and bits >= 32)

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


def evaluate(tokens: Sequence[str], scope: ConstantScope) -> Constant:
    """The value of an expression without macros; NotConstant if it has none."""
    if len(tokens) == 1 and not tokens[0].isidentifier():
        return literal(tokens[0])
    parser = _Parser(tokens, scope)
    try:
        value = parser.ternary()
    except RecursionError:
        raise NotConstant("nested too deep") from None
    if parser.at < len(tokens):
        raise NotConstant(f"unexpected {parser.peek()[:40]}")
    return value
