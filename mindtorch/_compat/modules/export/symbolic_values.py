"""Owns what the nodes of an exported program say of their values, with sizes that may change."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from mindtorch._compat.checks import SymInt
from mindtorch._tensor.geometry import Size
from mindtorch._tensor.tensor import Tensor
from mindtorch.fx.fake import FakeTensor
from mindtorch.fx.graph import Graph
from mindtorch.fx.node import Node
from mindtorch.ops.namespaces import namespace

from .sizes import DynamicSizes, Symbol

_SYM_SIZE = namespace("aten").sym_size.int


def read_at_inputs(graph: Graph) -> None:
    """Let every size that is an input's be read of that input, before anything is computed.

    A size of several inputs is read of the last. As in torch, the numbers in the names count the
    sizes that may change once more.
    """
    inputs = [n for n in graph.nodes if n.op == "placeholder" and "metas" in n.meta]
    places: list[tuple[Node, int, tuple[int, ...]]] = []
    for node in inputs:
        columns = zip(*(m.shape for m in node.meta["metas"]), strict=True)
        places += [(node, dim, c) for dim, c in enumerate(columns) if len(set(c)) > 1]
    numbers = {column: at for at, (_, _, column) in enumerate(places)}
    reads: dict[int, list[tuple[Node, int]]] = {}
    inner = 0
    for node in graph.nodes:
        values = tuple(node.meta.get("ints", ()))
        if node.target is not _SYM_SIZE or not values:
            continue
        inner += values not in numbers
        of = next((c for c in numbers if _times(values, c)), None)
        if of is not None:
            reads.setdefault(numbers[of], []).append((node, _times(values, of)))
    last = [n for n in graph.nodes if n.op == "placeholder"][-1:]
    for at in sorted(reads):
        owner, dim, column = places[at]
        with graph.inserting_after(last[0]):
            size = graph.create_node("call_function", _SYM_SIZE, (owner, dim), {})
        size.meta.update(reads[at][0][0].meta, ints=column)
        for node, times in reads[at]:
            product = size
            if times > 1:
                with graph.inserting_before(node):
                    product = graph.create_node("call_function", operator.mul, (times, size), {})
                product.meta.update(node.meta)
            node.replace_all_uses_with(product)
            graph.erase_node(node)
        size.name = f"sym_size_int_{len(places) + inner + at}"
        last = [size]


def _times(values: Sequence[int], column: Sequence[int]) -> int:
    """How often a size is another, in every version; 0 where it is no multiple."""
    times = values[0] // column[0] if column[0] else 0
    return times if all(v == times * c for v, c in zip(values, column, strict=True)) else 0


class SizeExpression(SymInt):
    """A size in what a node says of its value: its expression, and what it is in the example."""

    def __init__(self, text: str, hint: int):
        self.expr, self.hint = Symbol(text), hint

    def __repr__(self) -> str:
        return str(self.expr)

    @property
    def node(self) -> SizeExpression:
        """What has the expression."""
        return self

    def __int__(self) -> int:
        return self.hint

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        return self.hint == other if isinstance(other, int) else repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(self.expr)


SizeExpression.__name__ = "SymInt"  # to programs


class _SizedFake(FakeTensor):
    """A fake tensor that shows which of its sizes may change; only looked at."""

    _sizes: Size
    _steps: Size

    @classmethod
    def of(cls, fake: FakeTensor, metas: Sequence[Tensor], sizes: DynamicSizes) -> FakeTensor:
        """The value of a node whose metas differ."""
        result: _SizedFake = object.__new__(cls)
        for name in ("_geom", "_storage", "_base", "_fn"):
            setattr(result, name, getattr(fake, name))
        result.fake_mode, result.fake_device = fake.fake_mode, fake.fake_device
        result._sizes = _sized(sizes, zip(*(m.shape for m in metas), strict=True))
        result._steps = _sized(sizes, zip(*(m.stride() for m in metas), strict=True))
        return result

    @property
    def shape(self) -> Any:
        return self._sizes

    def size(self, dim: int | None = None) -> Any:
        """The sizes, or one."""
        return self._sizes if dim is None else self._sizes[dim]

    def stride(self, dim: int | None = None) -> Any:
        """The strides, or one."""
        return tuple(self._steps) if dim is None else self._steps[dim]


_SizedFake.__name__ = "FakeTensor"  # to programs


def _sized(sizes: DynamicSizes, columns: Iterable[Sequence[int]]) -> Size:
    """Sizes by their values in the versions."""
    symbols = (SizeExpression(sizes.text(c), c[0]) if len({*c}) > 1 else c[0] for c in columns)
    return tuple.__new__(Size, symbols)


def show_sizes(graph: Graph, sizes: DynamicSizes) -> None:
    """Let the values of nodes have the sizes that may change."""
    for node in graph.nodes:
        metas = node.meta.get("metas", ())
        if len({meta.shape for meta in metas}) > 1:
            node.meta["val"] = _SizedFake.of(node.meta["val"], metas, sizes)
        elif "ints" in node.meta:
            (node.meta["val"],) = _sized(sizes, [node.meta["ints"]])
