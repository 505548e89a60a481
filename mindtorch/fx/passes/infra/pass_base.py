"""Owns what a pass is: it gets a graph module and says what it became and whether it changed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from ...graph_module import GraphModule


class PassResult(NamedTuple):
    """The graph module after a pass, and whether the pass changed it."""

    graph_module: GraphModule
    modified: bool


class PassBase(ABC):
    """A pass that may check what it requires and what it ensures."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """The pass."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027 - may be overridden
        """Raise where the graph is none for this pass."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027 - may be overridden
        """Raise where the pass did not do its work."""
