"""torch.fx._symbolic_trace: a module or function as a module of its graph, and what tracers are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..nn.modules.module import Module
from ._compatibility import compatibility as compatibility
from .graph_module import GraphModule
from .tracer import (
    PH as PH,
)
from .tracer import (
    PHBase as PHBase,
)
from .tracer import (
    PHWithMeta as PHWithMeta,
)
from .tracer import (
    ProxyableClassMeta as ProxyableClassMeta,
)
from .tracer import (
    Tracer as Tracer,
)
from .tracer import (
    _assert_is_none as _assert_is_none,
)
from .tracer import (
    is_fx_symbolic_tracing as is_fx_symbolic_tracing,
)
from .tracer import (
    is_fx_tracing as is_fx_tracing,
)
from .tracer import (
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
