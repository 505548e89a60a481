"""Owns finding a pattern's graph within another graph, from the results backward."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from ...graph import Graph
from ...node import Node

__all__ = ["InternalMatch", "SubgraphMatcher"]
_EDGES = ("placeholder", "output")


@dataclass
class InternalMatch:
    """Where a pattern is: which node, or value, each of its nodes is."""

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors, dict(self.nodes_map), list(self.placeholder_nodes),
            list(self.returning_nodes),
        )  # fmt: skip


class SubgraphMatcher:
    """Finds where a graph has the nodes of a pattern.

    Placeholders of the pattern are anything, with `match_placeholder` placeholders;
    `ignore_literals` takes other numbers as equal. Only results are read from outside of a match.
    """

    def __init__(
        self, pattern: Graph, match_output: bool = False, match_placeholder: bool = False,
        remove_overlapping_matches: bool = True, ignore_literals: bool = False,
    ) -> None:  # fmt: skip
        if not len(pattern.nodes):
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.is_impure() and not node.users:
                raise AssertionError(
                    "SubgraphMatcher cannot be initialized with an pattern with dead code"
                )
        self.pattern, self.match_output = pattern, match_output
        self.match_placeholder, self.ignore_literals = match_placeholder, ignore_literals
        self.remove_overlapping_matches = remove_overlapping_matches
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        output = pattern.output_node()
        self.pattern_returning_nodes = output.all_input_nodes
        sinks = [n for n in output.all_input_nodes if len(n.users) == 1]
        self.pattern_anchors = [output] if match_output else sinks

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Every place where the pattern is, in the graph's order."""
        anchors = [
            (p, [g for g in graph.nodes if self._alike(p, g, node_name_match)])
            for p in self.pattern_anchors
        ]
        anchors = [(p, candidates) for p, candidates in anchors if candidates]
        if not anchors:
            return []
        start = InternalMatch(self.pattern_anchors)
        matches = [m for m in self._matches(anchors, start, node_name_match) if self._closed(m)]
        return self._disjoint(matches) if self.remove_overlapping_matches else matches

    def _matches(
        self, anchors: list[tuple[Node, list[Node]]], match: InternalMatch, name: str
    ) -> Iterator[InternalMatch]:
        if not anchors:
            match.placeholder_nodes = [match.nodes_map[p] for p in self.pattern_placeholder_nodes]
            match.returning_nodes = [match.nodes_map[p] for p in self.pattern_returning_nodes]
            yield match
            return
        (anchor, candidates), *others = anchors
        for node in candidates:
            attempt = copy.copy(match)
            if self._same_node(anchor, node, attempt, name):
                yield from self._matches(others, attempt, name)

    def _closed(self, match: InternalMatch) -> bool:
        """Whether nodes that are no results are read inside alone."""
        inner = {g: p for p, g in match.nodes_map.items() if p.op != "placeholder"}
        return all(
            user in inner
            for g, p in inner.items() if p not in self.pattern_returning_nodes for user in g.users
        )  # fmt: skip

    def _disjoint(self, matches: list[InternalMatch]) -> list[InternalMatch]:
        claimed, disjoint = set[Node](), []
        for match in matches:
            nodes = {g for p, g in match.nodes_map.items() if p.op not in _EDGES}
            if not nodes & claimed:
                claimed |= nodes
                disjoint.append(match)
        return disjoint

    def _alike(self, p: Node, g: Node, name: str = "") -> bool:
        if p.op == "placeholder" and not self.match_placeholder:
            return True
        if name and name in g.name:
            return True
        if p.op != g.op or p.op in _EDGES:
            return p.op == g.op
        if p.op == "get_attr":
            return self._same_attribute(p, g)
        return p.target == g.target or (p.op == "call_module" and self._same_attribute(p, g))

    @staticmethod
    def _same_attribute(p: Node, g: Node) -> bool:
        theirs, ours = p.graph.owning_module, g.graph.owning_module
        if theirs is None or ours is None:
            return p.target == g.target
        values = [attrgetter(str(n.target))(m) for n, m in ((p, theirs), (g, ours))]
        return type(values[0]) is type(values[1])

    def _same_node(self, p: Node, g: Node, match: InternalMatch, name: str = "") -> bool:
        nodes = match.nodes_map
        if p in nodes:
            return nodes[p] is g
        if any(g is other for other in nodes.values()) or not self._alike(p, g, name):
            return False
        before = dict(nodes)
        nodes[p] = g
        if p.op == "placeholder":
            return True
        arguments = _arguments(p, g)
        if arguments is not None and self._same(*arguments, match):
            return True
        nodes.clear()
        nodes.update(before)
        return False

    def _same(self, p: Any, g: Any, match: InternalMatch) -> bool:
        if isinstance(p, Node) and isinstance(g, Node):
            return self._same_node(p, g, match)
        if isinstance(p, list | tuple) and isinstance(g, list | tuple):
            return len(p) == len(g) and all(
                self._same(a, b, match) for a, b in zip(p, g, strict=True)
            )
        if isinstance(p, dict) and isinstance(g, dict):
            return p.keys() == g.keys() and all(self._same(p[k], g[k], match) for k in p)
        if isinstance(p, Node):
            if p.op == "placeholder" and p not in match.nodes_map:
                match.nodes_map[p] = g
            return p.op == "placeholder" and bool(match.nodes_map[p] == g)
        if not isinstance(g, Node) and type(p) is type(g) and p == g:
            return True
        return self.ignore_literals


def _arguments(p: Node, g: Node) -> tuple[list[Any], list[Any]] | None:
    """Arguments of two nodes one by one; those of operators with the defaults of the schema."""
    if len(p.args) == len(g.args) and list(p.kwargs) == list(g.kwargs):
        return [*p.args, *p.kwargs.values()], [*g.args, *g.kwargs.values()]
    schema = getattr(p.target, "_schema", None)
    if p.op != "call_function" or schema is None:
        return None
    both: tuple[list[Any], list[Any]] = [], []
    for node, values in zip((p, g), both, strict=True):
        for at, argument in enumerate(schema.arguments):
            default = getattr(argument, "default_value", None)
            place = node.args[at] if at < len(node.args) else default
            values.append(node.kwargs.get(argument.name, place))
    return both
