"""Owns parts of graphs as modules, and whether two graphs are one."""

from __future__ import annotations

from collections.abc import Mapping

from ....nn.modules.module import Module
from ...graph import Graph
from ...graph_module import GraphModule
from .matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(Module):
    """A module of other modules."""

    def __init__(self, d: Mapping[str, Module]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """The module of a part of a graph, and the new names of what it has of the whole's module."""
    targets = [str(n.target) for n in subgraph.nodes if n.op in ("call_module", "get_attr")]
    return GraphModule(gm, subgraph, class_name), {t: f"{comp_name}.{t}" for t in targets}


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether two graphs compute the same in the same way."""
    return len(SubgraphMatcher(left, match_output=True, match_placeholder=True).match(right)) > 0
