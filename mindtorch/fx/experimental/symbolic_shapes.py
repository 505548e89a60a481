"""torch.fx.experimental.symbolic_shapes: sizes are numbers here, so that each question has an
answer."""

from __future__ import annotations

from typing import TypeVar

from ...library.symbols import (
    ConstraintViolationError as ConstraintViolationError,
    GuardOnDataDependentSymNode as GuardOnDataDependentSymNode,
)

T = TypeVar("T")


class ShapeEnv:
    """What torch keeps of unknown sizes: nothing here, where each size is a number."""

    def __init__(self, **_: object):
        self.guards: list[object] = []


def guard_or_false(a: object) -> bool:
    """Whether it holds."""
    return bool(a)


guard_or_true = statically_known_true = definitely_true = guard_size_oblivious = guard_or_false


def guard_scalar(a: T) -> T:
    """The number."""
    return a


def free_symbols(val: object) -> set[str]:
    """No size is unknown."""
    return set()


free_unbacked_symbols = free_symbols


def is_symbolic(val: object) -> bool:
    """False."""
    return False


def has_static_value(a: object) -> bool:
    """True."""
    return True
