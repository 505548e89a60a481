"""Owns the graph that a program is lowered to: values, nodes, blocks, and their numbers and names.

A value's number counts all values ever made in its graph, and a name that is given again renames
the value that had it, so that both texts of a graph depend on the order in which it was made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .kinds import (
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    FUNCTION,
    INT,
    NONE,
    STR,
    TENSOR,
    ScriptType,
    list_of,
)

Place = tuple[str, int, int]  # a file, a line, a column


class NotLowered(NotImplementedError):
    """A construct of Python that is not lowered here."""


class ScriptValue:
    """What a node gives: numbered, perhaps named."""

    def __init__(self, node: Node, kind: ScriptType):
        self.node, self.kind, self.name = node, kind, ""
        self.number = node.graph.count
        node.graph.count += 1
        self.uses: list[tuple[Node, int]] = []

    def named(self, name: str) -> ScriptValue:
        """This value, which takes a name; another that has the name is renamed."""
        graph = self.node.graph
        if self.name:
            del graph.names[self.name]
            self.name = ""
        if not name:
            return self
        owner = graph.names.get(name)
        if owner is not None:
            base, dot, end = name.rpartition(".")
            base, suffix = (base, int(end)) if dot and end.isdigit() else (name, 1)
            if base in graph.suffixes:
                suffix = max(suffix, graph.suffixes[base] + 1)
            while f"{base}.{suffix}" in graph.names:
                suffix += 1
            graph.suffixes[base] = suffix + 1
            owner.named(f"{base}.{suffix}")
        graph.names[name] = self
        self.name = name
        return self

    @property
    def text(self) -> str:
        """The name, or the number."""
        return self.name or str(self.number)

    def replace_with(self, other: ScriptValue) -> None:
        """Whoever uses this value uses `other`."""
        for user, index in self.uses:
            user.inputs[index] = other
        other.uses += self.uses
        self.uses = []

    def like(self, other: ScriptValue) -> ScriptValue:
        """This value with the type and the name of another."""
        self.kind = other.kind
        return self.named(other.name) if other.name else self


class Node:
    """A step: what it takes, what it gives, the blocks that it runs."""

    def __init__(self, graph: Graph, kind: str, place: Place | None = None, **attributes: Any):
        self.graph, self.kind, self.place, self.attributes = graph, kind, place, attributes
        self.inputs: list[ScriptValue] = []
        self.outputs: list[ScriptValue] = []
        self.blocks: list[Block] = []
        self.block: Block | None = None

    @property
    def output(self) -> ScriptValue:
        """The only output."""
        return self.outputs[0]

    def add_input(self, value: ScriptValue, at: int | None = None) -> ScriptValue:
        """Take one more value."""
        self.inputs.insert(len(self.inputs) if at is None else at, value)
        self._number_uses(value)
        return value

    def _number_uses(self, new: ScriptValue | None = None) -> None:
        """Set the positions of all uses by this node again; a new one comes last in its list."""
        for value in dict.fromkeys(self.inputs):
            spots = [i for i, v in enumerate(self.inputs) if v is value]
            users = [i for i, (n, _) in enumerate(value.uses) if n is self]
            for position, spot in zip(users, spots, strict=False):
                value.uses[position] = (self, spot)
            value.uses += [(self, s) for s in spots[len(users) :]]

    def remove_input(self, index: int) -> None:
        """Take one value less."""
        value = self.inputs.pop(index)
        position = max(i for i, (n, _) in enumerate(value.uses) if n is self)
        del value.uses[position]
        self._number_uses()

    def add_output(self, kind: ScriptType) -> ScriptValue:
        """Give one more value."""
        self.outputs.append(ScriptValue(self, kind))
        return self.outputs[-1]

    def remove_output(self, index: int) -> None:
        """Give one value less; nobody may use it."""
        self.outputs.pop(index).named("")

    def add_block(self) -> Block:
        """Run one more block."""
        self.blocks.append(Block(self.graph, self))
        return self.blocks[-1]

    def place_before(self, other: Node) -> Node:
        """This node, moved to where another is."""
        block = other.block
        assert block is not None
        if self.block is not None:
            self.block.nodes.remove(self)
        nodes = block.nodes
        nodes.insert(len(nodes) if other is block.exit else nodes.index(other), self)
        self.block = block
        return self

    def place_after(self, other: Node) -> Node:
        """This node, moved behind another."""
        block = other.block
        assert block is not None
        return self.place_before(block.after(other))

    def destroy(self) -> None:
        """Take the node, whose outputs nobody uses, out of its graph."""
        for block in self.blocks:
            block.destroy()
        while self.inputs:
            self.remove_input(len(self.inputs) - 1)
        while self.outputs:
            self.remove_output(len(self.outputs) - 1)
        if self.block is not None and self not in (self.block.entry, self.block.exit):
            self.block.nodes.remove(self)

    def walk(self) -> Iterator[Node]:
        """The nodes of all blocks below."""
        for block in self.blocks:
            for node in list(block.nodes):
                yield node
                yield from node.walk()


class Block:
    """Nodes in order, between an entry that gives the parameters and an exit that takes results."""

    def __init__(self, graph: Graph, owner: Node | None):
        self.graph, self.owner = graph, owner
        self.nodes: list[Node] = []
        self.entry, self.exit = Node(graph, "prim::Param"), Node(graph, "prim::Return")
        self.entry.block = self.exit.block = self

    @property
    def inputs(self) -> list[ScriptValue]:
        """The parameters."""
        return self.entry.outputs

    @property
    def outputs(self) -> list[ScriptValue]:
        """The results."""
        return self.exit.inputs

    @property
    def first(self) -> Node:
        """The first node, or the exit."""
        return self.nodes[0] if self.nodes else self.exit

    def after(self, node: Node) -> Node:
        """The node behind another, or the exit."""
        index = -1 if node is self.entry else self.nodes.index(node)
        return self.nodes[index + 1] if index + 1 < len(self.nodes) else self.exit

    def replace_outputs(self, values: Sequence[ScriptValue]) -> None:
        """Other results."""
        values = list(values)
        while self.outputs:
            self.exit.remove_input(len(self.outputs) - 1)
        for value in values:
            self.exit.add_input(value)

    def destroy(self) -> None:
        """Take all nodes away."""
        self.exit.destroy()
        for node in reversed(list(self.nodes)):
            for value in node.outputs:
                value.uses = []
            node.destroy()
        self.entry.destroy()

    def copy_from(self, source: Block, outer: Callable[[ScriptValue], ScriptValue]) -> None:
        """Append copies of another block's nodes and results."""
        seen: dict[ScriptValue, ScriptValue] = {}

        def here(value: ScriptValue) -> ScriptValue:
            return seen[value] if value in seen else outer(value)

        for value in source.inputs:
            seen[value] = self.entry.add_output(value.kind).like(value)
        for node in source.nodes:
            copied = self.graph.copied(node, here)
            copied.place_before(self.exit)
            for old, new in zip(node.outputs, copied.outputs, strict=True):
                seen[old] = new.like(old)  # torch names a copy twice
        for value in source.outputs:
            self.exit.add_input(here(value))


def kind_of_constant(value: object) -> ScriptType:
    """The type of a constant's value."""
    for python, kind in ((bool, BOOL), (int, INT), (float, FLOAT), (complex, COMPLEX), (str, STR)):
        if isinstance(value, python):
            return kind
    if value is None:
        return NONE
    if isinstance(value, tuple):
        return ScriptType("Tuple", [kind_of_constant(v) for v in value])
    if isinstance(value, list):
        return list_of(kind_of_constant(value[0]) if value else INT)
    return DEVICE if type(value).__name__ == "device" else TENSOR


class Graph:
    """A function's block, and the counters that number and name its values."""

    def __init__(self) -> None:
        self.count = 0
        self.names: dict[str, ScriptValue] = {}
        self.suffixes: dict[str, int] = {}
        self.block = Block(self, None)
        self.point: Node = self.block.exit

    @contextmanager
    def at(self, point: Node | Block) -> Iterator[None]:
        """Inside, nodes are inserted before a node, or at the end of a block."""
        before = self.point
        self.point = point.exit if isinstance(point, Block) else point
        try:
            yield
        finally:
            self.point = before

    def insert(
        self, kind: str, inputs: Sequence[ScriptValue] = (), outputs: Sequence[ScriptType] = (),
        place: Place | None = None, **attributes: Any,
    ) -> Node:  # fmt: skip
        """A new node at the point of insertion."""
        return self.create(kind, inputs, outputs, place, **attributes).place_before(self.point)

    def create(
        self, kind: str, inputs: Sequence[ScriptValue] = (), outputs: Sequence[ScriptType] = (),
        place: Place | None = None, **attributes: Any,
    ) -> Node:  # fmt: skip
        """A new node that stands nowhere."""
        node = Node(self, kind, place, **attributes)
        for value in inputs:
            node.add_input(value)
        for output in outputs:
            node.add_output(output)
        return node

    def constant(
        self, value: Any, place: Place | None = None, kind: ScriptType | None = None
    ) -> ScriptValue:
        """The value of a new constant."""
        kind = kind or kind_of_constant(value)
        return self.insert("prim::Constant", (), (kind,), place, value=value).output

    def function(self, name: str, target: object) -> ScriptValue:
        """The value of a new constant that is a function."""
        kind = ScriptType("Function", name=str(getattr(target, "qualified", name)))
        return self.insert("prim::Constant", (), (kind,), None, name=name, target=target).output

    def copied(self, node: Node, here: Callable[[ScriptValue], ScriptValue]) -> Node:
        """A copy of a node, with its blocks, that stands nowhere."""
        copy = self.create(node.kind, [here(v) for v in node.inputs], (), node.place)
        copy.attributes = dict(node.attributes)
        for value in node.outputs:
            copy.add_output(value.kind).like(value)
        for block in node.blocks:
            copy.add_block().copy_from(block, here)
        return copy


def constant_of(value: ScriptValue) -> tuple[Any] | None:
    """What a constant holds, in a tuple; None for what is computed, and for functions."""
    node = value.node
    if node.kind != "prim::Constant" or value.kind.kind == FUNCTION.kind:
        return None
    return (node.attributes["value"],)
