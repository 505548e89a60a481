"""Owns a pass that notes what modules, functions and attributes give, where signatures say it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

import mindtorch

from ..._tensor.tensor import Tensor
from ...nn.modules.module import Module
from ...ops.spec import OPS
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Target
from ..proxy import Proxy


class AnnotateTypesWithSchema(Transformer):
    """The same graph with types of results: of functions, of layers, of attributes."""

    def __init__(
        self, module: GraphModule, annotate_functionals: bool = True,
        annotate_modules: bool = True, annotate_get_attrs: bool = True,
    ):  # fmt: skip
        super().__init__(module)
        self.annotate_functionals = annotate_functionals
        self.annotate_modules = annotate_modules
        self.annotate_get_attrs = annotate_get_attrs

    def call_function(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call, with what a function of Python's annotation says."""
        kind = None
        name = getattr(target, "__name__", "")
        if self.annotate_functionals and getattr(mindtorch.nn.functional, name, None) is target:
            kind = _result_of(cast(Callable[..., object], target))
        return _typed(super().call_function(target, args, kwargs), kind)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a layer, with what its `forward` says."""
        layer = self.fetch_attr(str(target))
        own = getattr(mindtorch.nn, type(layer).__name__, None) is type(layer)
        kind = _result_of(layer.forward) if self.annotate_modules and own else None
        return _typed(super().call_module(target, args, kwargs), kind)

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """An attribute; a parameter and a buffer are tensors."""
        proxy = super().get_attr(target, args, kwargs)
        value: Module | Tensor = self.fetch_attr(str(target))
        tensor = self.annotate_get_attrs and isinstance(value, Tensor)
        result: Proxy = _typed(proxy, Tensor if tensor else None)
        return result


_KINDS: dict[object, type] = {"Tensor": Tensor, "bool": bool, "int": int}


def _result_of(function: Callable[..., object]) -> type | None:
    """What an annotation or a row says of a function's result; None where neither does."""
    kind = inspect.signature(function).return_annotation
    if kind is inspect.Signature.empty:
        row = OPS.get(function.__name__)
        return Tensor if row is not None and len(row.schema.returns) == 1 else None
    return _KINDS.get(kind)


def _typed(proxy: Any, kind: type | None) -> Any:
    if kind is not None and isinstance(proxy, Proxy):
        proxy.node.type = proxy.node.type or kind
    return proxy
