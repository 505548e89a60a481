"""Owns splitting a graph module into modules by the tags of its nodes."""

from __future__ import annotations

import copy
import operator
from dataclasses import dataclass, field
from typing import Any

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from .utils import HolderModule, lift_subgraph_as_module

__all__ = ["Component", "getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj: object, name: str) -> Any:
    """The attribute at a dotted path, None where there is none."""
    for part in name.split("."):
        obj = getattr(obj, part, None)
    return obj


def setattr_recursive(obj: object, attr: str, value: object) -> None:
    """Set the attribute at a dotted path."""
    *path, last = attr.split(".")
    for part in path:
        obj = getattr(obj, part)
    setattr(obj, last, value)


@dataclass
class Component:
    """A part of a graph: its own graph, what it reads and what it gives."""

    graph: Graph
    order: int
    name: str
    input_placeholders: list[Node] = field(default_factory=list)
    orig_inputs: list[Node] = field(default_factory=list)
    orig_outputs: list[Node] = field(default_factory=list)
    getattr_maps: dict[Node, Node] = field(default_factory=dict)
    constructor_args: list[str] = field(default_factory=list)
    gm: GraphModule | None = None


class _Splitter:
    """Puts each node into the component of its tag."""

    def __init__(self, tags: list[str]) -> None:
        self.components = {t: Component(Graph(), at, t) for at, t in enumerate(tags)}
        self.home, self.values = dict[Node, Component](), dict[Node, Node]()
        self.read: dict[Node, None] = {}  # by other components, or by the output

    def place(self, node: Node) -> None:
        """Copy a node into its component's graph."""
        if not hasattr(node, "tag"):
            raise AssertionError(f"Node does not have tag: {node.format_node()}")
        component = self.components[node.tag]
        above = [self.home[n].order for n in node.all_input_nodes if n in self.home]
        if component.order < max(above, default=0):
            raise AssertionError(
                f"Component {component.name} order must be >= max of its upstream components,"
                f" order={component.order} and max={max(above)}"
            )
        self.home[node] = component
        self.values[node] = component.graph.node_copy(node, lambda n: self.value(component, n))
        self.values[node].__dict__["tag"] = node.tag

    def value(self, component: Component, node: Node) -> Node:
        """An input of a component's node, in the component's graph."""
        graph, inputs = component.graph, component.orig_inputs
        if node.op == "get_attr":
            if node not in component.getattr_maps:
                component.getattr_maps[node] = graph.get_attr(str(node.target), node.type)
                component.getattr_maps[node].meta = copy.copy(node.meta)
            return component.getattr_maps[node]
        if self.home.get(node) is component:
            return self.values[node]
        if node not in inputs:
            inputs.append(node)
            component.input_placeholders.append(graph.placeholder(node.name, node.type))
            component.input_placeholders[-1].meta = copy.copy(node.meta)
            self.read[node] = None
        return component.input_placeholders[inputs.index(node)]


def split_by_tags(
    gm: GraphModule, tags: list[str], return_fqn_mapping: bool = False,
    return_tuple: bool = False, GraphModuleCls: type[GraphModule] = GraphModule,  # noqa: N803
) -> Any:  # fmt: skip
    """A module of one module for each tag, in the order of the tags.

    `node.tag` is a call's; with `return_fqn_mapping`, where modules and parameters are now too.
    """
    splitter, graph, values, names = _Splitter(tags), Graph(), dict[Node, Node](), dict[str, str]()
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            values[node] = graph.placeholder(node.name, node.type)
            values[node].meta = copy.copy(node.meta)
        elif node.op not in ("output", "get_attr"):
            splitter.place(node)
    output = gm.graph.output_node()
    for node in output.all_input_nodes:
        if node.op == "get_attr":
            values[node] = graph.get_attr(node.name, node.type)
        else:
            splitter.read[node] = None
    for node in splitter.read:
        if node.op != "placeholder":
            splitter.home[node].orig_outputs.append(node)
    for part in splitter.components.values():
        results = tuple(splitter.values[n] for n in part.orig_outputs)
        alone = len(results) == 1 and not return_tuple
        part.graph.output(results[0] if alone else results)
        part.gm, moved = lift_subgraph_as_module(gm, part.graph, part.name)
        names.update(moved)
        call = graph.call_module(part.name, tuple(values[n] for n in part.orig_inputs))
        for at, node in enumerate(part.orig_outputs):
            item = call if alone else graph.call_function(operator.getitem, (call, at))
            values[node] = item
    graph.output(map_arg(output.args[0], values.__getitem__))
    modules = {c.name: c.gm for c in splitter.components.values() if c.gm is not None}
    split = GraphModuleCls(HolderModule(modules), graph)
    return (split, names) if return_fqn_mapping else split
