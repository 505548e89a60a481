"""Owns the state of lowering one function: its graph, its variables by frame, its constants."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from .errors import ScriptError
from .graph import Block, Graph, Place, ScriptValue
from .kinds import ScriptType
from .matching import Supplied, call_operator, converted
from .sources import ProgramText
from .ssa import has_meaning
from .sugar import ModuleObject, Simple, Sugar
from .unit import ClassType


class Frame:
    """The variables of one block: types of those that are values, the others as they are."""

    def __init__(self, block: Block, outer: Frame | None):
        self.block, self.outer = block, outer
        self.kinds: dict[str, ScriptType] = {}
        self.others: dict[str, Sugar] = {}


class Refinements:
    """Types that variables have where a condition holds, and where it does not."""

    def __init__(self, true: Mapping[str, ScriptType] = {}, false: Mapping[str, ScriptType] = {}):
        self.true, self.false = dict(true), dict(false)

    def swapped(self) -> Refinements:
        """Those of the opposite condition."""
        return Refinements(self.false, self.true)

    @staticmethod
    def _union(one: dict[str, ScriptType], other: dict[str, ScriptType]) -> dict[str, ScriptType]:
        result = dict(one)
        for name, kind in other.items():
            if name in result and result[name] != kind:
                del result[name]
            else:
                result[name] = kind
        return result

    @staticmethod
    def _both(one: dict[str, ScriptType], other: dict[str, ScriptType]) -> dict[str, ScriptType]:
        return {n: k for n, k in one.items() if other.get(n) == k}

    def and_(self, other: Refinements) -> Refinements:
        """Those of both conditions together."""
        return Refinements(self._union(self.true, other.true), self._both(self.false, other.false))

    def or_(self, other: Refinements) -> Refinements:
        """Those of one condition or the other."""
        return Refinements(self._both(self.true, other.true), self._union(self.false, other.false))


class Condition:
    """A condition's value, what it says of types, and its outcome where that is known."""

    def __init__(
        self, value: ScriptValue, refinements: Refinements | None = None, known: bool | None = None
    ):
        self.value, self.known = value, known
        self.refinements = refinements or Refinements()


class Lowering:
    """What every part of lowering needs."""

    def __init__(self, source: ProgramText, names: Mapping[str, Any], owner: ClassType | None):
        self.source, self.names, self.owner = source, names, owner
        self.graph = Graph()
        self.frame: Frame | None = None
        self.left: set[Block] = set()
        self.constants: dict[tuple[type, Any], ScriptValue] = {}
        self.errors: dict[str, str] = {}
        self.loops: list[str] = []
        self.temporaries = 0
        self.declared: ScriptType | None = None
        self.returned: ScriptType | None = None

    def place(self, node: ast.AST) -> Place:
        """Where a part of the program begins."""
        return self.source.place(node)

    @contextmanager
    def framed(self, block: Block) -> Iterator[Frame]:
        """Inside, variables are those of a block, and nodes are put at its end."""
        frame = self.frame = Frame(block, self.frame)
        with self.graph.at(block):
            yield frame
        self.frame = frame.outer

    # Variables.

    def _in_frame(self, frame: Frame, name: str) -> Sugar | None:
        if name in frame.others:
            return frame.others[name]
        if name in frame.kinds:
            value = self.graph.insert("prim::Load", (), (frame.kinds[name],), name=name).output
            if has_meaning(name):
                value.named(name)
            return Simple(value)
        return None

    def find(self, name: str, frame: Frame | None) -> Sugar | None:
        """A variable, read, from a frame or those around it."""
        while frame is not None:
            hit = self._in_frame(frame, name)
            if hit is not None:
                return hit
            frame = frame.outer
        return None

    def set_value(self, place: Place | None, name: str, value: ScriptValue) -> None:
        """Write a variable that is a value."""
        self.set(place, name, Simple(value))

    def set(
        self, place: Place | None, name: str, sugar: Sugar, annotated: ScriptType | None = None
    ) -> None:
        """Write a variable."""
        frame = self.frame
        assert frame is not None
        value = sugar.value if isinstance(sugar, Simple) else None
        named = value is None or value.name or not has_meaning(name)
        if value is not None and not named and value.node.block is frame.block:
            value.named(name)
        outer = self.find(name, frame.outer)
        if outer is not None:
            if value is None or not isinstance(outer, Simple):
                raise ScriptError(
                    f"Cannot re-assign '{name}' because it is not a first-class value.  Only"
                    " reassignments to first-class values are allowed"
                )
            before = outer.value.kind
            value = converted(self.graph, place, before, value, True)
            if not value.kind.is_a(before):
                raise ScriptError(
                    f"Variable '{name}' previously had type {before.annotation()} but is now being"
                    f" assigned to a value of type {value.kind.annotation()}\n",
                    True,
                )
        if value is None:
            frame.others[name] = sugar
            return
        if annotated is not None and not value.kind.is_a(annotated):
            raise ScriptError(
                f"Variable '{name}' is annotated with type {annotated.annotation()} but is being"
                f" assigned to a value of type {value.kind.annotation()}",
                True,
            )
        self.graph.insert("prim::Store", [value], (), place, name=name)
        frame.kinds[name] = annotated or value.kind

    def temporary(self, prefix: str) -> str:
        """A name that no program has."""
        self.temporaries += 1
        return f"{prefix}{self.temporaries - 1}"

    def refine(self, place: Place, kinds: Mapping[str, ScriptType]) -> None:
        """Write variables again with the types that a condition says."""
        for name, kind in kinds.items():
            hit = self.find(name, self.frame)
            assert isinstance(hit, Simple)
            cast = self.graph.insert("prim::unchecked_cast", [hit.value], (kind,))
            self.set_value(place, name, cast.output)

    # Constants and operators.

    def number(self, value: float | complex, place: Place) -> ScriptValue:
        """A number's constant at the front of the graph, one for each number."""
        key = (type(value), value)
        if key not in self.constants:
            with self.graph.at(self.graph.block.first):
                self.constants[key] = self.graph.constant(value, place)
        return self.constants[key]

    def operator(
        self, place: Place | None, name: str, *args: ScriptValue, **kwargs: ScriptValue
    ) -> ScriptValue:  # fmt: skip
        """The result of an operator of values."""
        passed = [Supplied(a) for a in args]
        return call_operator(
            self.graph, place, name, passed, {k: Supplied(v) for k, v in kwargs.items()}
        )

    def tuple_of(self, values: Sequence[ScriptValue]) -> ScriptValue:
        """A tuple."""
        kind = ScriptType("Tuple", [v.kind for v in values])
        return self.graph.insert("prim::TupleConstruct", values, (kind,)).output

    # What the parts over this one give each other.

    def sugar(self, node: ast.expr, hint: ScriptType | None = None) -> Sugar:
        """What an expression stands for."""
        raise NotImplementedError

    def value(self, node: ast.expr, hint: ScriptType | None = None) -> ScriptValue:
        """An expression's value."""
        raise NotImplementedError

    def as_value(self, sugar: Sugar) -> ScriptValue:
        """The value that something is."""
        raise NotImplementedError

    def passed(self, nodes: Sequence[ast.expr]) -> list[Supplied]:
        """The arguments of a call."""
        raise NotImplementedError

    def call_sugar(
        self, callee: Sugar, place: Place, args: Sequence[Supplied], kwargs: Mapping[str, Supplied]
    ) -> Sugar:
        """What a call of something gives."""
        raise NotImplementedError

    def item(self, place: Place, value: ScriptValue, index: ScriptValue) -> Sugar:
        """The element of a value at an index."""
        raise NotImplementedError

    def submodules(self, owner: ModuleObject) -> tuple[list[Sugar], list[Sugar]]:
        """The names of the modules inside of a module, and the modules."""
        raise NotImplementedError

    def get_attribute(self, owner: ScriptValue, name: str, kind: ScriptType) -> ScriptValue:
        """An attribute's value."""
        raise NotImplementedError
