"""Owns the value of a C constant expression on an LP64 machine; refuses what is not constant."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from .raw import Macro

TOKEN: Final = re.compile(
    r"""[A-Za-z_$]\w*+|\.?\d(?:[eEpP][+-]|[\w.])*+|"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'"""
    r"""|\.\.\.|::|<<=?|>>=?|->|[<>=!+\-*/&|^%]=|&&|\|\||\#\#|[^\s\w]"""
)
_INTEGER: Final = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)([uUlL]*)")
_FLOAT: Final = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFlL]?")
_ESCAPES: Final = {"n": 10, "t": 9, "r": 13, "0": 0, "a": 7, "b": 8, "f": 12, "v": 11}
_DEPTH: Final = 64
_PRECEDENCE: Final = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7,
    ">=": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip


class NotConstant(ValueError):
    """An expression that has no constant value here; the text says why."""


class Value(NamedTuple):
    """A number with its C type: `bits` 32 or 64, 0 for a floating type."""

    number: int | float
    bits: int = 32
    unsigned: bool = False


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


def wrap(number: int, bits: int, unsigned: bool) -> int:
    """`number` as an integer of that width holds it."""
    number &= (1 << bits) - 1
    return number if unsigned or number < 1 << (bits - 1) else number - (1 << bits)


def _integer(digits: str, suffix: str) -> Value:
    octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
    try:
        number = int(digits, 8 if octal else 0)
    except ValueError as error:
        raise NotConstant(f"malformed number {digits[:40]}") from error
    suffix = suffix.lower()
    unsigned = "u" in suffix
    decimal = digits.isdigit() and not octal
    bits = 64 if "l" in suffix or number >> (32 if unsigned or not decimal else 31) else 32
    if not unsigned and number >> (bits - 1) and not decimal:
        unsigned = True
    if number >> 64:
        raise NotConstant(f"number {digits[:40]} is wider than 64 bits")
    return Value(number, bits, unsigned)


def literal(token: str) -> Value:
    """The value of a number or character token."""
    if len(token) > 512:
        raise NotConstant(f"number {token[:40]}… is too long")
    if found := _INTEGER.fullmatch(token):
        return _integer(found[1], found[2])
    if _FLOAT.fullmatch(token):
        return Value(float(token.rstrip("fFlL")), 0)
    if token[0] == "'":
        body = token[1:-1]
        if len(body) == 1:
            return Value(ord(body))
        if len(body) == 2 and body[0] == "\\":
            return Value(_ESCAPES.get(body[1], ord(body[1])))
        if body[:2] == "\\x":
            return Value(int(body[2:], 16))
    raise NotConstant(f"{token[:40]} is not a number")


def _common(left: Value, right: Value) -> tuple[int, bool]:
    bits = max(left.bits, right.bits)
    unsigned = (left.unsigned and left.bits == bits) or (right.unsigned and right.bits == bits)
    return bits, unsigned


def _divide(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_INTEGER_OPS: Final[dict[str, Callable[[int, int], int]]] = {
    "|": int.__or__, "^": int.__xor__, "&": int.__and__, "+": int.__add__, "-": int.__sub__,
    "*": int.__mul__, "/": _divide, "%": lambda a, b: a - b * _divide(a, b),
}  # fmt: skip
_COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
    ">": lambda a, b: a > b, "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b,
    "&&": lambda a, b: bool(a) and bool(b), "||": lambda a, b: bool(a) or bool(b),
}  # fmt: skip
_FLOAT_OPS: Final[dict[str, Callable[[float, float], float]]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b,
    "*": lambda a, b: a * b, "/": lambda a, b: a / b,
}  # fmt: skip


def _shift(sign: str, left: Value, right: Value) -> Value:
    if not isinstance(left.number, int) or not isinstance(right.number, int):
        raise NotConstant("shift of a floating number")
    if not 0 <= right.number < left.bits:
        raise NotConstant(f"shift by {right.number} bits")
    moved = left.number << right.number if sign == "<<" else left.number >> right.number
    return Value(wrap(moved, left.bits, left.unsigned), left.bits, left.unsigned)


def combine(sign: str, left: Value, right: Value) -> Value:
    """The value of a binary operator under C's usual arithmetic conversions."""
    if sign in _COMPARISONS:
        return Value(int(_COMPARISONS[sign](left.number, right.number)))
    if sign in ("<<", ">>"):
        return _shift(sign, left, right)
    if sign in "/%" and right.number == 0:
        raise NotConstant("division by zero")
    if isinstance(left.number, float) or isinstance(right.number, float):
        if sign not in _FLOAT_OPS:
            raise NotConstant(f"{sign} of a floating number")
        return Value(_FLOAT_OPS[sign](left.number, right.number), 0)
    bits, unsigned = _common(left, right)
    a, b = wrap(left.number, bits, unsigned), wrap(right.number, bits, unsigned)
    return Value(wrap(_INTEGER_OPS[sign](a, b), bits, unsigned), bits, unsigned)


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
        depth, words = 1, []
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
