"""Owns a context around a pass that counts it, and says which nodes it makes and erases."""

from __future__ import annotations

from collections.abc import Callable

from ..graph_module import GraphModule

__all__ = ["GraphTransformObserver"]


class GraphTransformObserver:
    """A context around a pass over `gm`, under a name."""

    __pass_count = 0

    def __init__(
        self, gm: GraphModule, passname: str, subsystem: str | None = None,
        log_url: str | None = None,
    ):  # fmt: skip
        self.gm, self.passname, self.subsystem, self.log_url = gm, passname, subsystem, log_url
        self.erased_nodes: set[str] = set()
        self.created_nodes: set[str] = set()
        type(self).__pass_count += 1

    @classmethod
    def get_current_pass_count(cls) -> int:
        """How many passes there were."""
        return cls.__pass_count

    def apply_gm_pass(self, pass_fn: Callable[..., object]) -> object:
        """What a function of the module gives."""
        with self:
            return pass_fn(self.gm)

    def apply_graph_pass(self, pass_fn: Callable[..., object]) -> object:
        """What a function of the graph gives."""
        with self:
            return pass_fn(self.gm.graph)

    def __enter__(self) -> GraphTransformObserver:
        self._before = {node.name for node in self.gm.graph.nodes}
        return self

    def __exit__(self, *error: object) -> None:
        after = {node.name for node in self.gm.graph.nodes}
        self.created_nodes, self.erased_nodes = after - self._before, self._before - after
