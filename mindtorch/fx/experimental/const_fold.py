"""Owns constant folding: what depends on no input is computed once, and is an attribute then."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from ..._tensor.tensor import Tensor
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node

_FOLDED = "_FX_CONST_FOLDED_ATTRS"


class FoldedGraphModule(GraphModule):
    """A module whose constant part is `const_subgraph_module`, which runs before the first call."""

    def __init__(
        self, root: Module, graph: Graph, const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None, device_for_folded_attrs: str = "cuda",
    ):  # fmt: skip
        super().__init__(root, graph)
        self.const_subgraph_module = (
            None if const_subgraph is None else GraphModule(root, const_subgraph)
        )
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Compute the constant part; AssertionError the second time."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Folding has already been run")
        self.has_folding_been_run = True
        folded = self.const_subgraph_module()
        tensors = folded if isinstance(folded, tuple) else (folded,)
        values = [Parameter(t, requires_grad=bool(t.requires_grad)) for t in tensors]
        if isinstance(folded, tuple):
            from ...nn.modules.container import ParameterList

            setattr(self, self.fx_const_folded_attrs_name, ParameterList(values))
        else:
            setattr(self, self.fx_const_folded_attrs_name, values[0])


def get_unique_attr_name_in_module(mod_traced: GraphModule, name: str) -> str:
    """A name that the module has no attribute of: the one given, with letters that may stand in
    names, or with a number behind it."""
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    name = f"_{name}" if name[0].isdigit() else name
    while hasattr(mod_traced, name):
        match = re.match(r"(.*)_(\d+)$", name)
        name = f"{name}_1" if match is None else f"{match[1]}_{int(match[2]) + 1}"
    return name


def _constants(traced: GraphModule, skip: Callable[[Node], bool] | None) -> list[Node]:
    """Nodes that depend on attributes alone, which are to be computed once."""
    nodes, modules = list[Node](), dict(traced.named_modules())
    for node in traced.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node.op != "get_attr" and not set(node.all_input_nodes) <= set(nodes):
            continue
        if skip is not None and skip(node):
            continue
        if node.op == "call_module" and getattr(modules[str(node.target)], "training", False):
            continue
        if node.is_impure():
            continue
        nodes.append(node)
    return nodes


def split_const_subgraphs(
    module: Module | GraphModule,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
) -> FoldedGraphModule:
    """A module with what depends on no input apart; `skip_folding_node_fn` says what stays."""
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constants(traced, skip_folding_node_fn)
    if all(node.op == "get_attr" for node in constant):
        return FoldedGraphModule(traced, traced.graph)
    inner, copies, inside = Graph(), dict[Node, Node](), set(constant)
    inner = GraphModule(Module(), inner).graph  # of nothing: each attribute warns, as in torch
    for node in constant:
        if node.op != "get_attr":
            copies[node] = inner.node_copy(node, copies.__getitem__)
        elif not inside.isdisjoint(node.users):
            copies[node] = inner.get_attr(str(node.target))
            copies[node].meta = dict(node.meta)
            copies[node]._rename(f"{node.name}_1")
    inner.owning_module = None
    outputs = [
        node for node in constant
        if node.op != "get_attr" and any(user not in inside for user in node.users)
    ]  # fmt: skip
    results = tuple(copies[node] for node in outputs)
    inner.output(results[0] if len(results) == 1 else results)
    inner.eliminate_dead_code()
    name = get_unique_attr_name_in_module(traced, _FOLDED)
    setattr(traced, name, Parameter(Tensor(1)) if len(outputs) == 1 else Module())
    _replace(traced.graph, outputs, name)
    traced.graph.eliminate_dead_code()
    for node in [n for n in traced.graph.nodes if n.op == "get_attr" and not n.users]:
        traced.graph.erase_node(node)
    return FoldedGraphModule(traced, traced.graph, inner, name, device_for_folded_attrs)


def _replace(graph: Graph, outputs: list[Node], name: str) -> None:
    """Read the folded values in place of computing them."""
    first = next(n for n in graph.nodes if n.op != "placeholder")
    with graph.inserting_before(first):
        whole = graph.get_attr(name)
        values = [whole] if len(outputs) == 1 else [
            graph.call_function(operator.getitem, (whole, at)) for at in range(len(outputs))
        ]  # fmt: skip
    for node, value in zip(outputs, values, strict=True):
        value.meta = dict(node.meta)
        node.replace_all_uses_with(value)
