"""Owns graphs for inference alone: batch norms in the layers before them, no dropout."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from ...nn import BatchNorm1d, BatchNorm2d, BatchNorm3d, Conv1d, Conv2d, Conv3d, Dropout, Linear
from ...nn.modules.module import Module
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node

__all__ = ["extract_subgraph", "fuse", "matches_module_pattern", "remove_dropout",
           "replace_node_module"]  # fmt: skip

_PAIRS: tuple[tuple[type[Module], type[Module]], ...] = (
    (Conv1d, BatchNorm1d), (Conv2d, BatchNorm2d), (Conv3d, BatchNorm3d), (Linear, BatchNorm1d),
)  # fmt: skip


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Module]) -> bool:
    """Whether a node and its first input call modules of the two classes."""
    nodes = (*node.args[:1], node)
    return len(nodes) == 2 and all(
        isinstance(n, Node) and n.op == "call_module" and type(modules.get(str(n.target))) is cls
        for cls, n in zip(pattern, nodes, strict=True)
    )


def replace_node_module(node: Node, modules: dict[str, Module], new_module: Module) -> None:
    """Let a node call another module, which takes the place of its own."""
    path, _, name = str(node.target).rpartition(".")
    modules[str(node.target)] = new_module
    setattr(modules[path], name, new_module)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """The model with each batch norm in the convolution or linear layer before it."""
    model = model if inplace else copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules, graph = dict(traced.named_modules()), copy.deepcopy(traced.graph)
    for pair in _PAIRS:
        for node in graph.nodes:
            if not matches_module_pattern(pair, node, modules) or len(node.args[0].users) > 1:
                continue
            layer, norm = modules[str(node.args[0].target)], modules[str(node.target)]
            if norm.track_running_stats:
                fused: Any = fuse_linear_bn_eval if pair[0] is Linear else fuse_conv_bn_eval
                replace_node_module(node.args[0], modules, fused(layer, norm))
                node.replace_all_uses_with(node.args[0])
                graph.erase_node(node)
    return GraphModule(traced, graph)


class _DropoutRemover(Transformer):
    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(self.submodules[target], Dropout):
            return args[0]
        return super().call_module(target, args, kwargs)


def remove_dropout(model: Module) -> GraphModule:
    """The model without its layers of dropout."""
    return _DropoutRemover(symbolic_trace(model)).transform()


def extract_subgraph(
    orig_module: Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]
) -> GraphModule:
    """The module of some nodes of a graph."""
    graph, values = Graph(), dict[Node, Node]()
    for node in inputs:
        values[node] = graph.placeholder(node.name)
    for node in nodes:
        values[node] = graph.node_copy(node, values.__getitem__)
    graph.output([values[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)
