"""Owns torch.export.unflatten: an exported program as the modules whose calls it was made of."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from mindtorch._tensor.tensor import Tensor
from mindtorch.fx.graph import Graph
from mindtorch.fx.interpreter import Interpreter
from mindtorch.fx.node import Node, map_arg
from mindtorch.nn import Module
from mindtorch.nn.parameter import Parameter
from mindtorch.utils._pytree import tree_flatten, tree_unflatten

from .exported_program import ExportedProgram

# A call of a module: its path, and `@1` behind it where it is not the first.
Frame = tuple[str, ...]


class InterpreterModule(Module):
    """A module that runs its own graph."""

    def __init__(self, graph: Graph):
        super().__init__()
        self.graph = graph

    def forward(self, *args: object) -> Any:
        """The graph's result."""
        return Interpreter(self, graph=self.graph).run(*args)


class UnflattenedModule(InterpreterModule):
    """An exported program whose modules may be exchanged for others of the same signature."""

    def __init__(self, program: ExportedProgram):
        super().__init__(Graph())
        self._program = copy.deepcopy(program.call_spec)
        self._names = program.graph_signature
        values = {**program.state_dict, **program.constants}
        self.state = {s.arg.name: s.target for s in self._names.input_specs if s.target is not None}
        absent = self._names.non_persistent_buffers
        for path in program.module_paths:
            _child(self, path)
        for name in self.state.values():
            home, _, last = name.rpartition(".")
            _assign(_child(self, home), last, values[name], name not in absent)
        _Builder(self, program).fill()

    def forward(self, *args: object, **kwargs: object) -> Any:
        """What the exported module computes; ValueError for arguments of another structure."""
        leaves, spec = tree_flatten((args, kwargs))
        if spec != self._program.in_spec:
            raise ValueError(
                f"Input treespec does not match with exported module's: \nInput treespec: {spec}."
                f" Exported module treespec: {self._program.in_spec}"
            )
        results = Interpreter(self, graph=self.graph).run(*leaves)
        results = results if isinstance(results, tuple | list) else (results,)
        return tree_unflatten(list(results), self._program.out_spec)


def _child(module: Module, path: str) -> Module:
    """The module at a path; made where it is missing."""
    for name in path.split(".") if path else ():
        if name not in module._modules:
            module.add_module(name, InterpreterModule(Graph()))
        inner = module._modules[name]
        assert inner is not None
        module = inner
    return module


def _same_state(module: Module) -> InterpreterModule:
    """A module without a graph, with the state of another."""
    copy = InterpreterModule(Graph())
    copy._parameters, copy._buffers = module._parameters, module._buffers
    for name, inner in module.named_children():
        if "@" not in name:
            copy.add_module(name, _same_state(inner))
    return copy


def _assign(module: Module, name: str, value: Tensor, persistent: bool) -> None:
    copy = value.detach().clone()
    if isinstance(value, Parameter):
        module.register_parameter(name, Parameter(copy, requires_grad=value.requires_grad))
    else:
        module.register_buffer(name, copy, persistent=persistent)


class _Builder:
    """Writes the graphs of a program's modules."""

    def __init__(self, root: UnflattenedModule, program: ExportedProgram):
        self.root, self.program = root, program
        self.nodes = [n for n in program.graph.nodes if n.op not in ("placeholder", "output")]
        self.frames: dict[Node, Frame] = {}
        for node in self.nodes:
            stack = node.meta.get("nn_module_stack")
            known = None if stack is None else [path for path, _ in stack.values() if path]
            source = node.all_input_nodes[0] if node.all_input_nodes else None
            self.frames[node] = (
                tuple(known) if known is not None else self.frames.get(source, ()) if source else ()
            )

    def fill(self) -> None:
        """Write the root's graph, and so those of all modules."""
        graph, inside = self.root.graph, dict[Node, Node]()
        for node in self.program.graph.nodes:
            if node.op == "placeholder" and node.name not in self.root.state:
                inside[node] = graph.placeholder(str(node.target))
        (result,) = self.program.graph.output_node().args
        self._write(self.root, "", graph, inside, self.nodes, 0)
        outputs = map_arg(result, lambda n: self._value(n, "", graph, inside))
        graph.output(outputs)

    def _value(self, node: Node, path: str, graph: Graph, inside: dict[Node, Node]) -> Node:
        if node not in inside:
            target = self.root.state[node.name]
            calls = (n for n in graph.nodes if n.op not in ("placeholder", "get_attr"))
            first = next(calls, None)
            with graph.inserting_before(first) if first is not None else nullcontext():
                inside[node] = graph.get_attr(target.removeprefix(f"{path}." if path else ""))
        return inside[node]

    def _is_own(self, node: Node, path: str) -> bool:
        """Whether a node is state of the module at a path."""
        target = self.root.state.get(node.name) if node.op == "placeholder" else None
        return target is not None and target.startswith(f"{path}." if path else "")

    def _write(
        self, module: Module, path: str, graph: Graph, inside: dict[Node, Node],
        nodes: Sequence[Node], depth: int,
    ) -> None:  # fmt: skip
        at = 0
        while at < len(nodes):
            frame = self.frames[nodes[at]]
            if len(frame) <= depth:
                copy = graph.node_copy(nodes[at], lambda n: self._value(n, path, graph, inside))
                if copy.op == "get_attr":  # of a higher-order operator's function
                    inner = self.program.graph_module.get_submodule(str(copy.target))
                    module.add_module(str(copy.target), inner)
                inside[nodes[at]] = copy
                at += 1
                continue
            end = at
            while end < len(nodes) and self.frames[nodes[end]][: depth + 1] == frame[: depth + 1]:
                end += 1
            self._call(module, path, graph, inside, nodes[at:end], depth + 1)
            at = end

    def _call(
        self, parent: Module, path: str, graph: Graph, inside: dict[Node, Node],
        nodes: Sequence[Node], depth: int,
    ) -> None:  # fmt: skip
        """The call of a module that these nodes are of, and its graph."""
        call = self.frames[nodes[0]][depth - 1]
        inner = call.partition("@")[0]
        target = call.removeprefix(f"{path}." if path else "")
        values, members = dict[Node, Node](), set(nodes)
        module = _child(parent, target.partition("@")[0])
        if "@" in target:  # another call has graphs of its own
            module = _same_state(module)
            home, _, last = target.rpartition(".")
            _child(parent, home).add_module(last, module)
        assert isinstance(module, InterpreterModule)
        uses = [n for node in nodes for n in node.all_input_nodes]
        outer = [n for n in dict.fromkeys(uses) if n not in members and not self._is_own(n, inner)]
        for node in reversed(outer):  # torch puts each new one before the others
            values[node] = module.graph.placeholder(node.name)
        results = [n for n in nodes if any(user not in members for user in n.users)]
        self._write(module, inner, module.graph, values, nodes, depth)
        parts = [values[n] for n in results]
        module.graph.output(parts[0] if len(parts) == 1 else parts)
        args = tuple([self._value(n, path, graph, inside) for n in outer][::-1])
        node = graph.call_module(target, args)
        if len(results) == 1:
            inside[results[0]] = node
        else:
            for at, result in enumerate(results):
                inside[result] = graph.call_function(operator.getitem, (node, at))


def unflatten(
    module: ExportedProgram, flat_args_adapter: Callable[..., Any] | None = None
) -> UnflattenedModule:
    """The modules of an exported program, each with the graph of its call."""
    if flat_args_adapter is not None:
        raise NotImplementedError("torch.export.unflatten: mindtorch has no flat_args_adapter")
    return UnflattenedModule(module)
