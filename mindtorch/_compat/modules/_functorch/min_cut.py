"""Owns which values of a joint graph are kept for its backward: a minimum cut by bytes.

Each node is an edge that weighs what it would cost to keep its value; values cut off from the
inputs are computed again. What may not be computed again hangs on the source.
"""

from __future__ import annotations

import heapq
import math
import operator
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from mindtorch._tensor.tensor import Tensor
from mindtorch.fx import Graph
from mindtorch.fx.node import Node
from mindtorch.ops.namespaces import OpOverload, Tag, namespace
from mindtorch.utils._config_module import SETTINGS

_VIEWS = frozenset((
    "squeeze", "unsqueeze", "alias", "view", "slice", "t", "expand", "as_strided", "permute",
    "select", "split",
))  # fmt: skip
# Cheap operators that are not pointwise by their tags.
_CHEAP = frozenset((
    "max", "min", "sum", "mean", "_grad_sum_to_size", "sum_to_size", "amax", "to", "type_as",
    "_to_copy", "clone", "full_like", "var", "std", "_unsafe_view", "reshape",
    "broadcast_tensors", "scalar_tensor", "ones", "new_zeros", "lift_fresh_copy", "arange", "triu",
    "var_mean", "any", "full", "zeros", "empty", "empty_like", "argmax", "index", "gather",
    "zeros_like", "lerp", "rsub",
))  # fmt: skip
_RANDOM = frozenset(("native_dropout", "rand_like", "randn_like"))
_LIFTED = frozenset(("lift_fresh", "lift_fresh_copy"))
_FAR = 10**9
_LONGEST_CHAIN = 100
Place = str | tuple[Node, str]


class Roles(NamedTuple):
    """What the nodes of a joint graph are for.

    `forward`: needed by the outputs, in order; `late`: after a tangent; `backward`: those, and
    the gradients; `free`: inputs that live on whether or not they are kept.
    """

    forward: dict[Node, int]
    late: Collection[Node]
    backward: Collection[Node]
    free: Collection[Node]


def _name(node: Node) -> str:
    """The operator's name; "" for what is none."""
    if node.target is operator.getitem:
        return "getitem"
    is_aten = isinstance(node.target, OpOverload) and node.target.namespace == "aten"
    return str(getattr(node.target, "_opname", "")) if is_aten else ""


def _is_view(node: Node) -> bool:
    return _name(node) in _VIEWS


def _is_cheap(node: Node) -> bool:
    name = _name(node)
    if name in _CHEAP or name in _VIEWS or name == "getitem":
        return True
    packet: Any = getattr(node.target, "overloadpacket", None)
    kinds = packet.overloads() if name else ()
    return any(Tag.pointwise in getattr(packet, kind).tags for kind in kinds)


def _is_fusible(node: Node, user: Node) -> bool:
    """Whether a node's value need not be in memory for a user."""
    if _name(user) == "cat":
        return True
    return all(_is_cheap(n) or _name(n) in _RANDOM for n in (node, user))


def _bytes(node: Node) -> int:
    value = node.meta.get("val")
    values = value if isinstance(value, list | tuple) else [value]
    return sum(v.numel() * v.dtype.itemsize for v in values if isinstance(v, Tensor))


class _Network:
    """Capacities between places, and the cut nearest to the sink."""

    def __init__(self) -> None:
        self.rest: dict[Place, dict[Place, float]] = {"source": {}, "sink": {}}
        self.edges = set[tuple[Place, Place]]()

    def add(self, start: Place, end: Place, capacity: float) -> None:
        """An edge; its capacity replaces one that it had."""
        self.edges.add((start, end))
        self.rest.setdefault(start, {})[end] = capacity
        self.rest.setdefault(end, {}).setdefault(start, 0)

    def _reached(self, start: Place, forward: bool) -> dict[Place, Place]:
        """The places to which, or from which, capacity is left, with the one next on the way."""
        came, ahead = {start: start}, [start]
        for at in ahead:
            for to in self.rest[at]:
                rest = self.rest[at][to] if forward else self.rest[to][at]
                if rest > 0 and to not in came:
                    came[to] = at
                    ahead.append(to)
        return came

    def cut(self) -> set[Node]:
        """The nodes whose edges are cut; RuntimeError where no cut is finite."""
        while "sink" in (came := self._reached("source", True)):
            place: Place = "sink"
            path = list[tuple[Place, Place]]()
            while place != "source":
                path.append((came[place], place))
                place = came[place]
            flow = min(self.rest[a][b] for a, b in path)
            if flow == math.inf:
                raise RuntimeError(
                    "AOT Autograd failed to partition the joint forward-backward graph.\n\n"
                    "A value is required for backward, but cannot be saved AND cannot be"
                    " recomputed."
                )
            for a, b in path:
                self.rest[a][b] -= flow
                self.rest[b][a] += flow
        late = self._reached("sink", False)
        return {a[0] for a, b in self.edges if a not in late and b in late and isinstance(a, tuple)}


class MinimumCut:
    """The values of one joint graph that its forward keeps."""

    def __init__(self, graph: Graph, roles: Roles):
        self.graph, self.roles = graph, roles
        self.settings = SETTINGS["mindtorch._functorch.config"]
        self.banned = set[Node]()
        self.network = _Network()
        self.distance: dict[Node, int] = {}
        for node in reversed(list(graph.nodes)):
            near = [self.distance[user] + 1 for user in node.users]
            late = node.op != "output" and node not in roles.forward
            self.distance[node] = 0 if late else min([_FAR, *near])

    def saved(self) -> list[Node]:
        """Them, in the graph's order."""
        for node in self.graph.nodes:
            if node.op != "output":
                self._add(node)
        self._ban_far_uses()
        self._ban_long_chains()
        cut = self.network.cut()
        return [node for node in self.graph.nodes if node in cut]

    def _add(self, node: Node) -> None:
        inner, outer = (node, "in"), (node, "out")
        if node in self.roles.late:
            self.network.add(inner, "sink", math.inf)
            return
        if node in self.roles.backward:
            self.network.add(outer, "sink", math.inf)
        if node.op == "placeholder" or (node in self.roles.forward and self._is_dear(node)):
            self._ban(node)
        self.network.add(inner, outer, self._weight(node))
        for user in node.users:
            self.network.add(outer, (user, "in"), math.inf)

    def _ban(self, node: Node) -> None:
        if not _is_view(node):
            self.banned.add(node)
            self.network.add("source", (node, "in"), math.inf)

    def _weight(self, node: Node) -> float:
        if node in self.roles.free and self.settings["treat_parameters_as_free_to_save"]:
            return 0
        if not isinstance(node.meta.get("val"), Tensor):
            return math.inf
        if self.settings["recompute_views"] and _is_view(node):
            return math.inf
        weight = int(_bytes(node) * 1.1 ** max(min(self.distance[node], 100), 1))
        stays = node.op == "placeholder" or not all(_is_fusible(node, u) for u in node.users)
        return weight if stays else 2 * weight

    def _is_dear(self, node: Node) -> bool:
        """Whether a node is not to be computed again."""
        if node.op != "call_function" or _name(node) in ("getitem", *_LIFTED):
            return False
        if self.settings["recompute_views"] and _is_view(node):
            return False
        if self.settings["ban_recompute_not_in_allowlist"] and not _is_cheap(node):
            return True
        if self.settings["ban_recompute_materialized_backward"] and self._is_kept_late(node):
            return True
        if self.settings["max_dist_from_bw"] < self.distance[node] < 1000:
            return True
        read = sum(_bytes(a) for a in node.args if isinstance(a, Node))
        return bool(self.settings["ban_recompute_reductions"]) and 4 * _bytes(node) < read

    def _is_kept_late(self, node: Node) -> bool:
        """Whether the backward reads a value from memory, itself or by a view."""
        if _is_view(node):
            return False
        ahead = [node]
        while ahead:
            at = ahead.pop()
            for user in at.users:
                if user not in self.roles.forward and not _is_fusible(at, user):
                    return True
                if _is_view(user):
                    ahead.append(user)
        return False

    def _ban_far_uses(self) -> None:
        """What uses a value behind something that does not fuse is not computed again."""
        order = self.roles.forward
        for node in order if self.settings["ban_recompute_used_far_apart"] else ():
            users = [user for user in node.users if user in order]
            if users:
                limit = self._first_unfusible(users, max(order[u] for u in users))
                for user in users:
                    if order[user] > limit and _is_fusible(node, user):
                        self._ban(user)

    def _first_unfusible(self, starts: Sequence[Node], limit: int) -> int:
        order = self.roles.forward
        ahead = [(order[node], node, True) for node in starts]
        heapq.heapify(ahead)
        known = set(ahead)
        while ahead:
            at, node, fuses = heapq.heappop(ahead)
            if not fuses:
                return at
            for user in node.users:
                if user in order and order[user] <= limit:
                    step = order[user], user, _is_fusible(node, user)
                    if step not in known:
                        known.add(step)
                        heapq.heappush(ahead, step)
        return limit

    def _ban_long_chains(self) -> None:
        order, seen = self.roles.forward, set[Node]()
        for start in order if self.settings["ban_recompute_long_fusible_chains"] else ():
            ahead = [(order[start], start)]
            while ahead:
                at, node = heapq.heappop(ahead)
                if node in seen:
                    continue
                seen.add(node)
                if at > order[start] + _LONGEST_CHAIN and not ahead:
                    self._ban(node)
                    break
                for user in node.users:
                    fuses = user in order and _is_fusible(node, user)
                    if fuses and user not in self.banned:
                        heapq.heappush(ahead, (order[user], user))


def reordered(graph: Graph, tangents: Collection[str]) -> Graph:
    """A backward graph in which what is computed again stands before its first use."""
    nodes = list(graph.nodes)
    first = [n for n in nodes if any(i.name in tangents for i in n.all_input_nodes)]
    if not first:
        return graph
    place = {node: at for at, node in enumerate(nodes)}
    result, copies = Graph(), dict[Node, Node]()

    def insert(node: Node) -> None:
        ahead, needed = [node], set[Node]()
        while ahead:
            at = ahead.pop()
            if at not in needed and at not in copies:
                needed.add(at)
                ahead += at.all_input_nodes
        for each in sorted(needed, key=place.__getitem__):
            copies[each] = result.node_copy(each, copies.__getitem__)

    start = place[first[0]]
    copy = namespace("aten").copy_.default
    before = [n for n in nodes[:start] if n.op == "placeholder" or n.target is copy]
    for node in [*before, *nodes[start:]]:
        insert(node)
    return result
