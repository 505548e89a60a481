"""Owns putting a replacement wherever a graph has the nodes of a pattern."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from ..nn.modules.module import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

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
    """The same, where every filter agrees: `filter(match, gm's graph, pattern's graph)`.

    `replacement_callback` of the same arguments may give the graph that is put there.
    """
    graph, theirs = gm.graph, _graph_of(pattern)
    matcher = SubgraphMatcher(theirs, ignore_literals=ignore_literals)
    matches = [
        m for m in matcher.match(graph, node_name_match)
        if all(agrees(m, graph, theirs) for agrees in match_filters or ())
    ]  # fmt: skip
    if replacement_callback is None and replacement is None:
        raise AssertionError(
            "Must provide either a replacement GraphModule or a replacement callback"
        )
    fixed = theirs if replacement_callback is not None else _graph_of(replacement)
    replaced, changed = list[ReplacedPatterns](), dict[Node, Node]()
    for match in matches:
        new = replacement_callback(match, graph, theirs) if replacement_callback else fixed
        replaced.append(_replace(gm, match, theirs, new, changed))
    gm.recompile()
    if isinstance(replacement, Module):
        _copy_state(gm, replacement)
    return replaced


def _copy_state(gm: GraphModule, replacement: Module) -> None:
    """Let a module have what its graph names and only the replacement has."""
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or _has(gm, str(node.target)):
            continue
        value = copy.deepcopy(attrgetter(str(node.target))(replacement))
        if isinstance(value, Module):
            gm.add_submodule(str(node.target), value)
        else:
            setattr(gm, str(node.target), value)
    gm.graph.lint()


def _has(module: Module, target: str) -> bool:
    value: Any = module
    for part in target.split("."):
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


def _replace(
    gm: GraphModule, match: InternalMatch, theirs: Graph, new: Graph, changed: dict[Node, Node]
) -> ReplacedPatterns:
    """Copy the replacement before the first user, let all read it, take out what is unread."""
    inputs = [n for n in new.nodes if n.op == "placeholder"]
    if len(match.placeholder_nodes) != len(inputs):
        raise AssertionError(
            f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(inputs)}"
        )
    for key, node in match.nodes_map.items():  # an earlier replacement may stand for an input
        if isinstance(node, Node) and key.op == "placeholder":
            match.nodes_map[key] = changed.get(node, node)
    match.placeholder_nodes = [match.nodes_map[n] for n in theirs.nodes if n.op == "placeholder"]
    values: dict[Node, Any] = dict(zip(inputs, match.placeholder_nodes, strict=True))
    users = [user for n in match.returning_nodes for user in n.users]
    place = min(users) if users else max(match.returning_nodes).next
    with gm.graph.inserting_before(place):
        results = gm.graph.graph_copy(new, values)
    results = (results,) if isinstance(results, Node) else results
    replacements = [v for v in values.values() if v not in match.placeholder_nodes]
    if len(match.returning_nodes) != len(results):
        raise AssertionError(
            f"Returning nodes count mismatch: {len(match.returning_nodes)} vs {len(results)}"
        )
    for node, result in zip(match.returning_nodes, results, strict=True):
        node.replace_all_uses_with(result)
        changed[node] = result
    for node in reversed(theirs.nodes):
        if node.op not in ("placeholder", "output"):
            gm.graph.erase_node(match.nodes_map[node])
    return ReplacedPatterns(match.anchors[0], match.nodes_map, replacements)
