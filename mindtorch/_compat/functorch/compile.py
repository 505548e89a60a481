"""functorch.compile: a function's graphs of forward and backward, for compilers of one's own."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from mindtorch.fx import GraphModule
from mindtorch.nn.modules.module import Module

from ..refusals import refusals

config = import_module("mindtorch._functorch.config")
_AOT = import_module("mindtorch._functorch.aot_autograd")
aot_function, aot_module = _AOT.aot_function, _AOT.aot_module
aot_module_simplified = _AOT.aot_module_simplified
compiled_function, compiled_module = aot_function, aot_module
make_boxed_compiler, make_boxed_func = _AOT.make_boxed_compiler, _AOT.make_boxed_func
default_partition = _AOT.default_partition
min_cut_rematerialization_partition = import_module(
    "mindtorch._functorch.partitioners"
).min_cut_rematerialization_partition

__all__ = ["aot_function", "aot_module", "aot_module_simplified", "compiled_function",
           "compiled_module", "config", "default_partition", "make_boxed_compiler",
           "make_boxed_func", "memory_efficient_fusion", "min_cut_rematerialization_partition",
           "nop", "print_compile", "ts_compile"]  # fmt: skip

_NAMES = ("debug_compile", "draw_graph", "draw_graph_compile")
__getattr__ = refusals("functorch.compile", "print the graph's code", _NAMES)


def nop(fx_g: GraphModule, _: object) -> Any:
    """The graph as it is."""
    return make_boxed_func(fx_g.forward)


ts_compile = nop


def print_compile(fx_g: GraphModule, _: object) -> Any:
    """The graph as it is, its code printed."""
    print(fx_g.code)
    return make_boxed_func(fx_g.forward)


def memory_efficient_fusion(fn: Callable[..., Any], **kwargs: Any) -> Callable[..., Any]:
    """A function or module whose gradients are computed with little memory."""
    options = {"fw_compiler": ts_compile, "bw_compiler": ts_compile,
               "partition_fn": min_cut_rematerialization_partition, **kwargs}  # fmt: skip
    result: Callable[..., Any] = (aot_module if isinstance(fn, Module) else aot_function)(
        fn, **options
    )
    return result
