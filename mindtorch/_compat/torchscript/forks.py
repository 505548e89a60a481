"""Lowers `torch.jit.fork`: the call becomes a graph of its own, which the node runs."""

from __future__ import annotations

import ast

from .graph import Graph, Node, ScriptValue
from .kinds import NONE, ScriptType
from .matching import Supplied
from .scope import Lowering
from .sugar import Simple, Sugar


def lower_fork(scope: Lowering, node: ast.Call) -> Sugar:
    """A future of the call, whose block `lifted` makes a graph."""
    graph, place = scope.graph, scope.place(node)
    callee = scope.sugar(node.args[0])
    args = scope.passed(node.args[1:])
    kwargs = {k.arg or "": Supplied(scope.value(k.value)) for k in node.keywords}
    fork = graph.insert("prim::fork", (), (NONE,), place)
    graph.count += 1  # torch has a closure beside it
    body = fork.add_block()
    with scope.framed(body):
        result = scope.as_value(scope.call_sugar(callee, place, args, kwargs))
    body.exit.add_input(result)
    fork.output.kind = ScriptType("Future", (result.kind,))
    return Simple(fork.output)


def lifted(fork: Node) -> Graph:
    """The graph of a fork, whose block goes."""
    body, graph = fork.blocks.pop(), Graph()
    graph.count = 1  # the tuple of what it takes from outside
    seen: dict[ScriptValue, ScriptValue] = {}
    inside = {v for n in body.nodes for v in n.outputs}
    constants = [n for n in body.nodes if n.kind == "prim::Constant" and n.output.uses]
    rest = [n for n in body.nodes if n.kind != "prim::Constant"]
    outside = [v for n in (*rest, body.exit) for v in n.inputs if v not in inside]
    reads = list(dict.fromkeys(outside))
    for node in constants:
        seen[node.output] = graph.copied(node, seen.__getitem__).place_before(graph.point).output
    graph.count += len(reads)
    for value in reads:
        fork.add_input(value)
        seen[value] = graph.block.entry.add_output(value.kind).like(value)
        graph.count -= 1
    for node in rest:
        copy = graph.copied(node, seen.__getitem__).place_before(graph.point)
        seen.update(zip(node.outputs, copy.outputs, strict=True))
    for value in body.outputs:
        graph.block.exit.add_input(seen[value])
    body.destroy()
    return graph
