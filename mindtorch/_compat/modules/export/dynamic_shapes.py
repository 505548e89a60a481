"""Owns sizes that may change in an exported program: how they are named and bounded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mindtorch._tensor.tensor import Tensor


class Dim:
    """A size that may change from call to call, between `min` and `max`.

    AssertionError for a name that is no identifier, and for a `max` that is not above `min`.
    """

    AUTO: Dim
    DYNAMIC: Dim
    STATIC = None

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None):
        if max is not None and max <= (min or 0):
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__, self.min, self.max = name, min or 0, max

    def __repr__(self) -> str:
        bounds = [f"min={self.min}"] * ((self.min != 0 and self.max is None) or self.max is None)
        bounds += [f"max={self.max}"] * (self.max is not None)
        return f"Dim('{self.__name__}', {', '.join(bounds)})"

    __str__ = __repr__


Dim.AUTO, Dim.DYNAMIC = Dim("AUTO", min=2), Dim("DYNAMIC", min=2)


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several dims of the same bounds (torch.export.dims)."""
    return tuple(Dim(name, min=min, max=max) for name in names)


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
    """The values that a size may have; no `upper` is no bound."""

    lower: int
    upper: int | None

    def __repr__(self) -> str:
        return f"VR[{self.lower}, {'int_oo' if self.upper is None else self.upper}]"


@dataclass
class DynamicSizes:
    """The sizes that may change: their bounds, values in the example, places and dims."""

    ranges: dict[Symbol, ValueRanges]
    values: dict[Symbol, int]
    places: dict[tuple[str, int], Symbol]
    dims: dict[Symbol, str] = field(default_factory=dict)

    def versions(self, name: str, tensor: Tensor) -> list[tuple[int, ...]]:
        """The shape of an input: as in the example, then with each symbol five times as large."""
        shapes = [tuple(tensor.shape)]
        for symbol in self.ranges:
            places = {dim for (n, dim), s in self.places.items() if n == name and s == symbol}
            shapes.append(tuple(
                size * 5 if dim in places else size for dim, size in enumerate(tensor.shape)
            ))  # fmt: skip
        return shapes

    def text(self, values: Sequence[int]) -> str:
        """The expression of a size with these values in the versions."""
        first, *others = values
        scaled = [s for s, v in zip(self.values, others, strict=True) if v == 5 * first]
        if len(scaled) > 1:
            rest = first
            for symbol in scaled:
                rest //= self.values[symbol]
            return "*".join([*[str(rest)] * (rest != 1), *scaled])
        terms, left = [], first
        for (symbol, at), value in zip(self.values.items(), others, strict=True):
            times, remainder = divmod(value - first, 4 * at)
            if remainder:
                return f"({symbol}//{max(at // max(first, 1), 1)})"
            if times:
                terms.append(str(symbol) if times == 1 else f"{times}*{symbol}")
                left -= times * at
        terms = [*terms, str(left)] if left or not terms else terms
        return " + ".join(terms).replace("+ -", "- ")


def sizes_of(shapes: Any, names: Sequence[str], inputs: Mapping[str, Tensor]) -> DynamicSizes:
    """The sizes that `dynamic_shapes` lets change; UserError-like ValueError for other forms."""
    flat: dict[str, Any] = {}
    if shapes is not None and not isinstance(shapes, Mapping):
        shapes = dict(zip(names, shapes, strict=False))
    for name, entry in (shapes or {}).items():
        _flatten(name, entry, flat, inputs)
    sizes = DynamicSizes({}, {}, {})
    by_dim: dict[str, Symbol] = {}
    for name, entry in flat.items():
        pairs = entry.items() if isinstance(entry, Mapping) else enumerate(entry or ())
        for at, dim in pairs:
            if isinstance(dim, Dim) and name in inputs:
                _add(sizes, name, at % inputs[name].dim(), dim, inputs[name], by_dim)
    return sizes


def _add(
    sizes: DynamicSizes, name: str, at: int, dim: Dim, tensor: Tensor, by_dim: dict[str, Symbol]
) -> None:
    size = tensor.shape[at]
    unnamed = dim in (Dim.AUTO, Dim.DYNAMIC)
    key = f"size {size}" if unnamed else dim.__name__
    if unnamed and size < 2:
        return
    if key not in by_dim:
        source = f"L['{name}'].size()[{at}]"
        number = int(hashlib.sha256(source.encode()).hexdigest(), 16) % 100
        while f"s{number}" in sizes.values:
            number += 1
        by_dim[key] = symbol = Symbol(f"s{number}")
        sizes.ranges[symbol] = ValueRanges(dim.min, dim.max)
        sizes.values[symbol], sizes.dims[symbol] = size, dim.__name__
    sizes.places[name, at] = by_dim[key]


def _flatten(name: str, entry: Any, flat: dict[str, Any], inputs: Mapping[str, Tensor]) -> None:
    """Entries by the names of inputs: those of lists and dicts are `name_0`, `name_key`."""
    if name in inputs or entry is None:
        flat[name] = entry
        return
    pairs = entry.items() if isinstance(entry, Mapping) else enumerate(entry)
    for key, inner in pairs:
        _flatten(f"{name}_{key}", inner, flat, inputs)
