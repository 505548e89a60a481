"""Owns numbers that a trace does not know: what `item()` gives of a float tensor without data.

Arithmetic and operators take them; what needs the value refuses, as torch's unbacked symbols do
(torch 2.13, torch.fx.experimental.symbolic_shapes). Sizes are never symbols here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NoReturn

from .._functional.conversion import NUMBER_OF_META

_HOME = __name__.replace("library.symbols", "fx.experimental.symbolic_shapes")  # torch's


class GuardOnDataDependentSymNode(RuntimeError):
    """A value of a tensor without data was asked for."""

    __module__ = _HOME


def unguarded(expression: str) -> str:
    """torch's text for a program that branches on an expression of unknown numbers."""
    return (
        f"Could not guard on data-dependent expression {expression} (unhinted: {expression})."
        "  (Size-like symbols: none)\n\nconsider using data-dependent friendly APIs such as"
        " guard_or_false, guard_or_true and statically_known_true."
    )


class ConstraintViolationError(RuntimeError):
    """A size is not what a program says of it."""

    __module__ = _HOME


class UnknownFloat(float):
    """A float whose value is not known; results of its arithmetic are not either."""

    def _refuse(self, *_others: object) -> NoReturn:
        raise GuardOnDataDependentSymNode(
            "Could not guard on data-dependent expression: the number comes from item() of a "
            "tensor without data"
        )

    def __round__(self, digits: object = None) -> UnknownFloat:  # type: ignore[override]
        return self

    def _unknown(self, *others: object) -> UnknownFloat:
        if not all(isinstance(other, int | float) for other in others):
            return NotImplemented
        return UnknownFloat(1.0)

    __bool__ = __int__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __trunc__ = __floor__ = __ceil__ = is_integer = _refuse
    __neg__ = __pos__ = __abs__ = _unknown
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _unknown
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _unknown


@contextlib.contextmanager
def unknown_numbers() -> Iterator[None]:
    """Inside, `item()` of a float tensor on meta gives an UnknownFloat."""
    token = NUMBER_OF_META.set(lambda: UnknownFloat(1.0))
    try:
        yield
    finally:
        NUMBER_OF_META.reset(token)
