"""Simplifies a lowered graph: loops that Python can write, tuples that are taken apart at once,
constants that are computed, shared and moved to the front."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from mindtorch._tensor.device import device

from .dead_code import remove_dead_code
from .forks import lifted
from .graph import Block, Graph, Node, ScriptValue, constant_of
from .kinds import BOOL, INT, is_mutable
from .schemas import operators, quoted

MOST = 2**63 - 1
# torch has several names for one operator.
_SECOND_NAMES = (
    "absolute=abs clip=clamp linalg_det=det ger=outer arccos=acos arcsin=asin arctan=atan"
    " arccosh=acosh arcsinh=asinh arctanh=atanh fix=trunc negative=neg subtract=sub"
    " greater_equal=ge greater=gt less_equal=le less=lt not_equal=ne divide=div multiply=mul"
    " true_divide=div row_stack=vstack swapdims=transpose swapaxes=transpose moveaxis=movedim"
    " concat=cat concatenate=cat special_expit=sigmoid special_erf=erf special_exp2=exp2"
    " special_expm1=expm1 special_erfc=erfc special_erfinv=erfinv special_gammaln=lgamma"
    " special_digamma=digamma special_psi=digamma special_logit=logit special_i0=i0"
    " special_multigammaln=mvlgamma special_polygamma=polygamma special_round=round"
    " special_log1p=log1p special_logsumexp=logsumexp orgqr=linalg_householder_product"
    " linalg_matmul=matmul inverse=linalg_inv degrees=rad2deg radians=deg2rad arctan2=atan2"
)


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        inner = ", ".join(quoted(v) if isinstance(v, str) else _text(v) for v in value)
        return f"({inner}{',' if len(value) == 1 else ''})"
    return str(value)


def _divided(left: Any, right: Any) -> Any:
    return left / right


_OF_FLOATS = (
    "sqrt exp log log2 log10 log1p expm1 sin cos tan asin acos atan sinh cosh tanh floor ceil"
    " degrees radians erf erfc gamma lgamma fabs"
)
_COMPUTED: dict[str, Callable[..., Any]] = {
    **{f"aten::{n}": getattr(operator, n)
       for n in ("add", "sub", "mul", "neg", "lt", "le", "gt", "ge", "eq", "ne", "pow")},
    "aten::floordiv": operator.floordiv, "aten::div": _divided, "aten::remainder": operator.mod,
    "aten::__not__": operator.not_, "aten::__and__": operator.and_, "aten::__or__": operator.or_,
    "aten::__xor__": operator.xor, "aten::__is__": operator.is_, "aten::Int": int,
    "aten::__isnot__": operator.is_not, "aten::Float": float, "aten::Bool": bool,
    "aten::str": _text,
    "aten::len": len, "prim::min": min, "prim::max": max, "prim::abs": abs, "aten::device": device,
    "aten::__lshift__": operator.lshift, "aten::__rshift__": operator.rshift,
    "aten::__range_length": lambda a, b, c: len(range(a, b, c)),
    "aten::__derive_index": lambda i, a, s: a + i * s,
    "aten::__contains__": lambda a, b: b in a, "aten::__getitem__": operator.getitem,
    **{f"aten::{n}": getattr(math, n) for n in _OF_FLOATS.split()},
    "aten::ord": ord, "aten::chr": chr, "prim::unchecked_cast": lambda v: v,
    "prim::TupleConstruct": lambda *v: v, "prim::TupleIndex": operator.getitem,
    "aten::upper": str.upper, "aten::lower": str.lower, "aten::strip": str.strip,
}  # fmt: skip


def computed(node: Node) -> tuple[Any] | None:
    """What a node gives where all its inputs are constants, in a tuple; None where that is open."""
    function = _COMPUTED.get(node.kind)
    inputs = [constant_of(v) for v in node.inputs]
    if function is None or len(node.outputs) != 1 or any(i is None for i in inputs):
        return None
    try:
        return (function(*[i[0] for i in inputs if i]),)
    except Exception:
        return None  # it fails where it is run


def _plain_loops(block: Block) -> None:
    """Write a loop that has both a count and a condition with a condition alone."""
    graph = block.graph
    for node in list(block.nodes):
        for inner in node.blocks:
            _plain_loops(inner)
        if node.kind != "prim::Loop":
            continue
        body = node.blocks[0]
        count, start = node.inputs[0], constant_of(node.inputs[1])
        next_ = constant_of(body.outputs[0])
        counted = constant_of(count) != (MOST,) or bool(body.inputs[0].uses)
        conditioned = not (start and start[0] and next_ and next_[0])
        if not (counted and conditioned):
            continue
        with graph.at(node):
            zero, one = graph.constant(0), graph.constant(1)
            condition = _built(graph, "aten::gt", [count, zero])
            most = graph.constant(MOST)
            node.remove_input(0)
            node.add_input(most, 0)
            if start is None or not start[0]:
                condition = _built(graph, "aten::__and__", [condition, node.inputs[1]])
        node.remove_input(1)
        node.add_input(condition, 1)
        node.add_output(INT)
        node.add_input(zero)
        with graph.at(body):
            index = body.entry.add_output(INT)
            body.inputs[0].named("").replace_with(index)
            after = _built(graph, "aten::add", [index, one], INT.kind)
            body.exit.add_input(after)
            less = _built(graph, "aten::lt", [after, count])
            new = _built(graph, "aten::__and__", [less, body.outputs[0]])
        body.exit.remove_input(0)
        body.exit.add_input(new, 0)


def _built(graph: Graph, name: str, inputs: list[ScriptValue], kind: str = "bool") -> ScriptValue:
    goal = [v.kind for v in inputs]
    schema = next(s for s in operators(name) if [a.kind for a in s.arguments] == goal)
    return graph.insert(name, inputs, [INT if kind == "int" else BOOL], schema=schema).output


def _first_names(block: Block) -> None:
    graph = block.graph
    names = dict(pair.split("=") for pair in _SECOND_NAMES.split())
    for node in list(block.nodes):
        for inner in node.blocks:
            _first_names(inner)
        bare = node.kind.removeprefix("aten::")
        end = "_" if bare.endswith("_") else ""
        name = names.get(bare.removesuffix("_"))
        if not name or not node.kind.startswith("aten::") or not node.inputs:
            continue
        if node.inputs[0].kind.kind != "Tensor" and bare != "concat":
            continue
        new = graph.create(f"aten::{name}{end}", node.inputs, (), node.place, **node.attributes)
        new.place_before(node)
        for value in list(node.outputs):
            value.replace_with(new.add_output(value.kind).like(value))
        node.destroy()


def _take_apart(block: Block) -> None:
    """Let what is taken out of a tuple be what was put into it."""
    graph = block.graph
    for node in list(block.nodes):
        if node.kind in ("prim::TupleUnpack", "prim::TupleIndex", "prim::TupleSlice"):
            fresh = node.inputs[0].node
            if fresh.kind == "prim::TupleConstruct":
                if node.kind == "prim::TupleUnpack":
                    for value, member in zip(node.outputs, list(fresh.inputs), strict=True):
                        value.replace_with(member)
                elif node.kind == "prim::TupleIndex":
                    index = constant_of(node.inputs[1])
                    if index and -len(fresh.inputs) <= index[0] < len(fresh.inputs):
                        node.output.replace_with(fresh.inputs[index[0]])
                else:
                    members = fresh.inputs[node.attributes["beg"] : node.attributes["end"]]
                    with graph.at(node):
                        new = graph.insert("prim::TupleConstruct", members, [node.output.kind])
                    node.output.replace_with(new.output)
        for inner in node.blocks:
            _take_apart(inner)


class _Constants:
    """Computes what depends on constants alone and changes nothing."""

    def __init__(self, graph: Graph):
        self.graph, self.changed = graph, False

    def block(self, block: Block) -> None:
        for node in list(block.nodes):
            if node.block is block and node in block.nodes:
                self._node(node)

    def _node(self, node: Node) -> None:
        constant = all(v.node.kind == "prim::Constant" for v in node.inputs)
        if node.kind == "prim::If":
            if constant:
                self._choose(node)
            else:
                for block in node.blocks:
                    self.block(block)
                self._equal_results(node)
        elif node.kind == "prim::Loop":
            count, start = constant_of(node.inputs[0]), constant_of(node.inputs[1])
            if (count and count[0] <= 0) or (start and not start[0]):
                for value, first in zip(node.outputs, node.inputs[2:], strict=True):
                    value.replace_with(first)
                self.changed = True
                node.destroy()
            else:
                self.block(node.blocks[0])
                self._unchanged(node)
        elif constant and not any(is_mutable(v.kind) for v in (*node.inputs, *node.outputs)):
            result = computed(node)
            if result is not None:
                with self.graph.at(node):
                    new = self.graph.constant(result[0], None, node.output.kind)
                self.changed = True
                node.output.replace_with(new)
        else:
            for block in node.blocks:
                self.block(block)

    def _choose(self, node: Node) -> None:
        known = constant_of(node.inputs[0])
        assert known is not None
        block = node.blocks[0 if known[0] else 1]
        self.block(block)
        for inner in list(block.nodes):
            inner.place_before(node)
        for value, result in zip(node.outputs, list(block.outputs), strict=True):
            value.replace_with(result)
        self.changed = True
        node.destroy()

    def _equal_results(self, node: Node) -> None:
        first, second = node.blocks
        index = 0
        while index < len(first.outputs):
            one, other = first.outputs[index], second.outputs[index]
            new: ScriptValue | None = one if one is other else None
            if new is None and _key(one.node) and _key(one.node) == _key(other.node):
                known = constant_of(one)
                if known is not None:
                    with self.graph.at(node):
                        new = self.graph.constant(known[0], None, one.kind)
            if new is None:
                index += 1
                continue
            node.outputs[index].replace_with(new)
            node.remove_output(index)
            first.exit.remove_input(index)
            second.exit.remove_input(index)
            self.changed = True

    def _unchanged(self, node: Node) -> None:
        body = node.blocks[0]
        for index in reversed(range(len(node.outputs))):
            if body.inputs[1 + index] is body.outputs[1 + index]:
                first = node.inputs[2 + index]
                node.outputs[index].replace_with(first)
                body.inputs[1 + index].replace_with(first)
                node.remove_output(index)
                node.remove_input(2 + index)
                body.entry.remove_output(1 + index)
                body.exit.remove_input(1 + index)
                self.changed = True


def _key(node: Node) -> tuple[object, ...] | None:
    """What makes two constants one."""
    if node.kind != "prim::Constant":
        return None
    attributes = node.attributes
    if "target" in attributes:
        return "function", id(attributes["target"])
    value = attributes["value"]
    if node.output.kind.kind == "Tensor":
        return "tensor", id(value)
    return "value", type(value), repr(value), str(node.output.kind)


def _share(block: Block, seen: dict[tuple[object, ...], Node]) -> None:
    for node in list(block.nodes):
        for inner in node.blocks:
            _share(inner, seen)
        key = _key(node)
        if key is None or node.blocks:
            continue
        if key in seen:
            node.output.replace_with(seen[key].output)
            node.destroy()
            continue
        seen[key] = node
        first = node.graph.block.first
        if node is not first:
            node.place_before(first)


def _path(node: Node) -> list[int]:
    """Where a node stands: positions in its blocks, from the outermost."""
    path: list[int] = []
    current: Node | None = node
    while current is not None and current.block is not None:
        block = current.block
        at = len(block.nodes) if current is block.exit else block.nodes.index(current)
        owner = block.owner
        path = [at, *path] if owner is None else [owner.blocks.index(block), at, *path]
        current = owner
    return path


def _order_results(block: Block) -> None:
    """Put the results of ifs and loops into the order of their first uses."""
    for node in reversed(list(block.nodes)):
        if node.kind in ("prim::If", "prim::Loop"):
            firsts = [min(((*_path(u), i) for u, i in v.uses), default=None) for v in node.outputs]
            order = sorted(
                range(len(firsts)), key=lambda i: (firsts[i] is None, firsts[i] or (), i)
            )
            node.outputs[:] = [node.outputs[i] for i in order]
            loop = node.kind == "prim::Loop"
            for inner in node.blocks:
                results = inner.outputs
                fixed, moved = (results[:1], results[1:]) if loop else ([], results)
                inner.replace_outputs([*fixed, *(moved[i] for i in order)])
            if loop:
                body, inputs = node.blocks[0], node.inputs[2:]
                body.inputs[1:] = [body.inputs[1 + i] for i in order]
                while len(node.inputs) > 2:
                    node.remove_input(2)
                for i in order:
                    node.add_input(inputs[i])
        for inner in node.blocks:
            _order_results(inner)


def normalise(graph: Graph) -> None:
    """What is done once to a graph of single assignments."""
    _plain_loops(graph.block)
    _first_names(graph.block)


def clean(graph: Graph) -> None:
    """Simplify a graph and those of its forks."""
    for node in graph.block.nodes:
        for each in (node, *node.walk()):
            if each.kind == "prim::fork" and each.blocks:
                each.attributes["subgraph"] = lifted(each)
                clean(each.attributes["subgraph"])
    _take_apart(graph.block)
    remove_dead_code(graph)
    constants = _Constants(graph)
    constants.block(graph.block)
    if constants.changed:
        remove_dead_code(graph)
    _share(graph.block, {})
    _order_results(graph.block)
