"""Owns torch.fx.experimental.proxy_tensor.make_fx: a function's graph of ATen operators."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any

from ..._tensor.tensor import Tensor
from ...nn.modules.module import Module
from ...utils._pytree import tree_flatten, tree_map, tree_unflatten
from ..aten import AtenRecorder
from ..call_sites import root_call
from ..dispatch_trace import DispatchRecorder, constant
from ..fake import meta_like
from ..graph import Graph, _PyTreeCodeGen, _PyTreeInfo
from ..graph_module import GraphModule
from ..node import Node
from ..recorder import TracedTensor
from .symbolic_sizes import SizeVersions


class _AboveAutograd(AtenRecorder):
    """Tensors that no call made are attributes of the module."""

    notes_lines = False

    def lift(self, tensor: Tensor) -> Node:
        return self.graph.create_node("get_attr", constant(self.root, tensor))


DecompositionTable = Mapping[object, Callable[..., object]]


def make_fx(
    f: Callable[..., Any], decomposition_table: DecompositionTable | None = None,
    tracing_mode: str = "real", _allow_non_fake_inputs: bool = False, *,
    pre_dispatch: bool = False, **_: object,
) -> Callable[..., GraphModule]:  # fmt: skip
    """What traces `f` with the arguments of a call (make_fx): their sizes are the graph's, but with
    "symbolic" those of inputs may change.

    Gradients and batches in it are traced as the operators that compute them. RuntimeError where
    it asks a tensor for its value.
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"tracing_mode must be real/fake/symbolic, got {tracing_mode}")

    def traced(*args: object) -> GraphModule:
        signature = _Signature(f, args)
        if pre_dispatch:
            return _above_autograd(f, signature)
        takes_constants = tracing_mode == "real" or _allow_non_fake_inputs

        def trace(leaves: Sequence[object]) -> GraphModule:
            return _below_autograd(f, leaves, signature, decomposition_table, takes_constants)

        if tracing_mode == "symbolic":
            return SizeVersions(signature.leaves).trace(trace)
        return trace(signature.leaves)

    return traced


def _above_autograd(f: Callable[..., Any], signature: _Signature) -> GraphModule:
    recorder = _AboveAutograd()
    inputs = [_input(recorder, n, v) for n, v in signature.inputs(signature.leaves)]
    with recorder.inside():
        result = root_call(f, tree_unflatten(inputs, signature.spec), {})
    return signature.module(recorder.graph, recorder.root, recorder.argument, result)


def _below_autograd(
    f: Callable[..., Any], leaves: Sequence[object], signature: _Signature,
    table: DecompositionTable | None, takes_constants: bool,
) -> GraphModule:  # fmt: skip
    recorder = DispatchRecorder(table=table)
    recorder.takes_constants = takes_constants
    for name, value in signature.inputs(leaves):
        if isinstance(value, Tensor):
            recorder.placeholder(name, value)
        else:
            recorder.graph.placeholder(name)
    with recorder:
        result = f(*tree_unflatten(leaves, signature.spec))
    return signature.module(recorder.graph, recorder.root, recorder.argument, result)


class _Signature:
    """The inputs of a graph by name; those in containers are taken apart by its code."""

    def __init__(self, f: Callable[..., Any], args: tuple[object, ...]):
        self.f, self.names = f, _names(f, len(args))
        self.leaves, self.spec = tree_flatten(args)
        self.flat = all(child.is_leaf() for child in self.spec.children())

    def inputs(self, leaves: Sequence[Any]) -> list[tuple[str, Any]]:
        """Names of the graph's inputs, with these values."""
        if self.flat:
            names = [f"{name}_1" for name in self.names]
        else:
            counts = [child.num_leaves for child in self.spec.children()]
            names = [f"{n}_{i + 1}" for n, count in zip(self.names, counts, strict=True)
                     for i in range(count)]  # fmt: skip
        return list(zip(names, leaves, strict=True))

    def module(
        self, graph: Graph, root: Module, argument: Callable[[object], object], result: object
    ) -> GraphModule:
        """The module of a graph with this signature and a function's result."""
        if self.flat:
            declared = inspect.unwrap(self.f) if isinstance(self.f, FunctionType) else None
            if declared is not None:
                self._note_defaults(graph, declared)
            kind = getattr(declared, "__annotations__", {}).get("return")
            graph.output(tree_map(argument, result), kind)
        else:
            leaves, spec = tree_flatten(result)
            graph.output([argument(leaf) for leaf in leaves])
            graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(self.names, self.spec, spec)))
        named = not isinstance(self.f, Module)
        label = getattr(self.f, "__name__", type(self.f).__name__) if named else "<lambda>"
        return GraphModule(root, graph, label)

    def _note_defaults(self, graph: Graph, declared: Callable[..., Any]) -> None:
        """Let inputs have the defaults of the function's parameters."""
        parameters = inspect.signature(declared).parameters
        inputs = (node for node in graph.nodes if node.op == "placeholder")
        for name, node in zip(self.names, inputs, strict=True):
            if name in parameters and parameters[name].default is not inspect.Parameter.empty:
                node.args = (parameters[name].default,)


def _input(recorder: AtenRecorder, name: str, value: object) -> object:
    node = recorder.graph.placeholder(name)
    if not isinstance(value, Tensor):
        return value
    traced: TracedTensor = recorder.traced((meta_like(value, value.shape),), node, value.device)
    return traced


def _names(f: Callable[..., Any], count: int) -> list[str]:
    code: CodeType | None = getattr(inspect.unwrap(f), "__code__", None)
    varied = code is None or code.co_flags & inspect.CO_VARARGS
    plain = isinstance(f, FunctionType | MethodType) and f.__code__ is code
    places = f.__code__.co_argcount if plain else count
    if not varied and places != count:
        raise RuntimeError(
            f"Tracing expected {places} arguments but got {count} concrete arguments"
        )
    if code is None or varied or code.co_argcount < count:
        return [f"arg{i}" for i in range(count)]
    return list(code.co_varnames[:count])


def get_proxy_mode() -> None:
    """None: nothing is being traced."""
