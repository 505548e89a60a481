"""Owns putting groups of a graph's nodes into modules of their own."""

from __future__ import annotations

import copy
import operator
from collections.abc import Collection, Iterable, Mapping

from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ..tools_common import stable_topological_sort, topo_sort
from .common import lift_subgraph_as_module

__all__ = ["erase_nodes", "fuse_as_graphmodule", "fuse_by_partitions", "insert_subgm", "topo_sort",
           "validate_partition"]  # fmt: skip


def validate_partition(partition: Collection[Node]) -> bool:
    """Whether no path leaves the nodes and comes back to them."""
    inside = set(partition)
    ahead, seen = [u for n in inside for u in n.users if u not in inside], set[Node]()
    while ahead:
        node = ahead.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            ahead += node.users
    return True


def fuse_as_graphmodule(
    gm: GraphModule, nodes: list[Node], module_name: str,
    partition_lookup_table: Mapping[Node, int | None] | None = None, *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:  # fmt: skip
    """The module of some nodes, the nodes that it reads, and those that others read of it."""
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(
                f"{node} doesn't belong to passed in graph module {gm._get_name()}"
            )
        if node._erased:
            raise AssertionError(f"{node} has been removed from owning graph")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inside = set(nodes)
    graph, values, inputs = Graph(), dict[Node, Node](), list[Node]()

    def value(node: Node) -> Node:
        if node not in values:
            inputs.append(node)
            values[node] = graph.placeholder(node.name, type_expr=node.type)
            values[node].meta = copy.copy(node.meta)
        return values[node]

    for node in nodes:
        values[node] = graph.node_copy(node, value)
    outputs = [n for n in nodes if any(user not in inside for user in n.users)]
    results = tuple(values[n] for n in outputs)
    graph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    graph.lint()
    module, _ = lift_subgraph_as_module(gm, graph, class_name=module_name)
    return module, tuple(inputs), tuple(outputs)


def insert_subgm(
    gm: GraphModule, sub_gm: GraphModule, orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...], insertion_point: Node | None = None,
) -> GraphModule:  # fmt: skip
    """Call a module in place of the nodes that it computes."""
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    last = insertion_point or next(n for n in reversed(gm.graph.nodes) if n in orig_outputs)
    with gm.graph.inserting_after(last):
        call = gm.graph.call_module(name, orig_inputs)
    if len(orig_outputs) == 1 and not isinstance(sub_gm.graph.output_node().args[0], tuple):
        orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
    elif orig_outputs:
        with gm.graph.inserting_before(call.next):
            for at, node in enumerate(orig_outputs):
                part = gm.graph.call_function(operator.getitem, (call, at))
                node.replace_all_uses_with(part, propagate_meta=True)
        call.meta["val"] = tuple(node.meta.get("val") for node in orig_outputs)
    return gm


def erase_nodes(gm: GraphModule, nodes: list[Node]) -> None:
    """Take nodes out, the last first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule, partitions: Iterable[Mapping[Node, int | None]], prefix: str = "fused_",
    always_return_tuple: bool = False,
) -> GraphModule:  # fmt: skip
    """Put each group of nodes into a module of its own, which the graph calls."""
    for at, partition in enumerate(partitions):
        nodes = topo_sort(partition)
        inner, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{at}", partition, always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, inner, inputs, outputs, nodes[-1])
        erase_nodes(gm, nodes)
    stable_topological_sort(gm)
    gm.graph.lint()
    return gm
