"""Owns the sizes that a traced function reads: numbers that a value of the graph stands for.

In torch they are tensors of one number: what turns one into a number of Python is noted.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from . import state

CONSTANT = (
    "Converting a tensor to a {} might cause the trace to be incorrect. We can't record the"
    " data flow of Python values, so this value will be treated as a constant in the future. This"
    " means that the trace might not generalize to other inputs!"
)


class TracerWarning(Warning):
    """A trace may be wrong for other inputs."""

    __module__ = "mindtorch.jit"


class SizeNumber:
    """A number that is a value of the graph."""

    @classmethod
    def of(cls, value: float) -> Any:
        """A number of Python's kind for a value."""
        return SizeInt(value) if isinstance(value, int) else SizeFloat(value)

    def __bool__(self) -> bool:
        return bool(_read(self, "__bool__", bool(_plain(self))))

    def __int__(self) -> int:
        return int(_read(self, "__int__", int(_plain(self))))

    def __float__(self) -> float:
        return float(_read(self, "__float__", float(_plain(self))))

    def item(self) -> Any:
        """The number."""
        return _read(self, "item", _plain(self))

    def __deepcopy__(self, memo: object) -> Any:
        return self

    def __hash__(self) -> int:
        return hash(_plain(self))


class SizeInt(SizeNumber, int):
    """A whole number."""


class SizeFloat(SizeNumber, float):
    """A floating number."""


class TracedTruth(SizeNumber, int):
    """An answer."""

    def __repr__(self) -> str:
        return str(bool(int.__bool__(self)))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float.__add__(value, 0.0)
    return int.__add__(value, 0)


def plain_numbers(value: Any) -> Any:
    """A number without what stands behind it; all else as it is."""
    if isinstance(value, SizeNumber):
        return bool(_plain(value)) if isinstance(value, TracedTruth) else _plain(value)
    return value


def _read(value: SizeNumber, name: str, plain: object) -> Any:
    decisions = state.CURRENT.decisions
    return plain if decisions is None else decisions.answer(name, lambda: plain)


def _arithmetic(name: str, reflected: bool) -> Callable[[Any, Any], Any]:
    function = getattr(operator, name)

    def compute(self: SizeNumber, other: Any) -> Any:
        if not isinstance(other, int | float) or isinstance(other, bool):
            return NotImplemented
        sides = (other, self) if reflected else (self, other)
        result = function(*map(plain_numbers, sides))
        mode = state.CURRENT.mode
        if mode is None:
            return result
        number = SizeNumber.of(result)
        if reflected and name in ("add", "mul"):
            sides = sides[::-1]
        mode.tell(lambda recorder: recorder.arithmetic(name, sides, number))
        return number

    return compute


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    function = getattr(operator, name)

    def compare(self: SizeNumber, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        result = function(plain_numbers(self), plain_numbers(other))
        return result if state.CURRENT.mode is None else TracedTruth(result)

    return compare


for _name in ("add", "sub", "mul", "floordiv", "truediv", "mod"):
    for _reflected in (False, True):
        setattr(SizeNumber, f"__{'r' * _reflected}{_name}__", _arithmetic(_name, _reflected))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(SizeNumber, f"__{_name}__", _comparison(_name))
