"""Puts the graphs of called functions and methods where they are called."""

from __future__ import annotations

from .graph import Block, Graph, Node, ScriptValue
from .unit import LoweredFunction, class_of


def _callee(node: Node) -> LoweredFunction | None:
    if node.kind == "prim::CallFunction":
        target = node.inputs[0].node.attributes.get("target")
        return target if isinstance(target, LoweredFunction) else None
    if node.kind == "prim::CallMethod":
        known = class_of(node.inputs[0].kind)
        return known.method(node.attributes["name"]) if known else None
    return None


def _inline(block: Block) -> None:
    for node in list(block.nodes):
        for inner in node.blocks:
            _inline(inner)
        function = _callee(node)
        if function is None or function.graph is None:
            continue
        passed = node.inputs[1:] if node.kind == "prim::CallFunction" else list(node.inputs)
        source = function.graph.block
        seen = dict(zip(source.inputs, passed, strict=True))

        def here(value: ScriptValue, seen: dict[ScriptValue, ScriptValue] = seen) -> ScriptValue:
            return seen[value]

        constants = [n for n in source.nodes if n.kind == "prim::Constant"]
        others = [n for n in source.nodes if n.kind != "prim::Constant"]
        for each in (*reversed(constants), *others):  # torch pools constants once more
            copy = block.graph.copied(each, here).place_before(node)
            seen.update(zip(each.outputs, copy.outputs, strict=True))
            for inner in copy.blocks:
                _inline(inner)
        for output, result in zip(node.outputs, source.outputs, strict=True):
            output.replace_with(seen[result])
        node.destroy()
    if any(_open(n) for n in block.nodes):
        _inline(block)


def _open(node: Node) -> bool:
    function = _callee(node)
    return function is not None and function.graph is not None


def inlined(graph: Graph) -> Graph:
    """A copy of a graph in which nothing is called whose graph is known."""
    new = Graph()
    new.block.copy_from(graph.block, lambda v: v)
    _inline(new.block)
    return new
