"""Owns what passes know of sizes: elements and bytes of nodes' values and parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...nn.modules.module import Module
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, Target, map_arg
from .shape_prop import ShapeProp, TensorMetadata

__all__ = [
    "get_size_of_all_nodes", "get_size_of_node", "get_tensor_meta", "replace_target_nodes_with",
    "size_bytes",
]  # fmt: skip


class size_bytes(NamedTuple):  # noqa: N801 - torch's name
    """Bytes of a node's result, and of it with its parameters."""

    output_size: int
    total_size: int


def replace_target_nodes_with(
    fx_module: GraphModule, old_op: str, old_target: Target, new_op: str, new_target: Target
) -> None:
    """Let calls of one target be calls of another, in a graph made anew."""
    graph, nodes = Graph(), dict[Node, Node]()
    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            args = map_arg(node.args, nodes.__getitem__)
            kwargs = map_arg(node.kwargs, nodes.__getitem__)
            nodes[node] = graph.create_node(new_op, new_target, args, kwargs, node.name)
        else:
            nodes[node] = graph.node_copy(node, nodes.__getitem__)
    fx_module.graph = graph


def get_size_of_all_nodes(fx_module: GraphModule, args: list[Any] | None = None) -> None:
    """Run the module on example arguments, if any, which notes the sizes of its values."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        vars(node)["size_bytes"] = get_size_of_node(fx_module, node)


def get_tensor_meta(node: Node) -> Any:
    """What ShapeProp noted of a node; RuntimeError where it did not."""
    meta = node.meta.get("tensor_meta")
    if not meta:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape propagation"
            " has run."
        )
    return meta


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """The bytes of a node's result, and of it with a module's parameters."""
    total = 0
    if node.op == "call_module":
        module: Module = dict(fx_module.named_modules())[str(node.target)]
        total += sum(p.numel() for p in module.parameters())
    meta = get_tensor_meta(node)
    of_result = _elements(meta)
    total += of_result
    size = meta.dtype.itemsize if isinstance(meta, TensorMetadata) else meta[0].dtype.itemsize
    return size_bytes(size * of_result, size * total)


def _elements(meta: Any) -> int:
    if isinstance(meta, TensorMetadata):
        return int(meta.shape.numel())
    return sum(_elements(part) for part in meta)
