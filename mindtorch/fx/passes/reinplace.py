"""Owns a pass that lets operators write into values that nobody reads afterwards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ..._tensor.tensor import Tensor
from ...ops.namespaces import OpOverload, namespace
from ..graph_module import GraphModule
from ..node import Node
from .fake_tensor_prop import FakeTensorProp

__all__ = ["reinplace"]


def _writing(target: object) -> OpOverload | None:
    """The form of an operator that writes to its first argument; None for one that has none."""
    if not isinstance(target, OpOverload) or target.is_view or target.namespace != "aten":
        return None
    if target._opname[-1] == "_":
        return None
    packet = getattr(namespace("aten"), f"{target._opname}_", None)
    name = target._overloadname
    if packet is None or name not in packet.overloads():
        return None
    form: OpOverload = getattr(packet, name)
    return form


def _memory(node: Node) -> int | None:
    value = node.meta.get("val")
    return id(value._storage) if isinstance(value, Tensor) else None


def _values_of(args: object) -> Iterator[Node]:
    if isinstance(args, Node):
        yield args
    elif isinstance(args, list | tuple):
        for arg in args:
            yield from _values_of(arg)


def reinplace(gm: GraphModule, *sample_args: object) -> GraphModule:
    """The module with operators that write in place of those that make values, where what they
    write to is no input and is not read afterwards, nor is a view of it."""
    FakeTensorProp(gm).propagate(*sample_args)
    nodes = list(gm.graph.nodes)
    inputs = {_memory(node) for node in nodes if node.op in ("placeholder", "get_attr")}
    last: dict[int | None, int] = defaultdict(int)
    for at, node in enumerate(nodes):
        for value in node.all_input_nodes:
            last[_memory(value)] = at
    for at, node in enumerate(nodes):
        if node.op != "call_function" or not node.args:
            continue
        first, form = node.args[0], _writing(node.target)
        if form is None or not isinstance(first, Node):
            continue
        memory = _memory(first)
        before, after = first.meta.get("val"), node.meta.get("val")
        others = [v for v in _values_of(node.args[1:]) if _memory(v) == memory]
        if memory in inputs or last[memory] > at or others:
            continue
        if not isinstance(before, Tensor) or not isinstance(after, Tensor):
            continue
        if before.shape != after.shape or before.dtype != after.dtype:
            continue
        node.target = form
        last[memory] = max(last[memory], last[_memory(node)])
        node.replace_all_uses_with(first)
        node.meta["val"] = before
    gm.recompile()
    return gm
