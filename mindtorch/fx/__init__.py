"""Owns torch.fx's names for code that mentions them: nothing is traced, tracing is refused."""

from __future__ import annotations

from typing import Any, TypeVar

from .._functional.refusals import refusals

T = TypeVar("T")
_WHY = "mindtorch traces nothing; call the module instead"
_NAMES = ("CodeGen", "Graph", "Interpreter", "Node", "Tracer", "Transformer", "annotate",
          "has_side_effect", "map_arg", "replace_pattern")  # fmt: skip
__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer",
           "has_side_effect", "map_arg", "replace_pattern", "symbolic_trace",
           "wrap"]  # fmt: skip
__getattr__ = refusals("torch.fx", _WHY, _NAMES)


class Proxy:
    """The class of traced values; none is ever made, so isinstance is always false."""


class GraphModule:
    """The class of traced modules; none is ever made."""


def wrap(fn_or_name: T) -> T:
    """Gives its argument: without tracing there is nothing to leave out of it."""
    return fn_or_name


def symbolic_trace(root: Any, concrete_args: Any = None) -> Any:
    """Refused: calls stay eager."""
    raise NotImplementedError(
        f"fx.symbolic_trace: tracing {type(root).__name__} is not supported, call it instead"
    )
