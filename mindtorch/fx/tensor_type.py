"""Owns types of tensors by their sizes, for annotations: `TensorType((2, Dyn))`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class TensorType:
    """A tensor of these sizes; `Dyn` stands for any."""

    __origin__: Any = None

    def __init__(self, dim: Iterable[Any]):
        self.__origin__ = TensorType
        self.__args__ = dim

    def __repr__(self) -> str:
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and list(self.__args__) == list(other.__args__)

    __hash__ = object.__hash__

    @staticmethod
    def __class_getitem__(*args: Any) -> TensorType:
        return TensorType(tuple(args[0] if isinstance(args[0], tuple) else args))


class _DynType:
    """Any size, or any type."""

    def __init__(self) -> None:
        self.__name__ = "_DynType"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    __hash__ = object.__hash__

    def __str__(self) -> str:
        return "Dyn"

    __repr__ = __str__


Dyn = _DynType()


def is_consistent(t1: object, t2: object) -> bool:
    """Whether two types may be of the same tensor."""
    if t1 == t2 or Dyn in (t1, t2):
        return True
    if not (isinstance(t1, TensorType) and isinstance(t2, TensorType)):
        return False
    first, second = list(t1.__args__), list(t2.__args__)
    pairs = zip(first, second, strict=False)
    return len(first) == len(second) and all(is_consistent(a, b) for a, b in pairs)


def is_more_precise(t1: object, t2: object) -> bool:
    """Whether `t1` says at least as much as `t2`."""
    if t1 == t2 or isinstance(t2, _DynType):
        return True
    if not (isinstance(t1, TensorType) and isinstance(t2, TensorType)):
        return False
    first, second = list(t1.__args__), list(t2.__args__)
    pairs = zip(first, second, strict=False)
    return len(first) == len(second) and all(is_more_precise(a, b) for a, b in pairs)
