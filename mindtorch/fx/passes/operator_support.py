"""Owns saying which nodes a backend takes, and joining such rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from ..._tensor.dtype import dtype as Dtype
from ...nn.modules.module import Module
from ..node import Node
from .tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain",
           "create_op_support"]  # fmt: skip

Modules = Mapping[str, Module]


class OperatorSupportBase(ABC):
    """Whether a backend takes a node."""

    @abstractmethod
    def is_node_supported(self, submodules: Modules, node: Node) -> bool:
        """Whether it does; `submodules` are the graph's modules by name."""
        raise NotImplementedError


class OperatorSupport(OperatorSupportBase):
    """By a table: the name of a target, and None or the dtypes of its arguments.

    These are a list for each positional argument (None: any), and a dict for those by name.
    """

    def __init__(self, support_dict: Mapping[str, Any] | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Modules, node: Node) -> bool:
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        if self._support_dict[target] is None:
            return True
        positional, named = self._support_dict[target]
        pairs = [*zip(node.args, positional, strict=False)]
        pairs += [(node.kwargs[k], dtypes) for k, dtypes in named.items() if k in node.kwargs]
        return all(
            dtypes is None or not isinstance(arg, Node) or _dtype(arg) in dtypes
            for arg, dtypes in pairs
        )


class _FunctionalOperatorSupport(OperatorSupportBase):
    def __init__(self, function: Callable[[Modules, Node], bool]) -> None:
        self.function = function

    def is_node_supported(self, submodules: Modules, node: Node) -> bool:
        return self.function(submodules, node)


def create_op_support(is_node_supported: Callable[[Modules, Node], bool]) -> OperatorSupportBase:
    """The rule that a function is."""
    return _FunctionalOperatorSupport(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """All of the rules."""
    return create_op_support(lambda m, n: all(s.is_node_supported(m, n) for s in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Any of the rules."""
    return create_op_support(lambda m, n: any(s.is_node_supported(m, n) for s in op_support))


class OpSupports:
    """Rules that are often used."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: Dtype) -> OperatorSupportBase:
        """None of the inputs is of a dtype."""
        return create_op_support(
            lambda modules, node: all(_dtype(n) != dtype for n in node.all_input_nodes)
        )

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """The node's name is not among some."""
        return create_op_support(lambda modules, node: node.name not in disallow_set)


def _dtype(node: Node) -> object:
    meta: Any = node.meta.get("tensor_meta")
    return meta.dtype if hasattr(meta, "dtype") else node.meta["type"]
