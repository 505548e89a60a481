"""Prints a graph: one line a node, its blocks below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .graph import Block, Graph, Node, ScriptValue
from .schemas import constant_text, float_text, quoted


def _typed(values: Sequence[ScriptValue]) -> str:
    return ", ".join(f"%{v.text} : {v.kind}" for v in values)


def _plain(values: Sequence[ScriptValue]) -> str:
    return ", ".join(f"%{v.text}" for v in values)


def _attribute(node: Node, name: str) -> str:
    value = node.attributes[name]
    if name == "types":
        return f"types=[{', '.join(str(t) for t in value)}]"
    if name in ("name", "index"):
        return f"{name}={quoted(value)}"
    if isinstance(value, bool):
        return f"{name}={int(value)}"
    if isinstance(value, float):
        return f"{name}={float_text(value)}"
    if node.output.kind.kind == "Device":
        return f"{name}={quoted(str(value))}"
    if node.output.kind.kind == "Tensor" and not isinstance(value, int):
        small = value.dim() == 0
        return f"{name}={{{_number(value)}}}" if small else f"{name}=<Tensor>"
    return f"{name}={constant_text(value, node.output.kind)}"


def _number(value: Any) -> str:
    item = value.item()
    return str(int(item)) if isinstance(item, bool | int) else f"{item:.6g}"


class GraphText:
    """Prints one graph and the graphs of its forks."""

    def __init__(self, graph: Graph):
        self.forks: list[Node] = []
        lines = [f"graph({_parameters(graph.block)}):", *self._block(graph.block, "  ")]
        lines.append(f"  return ({_plain(graph.block.outputs)})")
        for index, node in enumerate(self.forks):
            inner = node.attributes["subgraph"]
            lines.append(f"with {node.kind}_{index} = graph({_parameters(inner.block)}):")
            lines += self._block(inner.block, "  ")
            lines.append(f"  return ({_plain(inner.block.outputs)})")
        self.text = "\n".join(lines) + "\n"

    @classmethod
    def of_node(cls, node: Node) -> list[str]:
        """The lines of a node by itself."""
        return list(cls(Graph()).node(node))

    def _block(self, block: Block, indent: str) -> Iterator[str]:
        for node in block.nodes:
            yield from self.node(node, indent)

    def node(self, node: Node, indent: str = "") -> Iterator[str]:
        """The lines of one node."""
        excerpt = [n for n in ("name", "value", "types") if n in node.attributes]
        if node.kind == "prim::Constant" and node.attributes.get("value", 0) is None:
            excerpt = []
        attributes = f"[{', '.join(_attribute(node, n) for n in excerpt)}]" if excerpt else ""
        kind = f"{node.kind}[]()" if node.kind[0] == "^" else node.kind
        if "subgraph" in node.attributes:
            kind = f"{kind}_{len(self.forks)}"
            self.forks.append(node)
        line = f"{indent}{_typed(node.outputs)} = {kind}{attributes}({_plain(node.inputs)})"
        if node.attributes.get("scope"):
            line += f", scope: {node.attributes['scope']}"
        if node.place:
            line += " # {}:{}:{}".format(*node.place)
        yield line
        for index, block in enumerate(node.blocks):
            yield f"{indent}  block{index}({_typed(block.inputs)}):"
            yield from self._block(block, indent + "    ")
            yield f"{indent}    -> ({_plain(block.outputs)})"


def _parameters(block: Block) -> str:
    return ",\n      ".join(f"%{v.text} : {v.kind}" for v in block.inputs)
