"""Owns C's numbers: literals, their types, and operators as a compiler folds them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

_INTEGER: Final = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)([uUlL]*)")
_FLOAT: Final = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFlL]?")
_ESCAPES: Final = {"n": 10, "t": 9, "r": 13, "0": 0, "a": 7, "b": 8, "f": 12, "v": 11}


class NotConstant(ValueError):
    """An expression that has no constant value here; the text says why."""


class Constant(NamedTuple):
    """A number with its C type: `bits` 32 or 64, 0 for a floating type."""

    number: int | float
    bits: int = 32
    unsigned: bool = False


def wrap(number: int, bits: int, unsigned: bool) -> int:
    """`number` as an integer of that width holds it."""
    number &= (1 << bits) - 1
    return number if unsigned or number < 1 << (bits - 1) else number - (1 << bits)


def _integer(digits: str, suffix: str) -> Constant:
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
    return Constant(number, bits, unsigned)


def literal(token: str) -> Constant:
    """The value of a number or character token."""
    if len(token) > 512:
        raise NotConstant(f"number {token[:40]}… is too long")
    if match := _INTEGER.fullmatch(token):
        return _integer(match[1], match[2])
    if _FLOAT.fullmatch(token):
        return Constant(float(token.rstrip("fFlL")), 0)
    if token[0] == "'":
        body = token[1:-1]
        if len(body) == 1:
            return Constant(ord(body))
        if len(body) == 2 and body[0] == "\\":
            return Constant(_ESCAPES.get(body[1], ord(body[1])))
        if body[:2] == "\\x":
            return Constant(int(body[2:], 16))
    raise NotConstant(f"{token[:40]} is not a number")


def _common(left: Constant, right: Constant) -> tuple[int, bool]:
    bits = max(left.bits, right.bits)
    unsigned = (left.unsigned and left.bits == bits) or (right.unsigned and right.bits == bits)
    return bits, unsigned


def convert(value: Constant, left: Constant, right: Constant) -> Constant:
    """`value` in the common type of two operands, as `?:` gives it."""
    if isinstance(left.number, float) or isinstance(right.number, float):
        return Constant(float(value.number), 0)
    bits, unsigned = _common(left, right)
    return Constant(wrap(int(value.number), bits, unsigned), bits, unsigned)


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
_LOGIC: Final = ("&&", "||")
_FLOAT_OPS: Final[dict[str, Callable[[float, float], float]]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b,
    "*": lambda a, b: a * b, "/": lambda a, b: a / b,
}  # fmt: skip


def _shift(sign: str, left: Constant, right: Constant) -> Constant:
    if not isinstance(left.number, int) or not isinstance(right.number, int):
        raise NotConstant("shift of a floating number")
    if not 0 <= right.number < left.bits:
        raise NotConstant(f"shift by {right.number} bits")
    moved = left.number << right.number if sign == "<<" else left.number >> right.number
    return Constant(wrap(moved, left.bits, left.unsigned), left.bits, left.unsigned)


def combine(sign: str, left: Constant, right: Constant) -> Constant:
    """The value of a binary operator under C's usual arithmetic conversions."""
    if sign in _LOGIC:
        return Constant(int(_COMPARISONS[sign](left.number, right.number)))
    if sign in ("<<", ">>"):
        return _shift(sign, left, right)
    if sign in "/%" and right.number == 0:
        raise NotConstant("division by zero")
    if isinstance(left.number, float) or isinstance(right.number, float):
        if sign in _COMPARISONS:
            return Constant(int(_COMPARISONS[sign](left.number, right.number)))
        if sign not in _FLOAT_OPS:
            raise NotConstant(f"{sign} of a floating number")
        return Constant(_FLOAT_OPS[sign](left.number, right.number), 0)
    bits, unsigned = _common(left, right)
    a, b = wrap(left.number, bits, unsigned), wrap(right.number, bits, unsigned)
    if sign in _COMPARISONS:
        return Constant(int(_COMPARISONS[sign](a, b)))
    return Constant(wrap(_INTEGER_OPS[sign](a, b), bits, unsigned), bits, unsigned)
