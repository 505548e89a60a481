"""Owns which headers include which, and the macros that conditionals see by way of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .raw import Macro, Unit


class Includes:
    """The include graph of some headers, by file name: folders differ between installs."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self.units = units
        self._by_name = {u.header.rsplit("/", 1)[-1]: i for i, u in enumerate(units)}
        self._reach: dict[int, set[int]] = {}

    def reach(self, unit: int) -> set[int]:
        """Numbers of the units that `unit` includes, directly or not, and its own."""
        if unit not in self._reach:
            seen = {unit}
            waiting = [unit]
            while waiting:
                new = self._included(waiting.pop()) - seen
                seen |= new
                waiting += new
            self._reach[unit] = seen
        return self._reach[unit]

    def _included(self, unit: int) -> set[int]:
        names = (name.rsplit("/", 1)[-1] for name in self.units[unit].includes)
        return {self._by_name[name] for name in names if name in self._by_name}


def inherited(units: Sequence[Unit], known: Mapping[str, Macro]) -> dict[int, dict[str, Macro]]:
    """For each unit whose conditionals ask for macros of headers it includes: those macros.

    Include guards do not count: a header is read alone, even where two share one guard.
    """
    definers: dict[str, list[int]] = {}
    for index, unit in enumerate(units):
        for name in unit.macros:
            if name != unit.guard:
                definers.setdefault(name, []).append(index)
    includes = Includes(units)
    out: dict[int, dict[str, Macro]] = {}
    for index, unit in enumerate(units):
        for name in unit.asked:
            if name in unit.macros or name in known or name not in definers:
                continue
            reach = includes.reach(index)
            source = next((i for i in definers[name] if i in reach), None)
            if source is not None:
                out.setdefault(index, {})[name] = units[source].macros[name]
    return out
