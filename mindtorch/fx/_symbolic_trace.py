"""torch.fx._symbolic_trace: a module or function as a module of its graph, and what tracers are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..nn.modules.module import Module
from ._compatibility import compatibility as compatibility
from .graph_module import GraphModule
from .tracer import (
    PH as PH,
    PHBase as PHBase,
    PHWithMeta as PHWithMeta,
    ProxyableClassMeta as ProxyableClassMeta,
    Tracer as Tracer,
    _assert_is_none as _assert_is_none,
    is_fx_symbolic_tracing as is_fx_symbolic_tracing,
    is_fx_tracing as is_fx_tracing,
    wrap as wrap,
)


def symbolic_trace(
    root: Module | Callable[..., object], concrete_args: Mapping[str, object] | None = None
) -> GraphModule:
    """A module or function as a GraphModule: traced with proxies, some arguments as they are."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root._get_name() if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
