"""Owns sizes that may change in an exported program: how they are named and bounded."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from mindtorch._tensor.tensor import Tensor
from mindtorch.library.symbols import ConstraintViolationError

from .._dynamo.exc import UserError
from .dynamic_shapes import Dim, _DerivedDim, _DimHint, int_oo, linear

DimSpec = Dim | _DimHint


class Symbol(str):
    """The name of a size in a graph, shown without quotes."""

    __slots__ = ()
    __repr__ = str.__str__

    @property
    def name(self) -> str:
        """The name."""
        return str(self)


@dataclass(frozen=True)
class ValueRanges:
    """The values that a number may have; None is no bound."""

    lower: int | None
    upper: int | None
    infinity = "int_oo"

    def __repr__(self) -> str:
        lower = f"-{self.infinity}" if self.lower is None else self.lower
        return f"VR[{lower}, {self.infinity if self.upper is None else self.upper}]"


class RealRanges(ValueRanges):
    """The same of a float."""

    infinity = "oo"


def within(range_: ValueRanges, sign: str, limit: int) -> ValueRanges:
    """The values of a range for which a comparison with a number holds."""
    lower, upper = range_.lower, range_.upper
    if sign in (">", ">="):
        least = limit + (sign == ">")
        return replace(range_, lower=least if lower is None else max(lower, least))
    most = limit - (sign == "<")
    return replace(range_, upper=most if upper is None else min(upper, most))


@dataclass
class DynamicSizes:
    """The sizes that may change: their bounds, values in the example, places and dims.

    `sources` are the dims' places by symbol, `derived` what follows from others by place; `floats`
    are numbers that the program reads from tensors, and integers of that kind have no dim.
    """

    ranges: dict[Symbol, ValueRanges]
    values: dict[Symbol, int]
    places: dict[tuple[str, int], Symbol]
    dims: dict[Symbol, DimSpec] = field(default_factory=dict)
    sources: dict[Symbol, str] = field(default_factory=dict)
    derived: dict[tuple[str, int], _DerivedDim] = field(default_factory=dict)
    floats: list[Symbol] = field(default_factory=list)

    def read(self, values: Sequence[int]) -> None:
        """Have integers that the program reads, with these values in the example."""
        self.floats.clear()
        for at, value in enumerate(values):
            symbol = Symbol(f"u{at}")
            self.ranges[symbol], self.values[symbol] = ValueRanges(None, None), value

    def other_value(self, symbol: Symbol) -> int:
        """What a symbol is in its version: five times as large, or one less where it is read."""
        value = self.values[symbol]
        if symbol in self.dims:
            return 5 * value
        return value - 1 if value > 0 else value + 1

    @property
    def constraints(self) -> dict[Symbol, ValueRanges]:
        """The bounds by symbol, with those of what follows from others."""
        more = {}
        for place, dim in self.derived.items():
            text = linear(self.places[place], dim.times, dim.more)
            more[Symbol(text)] = bounds_of(dim)
        read = {s: r for s, r in self.ranges.items() if s not in self.dims}
        return {**dict.fromkeys(self.floats, RealRanges(None, None)), **read, **self.ranges, **more}

    def versions(self, name: str, tensor: Tensor) -> list[tuple[int, ...]]:
        """The shape of an input: as in the example, then with each symbol's other value."""
        shape = tuple(tensor.shape)
        others = ((symbol, self.other_value(symbol)) for symbol in self.ranges)
        return [shape, *(self.shape(name, shape, symbol, size) for symbol, size in others)]

    def shape(self, name: str, shape: Sequence[int], symbol: Symbol, size: int) -> tuple[int, ...]:
        """The shape of an input where a symbol is this."""
        sizes = list(shape)
        for (owner, dim), other in self.places.items():
            if owner == name and other == symbol:
                derived = self.derived.get((name, dim))
                sizes[dim] = derived.fn(size) if derived else size
        return tuple(sizes)

    def text(self, values: Sequence[int]) -> str:
        """The expression of a size with these values in the versions."""
        first, *others = values
        scaled = [s for s, v in zip(self.values, others, strict=True) if v == 5 * first != 0]
        if len(scaled) > 1:
            rest = first
            for symbol in scaled:
                rest //= self.values[symbol]
            return "*".join([*[str(rest)] * (rest != 1), *scaled])
        terms, left = [], first
        for (symbol, at), value in zip(self.values.items(), others, strict=True):
            times, remainder = divmod(value - first, self.other_value(symbol) - at)
            if remainder:
                return f"({symbol}//{max(at // max(first, 1), 1)})"
            if times:
                terms.append(str(symbol) if times == 1 else f"{times}*{symbol}")
                left -= times * at
        terms = [*terms, str(left)] if left or not terms else terms
        return " + ".join(terms).replace("+ -", "- ")


def bounds_of(dim: DimSpec) -> ValueRanges:
    """The values that a size may have by what a program says of it; a hint's are from 2."""
    least = 2 if isinstance(dim, _DimHint) and dim.min is None else dim.min
    most = None if dim.max in (None, int_oo) else int(dim.max or 0)
    return ValueRanges(max(least or 0, 0), most)


class SizePlace(NamedTuple):
    """A size of an input of which a program says something."""

    name: str
    at: int
    dim: DimSpec
    source: str
    size: int

    @property
    def key(self) -> str:
        """The dim's name, or the place for a hint."""
        if isinstance(self.dim, _DerivedDim):
            return self.dim.root.__name__
        return self.dim.__name__ if isinstance(self.dim, Dim) else self.source

    @property
    def shown(self) -> str:
        """What errors call it."""
        return self.dim.__name__ if isinstance(self.dim, Dim) else self.source


def places_of(
    entries: Mapping[str, tuple[str, Any]], inputs: Mapping[str, Tensor]
) -> list[SizePlace]:
    """The sizes of inputs that may change, by `(source, entry)` of each.

    ConstraintViolationError for a fixed size that is another; IndexError as torch for a dim that
    an input does not have.
    """
    places: list[SizePlace] = []
    for name, (source, entry) in entries.items():
        if name not in inputs:
            continue
        shape = inputs[name].shape
        pairs = entry.items() if isinstance(entry, Mapping) else enumerate(entry or ())
        for at, dim in pairs:
            if not isinstance(at, int):
                raise TypeError(f"list indices must be integers or slices, not {type(at).__name__}")
            if not -len(shape) <= at < len(shape):
                raise IndexError("list assignment index out of range")
            at %= len(shape)
            where = f"{source}.size()[{at}]"
            if isinstance(dim, int) and dim != shape[at]:
                raise ConstraintViolationError(
                    f"Static shape constraint of {dim} does not match input size of {shape[at]},"
                    f" for {where}"
                )
            if isinstance(dim, Dim | _DimHint) and dim is not Dim.STATIC:
                place = SizePlace(name, at, dim, where, shape[at])
                places += [place] * _is_in_range(place)
    return places


def _is_in_range(place: SizePlace) -> bool:
    """Whether a size changes; an error where the example is outside its bounds."""
    dim, size = place.dim, place.size
    least, most = bounds_of(dim).lower or 0, bounds_of(dim).upper
    if isinstance(dim, _DimHint):
        if size > 1:
            return True
        if dim.type is Dim.DYNAMIC.type:
            raise ValueError(
                "Found the following conflicts between user-specified ranges and inferred ranges"
                " from model tracing:\n- Received user-specified dim hint"
                f" Dim.DYNAMIC(min={dim.min}, max={dim.max}), but export 0/1 specialized due to"
                f" hint of {size} for dimension"
                f" {place.source.replace('L[', 'inputs[').replace('.size()', '.shape')}."
            )
        return False
    if size > 1 and (size < least or (most is not None and size > most)):
        bounds = ValueRanges(max(least, 2), most)
        raise ConstraintViolationError(f"{size} not in range {repr(bounds).removeprefix('VR')}")
    return True


def sizes_of(
    places: Sequence[SizePlace], merged: Mapping[str, str], fixed: Container[str]
) -> DynamicSizes:
    """Symbols for places: `merged` keys are others', `fixed` ones do not change after all.

    torch._dynamo.exc.UserError where places of one dim have different sizes.
    """
    sizes = DynamicSizes({}, {}, {})
    by_key: dict[str, list[SizePlace]] = {}
    for place in places:
        key = place.key
        while key in merged:
            key = merged[key]
        if key not in fixed:
            by_key.setdefault(key, []).append(place)
    for group in by_key.values():
        plain = [p for p in group if not isinstance(p.dim, _DerivedDim)]
        numbers = {_number(p.source): p for p in (plain or group)}
        number = min(numbers)
        while f"s{number}" in sizes.values:
            number += 1
        symbol = Symbol(f"s{number}")
        first = (plain or group)[0]
        value = first.size if plain else _root_value(first)
        dim = first.dim if plain else getattr(first.dim, "root")  # noqa: B009
        bounds = bounds_of(dim)
        if not plain:
            bounds = ValueRanges(max(bounds.lower or 0, 2), bounds.upper)
        sizes.ranges[symbol], sizes.values[symbol] = bounds, value
        sizes.dims[symbol], sizes.sources[symbol] = dim, first.source
        for place in group:
            _refuse_other(place, first, value)
            sizes.places[place.name, place.at] = symbol
            if isinstance(place.dim, _DerivedDim):
                sizes.derived[place.name, place.at] = place.dim
    return sizes


def _number(source: str) -> int:
    return int(hashlib.sha256(source.encode()).hexdigest(), 16) % 100


def _root_value(place: SizePlace) -> int:
    """The root's size in the example where only what follows from it is an input's."""
    dim = place.dim
    assert isinstance(dim, _DerivedDim)
    return next((n for n in range(place.size + 2) if dim.fn(n) == place.size), 0)


def _refuse_other(place: SizePlace, first: SizePlace, value: int) -> None:
    if isinstance(place.dim, _DerivedDim):
        root = place.dim.root.__name__
        if place.dim.fn(value) != place.size:
            raise UserError(
                f"Expected input {place.source} to be equal to {place.dim}, where {root} ="
                f" {value}, but got {place.size}"
            )
    elif place.size != first.size:
        raise UserError(
            f"{place.source} = {place.size} is not equal to {first.source} = {first.size}"
        )
