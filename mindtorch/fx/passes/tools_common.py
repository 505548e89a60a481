"""Owns what passes ask about nodes, and putting nodes into an order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from typing import Any

from ..._tensor.tensor import Tensor
from ...nn.modules.module import Module
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, _get_qualified_name

CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_node_target(submodules: Mapping[str, Module], node: Node) -> str:
    """The name of what a node calls: a module's class, a function, a method."""
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(
            "Expect op types of " + ", ".join(["call_module", "call_function", "call_method"])
            + f", but found {node.op}"
        )  # fmt: skip
    if node.op == "call_module":
        module = submodules[str(node.target)]
        return str(_type_name(getattr(module, "_base_class_origin", type(module))))
    if node.op == "call_function":
        function: Any = node.target
        builtin = type(function).__name__ == "builtin_function_or_method"
        return f"{'_' * builtin}{_get_qualified_name(function)}".replace("_torch", "torch", 1)
    return str(node.target)


def _type_name(cls: Any) -> str:
    home = "torch" + cls.__module__.removeprefix("mindtorch").removeprefix("torch")
    ours = cls.__module__.partition(".")[0] in ("mindtorch", "torch")
    return f"{home if ours else cls.__module__}.{cls.__qualname__}"


def get_acc_ops_name(k: Any) -> str:
    """The name of a function by its module's last part."""
    if isinstance(k, str):
        return k
    home = "torch" + k.__module__.removeprefix("mindtorch").removeprefix("torch")
    if k.__module__ and "acc_ops" in k.__module__:
        return f"acc_ops.{k.__name__}"
    home = home if k.__module__.partition(".")[0] in ("mindtorch", "torch") else k.__module__
    return f"{home.replace('torch._ops', 'torch.ops')}.{k.__name__}"


def is_node_output_tensor(node: Node) -> bool:
    """Whether a node's value is a tensor, as far as `meta["type"]` says."""
    kind = node.meta.get("type")
    return isinstance(kind, type) and issubclass(kind, Tensor)


def _ordered(nodes: Iterable[Node], first: Callable[[Node], Any]) -> list[Node]:
    """Nodes behind those that they read; of those that may come next the least by `first`."""
    waiting = dict.fromkeys(nodes, 0)
    ready: list[tuple[Any, Node]] = []
    for node in waiting:
        waiting[node] = sum(n in waiting for n in node.all_input_nodes)
        if not waiting[node]:
            heappush(ready, (first(node), node))
    order: list[Node] = []
    while ready:
        order.append(heappop(ready)[1])
        for user in order[-1].users:
            if user in waiting:
                waiting[user] -= 1
                if not waiting[user]:
                    heappush(ready, (first(user), user))
    if len(order) < len(waiting):
        raise RuntimeError(
            "Input graph has cycles, unable to add "
            f"{[n for n in waiting if waiting[n] and n not in order]}"
        )
    return order


def topo_sort(nodes: Iterable[Node]) -> list[Node]:
    """Nodes in an order in which they run, as near as possible to the given one."""
    place = {node: at for at, node in enumerate(nodes)}
    return _ordered(place, place.__getitem__)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Put a module's nodes into an order in which they run."""
    root = gm.graph._root
    for node in topo_sort(gm.graph.nodes):
        root.prepend(node)
    gm.recompile()
    return gm


def legalize_graph(gm: GraphModule) -> GraphModule:
    """The same in a new graph, which reads from left to right."""
    count = iter(range(10**9))
    order = _ordered(gm.graph.nodes, lambda n: next(count))
    graph, values = Graph(tracer_cls=gm.graph._tracer_cls), dict[Node, Node]()
    for node in [n for n in order if n.op != "output"] + [n for n in order if n.op == "output"]:
        values[node] = graph.node_copy(node, lambda n: values[n])
    graph.set_codegen(gm.graph._codegen)
    gm.graph = graph
    return gm
