"""Owns the values of names across headers: enum members, constants and macros, found lazily."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ..abi import SCALARS, unqualified
from .expression import evaluate, evaluate_tokens, tokenize
from .includes import Includes
from .numbers import NotConstant, Value, wrap
from .raw import Macro, RawEnum, Unit

_STRINGS: Final = re.compile(r'(?:"(?:[^"\\]|\\.)*+"\s*)++')
_PIECE: Final = re.compile(r'"((?:[^"\\]|\\.)*+)"')
_CAST: Final = re.compile(r"\(?\s*(?:\(\s*[A-Za-z_]\w*\s*\)\s*)?(.*?)\s*\)?", re.S)


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


class Symbols:
    """Names of all units; a name is looked for in its own header, its includes, then anywhere."""

    def __init__(self, units: Sequence[Unit], macros: Mapping[str, Macro]) -> None:
        self.units = units
        self.macros = macros
        self.typedefs: dict[str, str] = {}
        self.enum_widths: dict[str, tuple[int, bool]] = {}
        self.struct_sizes: Mapping[str, int] = {}
        self.defined: dict[str, list[_Definition]] = {}
        self.values: dict[_Definition, Value] = {}
        self.open: set[_Definition] = set()
        self.includes = Includes(units)
        for index, unit in enumerate(units):
            self._gather(index, unit)

    def _gather(self, index: int, unit: Unit) -> None:
        add = self.defined.setdefault
        for number, enum in enumerate(unit.enums):
            for at, (name, expression) in enumerate(enum.members):
                add(name, []).append(_Definition(index, expression, number, at))
        for constant in unit.constants:
            add(constant.name, []).append(_Definition(index, constant.expression))
        for name, macro in unit.macros.items():
            if macro.params is None and macro.body:
                add(name, []).append(_Definition(index, macro.body))
        for typedef in unit.typedefs:
            self.typedefs.setdefault(typedef.name, typedef.type)

    def scope(self, unit: int) -> UnitScope:
        """The scope of expressions that stand in that unit."""
        return UnitScope(self, unit)

    def find(self, name: str, unit: int) -> _Definition | None:
        """The definition that `name` has when used in `unit`."""
        found = self.defined.get(name)
        if not found:
            return None
        if len(found) > 1 and self.open:
            # Inside its own expansion a macro's name means what it meant before.
            found = [d for d in found if d not in self.open] or found
        if len(found) == 1:
            return found[0]
        for definition in reversed(found):
            if definition.unit == unit:
                return definition
        reach = self.includes.reach(unit)
        return next((d for d in found if d.unit in reach), found[0])

    def evaluate(self, definition: _Definition) -> Value:
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

    def _evaluate(self, definition: _Definition) -> Value:
        scope = self.scope(definition.unit)
        if definition.enum < 0 or definition.expression:
            return evaluate_text(definition.expression, scope, len(self.open))
        if not definition.member:
            return Value(0)
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
        return Value(number, 32 if -(1 << 31) <= number < 1 << 31 else 64)

    def members(self, unit: int, enum: RawEnum, number: int) -> Iterator[tuple[str, int]]:
        """Name and value of each member of an enum; NotConstant if one has no value."""
        last = -1
        for at, (name, expression) in enumerate(enum.members):
            definition = _Definition(unit, expression, number, at)
            if expression:
                last = int(self.evaluate(definition).number)
            else:
                last += 1
                self.values[definition] = Value(last, 32 if last < 1 << 31 else 64)
            yield name, last


def evaluate_text(text: str, scope: UnitScope, depth: int = 0) -> Value:
    """The value of an expression at a nesting depth; RecursionError becomes NotConstant."""
    try:
        if depth <= 1:
            return evaluate(text, scope)
        return evaluate_tokens(tokenize(text), scope, depth)
    except RecursionError:
        raise NotConstant("nested too deep") from None


class UnitScope:
    """What names mean inside one header."""

    def __init__(self, symbols: Symbols, unit: int) -> None:
        self.symbols, self.unit = symbols, unit

    def value(self, name: str) -> Value | None:
        if name in ("true", "false"):
            return Value(int(name == "true"))
        definition = self.symbols.find(name, self.unit)
        return None if definition is None else self.symbols.evaluate(definition)

    def macro(self, name: str) -> Macro | None:
        macro = self.symbols.units[self.unit].macros.get(name) or self.symbols.macros.get(name)
        return macro if macro and macro.params is not None else None

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


__all__ = ["Symbols", "UnitScope", "enum_type", "evaluate_text", "string_value", "wrap"]
