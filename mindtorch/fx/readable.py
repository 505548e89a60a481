"""Owns the text of a graph's code with types, and with where each call is from."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from .graph import Graph
from .node import Node

_DTYPES = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int8": "i8",
    "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "bool": "b8",
    "complex64": "c64", "complex128": "c128",
}  # fmt: skip
_NOWHERE = "# No stacktrace found for following nodes"
SizeText = Callable[[Sequence[int]], str]


def type_text(node: Node, text: SizeText) -> str:
    """`f32[s77, 8]`: a node's dtype and sizes; nothing for several results and unknown ones."""
    if "ints" in node.meta:
        return f"Sym({text(node.meta['ints'])})"
    if "compared" in node.meta:
        left, sign, right = node.meta["compared"]
        bound = text(right) if len(right) > 1 else str(right[0])
        if (name := {"==": "Eq", "!=": "Ne"}.get(sign)) is not None:
            return f"Sym({name}({text(left)}, {bound}))"
        return f"Sym({text(left)} {sign} {bound})"
    if "number" in node.meta:
        return f"Sym({node.meta['number']})"
    keys = ("val", "example_value", "tensor_meta")
    value = next((node.meta[k] for k in keys if k in node.meta), None)
    metas: Sequence[Any] = node.meta.get("metas") or ([value] if hasattr(value, "dtype") else ())
    if not metas:
        return ""
    columns = zip(*(m.shape for m in metas), strict=True)
    sizes = ", ".join(text(c) if len(metas) > 1 else str(c[0]) for c in columns)
    return f"{_DTYPES.get(str(metas[0].dtype).partition('.')[2], '?')}[{sizes}]"


def readable(module: Any, name: str, text: SizeText) -> str:
    """The code of a graph module as a class; `text` is a size's of its values."""
    graph: Graph = module.graph
    nodes = {n.name: n for n in graph.nodes}
    arguments = {str(n.target): n for n in graph.nodes if n.op == "placeholder"}
    head, *body = str(module.code).strip().splitlines()
    lines = [f"class {name}(torch.nn.Module):", f"    {_typed(head, arguments, text)}"]
    place: tuple[object, object] = "", None  # where a call is from, and for what operator it is
    for line in body:
        result = line.strip().partition(" = ")[0].partition(" : ")[0]
        node = nodes.get(result)
        if node is not None and node.op != "placeholder":
            where = node.meta.get("from") or _NOWHERE
            at = (where, node.meta.get("operator"))
            lines += ([""] * (len(lines) > 2) + [f"        {where}"]) if at != place else []
            place = at
            kind = type_text(node, text)
            line = line.replace(result, f'{result}: "{kind}"', 1) if kind else line
        lines.append("    " + line)
    for inner, child in module.named_children():
        if isinstance(getattr(child, "graph", None), Graph):
            text_of_child = readable(child, inner, text)
            lines += ["", *(f"    {line}" if line else "" for line in text_of_child.splitlines())]
    return "\n".join(lines)


def _typed(head: str, arguments: dict[str, Node], text: SizeText) -> str:
    """The signature with types in quotes; other annotations are left out where there is one."""

    def typed(match: re.Match[str]) -> str:
        node = arguments.get(match[1])
        kind = type_text(node, text) if node is not None else ""
        return f'{match[1]}: "{kind}"' if kind else match[0]

    return re.sub(r"\b(\w+)(?: : [\w.]+)?(?=[,)]| = )", typed, head)
