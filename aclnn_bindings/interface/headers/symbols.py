"""Owns the values of names across headers: enum members, constants and macros, found lazily."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from ..abi import SCALARS, unqualified
from .expansion import expand
from .expression import evaluate
from .includes import Includes
from .numbers import Constant, NotConstant
from .patterns import re
from .raw import Macro, RawEnum, Unit
from .standard import SYSTEM
from .tokenizer import tokenize

T = TypeVar("T")
_STRINGS: Final = re.compile(r'(?:"(?:[^"\\]|\\.)*+"\s*)++')
_PIECE: Final = re.compile(r'"((?:[^"\\]|\\.)*+)"')


class _Definition(NamedTuple):
    """Where a name gets its value: an expression, or member number `member` of an enum."""

    unit: int
    expression: str
    enum: int = -1
    member: int = -1


def string_value(expression: str) -> str | None:
    """The text of a string constant, adjacent pieces joined; None if it is not one."""
    expression = expression.strip().removeprefix("(").removesuffix(")").strip()
    if not expression.startswith('"') or not _STRINGS.fullmatch(expression):
        return None
    return "".join(_PIECE.findall(expression))


def enum_type(values: Sequence[int]) -> tuple[int, bool]:
    """Size and signedness that GCC gives an enum with these values (its manual, 4.9)."""
    low, high = min(values, default=0), max(values, default=0)
    if low >= 0:
        return (4, False) if high < 1 << 32 else (8, False)
    return (4, True) if low >= -(1 << 31) and high < 1 << 31 else (8, True)


class HeaderSymbols:
    """Names of all units; a name is looked for in its own header, its includes, then anywhere."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self.units = units
        self.typedefs: dict[str, str] = {}
        self.enum_widths: dict[str, tuple[int, bool]] = {}
        self.struct_sizes: Mapping[str, int] = {}
        self.defined: dict[str, list[_Definition]] = {}
        self.homes: dict[str, list[int]] = {}
        self.values: dict[_Definition, Constant] = {}
        self.open: set[_Definition] = set()
        self.includes: Includes = Includes(units)
        for index, unit in enumerate(units):
            self._gather(index, unit)

    def _gather(self, index: int, unit: Unit) -> None:
        add = self.defined.setdefault
        for number, enum in enumerate(unit.enums):
            for at, (name, expression) in enumerate(enum.members):
                add(name, []).append(_Definition(index, expression, number, at))
        for constant in unit.constants:
            add(constant.name, []).append(_Definition(index, constant.expression))
        for name in unit.macros:
            self.homes.setdefault(name, []).append(index)
        for typedef in unit.typedefs:
            self.typedefs.setdefault(typedef.name, typedef.type)

    def scope(self, unit: int) -> UnitScope:
        """The scope of expressions that stand in that unit."""
        return UnitScope(self, unit)

    def find(self, name: str, unit: int) -> _Definition | None:
        """The enum member or constant that `name` is when used in `unit`."""
        defined = self.defined.get(name)
        if not defined:
            return None
        return (
            defined[0]
            if len(defined) == 1
            else self._nearest(defined, unit, [d.unit for d in defined])
        )

    def find_macro(self, name: str, unit: int) -> Macro | None:
        """The macro that `name` is when used in `unit`."""
        homes = self.homes.get(name)
        if homes is None:
            return None
        return self.units[self._nearest(homes, unit, homes)].macros[name]

    def _nearest(self, candidates: Sequence[T], unit: int, homes: Sequence[int]) -> T:
        """Of some definitions the one in the same unit, else in an included one, else the first."""
        if unit in homes:
            return candidates[homes.index(unit)]
        if len(candidates) > 1:
            reach = self.includes.reach(unit)
            for one, home in zip(candidates, homes, strict=True):
                if home in reach:
                    return one
        return candidates[0]

    def evaluate(self, definition: _Definition) -> Constant:
        """The value of a definition; NotConstant for a cycle or what is not constant."""
        if (known := self.values.get(definition)) is not None:
            return known
        if definition in self.open:
            raise NotConstant("defined by way of itself")
        self.open.add(definition)
        try:
            value = self._evaluate(definition)
        finally:
            self.open.discard(definition)
        self.values[definition] = value
        return value

    def _evaluate(self, definition: _Definition) -> Constant:
        scope = self.scope(definition.unit)
        if definition.enum < 0 or definition.expression:
            return evaluate_text(definition.expression, scope)
        if not definition.member:
            return Constant(0)
        members = self.units[definition.unit].enums[definition.enum].members
        # Walk back to the last member with an expression: no recursion over long enums.
        at = definition.member
        while at and not members[at][1]:
            at -= 1
        number = 0
        if members[at][1]:
            first = _Definition(definition.unit, members[at][1], definition.enum, at)
            number = int(self.evaluate(first).number)
        number += definition.member - at
        return Constant(number, 32 if -(1 << 31) <= number < 1 << 31 else 64)

    def members(self, unit: int, enum: RawEnum, number: int) -> Iterator[tuple[str, int]]:
        """Name and value of each member of an enum; NotConstant if one has no value."""
        last = -1
        for at, (name, expression) in enumerate(enum.members):
            definition = _Definition(unit, expression, number, at)
            if expression:
                last = int(self.evaluate(definition).number)
            else:
                last += 1
                self.values[definition] = Constant(last, 32 if last < 1 << 31 else 64)
            yield name, last


def evaluate_text(text: str, scope: UnitScope, macro: str = "") -> Constant:
    """The value of an expression, `macro` being the one whose body it is; else NotConstant."""
    return evaluate(_expanded(text, scope, macro), scope)


def constant_value(text: str, scope: UnitScope, macro: str = "") -> int | float | str:
    """The number or text of a constant, `macro` as for `evaluate_text`; else NotConstant."""
    if (string := string_value(text)) is not None:
        return string
    tokens = _expanded(text, scope, macro)
    string = string_value(" ".join(tokens)) if any(t[0] == '"' for t in tokens) else None
    return evaluate(tokens, scope).number if string is None else string


def _expanded(text: str, scope: UnitScope, macro: str) -> list[str]:
    tokens = tokenize(text)
    if len(tokens) == 1 and not tokens[0].isidentifier():
        return tokens
    return expand(tokens, scope.macro, frozenset([macro]))


class UnitScope:
    """What names mean inside one header."""

    symbols: HeaderSymbols
    unit: int

    def __init__(self, symbols: HeaderSymbols, unit: int) -> None:
        self.symbols, self.unit = symbols, unit

    def value(self, name: str) -> Constant | None:
        if name in ("true", "false"):
            return Constant(int(name == "true"))
        definition = self.symbols.find(name, self.unit)
        return None if definition is None else self.symbols.evaluate(definition)

    def macro(self, name: str) -> Macro | None:
        """The macro that a name is; one with an empty body is no part of an expression."""
        return self.symbols.find_macro(name, self.unit) or SYSTEM.get(name)

    def width(self, ctype: str) -> tuple[int, bool] | None:
        name = unqualified(" ".join(ctype.split()))
        for _ in range(32):
            if name.endswith("*"):
                return (8, False)
            name = name.removeprefix("enum ").removeprefix("struct ").removeprefix("union ")
            if name in SCALARS:
                return SCALARS[name]
            if name in self.symbols.enum_widths:
                return self.symbols.enum_widths[name]
            if name in self.symbols.struct_sizes:
                return (self.symbols.struct_sizes[name], False)
            if name in ("unsigned", "signed"):
                return (4, name == "signed")
            target = self.symbols.typedefs.get(name)
            if target is None:
                return None
            name = unqualified(target)
        return None
