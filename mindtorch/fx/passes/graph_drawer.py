"""Owns drawings of graphs, which need a package that draws."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..graph_module import GraphModule

__all__ = ["FxGraphDrawer"]


class FxGraphDrawer:
    """A drawing of a graph by pydot. RuntimeError without that package."""

    def __init__(self, graph_module: GraphModule, name: str, *args: object, **kwargs: object):
        try:
            pydot = import_module("pydot")
        except ImportError:
            raise RuntimeError(
                "FXGraphDrawer requires the pydot package to be installed. Please install pydot"
                " through your favorite Python package manager."
            ) from None
        self._name = name
        self._dot_graphs = {name: self._dot_of(pydot, graph_module, name)}
        for inner, module in graph_module.named_children():
            if isinstance(module, GraphModule):
                whole = f"{name}_{inner}"
                self._dot_graphs[whole] = self._dot_of(pydot, module, whole)

    def _dot_of(self, pydot: Any, module: GraphModule, name: str) -> object:
        dot = pydot.Dot(name, rankdir="TB")
        for node in module.graph.nodes:
            rows = f"name=%{node.name}", f"op_code={node.op}", f"target={node.target}"
            dot.add_node(pydot.Node(node.name, label="{" + "|".join(rows) + "}", shape="record"))
        for node in module.graph.nodes:
            for value in node.all_input_nodes:
                dot.add_edge(pydot.Edge(value.name, node.name))
        return dot

    def get_dot_graph(self, submod_name: str | None = None) -> object:
        """The drawing of the graph, or of a module's in it."""
        return self._dot_graphs[self._name if submod_name is None else submod_name]

    def get_main_dot_graph(self) -> object:
        """The drawing of the graph."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> object:
        """The drawing of a module's graph."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, object]:
        """All drawings by name."""
        return self._dot_graphs
