"""Owns the types of items: that of a tuple's place, or of a list's elements."""

from __future__ import annotations

import operator
from typing import Any, get_args, get_origin

from ..graph import Graph

__all__ = ["annotate_getitem_nodes"]


def annotate_getitem_nodes(graph: Graph) -> None:
    """Give nodes that take an item the type that their containers' types say."""
    for node in graph.nodes:
        if node.target is not operator.getitem:
            continue
        container: Any
        container, at = node.args
        kind = container.type
        if kind is None:
            continue
        parameters = get_args(kind)
        if get_origin(kind) is tuple:
            node.type = parameters[0] if parameters[-1] is Ellipsis else parameters[at]
        elif get_origin(kind) is list:
            node.type = parameters[0]
        elif hasattr(kind, "__annotations__") and isinstance(kind, type):
            fields = list(kind.__annotations__.values())
            node.type = fields[at] if isinstance(at, int) and at < len(fields) else None
