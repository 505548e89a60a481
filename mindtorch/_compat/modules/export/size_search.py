"""Owns the search for sizes that a program lets change, and what is said of those that it fixes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from mindtorch.fx.aten import SIZE_GUARDS, SizeGuard

from .._dynamo.exc import UserError
from .dynamic_shapes import Dim
from .sizes import DynamicSizes, SizePlace, Symbol, ValueRanges, sizes_of, within

T = TypeVar("T")
_REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class FixedSize(Exception):
    """A program does not run with another size than the example's."""

    def __init__(self, symbol: Symbol) -> None:
        super().__init__(symbol)
        self.symbol = symbol


class SizeSearch:
    """Traces a program with fewer changing sizes until it runs with each of them alone.

    A size that the program fixes is found to be another one, or that of the example: an error
    where a named dim or Dim.DYNAMIC says otherwise.
    """

    def __init__(self, places: Sequence[SizePlace]) -> None:
        self.places = places
        self.merged: dict[str, str] = {}
        self.fixed: set[str] = set()
        self.violations: list[str] = []
        self.names: dict[str, None] = {}
        self.fixes: dict[str, None] = {}
        for place in places:
            if place.size < 2:
                self.fixed.add(place.key)
                self._note_fixed(place)

    def run(self, trace: Callable[[DynamicSizes], T]) -> tuple[DynamicSizes, T]:
        """The sizes that change and what tracing gave; torch._dynamo.exc.UserError."""
        while True:
            sizes = sizes_of(self.places, self.merged, self.fixed)
            guards: list[SizeGuard] = []
            token = SIZE_GUARDS.set(guards)
            try:
                result = trace(sizes)
            except FixedSize as error:
                self._fix(error.symbol, sizes, trace)
                continue
            finally:
                SIZE_GUARDS.reset(token)
            self._narrow(sizes, guards)
            self._refuse()
            return sizes, result

    def _key(self, symbol: Symbol, sizes: DynamicSizes) -> str:
        key = next(p.key for p in self.places if sizes.places.get((p.name, p.at)) == symbol)
        while key in self.merged:
            key = self.merged[key]
        return key

    def _fix(
        self, symbol: Symbol, sizes: DynamicSizes, trace: Callable[[DynamicSizes], object]
    ) -> None:
        key = self._key(symbol, sizes)
        for other in sizes.dims:
            if other != symbol and sizes.values[other] == sizes.values[symbol]:
                later, first = (self._key(other, sizes), key)
                if self._is_one(later, first, trace):
                    self.merged[later] = first
                    self._note_equal(later, first)
                    return
        self.fixed.add(key)
        group = [p for p in self.places if p.key == key]
        for place in group:
            if isinstance(place.dim, Dim) or place.dim.type is Dim.DYNAMIC.type:
                self._note_fixed(place)

    def _is_one(self, later: str, first: str, trace: Callable[[DynamicSizes], object]) -> bool:
        """Whether the two may change together."""
        sizes = sizes_of(self.places, {**self.merged, later: first}, self.fixed)
        try:
            trace(sizes)
        except FixedSize as error:
            return self._key(error.symbol, sizes) not in (first, later)
        return True

    def _note_equal(self, later: str, first: str) -> None:
        others = [p for p in self.places if p.key == later and isinstance(p.dim, Dim)]
        root = next(p for p in self.places if p.key == first)
        if not isinstance(root.dim, Dim):
            return
        for place in others:
            self.names[place.shown] = None
            self.violations.append(
                f"The values of {place.shown} = {place.source} and {root.shown} = {root.source}"
                " must always be equal."
            )
            self.fixes[f"{place.shown} = {root.shown}"] = None

    def _note_fixed(self, place: SizePlace) -> None:
        self.names[place.shown] = None
        self.violations.append(
            f"You marked {place.shown} as dynamic but your code specialized it to be a constant"
            f" ({place.size}). If you're using mark_dynamic, either remove it or use"
            " maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with either Dim.STATIC"
            " or Dim.AUTO."
        )
        if isinstance(place.dim, Dim):
            self.fixes[f"{place.shown} = {place.size}"] = None

    def _narrow(self, sizes: DynamicSizes, guards: Sequence[SizeGuard]) -> None:
        """Let the bounds of sizes hold where the program compared one with a number."""
        bounds = dict(sizes.ranges)
        for left, sign, right, outcome in guards:
            for values, limits, way in ((left, right, sign), (right, left, _REVERSED[sign])):
                symbol = _plain_symbol(sizes, values)
                if symbol is not None and len({*limits}) == 1:
                    way = way if outcome else _NEGATED[way]
                    bounds[symbol] = within(bounds[symbol], way, limits[0])
        for symbol, range_ in bounds.items():
            dim, before = sizes.dims.get(symbol), sizes.ranges[symbol]
            if range_ != before and isinstance(dim, Dim):
                self._note_range(dim, sizes.sources[symbol], range_)
            sizes.ranges[symbol] = range_

    def _note_range(self, dim: Dim, source: str, range_: ValueRanges) -> None:
        least, most = max(range_.lower or 0, 2), range_.upper
        top = "IntInfinity()" if most is None else most
        self.names[dim.__name__] = None
        self.violations.append(
            f"Not all values of {dim.__name__} = {source} in the specified range satisfy the"
            f" generated guard {least} <= {source} and {source} <= {top}"
        )
        limits = [f"min={least}"] * (least > 2) + [f"max={most}"] * (most is not None)
        self.fixes[f"{dim.__name__} = Dim({', '.join([repr(dim.__name__), *limits])})"] = None

    def _refuse(self) -> None:
        if not self.violations:
            return
        lines = [f"  - {text}" for text in self.violations]
        if self.fixes:
            lines += ["Suggested fixes:", *(f"  {fix}" for fix in self.fixes)]
        names = ", ".join(sorted(self.names))
        raise UserError(
            f"Constraints violated ({names})! For more information, run with"
            ' TORCH_LOGS="+dynamic".\n' + "\n".join(lines)
        )


def _plain_symbol(sizes: DynamicSizes, values: Sequence[int]) -> Symbol | None:
    """The symbol whose value these are in each version; None for other expressions."""
    for at, (symbol, value) in enumerate(sizes.values.items()):
        if list(values) == [5 * value if i == at + 1 else value for i in range(len(values))]:
            return symbol
    return None
