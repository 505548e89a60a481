"""Owns finding a pattern's graph within another and putting a replacement there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..nn.modules.module import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _copy_attr
from .node import Node

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """Where a pattern was: the pattern's result, and which node each of its nodes was."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """The same, with the nodes that stand there now."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node] = field(default_factory=list)


class _Matcher:
    """Compares a pattern with a graph, from the result backward."""

    def __init__(self, pattern: Graph):
        self.pattern = pattern
        output = pattern.output_node().args[0]
        self.results = [output] if isinstance(output, Node) else list(output)

    def at(self, anchor: Node) -> dict[Node, Any] | None:
        """Pattern's node → graph's, where the first result is `anchor`."""
        nodes: dict[Node, Any] = {}
        if len(self.results) != 1 or not self._same(self.results[0], anchor, nodes):
            return None
        inner = {
            n for p, n in nodes.items() if p.op not in ("placeholder", "get_attr")
        }  # fmt: skip
        alone = all(
            user in inner
            for node in inner if node is not anchor for user in node.users
        )  # fmt: skip
        return nodes if alone else None

    def _same(self, p: object, g: object, nodes: dict[Node, Any]) -> bool:
        if not isinstance(p, Node):
            return self._same_value(p, g, nodes)
        if p in nodes:
            return nodes[p] is g
        if p.op == "placeholder":
            nodes[p] = g
            return True
        if not isinstance(g, Node) or p.op != g.op or not self._same_target(p, g):
            return False
        nodes[p] = g
        return self._same_value(p.args, g.args, nodes) and self._same_value(
            p.kwargs, g.kwargs, nodes
        )

    @staticmethod
    def _same_target(p: Node, g: Node) -> bool:
        if p.op not in ("call_module", "get_attr"):
            return p.target == g.target
        theirs, ours = p.graph.owning_module, g.graph.owning_module
        if theirs is None or ours is None:
            return p.target == g.target
        return type(_value(theirs, p)) is type(_value(ours, g))

    def _same_value(self, p: Any, g: Any, nodes: dict[Node, Any]) -> bool:
        if isinstance(p, list | tuple):
            same = isinstance(g, list | tuple) and len(p) == len(g)
            return same and all(self._same(a, b, nodes) for a, b in zip(p, g, strict=True))
        if isinstance(p, dict):
            same = isinstance(g, dict) and p.keys() == g.keys()
            return same and all(self._same(p[k], g[k], nodes) for k in p)
        return type(p) is type(g) and bool(p == g)


def _value(module: Module, node: Node) -> Any:
    value: Any = module
    for part in str(node.target).split("."):
        value = getattr(value, part)
    return value


def _graph_of(source: Any) -> Graph:
    if isinstance(source, Graph):
        return source
    if isinstance(source, GraphModule):
        return source.graph
    return symbolic_trace(source).graph


def replace_pattern(gm: GraphModule, pattern: object, replacement: object) -> list[Match]:
    """Put `replacement` wherever `pattern` computes the same; where it was."""
    replaced = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(r.anchor, r.nodes_map) for r in replaced]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: object,
    replacement: object = None,
    match_filters: list[Callable[..., bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[..., Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """The same, where every filter agrees: `filter(match, gm's graph, pattern's graph)`."""
    if ignore_literals or replacement_callback is not None or node_name_match:
        raise NotImplementedError(
            "torch.fx.subgraph_rewriter: ignore_literals, replacement_callback and"
            " node_name_match are not here"
        )
    pattern_graph, new = _graph_of(pattern), _graph_of(replacement)
    matcher, claimed, replaced = _Matcher(pattern_graph), set[Node](), list[ReplacedPatterns]()
    matches = []
    for node in gm.graph.nodes:
        nodes = matcher.at(node)
        inner = _inner(nodes)
        if nodes is None or claimed & inner:
            continue
        match = Match(matcher.results[0], nodes)
        if all(agrees(match, gm.graph, pattern_graph) for agrees in match_filters or ()):
            claimed |= inner
            matches.append(match)
    for match in matches:
        replaced.append(_replace(gm, match, pattern_graph, new))
    gm.recompile()
    if isinstance(replacement, Module):
        for node in new.nodes:
            if node.op in ("call_module", "get_attr") and not _has(gm, str(node.target)):
                _copy_attr(replacement, gm, str(node.target))
    return replaced


def _inner(nodes: dict[Node, Any] | None) -> set[Node]:
    return {n for p, n in (nodes or {}).items() if p.op not in ("placeholder", "get_attr")}


def _has(module: Module, target: str) -> bool:
    value: Any = module
    for part in target.split("."):
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


def _replace(gm: GraphModule, match: Match, pattern_graph: Graph, new: Graph) -> ReplacedPatterns:
    """Copy the replacement before the first user, let all read it, take out what is unread."""
    theirs = [n for n in pattern_graph.nodes if n.op == "placeholder"]
    ours = [n for n in new.nodes if n.op == "placeholder"]
    if len(theirs) != len(ours):
        raise AssertionError("pattern and replacement take different numbers of arguments")
    values = {r: match.nodes_map[p] for r, p in zip(ours, theirs, strict=True)}
    before, anchor = set(gm.graph.nodes), match.nodes_map[match.anchor]
    with gm.graph.inserting_before(min(anchor.users, default=anchor.next)):
        result = gm.graph.graph_copy(new, values)
    result = result if isinstance(result, Node) else result[0]
    anchor.replace_all_uses_with(result)
    new_nodes = [n for n in gm.graph.nodes if n not in before]
    for node in reversed([n for n in pattern_graph.nodes if n.op not in ("placeholder", "output")]):
        old = match.nodes_map.get(node)
        if old is not None and not old.users:
            gm.graph.erase_node(old)
    return ReplacedPatterns(match.anchor, match.nodes_map, new_nodes)
