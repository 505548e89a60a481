"""Removes what nobody needs: no result of it is used, and it changes nothing that is."""

from __future__ import annotations

from .graph import Block, Graph, Node, ScriptValue
from .kinds import ANY, is_mutable

_EFFECTS = frozenset((
    "prim::Print", "prim::RaiseException", "prim::SetAttr", "prim::CallFunction",
    "prim::CallMethod", "prim::PythonOp", "prim::Enter", "prim::Exit", "aten::warn", "aten::save",
    "aten::manual_seed", "prim::fork", "aten::set_grad_enabled",
))  # fmt: skip
_HOLDERS = frozenset(("prim::TupleConstruct", "prim::ListConstruct", "prim::DictConstruct",
                      "prim::TupleUnpack", "prim::TupleIndex", "prim::ListUnpack",
                      "prim::TupleSlice", "prim::unchecked_cast"))  # fmt: skip


class _Memory:
    """Which values may share memory, by sets; `outside` is the set of what others may see."""

    def __init__(self, graph: Graph):
        self.parents: dict[ScriptValue, ScriptValue | None] = {}
        self.outside = ScriptValue(Node(Graph(), ""), ANY)
        for value in graph.block.inputs:
            if is_mutable(value.kind):
                self.join(value, self.outside)
        self._block(graph.block)

    def root(self, value: ScriptValue) -> ScriptValue:
        """The first of a value's set."""
        parent = self.parents.get(value)
        return value if parent is None else self.root(parent)

    def join(self, one: ScriptValue, other: ScriptValue) -> None:
        """Two values may share memory."""
        a, b = self.root(one), self.root(other)
        if a is not b:
            self.parents[a] = b

    def _block(self, block: Block) -> None:
        for node in block.nodes:
            for inner in node.blocks:
                self._block(inner)
            if node.kind == "prim::If":
                for inner in node.blocks:
                    self._pairs(node.outputs, inner.outputs)
            elif node.kind == "prim::Loop":
                body = node.blocks[0]
                self._pairs(node.outputs, node.inputs[2:])
                self._pairs(body.inputs[1:], node.inputs[2:])
                self._pairs(node.outputs, body.outputs[1:])
            elif node.kind in ("prim::GetAttr", "prim::CreateObject") or node.kind in _EFFECTS:
                for value in (*node.inputs, *node.outputs):
                    if is_mutable(value.kind) and node.kind != "prim::CreateObject":
                        self.join(value, self.outside)
            elif node.kind in _HOLDERS or self._views(node):
                for value in node.outputs:
                    for source in node.inputs:
                        if is_mutable(source.kind) and is_mutable(value.kind):
                            self.join(value, source)

    def _pairs(self, ones: list[ScriptValue], others: list[ScriptValue]) -> None:
        for one, other in zip(ones, others, strict=True):
            if is_mutable(one.kind):
                self.join(one, other)

    @staticmethod
    def _views(node: Node) -> bool:
        schema = node.attributes.get("schema")
        return schema is not None and schema.aliases


def mutated(node: Node) -> list[ScriptValue]:
    """The inputs that a node changes."""
    schema = node.attributes.get("schema")
    if schema is None:
        return []
    return [v for v, a in zip(node.inputs, schema.arguments, strict=False) if a.mutated]


class _Sweep:
    def __init__(self, graph: Graph):
        self.memory = _Memory(graph)
        self.live: set[ScriptValue] = set()
        self.roots: set[ScriptValue] = {self.memory.root(self.memory.outside)}
        self.marked: set[Node] = set()
        self.effects: dict[Node, bool] = {}

    def _has_effect(self, node: Node) -> bool:
        if node not in self.effects:
            outside = self.memory.root(self.memory.outside)
            self.effects[node] = (
                node.kind in _EFFECTS
                or node.kind[0] == "^"
                or any(self.memory.root(v) is outside for v in mutated(node))
                or any(self._has_effect(n) for b in node.blocks for n in b.nodes)
            )
        return self.effects[node]

    def _alive(self, value: ScriptValue) -> None:
        self.live.add(value)
        self.roots.add(self.memory.root(value))

    def mark(self, node: Node) -> bool:
        """Keep a node, those around it, and what it takes; whether that is news."""
        if node in self.marked:
            return False
        self.marked.add(node)
        if node.block is not None and node.block.owner is not None:
            self.mark(node.block.owner)
        for value in node.inputs:
            self._alive(value)
        return True

    def _mark_exit(self, block: Block) -> bool:
        node, owner = block.exit, block.owner
        if node in self.marked:
            return False
        if owner is None:
            return self.mark(node)
        if owner.kind == "prim::Loop":
            body = zip(block.inputs[1:], block.outputs[1:], owner.outputs, strict=True)
            for inner, result, outer in body:
                if outer in self.live or inner.uses:
                    self._alive(result)
            self._alive(block.outputs[0])
        else:
            for outer, result in zip(owner.outputs, block.outputs, strict=False):
                if outer in self.live:
                    self._alive(result)
        self.marked.add(node)
        return True

    def block(self, block: Block) -> bool:
        """Keep what is needed in a block; whether any of it is news."""
        news = False
        for node in block.nodes:
            if self._has_effect(node):
                news |= self.mark(node)
        news |= self._mark_exit(block)
        for node in reversed(block.nodes):
            if node.kind == "prim::Loop":
                while self.block(node.blocks[0]):
                    news = True
            else:
                for inner in node.blocks:
                    news |= self.block(inner)
            changes = any(self.memory.root(v) in self.roots for v in mutated(node))
            if changes or any(v in self.live for v in node.outputs):
                news |= self.mark(node)
        return news

    def sweep(self, block: Block) -> None:
        """Take away what is not needed."""
        for node in reversed(list(block.nodes)):
            body = node.blocks[0] if node.kind == "prim::Loop" else None
            for index in reversed(range(len(node.outputs))):
                if node.outputs[index].uses or node.kind not in ("prim::If", "prim::Loop"):
                    continue
                if body is None:
                    for inner in node.blocks:
                        inner.exit.remove_input(index)
                elif body.inputs[1 + index].uses:
                    continue
                else:
                    node.remove_input(2 + index)
                    body.entry.remove_output(1 + index)
                    body.exit.remove_input(1 + index)
                node.remove_output(index)
            for inner in node.blocks:
                self.sweep(inner)
            if node not in self.marked and not any(v.uses for v in node.outputs):
                node.destroy()


def remove_dead_code(graph: Graph) -> None:
    """Remove the nodes of a graph that nobody needs."""
    sweep = _Sweep(graph)
    sweep.block(graph.block)
    sweep.sweep(graph.block)
