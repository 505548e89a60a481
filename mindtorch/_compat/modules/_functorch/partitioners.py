"""torch._functorch.partitioners: which nodes of a joint graph are forward, and which backward."""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from typing import Any

from mindtorch.fx import Graph, GraphModule
from mindtorch.fx.node import Node


def default_partition(
    joint_module: GraphModule, _joint_inputs: object, *, num_fwd_outputs: int, **_: object
) -> tuple[GraphModule, GraphModule]:
    """The forward graph, which gives what the backward one needs too, and that one.

    A node is where autograd ran it: those made after the forward's outputs are backward.
    """
    nodes = list(joint_module.graph.nodes)
    outputs = list(nodes[-1].args[0])
    forward = [n for n in nodes[:-1] if n.meta.get("partitioner_tag") != "is_backward"]
    saved = [n for n in forward if not _has_parts(n)]
    tangents = [n for n in nodes if n.op == "placeholder" and n not in forward]
    primals = [n for n in forward if n.op == "placeholder"]
    results = outputs[num_fwd_outputs:]
    needed = _needed(results, {*saved, *tangents})
    saved = [n for n in saved if n in needed]
    first = part(joint_module, primals, [*outputs[:num_fwd_outputs], *saved])
    return first, part(joint_module, [*saved, *tangents], results)


def _has_parts(node: Node) -> bool:
    return bool(node.users) and all(user.target is operator.getitem for user in node.users)


def _needed(outputs: Sequence[Any], inputs: Collection[Node]) -> set[Node]:
    """What is computed on the way from some nodes to others, with those."""
    seen: set[Node] = set()
    stack = [o for o in outputs if isinstance(o, Node)]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += [] if node in inputs else node.all_input_nodes
    return seen


def part(module: GraphModule, inputs: Sequence[Node], outputs: Sequence[Any]) -> GraphModule:
    """The graph from some nodes of a module to others."""
    graph, copies = Graph(), dict[Node, Node]()
    for node in inputs:
        copies[node] = graph.placeholder(node.name)
        copies[node].meta = dict(node.meta)
    writes = [n for n in module.graph.nodes if str(n.target) == "aten.copy_.default"]
    needed = _needed([*outputs, *(n for n in writes if n.args[0] in copies)], copies)
    for node in module.graph.nodes:
        if node in needed and node not in copies:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[o] if isinstance(o, Node) else o for o in outputs))
    return GraphModule(module, graph)
