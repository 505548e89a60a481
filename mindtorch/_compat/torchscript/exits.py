"""Turns returns, breaks and continues inside of blocks into results of those blocks.

What follows a step that may have left is put into the other branch of an if on whether it left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .graph import Block, Graph, Node, ScriptValue, constant_of
from .kinds import BOOL, INFERRED, ScriptType, unified


@dataclass
class _Leaving:
    """Whether a block has left, as a value, and the values that it leaves with."""

    left: ScriptValue
    values: list[ScriptValue]


class _Exits:
    """One pass: `kind` is that of the nodes that leave."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.unset_values: dict[tuple[ScriptType | int, bool], ScriptValue] = {}
        with graph.at(graph.block.first):
            self.true, self.false = graph.constant(True), graph.constant(False)
        self.throws = self.unset(BOOL)
        self.kind, self.target = "", graph.block

    def unset(self, kind: ScriptType) -> ScriptValue:
        """A value of a type that nobody reads, one a type."""
        key = (id(kind), True) if kind.args else (kind, kind is INFERRED)
        if key not in self.unset_values:
            node = self.graph.create("prim::Uninitialized", (), (kind,))
            node.place_after(self.graph.block.entry)
            self.unset_values[key] = node.output
        return self.unset_values[key]

    def run(self, kind: str) -> None:
        """Remove the nodes of one kind from the graph."""
        self.kind = kind
        self.block(self.graph.block)

    def _status(self, exit_: _Leaving) -> str:
        names = ((self.true, "will"), (self.false, "wont"), (self.throws, "throws"))
        return next((name for value, name in names if exit_.left is value), "might")

    def _add_results(
        self, node: Node, first: Sequence[ScriptValue], second: Sequence[ScriptValue]
    ) -> list[ScriptValue]:  # fmt: skip
        for block, values in zip(node.blocks, (first, second), strict=False):
            for value in values:
                block.exit.add_input(value)
        added = []
        for one, other in zip(first, second, strict=True):
            both = unified(one.kind, other.kind) or ScriptType("Union", (one.kind, other.kind))
            added.append(node.add_output(both))
        return added

    def _if(self, node: Node) -> _Leaving:
        exits = [self.block(b) for b in node.blocks[:2]]
        states = [self._status(e) for e in exits]
        if "throws" in states:
            state = states[1] if states[0] == "throws" else states[0]
        else:
            state = states[0] if states in (["wont"] * 2, ["will"] * 2) else "might"
        if state == "throws":
            return _Leaving(self.throws, [])
        if state == "wont":
            return _Leaving(self.false, [])
        for index in (0, 1):
            if states[index] in ("wont", "throws"):
                exits[index].values = [self.unset(v.kind) for v in exits[1 - index].values]
                break
        if state == "will":
            left = self.true
        else:
            left = self._add_results(node, [exits[0].left], [exits[1].left])[0]
        return _Leaving(left, self._add_results(node, exits[0].values, exits[1].values))

    def _loop(self, node: Node) -> _Leaving:
        body = node.blocks[0]
        exit_ = self.block(body)
        if self._status(exit_) in ("wont", "throws"):
            return _Leaving(self.false, [])
        graph = self.graph
        with graph.at(body):
            choice = graph.insert("prim::If", [exit_.left])
        choice.add_block().exit.add_input(self.false)
        choice.add_block().exit.add_input(body.outputs[0])
        goes_on = choice.add_output(BOOL)
        body.exit.remove_input(0)
        body.exit.add_input(goes_on, 0)
        node.add_input(self.false)
        body.entry.add_output(BOOL)
        body.exit.add_input(exit_.left)
        left = node.add_output(BOOL)
        values = []
        for value in exit_.values:
            node.add_input(self.unset(value.kind))
            values.append(node.add_output(value.kind))
            body.entry.add_output(value.kind)
            body.exit.add_input(value)
        return _Leaving(left, values)

    def _guard(self, block: Block, exit_: _Leaving, rest: list[Node]) -> _Leaving:
        """Put the rest of a block into the branch where it has not left."""
        graph = self.graph
        choice = graph.create("prim::If", [exit_.left]).place_before(rest[0])
        gone, here = choice.add_block(), choice.add_block()
        for node in rest:
            node.place_before(here.exit)
        unset = [self.unset(v.kind) for v in block.outputs]
        results = list(block.outputs)
        for one, other in zip(unset, results, strict=True):
            gone.exit.add_input(one)
            here.exit.add_input(other)
            choice.add_output(other.kind)
        block.replace_outputs(choice.outputs)
        graph.create(self.kind, exit_.values).place_before(gone.exit)
        return self._if(choice)

    def _delete(self, rest: list[Node]) -> None:
        for node in reversed(rest):
            for value in node.outputs:
                if value.uses:
                    value.replace_with(self.unset(value.kind))
            node.destroy()

    def block(self, block: Block) -> _Leaving:
        """Whether and with what a block leaves for a place outside of it."""
        before = self.target
        owner = block.owner.kind if block.owner else ""
        if (owner == "prim::Loop" and self.kind == "prim::LoopContinuation") or (
            owner in ("", "prim::fork") and self.kind == "prim::ReturnStmt"
        ):
            self.target = block
        exit_ = _Leaving(self.false, [])
        for node in list(block.nodes):
            following = block.after(node)
            if node.kind == "prim::RaiseException":
                exit_ = _Leaving(self.throws, [])
            elif node.kind == self.kind:
                exit_ = _Leaving(self.true, list(node.inputs))
                node.destroy()
            elif node.kind == "prim::If":
                exit_ = self._if(node)
            elif node.kind == "prim::With":
                exit_ = self.block(node.blocks[0])
            elif node.kind == "prim::fork":
                self.block(node.blocks[0])
            elif node.kind == "prim::Loop":
                exit_ = self._loop(node)
            state, rest = self._status(exit_), []
            if following is not block.exit:
                rest = block.nodes[block.nodes.index(following) :]
            if state in ("will", "throws"):
                self._delete(rest)
                break
            if state == "might":
                if rest:
                    exit_ = self._guard(block, exit_, rest)
                break
        if self.target is block:
            self._arrive(block, exit_)
            exit_ = _Leaving(self.false, [])
        self.target = before
        return exit_

    def _arrive(self, block: Block, exit_: _Leaving) -> None:
        state = self._status(exit_)
        if state == "might":
            choice = self.graph.create("prim::If", [exit_.left])
            choice.place_before(block.exit)
            choice.add_block()
            choice.add_block()
            self._add_results(choice, exit_.values, list(block.outputs))
            block.replace_outputs(choice.outputs)
        elif state == "will":
            block.replace_outputs(exit_.values)


def _join(node: Node, following: Node) -> bool:
    """Put an if on a constant result of the if before it into that one's branches."""
    if node.kind != "prim::If" or following.kind != "prim::If":
        return False
    condition = following.inputs[0]
    if condition.node is not node:
        return False
    at = node.outputs.index(condition)
    known = [k for k in (constant_of(b.outputs[at]) for b in node.blocks) if k is not None]
    if len(known) < 2 or known[0] == known[1]:
        return False
    for block, value in zip(node.blocks, known, strict=True):
        source = following.blocks[0 if value[0] else 1]
        results = list(block.outputs)

        def outer(value: ScriptValue, results: list[ScriptValue] = results) -> ScriptValue:
            return results[node.outputs.index(value)] if value.node is node else value

        block.copy_from(source, outer)
    for result in list(following.outputs):
        new = node.add_output(result.kind)
        if result.name:
            new.named(result.name)
        result.replace_with(new)
    following.destroy()
    return True


def _join_all(block: Block) -> None:
    index = 0
    while index < len(block.nodes):
        node = block.nodes[index]
        for inner in node.blocks:
            _join_all(inner)
        following = block.nodes[index + 1] if index + 1 < len(block.nodes) else block.exit
        if not _join(node, following):
            index += 1


def _with_blocks(block: Block) -> None:
    """Put what is between an `Enter` and its `Exit` into a block."""
    graph, entered = block.graph, []
    for node in list(block.nodes):
        for inner in node.blocks:
            _with_blocks(inner)
        if node.kind == "prim::Enter":
            entered.append(node)
        elif node.kind == "prim::Exit" and entered:
            enter = entered.pop()
            scope = graph.create("prim::With")
            body, end = scope.add_block(), scope.add_block()
            start = block.nodes.index(enter) + 1
            for inner_node in block.nodes[start : block.nodes.index(node)]:
                inner_node.place_before(body.exit)
            node.place_before(end.exit)
            scope.place_after(enter)


def _without_blocks(block: Block) -> None:
    for node in list(block.nodes):
        for inner in node.blocks:
            _without_blocks(inner)
        if node.kind == "prim::With":
            for inner in node.blocks:
                for inner_node in list(inner.nodes):
                    inner_node.place_before(node)
            node.destroy()


def remove_exits(graph: Graph) -> None:
    """Turn jumps out of loops, then returns, into results of blocks."""
    _with_blocks(graph.block)
    _Exits(graph).run("prim::LoopContinuation")
    _Exits(graph).run("prim::ReturnStmt")
    _join_all(graph.block)
    _without_blocks(graph.block)
