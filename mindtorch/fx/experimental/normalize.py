"""Owns passes that spell calls in one way: arguments by name, and operators for functions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import mindtorch

from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node, Target
from ..proxy import Proxy
from .schema_type_annotation import AnnotateTypesWithSchema

_OPERATORS: dict[Target, Callable[..., Any]] = {
    mindtorch.add: operator.add, mindtorch.mul: operator.mul, mindtorch.sub: operator.sub,
    mindtorch.div: operator.truediv, mindtorch.floor_divide: operator.floordiv,
    mindtorch.remainder: operator.mod, mindtorch.eq: operator.eq, mindtorch.ne: operator.ne,
    mindtorch.lt: operator.lt, mindtorch.le: operator.le, mindtorch.gt: operator.gt,
    mindtorch.ge: operator.ge,
}  # fmt: skip


class NormalizeArgs(Transformer):
    """Arguments of functions and modules by name, with those that are defaults."""

    def __init__(self, module: GraphModule, normalize_to_only_use_kwargs: bool = True):
        super().__init__(module)
        self.node_map: dict[Proxy, Node] = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n: Node) -> Any:
        """The node in the new graph, with its arguments as the signature has them."""
        if n.op in ("call_function", "call_module"):
            pair = n.normalized_arguments(
                self.module, normalize_to_only_use_kwargs=self.normalize_to_only_use_kwargs
            )
            if pair is not None:
                args, kwargs = self.map_nodes_to_values((tuple(pair.args), pair.kwargs), n)
                out = getattr(self, n.op)(n.target, args, kwargs)
                return self._noted(n, out)
        return self._noted(n, super().run_node(n))

    def _noted(self, n: Node, out: Any) -> Any:
        if isinstance(out, Proxy) and n.op != "output":
            self.node_map[out] = n
            out.node.meta, out.node.type = n.meta, n.type
        return out


class NormalizeOperators(AnnotateTypesWithSchema):
    """Functions that are Python's operators as those, with types of results."""

    binary_magic_method_remap = _OPERATORS

    def call_function(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call, by an operator where there is one."""
        if target in _OPERATORS and len(args) == 2:
            return super().call_function(_OPERATORS[target], args, {})
        return super().call_function(target, args, kwargs)
