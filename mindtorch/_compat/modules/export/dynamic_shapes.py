"""Owns what a program says of sizes that may change: dims, hints, and what collects them."""

from __future__ import annotations

import enum
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mindtorch._tensor.tensor import Tensor
from mindtorch.nn import Module
from mindtorch.utils._pytree import tree_leaves, tree_map


class _Unbounded(float):
    """More than each integer, as torch shows it."""

    def __repr__(self) -> str:
        return "int_oo"


int_oo = _Unbounded("inf")
_LINEAR = "(Only increasing linear operations with integer coefficients are supported.)"


class _DimHintType(enum.Enum):
    AUTO = enum.auto()
    DYNAMIC = enum.auto()
    STATIC = enum.auto()


@dataclass
class _DimHint:
    """A size that is found out, that must change, or that doesn't; call it to give bounds."""

    type: _DimHintType
    min: int | None = None
    max: int | None = None
    _factory: bool | None = True

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        if not self._factory:
            raise TypeError(f"'{type(self)}' object is not callable")
        if min is not None and min < 0:
            raise AssertionError(f"min must be non-negative, got {min}")
        if max is not None and max < 0:
            raise AssertionError(f"max must be non-negative, got {max}")
        if min is not None and max is not None and min > max:
            raise AssertionError(f"min must be <= max, got min={min}, max={max}")
        return _DimHint(self.type, min, max, _factory=False)

    def __repr__(self) -> str:
        bounds = [f"{n}={v}" for n, v in (("min", self.min), ("max", self.max)) if v is not None]
        return f"DimHint({', '.join([self.type.name, *bounds])})"


class Dim:
    """A size that may change from call to call, between `min` and `max`.

    `2 * dim + 1` is a size that follows from it; NotImplementedError for other arithmetic.
    AssertionError for a name that is no identifier, and for a `max` that is not above `min`.
    """

    AUTO = _DimHint(_DimHintType.AUTO)
    DYNAMIC = _DimHint(_DimHintType.DYNAMIC)
    STATIC = _DimHint(_DimHintType.STATIC)

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None):
        least, most = min or 0, int_oo if max is None else max
        if not most > least:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__, self._min, self._max = name, least, most

    @property
    def min(self) -> int:
        """The least size."""
        return self._min

    @property
    def max(self) -> int | float:
        """The largest size, which may be `int_oo`."""
        return self._max

    @staticmethod
    def _readable(name: str, min_: int, max_: int | float) -> str:
        bounds = [f"min={min_}"] * (min_ != 2) + [f"max={max_}"] * (max_ != int_oo)
        return f"Dim({', '.join([repr(name), *bounds])})"

    def __repr__(self) -> str:
        return self._readable(self.__name__, self.min, self.max)

    def _scaled(self, times: int, more: int) -> _DerivedDim:
        return _DerivedDim(self, times, more)

    def __add__(self, other: object) -> _DerivedDim:
        if type(other) is not int:
            raise NotImplementedError(
                f"Attempted to add {other} to {self.__name__}, where an integer was expected."
                f" {_LINEAR}"
            )
        return self._scaled(1, other)

    __radd__ = __add__

    def __sub__(self, other: object) -> _DerivedDim:
        if type(other) is not int:
            raise NotImplementedError(
                f"Attempted to subtract {other} from {self.__name__}, where an integer was"
                f" expected. {_LINEAR}"
            )
        return self._scaled(1, -other)

    def __rsub__(self, other: object) -> _DerivedDim:
        raise NotImplementedError(f"Attempted to negate {self.__name__}. {_LINEAR}")

    def __mul__(self, other: object) -> _DerivedDim:
        if type(other) is not int or other <= 0:
            raise NotImplementedError(
                f"Attempted to multiply {other} with {self.__name__}, where a positive integer was"
                f" expected. {_LINEAR}"
            )
        return self._scaled(other, 0)

    __rmul__ = __mul__


class _DerivedDim(Dim):
    """`times * root + more`, for `root` a named dim."""

    def __init__(self, root: Dim, times: int, more: int):
        self.root, self.times, self.more = root, times, more
        self.__name__ = linear(root.__name__, times, more)

    @property
    def fn(self) -> Callable[[int], int]:
        """The size for one of the root."""
        return lambda size: self.times * size + self.more

    @property
    def min(self) -> int:
        """The least size; AssertionError where the root's least makes it negative."""
        least = self.fn(self.root.min)
        if least < 0:
            raise AssertionError(
                f"Expected derived min value of {self.__name__} to be >= 0. Please specify an"
                f" appropriate min value for {self.root.__name__} (currently {self.root.min})."
            )
        return least

    @property
    def max(self) -> int | float:
        """The largest size; AssertionError beyond what a size can be."""
        most = self.root.max
        if most == int_oo:
            return most
        if self.fn(int(most)) > sys.maxsize - 1:
            raise AssertionError(
                f"Expected derived max value of {self.__name__} to be <= {sys.maxsize - 1}. Please"
                f" specify an appropriate max value for {self.root.__name__} (currently {most})."
            )
        return self.fn(int(most))

    def _scaled(self, times: int, more: int) -> _DerivedDim:
        return _DerivedDim(self.root, self.times * times, self.more * times + more)

    def __repr__(self) -> str:
        return self.__name__


def linear(name: str, times: int, more: int) -> str:
    """`times*name + more` as sums are written."""
    text = name if times == 1 else f"{times}*{name}"
    return text + (f" {'-' if more < 0 else '+'} {abs(more)}" if more else "")


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several dims of the same bounds (torch.export.dims)."""
    return tuple(Dim(name, min=min, max=max) for name in names)


class ShapesCollection:
    """Builds `dynamic_shapes` by tensors (torch.export.ShapesCollection)."""

    def __init__(self) -> None:
        self._shapes: dict[int, Any] = {}

    def __setitem__(self, t: Tensor, shape: object) -> None:
        if not isinstance(t, Tensor):
            raise AssertionError(
                f"Cannot assign shape to non-tensor or non-_IntWrapper type {type(t)}"
            )
        before = self._shapes.setdefault(id(t), shape)
        if before != shape:
            raise AssertionError(
                f"Shapes assigned to input do not match: expected {before}, got {shape}"
            )

    def __getitem__(self, t: Tensor) -> Any:
        return self._shapes.setdefault(id(t), {})

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(
        self, m: Module, args: Sequence[object], kwargs: Mapping[str, object] | None = None
    ) -> dict[str, Any]:
        """The shapes as `export` takes them; ValueError where a tensor is no argument."""
        arguments = combined(m, args, kwargs or {})
        leaves = {id(leaf) for leaf in tree_leaves(arguments)}
        if not self._shapes.keys() <= leaves:
            raise ValueError(
                "Some tensors that were assigned shapes were not found in args. Maybe such tensors"
                " were copied when passing them as args? Maybe such tensors are contained in"
                " classes that were not registered with pytree?"
            )
        shapes: dict[str, Any] = tree_map(lambda leaf: self._shapes.get(id(leaf)), arguments)
        return shapes


class AdditionalInputs:
    """Finds `dynamic_shapes` by further examples (torch.export.AdditionalInputs)."""

    def __init__(self) -> None:
        self._examples: list[tuple[tuple[Any, ...], dict[str, Any] | None]] = []

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """One more example."""
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        if kwargs is not None and type(kwargs) is not dict:
            raise AssertionError(f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, kwargs))

    def dynamic_shapes(
        self, m: Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Sizes that differ are dynamic; ValueError where anything else differs."""
        examples = [(args, kwargs), *self._examples]
        first, *others = [
            tree_map(lambda v: tuple(v.shape) if isinstance(v, Tensor) else v, combined(m, a, k))
            for a, k in ((a, k or {}) for a, k in examples)
        ]
        shapes: dict[str, Any] = tree_map(_dynamism, first, *others)
        return shapes

    def verify(self, ep: Any) -> None:
        """Run the program on each of the examples."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **(kwargs or {}))


def _dynamism(value: object, *others: object) -> object:
    all_values = (value, *others)
    if any(type(value) is not type(other) for other in others):
        raise ValueError(
            "The following inputs were found to have differing types, so they cannot be marked as"
            f" dynamic: {all_values}."
        )
    if all(value == other for other in others):
        return None
    if type(value) is int:
        return Dim.DYNAMIC
    raise ValueError(
        "The following inputs were found to have differing values, but they cannot be marked as"
        f" dynamic: {all_values}."
    )


def combined(m: Module, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, Any]:
    """The arguments by the names of the parameters; TypeError where they do not fit."""
    return inspect.signature(m.forward).bind(*args, **kwargs).arguments
