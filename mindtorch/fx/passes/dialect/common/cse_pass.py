"""Owns taking out nodes of a functional graph that compute what another computes already."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from .....utils._pytree import tree_flatten
from ....graph import Graph
from ....graph_module import GraphModule
from ....node import Node, map_arg
from ...infra.pass_base import PassBase, PassResult

_RANDOM = (
    "_fused_dropout _standard_gamma bernoulli binomial dropout multinomial native_dropout normal"
    " poisson rand rand_like randint randn randperm rrelu"
)
_INPLACE = "add_ div_ lerp_ mul_ pow_ relu_ sigmoid_ sub_ tanh_"


def get_CSE_banned_ops() -> set[object]:  # noqa: N802 - torch's name
    """Operators that draw numbers, and some that write."""
    import mindtorch

    names = f"{_RANDOM} {_INPLACE}".split()
    return {op for name in names if (op := getattr(mindtorch.ops.aten, name, None)) is not None}


class CSEPass(PassBase):
    """Common subexpression elimination; nodes of `banned_ops` stay."""

    def __init__(self, banned_ops: Collection[object] | None = None) -> None:
        self.banned_ops = banned_ops or set()

    def call(self, graph_module: GraphModule) -> PassResult:
        graph = once_each(graph_module.graph, lambda node: aten_packet(node) in self.banned_ops)
        if len(graph.nodes) == len(graph_module.graph.nodes):
            return PassResult(graph_module, False)
        return PassResult(GraphModule(graph_module, graph), True)


def aten_packet(node: Node) -> object:
    """The operator that a node calls, whichever overload; its target where it is none."""
    return getattr(node.target, "overloadpacket", node.target)


def once_each(source: Graph, stays: Callable[[Node], bool]) -> Graph:
    """A graph that computes each value once; nodes for which `stays` holds are all there."""
    graph, nodes, known = Graph(), dict[Node, Node](), dict[Any, Node]()
    for node in source.nodes:
        key: Any = None
        if node.op not in ("placeholder", "output", "get_attr") and not stays(node):
            leaves, spec = tree_flatten(map_arg((node.args, node.kwargs), lambda n: nodes[n]))
            key = node.target, tuple((type(v), v) for v in leaves), str(spec)
        if key is not None and key in known:
            nodes[node] = known[key]
            continue
        nodes[node] = graph.node_copy(node, lambda n: nodes[n])
        if key is not None:
            known[key] = nodes[node]
    return graph
