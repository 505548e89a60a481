"""Owns proposing groups of nodes that a backend takes, as large as the graph allows."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ...graph_module import GraphModule
from ...node import Node, _get_qualified_name
from ..operator_support import OperatorSupportBase
from ..utils.fuser_utils import fuse_by_partitions


class Partition:
    """A group of nodes; each may have its place in the graph, from the end."""

    def __init__(
        self, id: int | None = None, nodes: Iterable[Node] | None = None,
        node_orders: Iterable[int] | None = None,
    ) -> None:  # fmt: skip
        self.id = id
        listed = list(nodes or ())
        orders = [None] * len(listed) if node_orders is None else list(node_orders)
        if len(listed) != len(orders):
            raise AssertionError("nodes and node_orders must have the same length")
        self.nodes: dict[Node, int | None] = dict(zip(listed, orders, strict=True))

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Have one more node."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Have one node less."""
        del self.nodes[node]

    def size(self) -> int:
        """How many nodes there are."""
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Groups the nodes that `operator_support` takes, without circles among the groups."""

    def __init__(
        self, graph_module: GraphModule, operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False, non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:  # fmt: skip
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops or []
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def propose_partitions(self) -> list[Partition]:
        """The groups, each in the graph's order."""
        modules = dict(self.graph_module.named_modules())
        home, groups = dict[Node, Partition](), dict[int, Partition]()
        first: dict[int, int] = {}  # the place of a group, from the end
        for order, node in enumerate(reversed(self.graph_module.graph.nodes)):
            candidates = list[Partition]()
            if self.operator_support.is_node_supported(modules, node):
                at = len(first)
                home[node] = groups[at] = Partition(at, [node], [order])
                first[at] = at
                candidates.append(home[node])
                if self.skip_horizontal_fusion:
                    candidates += [home[user] for user in node.users if user in home]
            if not self.skip_horizontal_fusion:
                candidates += [groups[at] for at in sorted(groups, key=first.__getitem__)]
            group, *others = dict.fromkeys(candidates) or (None,)
            for other in others:
                group = _merged(group, other, home, groups, first)
        for group in groups.values():
            group.nodes = dict(sorted(group.nodes.items(), key=lambda p: -(p[1] or 0)))
        self._move_items(home)
        partitions = [g for g in groups.values() if g.size()]
        if not self.allows_single_node_partition:
            partitions = [g for g in partitions if self._work(g.nodes) > 1]
        return partitions

    def _move_items(self, home: dict[Node, Partition]) -> None:
        """Let reading one of several results be where these are computed."""
        for node in self.graph_module.graph.nodes:
            if all(user.target is operator.getitem for user in node.users):
                for user in node.users:
                    if home.get(user) is home.get(node):
                        continue
                    if user in home:
                        home.pop(user).remove_node(user)
                    if node in home:
                        home[user] = home[node]
                        home[user].add_node(user)

    def _work(self, nodes: Iterable[Node]) -> int:
        """How many of the nodes compute."""
        idle = {"torch.ops.aten.view", "operator.getitem", *self.non_compute_ops}
        count = 0
        for node in nodes:
            if node.op == "call_function":
                target: Any = node.target
                name = _get_qualified_name(target)
                count += (name not in idle) + (name in self.allowed_single_node_partition_ops)
        return count

    def fuse_partitions(
        self, partitions: Iterable[Partition], prefix: str = "fused_"
    ) -> GraphModule:
        """The module with each group as a module of its own."""
        return fuse_by_partitions(self.graph_module, [p.nodes for p in partitions], prefix)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Propose and fuse."""
        return self.fuse_partitions(self.propose_partitions(), prefix)


def _merged(
    a: Partition | None, b: Partition, home: dict[Node, Partition], groups: dict[int, Partition],
    first: dict[int, int],
) -> Partition | None:  # fmt: skip
    """The two groups as one, where no path leaves them and comes back; else the first."""
    if a is None:
        return b
    inside = {*a.nodes, *b.nodes}
    if _comes_back(inside, home):
        return a
    larger, smaller = (a, b) if len(a.nodes) >= len(b.nodes) else (b, a)
    larger.nodes.update(smaller.nodes)
    home.update(dict.fromkeys(smaller.nodes, larger))
    if larger.id is not None and smaller.id is not None:
        first[larger.id] = min(first[larger.id], first[smaller.id])
        del groups[smaller.id]
    return larger


def _comes_back(inside: Collection[Node], home: Mapping[Node, Partition]) -> bool:
    ahead = [user for node in inside for user in node.users if user not in inside]
    seen = set[Node]()
    while ahead:
        node = ahead.pop()
        if node in inside:
            return True
        if node in seen:
            continue
        group = home[node].nodes if node in home else (node,)
        seen.update(group)
        ahead += [user for n in group for user in n.users]
    return False
