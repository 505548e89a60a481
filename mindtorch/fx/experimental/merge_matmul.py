"""Owns a pass that multiplies once by matrices side by side instead of by each of them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import mindtorch

from ..._tensor.tensor import Tensor
from ...nn.modules.module import Module
from .._symbolic_trace import symbolic_trace
from ..graph_module import GraphModule
from ..node import Node
from ..passes.tools_common import legalize_graph


def split_result_tensors(result: Tensor, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """A product of matrices under one another as the products of each."""
    return tuple(mindtorch.split(result, [x.shape[0] for x in inputs]))


def may_depend_on(a: Node, b: Node, search_depth: int = 6) -> bool:
    """Whether `a` may read what `b` gives, by so many steps; further ones may."""
    if a == b:
        return True
    if not a.all_input_nodes:
        return False
    if search_depth == 0:
        return True
    return any(may_depend_on(x, b, search_depth - 1) for x in a.all_input_nodes)


def are_nodes_independent(nodes: Sequence[Node]) -> bool:
    """Whether none reads what another gives."""
    return not any(
        may_depend_on(a, b) or may_depend_on(b, a)
        for at, a in enumerate(nodes)
        for b in nodes[at + 1 :]
    )


def merge_matmul(in_mod: Module) -> GraphModule:
    """The module with one product for those by the same right side that do not wait for others."""
    module = symbolic_trace(in_mod)
    by_side: dict[Node, list[Node]] = {}
    for node in module.graph.nodes:
        if node.op == "call_function" and node.target is mindtorch.matmul:
            side: Any = node.args[1]
            by_side.setdefault(side, []).append(node)
    for side, products in by_side.items():
        if len(products) < 2 or not are_nodes_independent(products):
            continue
        lefts = [node.args[0] for node in products]
        with module.graph.inserting_before(products[0]):
            whole = module.graph.call_function(mindtorch.cat, (lefts,), {})
            product = module.graph.call_function(mindtorch.matmul, (whole, side), {})
            parts = module.graph.call_function(split_result_tensors, (product, lefts), {})
            items = [
                module.graph.call_function(operator.getitem, (parts, at), {})
                for at in range(len(products))
            ]
        for node, item in zip(products, items, strict=True):
            node.replace_all_uses_with(item)
            module.graph.erase_node(node)
    legalize_graph(module)
    module.recompile()
    module.graph.lint()
    return module
