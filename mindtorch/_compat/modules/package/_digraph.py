"""Owns the graph of what depends on what."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any


class DiGraph:
    """Nodes with attributes, and edges from what needs to what is needed, in order of addition."""

    def __init__(self) -> None:
        self._node: dict[str, dict[str, Any]] = {}
        self._succ: dict[str, dict[str, bool]] = {}
        self._pred: dict[str, dict[str, bool]] = {}

    def add_node(self, n: str, **attributes: Any) -> None:
        """A node, or more attributes of one."""
        self._node.setdefault(n, {}).update(attributes)
        self._succ.setdefault(n, {})
        self._pred.setdefault(n, {})

    def add_edge(self, u: str, v: str) -> None:
        """An edge; nodes are added."""
        self.add_node(u)
        self.add_node(v)
        self._succ[u][v] = self._pred[v][u] = True

    def _beside(self, table: dict[str, dict[str, bool]], n: str) -> Iterator[str]:
        if n not in table:
            raise ValueError(f"The node {n} is not in the digraph.")
        return iter(table[n])

    def successors(self, n: str) -> Iterator[str]:
        """What a node needs; ValueError for no node."""
        return self._beside(self._succ, n)

    def predecessors(self, n: str) -> Iterator[str]:
        """What needs a node; ValueError for no node."""
        return self._beside(self._pred, n)

    @property
    def edges(self) -> Iterator[tuple[str, str]]:
        """The edges."""
        return ((n, s) for n, below in self._succ.items() for s in below)

    @property
    def nodes(self) -> dict[str, dict[str, Any]]:
        """The nodes' attributes."""
        return self._node

    def __iter__(self) -> Iterator[str]:
        return iter(self._node)

    def __contains__(self, n: object) -> bool:
        return n in self._node

    def _closure(self, start: str, table: dict[str, dict[str, bool]]) -> set[str]:
        reach, waiting = set(start), deque(start)  # a text is the nodes of its letters, as in torch
        while waiting:
            for n in self._beside(table, waiting.popleft()):
                if n not in reach:
                    reach.add(n)
                    waiting.append(n)
        return reach

    def forward_transitive_closure(self, src: str) -> set[str]:
        """Everything that is needed."""
        return self._closure(src, self._succ)

    def backward_transitive_closure(self, src: str) -> set[str]:
        """Everything that needs it."""
        return self._closure(src, self._pred)

    def all_paths(self, src: str, dst: str) -> Any:
        """The text of the graph between two nodes; an empty graph where there is no path."""
        paths, reachable = DiGraph(), self.forward_transitive_closure(src)
        if dst not in reachable:
            return paths
        waiting = deque(dst)
        while waiting:
            node = waiting.popleft()
            for n in self.predecessors(node):
                if n in reachable:
                    paths.add_edge(n, node)
                    waiting.append(n)
        return paths.to_dot()

    def first_path(self, dst: str) -> list[str]:
        """The nodes by which a node was first reached, it last."""
        order = {n: i for i, n in enumerate(self._node)}
        path = []
        while dst:
            path.append(dst)
            dst = min(self._pred[dst], key=order.__getitem__, default="")
        return path[::-1]

    def to_dot(self) -> str:
        """The graph in the language of Graphviz."""
        edges = "\n".join(f'"{f}" -> "{t}";' for f, t in self.edges)
        return f"digraph G {{\nrankdir = LR;\nnode [shape=box];\n{edges}\n}}\n"
