"""Owns torch.fx: functions and modules traced into graphs, which are changed and run as modules."""

from __future__ import annotations

from . import _pytree as _pytree, immutable_collections as immutable_collections, node as node
from ._symbolic_trace import (
    PH as PH,
    PHWithMeta as PHWithMeta,
    ProxyableClassMeta as ProxyableClassMeta,
    Tracer,
    symbolic_trace,
    wrap,
)
from .graph import CodeGen as CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer",
           "has_side_effect", "map_arg", "replace_pattern", "symbolic_trace",
           "wrap"]  # fmt: skip
