"""Owns what torch.compile does with a backend that is a function: it gets the graph of a call.

The graph is traced by fx, once for the first shapes of the tensors and once for others, as torch
does before it takes sizes for symbols. Code that fx cannot trace (it asks tensors for values) runs
eagerly. torch passes a module's parameters as inputs; here the graph holds them as attributes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from mindtorch._tensor.tensor import Tensor
from mindtorch.fx import GraphModule, Tracer
from mindtorch.nn.modules.module import Module
from mindtorch.utils._pytree import tree_flatten, tree_unflatten


class _InlineTracer(Tracer):
    """Looks into every module: a graph for a backend calls functions alone."""

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return False


class CapturedCall:
    """Calls `target` through what `backend` makes of its graphs."""

    def __init__(self, target: Callable[..., Any], backend: Callable[..., Any]):
        self.target, self.backend = target, backend
        self.compiled: dict[Any, list[tuple[Any, Any]]] = {}
        functools.update_wrapper(self, target, updated=())

    def __call__(self, *args: object, **kwargs: object) -> object:
        function = getattr(self.target, "forward", self.target)
        bound = inspect.signature(function).bind(*args, **kwargs)
        values = {k: v for k, v in bound.arguments.items() if isinstance(v, Tensor)}
        kinds = [(k, v.dtype, v.dim(), v.requires_grad) for k, v in values.items()]
        rest = repr([(k, v) for k, v in bound.arguments.items() if k not in values])
        versions = self.compiled.setdefault((*kinds, rest), [])
        shapes = [v.shape for v in values.values()]
        if not versions or (len(versions) == 1 and versions[0][0] != shapes):
            versions.append((shapes, self._compile(bound, values)))
        run = versions[-1][1] if versions[0][0] != shapes else versions[0][1]
        return self.target(*args, **kwargs) if run is None else run(*values.values())

    def _compile(self, bound: inspect.BoundArguments, values: dict[str, Tensor]) -> Any:
        """What runs the call from its tensors; None where it cannot be traced."""
        structure: list[Any] = []

        def flat(*tensors: object) -> tuple[object, ...]:
            call = inspect.BoundArguments(bound.signature, bound.arguments.copy())
            call.arguments.update(zip(values, tensors, strict=True))
            parts, spec = tree_flatten(self.target(*call.args, **call.kwargs))
            structure.append(spec)
            return tuple(parts)

        names = "".join(f", l_{name}_" for name in values)
        scope: dict[str, Any] = {"flat": flat}
        exec(f"def forward(self{names}):\n    return flat({names[2:]})", scope)
        root = type("Root", (Module,), {"forward": scope["forward"]})()
        if isinstance(self.target, Module):
            root.add_module("fn", self.target)
        try:
            graph = _InlineTracer().trace(root)
        except Exception:
            return None
        run = self.backend(GraphModule(root, graph), list(values.values()))
        return lambda *tensors: tree_unflatten(list(run(*tensors)), structure[0])
