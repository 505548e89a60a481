"""Puts the values of a module's members into its graph, as freezing a module does."""

from __future__ import annotations

from mindtorch._tensor.tensor import Tensor
from mindtorch.nn.modules.module import Module

from .cleanup import clean
from .graph import Block, Graph, ScriptValue
from .inlining import inlined
from .kinds import ScriptType


def _fold(block: Block, objects: dict[ScriptValue, object]) -> None:
    graph = block.graph
    for node in list(block.nodes):
        if node.kind == "prim::GetAttr" and node.inputs[0] in objects:
            value = getattr(objects[node.inputs[0]], node.attributes["name"], None)
            if isinstance(value, Module):
                objects[node.output] = value
            elif value is None or isinstance(value, bool | int | float | str | Tensor):
                kind: ScriptType | None = node.output.kind if value is not None else None
                with graph.at(node):
                    node.output.replace_with(graph.constant(value, None, kind))
                node.destroy()
        for inner in node.blocks:
            _fold(inner, objects)


def folded(graph: Graph, module: Module) -> Graph:
    """A copy of a method's graph in which the members of its module are constants."""
    result = inlined(graph)
    _fold(result.block, {result.block.inputs[0]: module})
    clean(result)
    return result
