"""torch._functorch.partitioners: which nodes of a joint graph are forward, and which backward."""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from typing import Any

from mindtorch.fx import Graph, GraphModule
from mindtorch.fx.node import Node
from mindtorch.fx.passes.dialect.common.cse_pass import aten_packet, get_CSE_banned_ops, once_each
from mindtorch.ops.namespaces import OpOverload, Tag, namespace
from mindtorch.utils._config_module import SETTINGS

from .min_cut import MinimumCut, Roles, reordered


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


def min_cut_rematerialization_partition(
    joint_module: GraphModule, _joint_inputs: object, compiler: str = "inductor", *,
    num_fwd_outputs: int, static_lifetime_input_indices: Sequence[int] | None = None,
) -> tuple[GraphModule, GraphModule]:  # fmt: skip
    """As `default_partition`, but the backward graph computes again what is cheaper so.

    RuntimeError where a value can neither be kept nor be computed again.
    """
    joint_module.graph.eliminate_dead_code()
    if SETTINGS["mindtorch._functorch.config"]["cse"]:
        joint_module.graph = _without_repeats(joint_module.graph)
    nodes = list(joint_module.graph.nodes)
    outputs = list(nodes[-1].args[0])
    tangents = [n for n in nodes if n.op == "placeholder" and "tangents" in n.name]
    primals = [n for n in nodes if n.op == "placeholder" and n not in tangents]
    late = set(tangents)
    for node in nodes[:-1]:
        tagged = node.meta.get("partitioner_tag") == "is_backward"
        if not late.isdisjoint(node.all_input_nodes) or (
            tagged and isinstance(node.target, OpOverload) and node.target._schema.is_mutable
        ):
            late.add(node)
    results = outputs[num_fwd_outputs:]
    backward = late | {n for n in results if isinstance(n, Node)}
    if not backward:
        return default_partition(joint_module, _joint_inputs, num_fwd_outputs=num_fwd_outputs)
    writes = [n for n in nodes if str(n.target) == "aten.copy_.default" and n not in late]
    needed = _needed([*outputs[:num_fwd_outputs], *writes], primals) | set(primals)
    order = [n for n in nodes if n in needed]
    free = {primals[i] for i in static_lifetime_input_indices or ()}
    roles = Roles({node: at for at, node in enumerate(order)}, late, backward, free)
    saved = MinimumCut(joint_module.graph, roles).saved()
    used = _needed(results, {*saved, *tangents})
    saved = [node for node in saved if node in used]
    first = part(joint_module, primals, [*outputs[:num_fwd_outputs], *saved])
    second = part(joint_module, [*saved, *tangents], results)
    second = GraphModule(second, reordered(second.graph, {t.name for t in tangents}))
    return _with_early_parts(first), _with_early_parts(second)


def _without_repeats(graph: Graph) -> Graph:
    """The graph with each value computed once, but for random ones, outputs and empty ones."""
    apart = get_CSE_banned_ops() | {namespace("aten").empty}
    outputs = set(list(graph.nodes)[-1].all_input_nodes)
    return once_each(graph, lambda node: node in outputs or aten_packet(node) in apart)


def _with_early_parts(module: GraphModule) -> GraphModule:
    """A module whose results in parts are taken apart where they are made."""
    parts = [n for n in module.graph.nodes if n.target is operator.getitem]
    for node in reversed(parts):
        node.all_input_nodes[0].append(node)
    module.recompile()
    return module


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
    reached = set(copies)
    for node in module.graph.nodes:  # random operators stay wherever their inputs are
        if node.op == "call_function" and reached.issuperset(node.all_input_nodes):
            reached.add(node)
            random = Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
            needed |= _needed([node], copies) if random else set()
    for node in module.graph.nodes:
        if node in needed and node not in copies:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[o] if isinstance(o, Node) else o for o in outputs))
    return GraphModule(module, graph)
