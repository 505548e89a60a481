"""Owns numbers that a whole graph reads from tensors: a program that branches on one is refused.

A graph of `fullgraph=True` is computed up to such a number, which is what torch has a symbol for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from mindtorch._autograd.grad_mode import LOCAL
from mindtorch._tensor.subclass import OURS
from mindtorch.fx.recorder import GraphRecorder
from mindtorch.library.symbols import unguarded

from .._dynamo.exc import UserError

_SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class ReadNumber:
    """What `item()` gave; `symbol` is torch's name of it."""

    symbol: str

    def _refuse(self, text: str) -> None:
        by_program = not sys._getframe(2).f_code.co_filename.startswith(OURS)
        if by_program and any(isinstance(mode, GraphRecorder) for mode in LOCAL.functions):
            raise UserError(
                f"Consider annotating your code using torch._check*(). {unguarded(text)}"
            )

    def __bool__(self) -> bool:
        self._refuse(f"Ne({self.symbol}, 0)")
        number: object = self
        return number != 0


class ReadFloat(ReadNumber, float):
    """A float."""


class ReadInt(ReadNumber, int):
    """An integer."""


def _comparison(plain: type[float], name: str, sign: str) -> Callable[[ReadNumber, float], bool]:
    def compare(self: ReadNumber, other: float) -> bool:
        if isinstance(other, int | float):
            self._refuse(f"{self.symbol} {sign} {plain(other)}")
        outcome: bool = getattr(plain, f"__{name}__")(self, other)
        return outcome

    return compare


for _kind, _plain in ((ReadFloat, float), (ReadInt, int)):
    for _name, _sign in _SIGNS.items():
        setattr(_kind, f"__{_name}__", _comparison(_plain, _name, _sign))


def read_number(value: object, count: int) -> object:
    """The number that a tensor's `item()` gave, the `count`-th; others as they are."""
    kind = {float: ReadFloat, int: ReadInt}.get(type(value))
    if kind is None:
        return value
    number = kind(value)
    number.symbol = f"{'zuf' if kind is ReadFloat else 'u'}{count}"
    return number


def plain_number(value: object) -> object:
    """The number itself."""
    return +value if isinstance(value, ReadFloat | ReadInt) else value
