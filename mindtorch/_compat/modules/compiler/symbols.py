"""Owns the inputs of compiled graphs that are sizes, and how torch names inputs."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from mindtorch._compat.checks import SymInt
from mindtorch._tensor.tensor import Tensor
from mindtorch.fx import Graph


def size_symbol(source: str, dim: int) -> str:
    """torch's name of an input's size: a hash of where it is from (symbolic_shapes.py)."""
    text = f"{source}.size()[{dim}]"
    return f"s{int(hashlib.sha256(text.encode()).hexdigest(), 16) % 100}"


def placeholder_name(source: str) -> str:
    """torch's name of the input that is from `L['x'][0]`: L_x_0_."""
    return re.sub(r"\W+", "_", source.replace("._", "."))


class SymbolicSize(int):
    """A size that is an input of a graph: a number that shows its symbol."""

    symbol: str

    def __repr__(self) -> str:
        return self.symbol

    __str__ = __repr__


def add_symbols(
    graph: Graph, inputs: list[Tensor], fixed: list[int | None]
) -> dict[int, list[tuple[str, int]]]:
    """Put an input before each tensor for the sizes that may change; by tensor, symbol and dim."""
    nodes = [n for n in graph.nodes if n.op == "placeholder" and n.type is not SymInt]
    known = {str(n.target): n for n in graph.nodes if n.op == "placeholder" and n.type is SymInt}
    symbols: dict[int, list[tuple[str, int]]] = {}
    seen: dict[int, str] = {}
    sizes = iter(fixed)
    for at, (node, tensor) in enumerate(zip(nodes, inputs, strict=True)):
        for dim, size in enumerate(tensor.shape):
            if next(sizes) is None and size not in seen:
                seen[size] = size_symbol(node.meta["source"], dim)
                symbols.setdefault(at, []).append((seen[size], dim))
                if seen[size] in known:
                    node.prepend(known.pop(seen[size]))
                    continue
                with graph.inserting_before(node):
                    graph.create_node("placeholder", seen[size], type_expr=SymInt)
    return symbols


def with_sizes(inputs: list[Tensor], symbols: dict[int, list[tuple[str, int]]]) -> list[Any]:
    arguments: list[Any] = []
    for at, tensor in enumerate(inputs):
        for symbol, dim in symbols.get(at, ()):
            arguments.append(SymbolicSize(tensor.shape[dim]))
            arguments[-1].symbol = symbol
        arguments.append(tensor)
    return arguments
