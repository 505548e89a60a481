"""Owns split_module: a graph module as modules of its parts, each with what it calls."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg

__all__ = ["Partition", "split_module"]

_OUTER = ("placeholder", "get_attr", "output")


class Partition:
    """One part: its nodes, what it takes and gives by the nodes' names, the parts that it needs."""

    def __init__(self, name: str):
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {list(self.inputs)},\n"
            f" outputs: {list(self.outputs)},\n"
            f" partitions depended on: {list(self.dependencies)},\n"
            f" partition dependents: {list(self.dependents)}"
        )


class _SplitGraph:
    """A graph whose nodes are told apart: `of` is the part of each node that is computed."""

    def __init__(self, m: GraphModule, choose: Callable[[Node], Any], affix: str | None):
        self.m = m
        self.parts: dict[str, Partition] = {}
        self.of: dict[Node, Partition] = {}
        self.nodes = {node.name: node for node in m.graph.nodes}
        for node in m.graph.nodes:
            if node.op not in _OUTER:
                name = str(choose(node)) if affix is None else f"{affix}_{choose(node)}"
                part = self.parts.setdefault(name, Partition(name))
                part.node_names.append(node.name)
                self.of[node] = part
        for node in m.graph.nodes:
            for value in node.all_input_nodes:
                self._connect(value, node)

    def _connect(self, value: Node, user: Node) -> None:
        """Note a value that crosses from one part to another, or to the outside."""
        source, target = self.of.get(value), self.of.get(user)
        if source is target:
            return
        if source is not None:
            source.outputs.setdefault(value.name)
        if target is not None:
            target.inputs.setdefault(value.name)
        if source is not None and target is not None:
            target.dependencies.setdefault(source.name)
            source.dependents.setdefault(target.name)

    def order(self) -> list[Partition]:
        """The parts, each behind those that it needs; RuntimeError where they need each other."""
        waits = {name: len(part.dependencies) for name, part in self.parts.items()}
        ready = [name for name, count in waits.items() if not count]
        for name in ready:  # grows
            for user in self.parts[name].dependents:
                waits[user] -= 1
                if not waits[user]:
                    ready.append(user)
        if len(ready) != len(self.parts):
            raise RuntimeError("cycle exists between partitions!")
        return [self.parts[name] for name in ready]

    def fill(self, part: Partition, names: dict[str, str], same: bool, inputs: bool) -> None:
        """Write the graph of a part: placeholders, then copies of its nodes."""
        for name in part.inputs:
            outer = self.nodes[name]
            label = name if inputs else f"arg_{len(part.environment)}"
            place = part.graph.placeholder(label, outer.type)
            place.meta = outer.meta.copy()
            part.environment[outer] = place
        for name in part.node_names:
            self._copy(self.nodes[name], part, names, same)

    def _copy(self, node: Node, part: Partition, names: dict[str, str], same: bool) -> None:
        target = node.target
        if node.op == "call_module":
            part.targets[str(target)] = self.m.get_submodule(str(target))
            names[f"{part.submod_name}.{target}"] = str(target)
        places, named = map_arg((node.args, node.kwargs), part.environment.__getitem__)
        new = part.graph.create_node(
            node.op, target, places, named, node.name if same else None, node.type
        )
        new.meta = node.meta.copy()
        part.environment[node] = new

    def close(self, part: Partition, always_tuple: bool) -> bool:
        """Give what others use; whether it is a tuple."""
        values = tuple(part.environment[self.nodes[name]] for name in part.outputs)
        several = always_tuple or len(values) != 1
        part.graph.output(values if several else values[0])
        return several


def _call(
    base: Graph, part: Partition, several: bool, nodes: dict[str, Node], env: dict[Node, Node]
) -> None:
    """Call a part in the outer graph, and take its results apart."""
    result = base.call_module(part.submod_name, tuple(env[nodes[n]] for n in part.inputs))
    if not several:
        env[nodes[next(iter(part.outputs))]] = result
        return
    for place, name in enumerate(part.outputs):
        env[nodes[name]] = base.call_function(operator.getitem, (result, place))


def _outer_values(
    m: GraphModule, nodes: Iterable[Node], base: Graph, attributes: dict[str, Any]
) -> dict[Node, Node]:
    """Copies of placeholders and attributes in the outer graph."""
    env: dict[Node, Node] = {}
    for node in nodes:
        if node.op == "get_attr":
            value: Any = m
            for step in str(node.target).split("."):
                value = getattr(value, step)
            attributes[str(node.target)] = value
        env[node] = base.node_copy(node)
        env[node].meta = node.meta.copy()
    return env


def split_module(
    m: GraphModule,
    root_m: object,
    split_callback: Callable[[Node], Any],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """`m` as calls of modules `submod_N`, one for each number that `split_callback` gives.

    `qualname_map` gets each module's name in its part with that in `m`. Attributes are read
    outside and passed in. RuntimeError where two parts need each other.
    """
    split = _SplitGraph(m, split_callback, partition_affix)
    order = split.order()
    if keep_original_order:
        order = list(split.parts.values())
    names = {} if qualname_map is None else qualname_map
    attributes: dict[str, Any] = {}
    base = Graph()
    outer = [n for n in m.graph.nodes if n.op in ("placeholder", "get_attr")]
    env = _outer_values(m, outer, base, attributes)
    for part in order:
        split.fill(part, names, bool(keep_original_node_name), keep_original_input_name)
        several = split.close(part, tuple_return)
        attributes[part.submod_name] = GraphModule(part.targets, part.graph)
        _call(base, part, several, split.nodes, env)
    for node in m.graph.nodes:
        if node.op == "output":
            base.output(map_arg(node.args[0], env.__getitem__))
    return GraphModule(attributes, base)
