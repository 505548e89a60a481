"""Owns the nodes that torch has between a product's last node and its arguments.

`linear` and `matmul` are one step here and several in torch, so a program that walks the graph by
`next_functions` sees nodes that nothing computes. They are made when a program asks for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor.geometry import Geometry
from .._tensor.tensor import Tensor
from ..ops.schema import ArgKind
from ..ops.spec import aten
from .formula import formula
from .node import Node

Edge = tuple[Any, int] | None


class InnerNode(Node):
    """A node that is shown alone: the engine knows the step that it is a part of."""

    __slots__ = ()

    def __init__(self, label: str, *edges: Edge):
        super().__init__()
        self.label = label
        self.edges = edges


def _over(edge: Edge, *labels: str) -> Edge:
    """`edge` seen through nodes of one input, the last label the farthest from it."""
    for label in labels if edge is not None else ():
        edge = InnerNode(label + "Backward0", edge), 0
    return edge


def _linear(node: Any) -> tuple[Edge, ...]:
    x, weight, bias = node.edges
    ndim, weight = node.args[0].ndim, _over(weight, "T")
    if ndim == 2:
        return (x, weight) if node.args[2] is None else (bias, x, weight)
    if node.args[2] is None:
        x = _over(x, "Unsqueeze" if ndim == 1 else "View")
        return ((InnerNode("MmBackward0", x, weight), 0),)
    return ((InnerNode("AddmmBackward0", bias, _over(x, "View"), weight), 0),)


def _matmul(node: Any) -> tuple[Edge, ...]:
    left, right = node.edges
    shapes = node.args[0].ndim, node.args[1].ndim
    if shapes == (1, 2):
        return ((InnerNode("MmBackward0", _over(left, "Unsqueeze"), right), 0),)
    if shapes[0] > 2 > shapes[1]:
        return ((InnerNode("MvBackward0", _over(left, "View"), right), 0),)
    if shapes[0] > shapes[1] == 2:
        return ((InnerNode("MmBackward0", _over(left, "View"), right), 0),)
    if shapes[0] == shapes[1] > 2:
        sides = _over(left, "Expand", "View"), _over(right, "Expand", "View")
        return ((InnerNode("BmmBackward0", *sides), 0),)
    return left, right


RULES: dict[str, Callable[[Any], tuple[Edge, ...]]] = {
    "_reshape_copy": lambda node: (_over(node.edges[0], "Clone"),),
    "linear": _linear,
    "matmul": _matmul,
}


# How hooks see what a product saves: torch's products take two matrices, or two batches of them.
SAVED_AS = {
    ("linear", 0): "rows_of()", ("linear", 1): "weight_transpose",
    ("matmul", 0): "rows_of(a1._geom)", ("matmul", 1): "rows_of(a0._geom)",
}  # fmt: skip
PRODUCTS = ("linear", "matmul")
Reshape = Callable[[Tensor], Tensor]


def second_first(row: str, args: Any) -> bool:
    """Whether torch's product of these arguments saves the second factor before the first."""
    return args[2] is None if row == "linear" else args[1].ndim > 1


def weight_transpose(tensor: Tensor) -> tuple[Tensor, Reshape]:
    """The transposed weight, and what turns it back."""
    return aten.t(tensor), aten.t


def rows_of(other: Geometry | None = None) -> Callable[[Tensor], tuple[Tensor, Reshape]]:
    """A factor as one matrix, or as one batch where `other` has the same batches; and the way
    back. `other` is the other factor, None the weight of `linear`."""

    def reshape(tensor: Tensor) -> tuple[Tensor, Reshape]:
        shape = tuple(tensor.shape)
        if other is None or len(shape) > 2 >= len(other.shape):
            flat = (-1, shape[-1])
        elif len(shape) > 3 and shape[:-2] == tuple(other.shape[:-2]):
            flat = (-1, *shape[-2:])
        else:
            return tensor, lambda saved: saved
        return aten.reshape(tensor, flat), lambda saved: aten.reshape(saved, shape)

    return reshape


# Rows whose numbers are tensors by the time torch records them.
_WRAPPING = frozenset(("add", "div", "div.mode", "mul", "sub", "where"))


def _is_number(node: Any, place: int) -> bool:
    """Whether the argument is a number where a tensor may be; torch has no edge for it."""
    is_union = node.op.schema.args[place].kind is ArgKind.UNION
    is_tensor = isinstance(node.args[place], Geometry)
    return is_union and not is_tensor and node.op.name not in _WRAPPING


def next_edges(node: Any) -> tuple[Edge, ...]:
    """The edges of a row's node as torch's graph has them."""
    state = vars(node)
    rule = RULES.get(node.op.name)
    if rule is None or node.label:
        edges = Node.next_edges(node)
        places = formula(node.op).positions
        if "inputs" in state or len(edges) != len(places):
            return edges
        return tuple(
            e for e, at in zip(edges, places, strict=True) if e or not _is_number(node, at)
        )
    if "inner" not in state:
        state["inner"] = rule(node)
    return tuple(state["inner"])
