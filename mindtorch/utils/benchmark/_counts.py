"""Owns tables of how often functions ran, which programs that count instructions share."""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any

FunctionCount: Any = namedtuple("FunctionCount", ("count", "function"))  # how often, and what


@dataclasses.dataclass(repr=False, eq=False, frozen=True)
class FunctionCounts:
    """Rows of counts: they add, subtract, scale, and are chosen and renamed by functions."""

    _data: tuple[FunctionCount, ...]
    inclusive: bool
    truncate_rows: bool = True
    _linewidth: int | None = None

    def __iter__(self) -> Iterator[FunctionCount]:
        yield from self._data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, item: Any) -> FunctionCount | FunctionCounts:
        rows: Any = self._data[item]
        if isinstance(rows, FunctionCount):
            return rows
        return FunctionCounts(rows, self.inclusive, truncate_rows=False)

    def __repr__(self) -> str:
        from ..._functional.printing import PRINT_OPTS

        width = max((len(str(c)) + (c < 0) for c, _ in self), default=0)
        most = max((self._linewidth or PRINT_OPTS.linewidth) - width - 4, 40)
        left = (most - 5) // 2
        lines = []
        for count, name in self:
            if len(name) > most:
                name = f"{name[:left]} ... {name[left + 5 - most :]}"
            lines.append(f"  {count:>{width}}  {name}")
        if self.truncate_rows and len(lines) > 18:
            lines = [*lines[:9], "...".rjust(width + 2), *lines[-9:]]
        if not self.inclusive:
            lines += ["", f"Total: {self.sum()}"]
        return "\n".join([object.__repr__(self), *lines])

    def __add__(self, other: FunctionCounts) -> FunctionCounts:
        return self._merge(other, 1)

    def __sub__(self, other: FunctionCounts) -> FunctionCounts:
        return self._merge(other, -1)

    def __mul__(self, other: float) -> FunctionCounts:
        return self._summed((int(c * other), name) for c, name in self)

    def transform(self, map_fn: Callable[[str], str]) -> FunctionCounts:
        """Counts by other names."""
        return self._summed((c, map_fn(name)) for c, name in self)

    def filter(self, filter_fn: Callable[[str], bool]) -> FunctionCounts:
        """The rows whose names it takes."""
        return FunctionCounts(tuple(r for r in self if filter_fn(r.function)), self.inclusive)

    def sum(self) -> int:
        """All counts together."""
        return sum(c for c, _ in self)

    def denoise(self) -> FunctionCounts:
        """Without the look-up of texts in dicts, which varies from run to run."""
        return self.filter(lambda name: "dictobject.c:lookdict_unicode" not in name)

    def _merge(self, second: FunctionCounts, sign: int) -> FunctionCounts:
        if self.inclusive != second.inclusive:
            raise AssertionError("Cannot merge inclusive and exclusive counts.")
        return self._summed([*self, *((sign * c, name) for c, name in second)])

    def _summed(self, rows: Iterable[tuple[int, str]]) -> FunctionCounts:
        counts: dict[str, int] = {}
        for count, name in rows:
            counts[name] = counts.get(name, 0) + count
        sorted_rows = sorted((FunctionCount(c, n) for n, c in counts.items() if c), reverse=True)
        return FunctionCounts(tuple(sorted_rows), self.inclusive)


_HOME = "mindtorch.utils.benchmark.utils.valgrind_wrapper.timer_interface"
FunctionCount.__module__ = FunctionCounts.__module__ = _HOME
