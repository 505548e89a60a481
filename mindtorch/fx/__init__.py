"""Owns torch.fx: functions and modules traced into graphs, which are changed and run as modules."""

from __future__ import annotations

from . import _pytree as _pytree
from . import immutable_collections as immutable_collections
from . import node as node
from ._symbolic_trace import PH as PH
from ._symbolic_trace import PHWithMeta as PHWithMeta
from ._symbolic_trace import ProxyableClassMeta as ProxyableClassMeta
from ._symbolic_trace import Tracer, symbolic_trace, wrap
from .graph import CodeGen as CodeGen
from .graph import Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer",
           "has_side_effect", "map_arg", "replace_pattern", "symbolic_trace",
           "wrap"]  # fmt: skip
