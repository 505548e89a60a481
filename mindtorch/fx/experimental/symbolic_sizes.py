"""Owns graphs of sizes that may change: traces with other sizes say what depends on which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor.tensor import Tensor
from ...ops.namespaces import namespace
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..proxy import Proxy

Trace = Callable[[Sequence[object]], GraphModule]


class SizeVersions:
    """Inputs of a trace, and the same with each of their sizes larger.

    Sizes that are equal are one; those of 0 and 1 stay, as do those that the function fixes.
    """

    def __init__(self, leaves: Sequence[object]) -> None:
        self.leaves = leaves
        sizes = [s for v in leaves for s in (v.shape if isinstance(v, Tensor) else (v,))]
        plain = (s for s in sizes if isinstance(s, int) and not isinstance(s, bool) and s > 1)
        self.values = list(dict.fromkeys(plain))

    def trace(self, trace: Trace) -> GraphModule:
        """The graph, in which operators give the sizes and what is computed of them."""
        module, versions = trace(self.leaves), []
        for value in list(self.values):
            try:
                other = trace([_with(v, value, 5 * value) for v in self.leaves])
            except (IndexError, RuntimeError, TypeError, ValueError):
                other = None
            if other is None or _form(other) != _form(module):
                self.values.remove(value)
            else:
                versions.append(other)
        self._show(module, [list(v.graph.nodes) for v in versions])
        module.recompile()
        return module

    def _show(self, module: GraphModule, versions: Sequence[list[Node]]) -> None:
        nodes = list(module.graph.nodes)
        symbols: dict[int, Node] = {}
        inputs = [n for n in nodes if n.op == "placeholder"]
        for at, node in enumerate(nodes):
            if node.op == "placeholder":
                continue
            with module.graph.inserting_before(node):

                def symbol(value: int) -> Any:
                    if value not in symbols:
                        symbols[value] = self._symbol(module.graph, inputs, value)
                    return Proxy(symbols[value])

                others = [v[at] for v in versions]
                node.args = self._shown(symbol, node.args, [n.args for n in others])
                node.kwargs = self._shown(symbol, node.kwargs, [n.kwargs for n in others])

    def _symbol(self, graph: Graph, inputs: Sequence[Node], value: int) -> Node:
        """The node of a size: an input, or what reads it of the first one that has it."""
        for node, leaf in zip(inputs, self.leaves, strict=True):
            if not isinstance(leaf, Tensor):
                if leaf == value:
                    return node
            elif value in leaf.shape:
                args = node, list(leaf.shape).index(value)
                size = namespace("aten").sym_size.int
                return graph.create_node("call_function", size, args, {}, "sym_size_int")
        raise AssertionError(f"no input has the size {value}")

    def _shown(self, symbol: Callable[[int], Any], value: Any, others: Sequence[Any]) -> Any:
        """A node's argument with the nodes of what depends on sizes."""
        if isinstance(value, tuple | list):
            return type(value)(
                self._shown(symbol, v, [o[i] for o in others]) for i, v in enumerate(value)
            )
        if isinstance(value, dict):
            return {k: self._shown(symbol, v, [o[k] for o in others]) for k, v in value.items()}
        if type(value) not in (int, float) or all(o == value for o in others):
            return value
        result = self._expression(symbol, value, others)
        return result.node if isinstance(result, Proxy) else value

    def _expression(self, symbol: Callable[[int], Any], value: Any, others: Sequence[Any]) -> Any:
        """What of sizes has these values: their product, or a sum of some."""
        factors = [s for s, o in zip(self.values, others, strict=True) if o == 5 * value]
        if all(o in (value, 5 * value) for o in others):
            result = symbol(factors[0])
            rest = value // factors[0]
            for factor in factors[1:]:
                result, rest = result * symbol(factor), rest // factor
            return result if rest == 1 else result * rest
        result, rest = None, value
        for size, other in zip(self.values, others, strict=True):
            if other == value:
                continue
            times, remainder = divmod(int(other - value), 4 * size)
            if remainder:
                return _quotient(symbol, size, value, other)
            term = symbol(size) if times == 1 else symbol(size) * times
            result, rest = term if result is None else result + term, rest - times * size
        return result - -rest if rest < 0 else result + rest if rest else result


def _quotient(symbol: Callable[[int], Any], size: int, value: int, other: int) -> Any:
    """A size's share, rounded down after a number is added; None where there is no such."""
    by = round(4 * size / (other - value))
    for more in range(abs(by)):
        if (size + more) // by == value and (5 * size + more) // by == other:
            return (symbol(size) + more if more else symbol(size)) // by
    return None


def _with(leaf: Any, value: int, other: int) -> Any:
    """An input with another size in place of one."""
    if not isinstance(leaf, Tensor):
        return other if type(leaf) is int and leaf == value else leaf
    if value not in leaf.shape:
        return leaf
    repeats = [other // value if size == value else 1 for size in leaf.shape]
    return leaf.detach().repeat(repeats).requires_grad_(leaf.requires_grad)


def _form(module: GraphModule) -> list[tuple[str, object]]:
    """What a graph calls."""
    return [(n.op, n.target) for n in module.graph.nodes]
