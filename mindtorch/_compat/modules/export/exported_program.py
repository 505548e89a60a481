"""Owns exported programs: a graph of ATen operators, its signature, its state."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from mindtorch._tensor.tensor import Tensor
from mindtorch.fx import Graph, GraphModule
from mindtorch.fx.graph import CodeGen
from mindtorch.fx.graph_module import _assign_attr
from mindtorch.fx.node import Node
from mindtorch.fx.readable import readable
from mindtorch.nn import Module
from mindtorch.utils._pytree import (
    GetAttrKey,
    MappingKey,
    SequenceKey,
    TreeSpec,
    tree_flatten,
    tree_leaves_with_path,
    tree_structure,
)

from .dynamic_shapes import linear
from .graph_signature import ExportGraphSignature, InputKind, OutputKind
from .sizes import DynamicSizes, Symbol, ValueRanges


@dataclass
class CallSpec:
    """How arguments and results lie in containers."""

    in_spec: TreeSpec
    out_spec: TreeSpec


class _CallCodeGen(CodeGen):
    """A forward that takes the module's arguments apart, and puts its result together."""

    def __init__(self, names: list[str], keywords: list[str], leaves: list[str]):
        super().__init__()
        self.names, self.keywords, self.leaves = names, keywords, leaves

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        words = ", ".join(f"'{k}':{k}" for k in self.keywords)
        read = f"([{', '.join(self.names)}], {{{words}}})"
        head = super().gen_fn_def([*self.names, *self.keywords], maybe_return_annotation)
        if not self.leaves:
            return head
        leaves = ", ".join(self.leaves)
        return f"{head}\n    {leaves}, = fx_pytree.tree_flatten_spec({read}, self._in_spec)"

    def generate_output(self, output_args: object) -> str:
        return f"return pytree.tree_unflatten({output_args!r}, self._out_spec)"


# What must hold of the inputs, and how it is written.
Guard = tuple[Callable[[Sequence[Any]], bool], str]


class GuardsFn(Module):
    """Refuses inputs of other sizes and values than a program was exported for."""

    def __init__(self, guards: list[Guard]):
        super().__init__()
        self.guards = guards

    def forward(self, *inputs: object) -> None:
        """AssertionError for an input that is neither that of the example nor allowed."""
        for holds, text in self.guards:
            if not holds(inputs):
                raise AssertionError(f"Guard failed: {text}")


# What puts a program into core operators, once its module is loaded.
DECOMPOSE: list[Callable[[ExportedProgram, Any], ExportedProgram]] = []


class ExportedProgram:
    """A module's graph of ATen operators, its signature, its state and its example inputs."""

    dialect = "TRAINING"
    verifier = None
    module_call_graph: tuple[Any, ...] = ()  # no module's calls are kept apart

    def __init__(
        self, graph_module: GraphModule, signature: ExportGraphSignature,
        state: Mapping[str, Any], constants: Mapping[str, Tensor], sizes: DynamicSizes,
        call_spec: CallSpec, example: tuple[tuple[Any, ...], dict[str, Any]], names: list[str],
        module_paths: list[str],
    ):  # fmt: skip
        self.graph_module, self.graph_signature = graph_module, signature
        self.state_dict, self.constants = dict(state), dict(constants)
        self.sizes, self.call_spec, self.example_inputs = sizes, call_spec, example
        self.argument_names, self.module_paths = names, module_paths

    @property
    def graph(self) -> Graph:
        """The nodes."""
        return self.graph_module.graph

    @property
    def range_constraints(self) -> dict[Symbol, ValueRanges]:
        """The bounds of the sizes that may change."""
        return self.sizes.constraints

    @property
    def tensor_constants(self) -> dict[str, Tensor]:
        """Tensors that are neither parameters nor buffers."""
        return self.constants

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """The module's parameters by name."""
        return ((n, self.state_dict[n]) for n in self.graph_signature.parameters)

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The module's buffers by name."""
        absent = self.graph_signature.non_persistent_buffers
        state = {**self.state_dict, **{n: self.constants[n] for n in absent}}
        return ((n, state[n]) for n in self.graph_signature.buffers)

    def parameters(self) -> Iterator[Tensor]:
        """The module's parameters."""
        return (p for _, p in self.named_parameters())

    def buffers(self) -> Iterator[Tensor]:
        """The module's buffers."""
        return (b for _, b in self.named_buffers())

    def module(self, check_guards: bool = True) -> GraphModule:
        """A module that computes what was exported, and refuses inputs of other shapes."""
        return _module_of(self, check_guards)

    def run_decompositions(self, decomp_table: object = None, **_: object) -> ExportedProgram:
        """The program with operators of a table, the core one if None, made of others; its results
        say what of the state changes."""
        return DECOMPOSE[0](self, decomp_table)

    def validate(self) -> None:
        """RuntimeError where the graph is none."""
        self.graph.lint()

    def __deepcopy__(self, memo: dict[int, Any]) -> ExportedProgram:
        copied = ExportedProgram.__new__(ExportedProgram)
        copied.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items()})
        return copied

    _report: object = None  # of draft_export

    def __call__(self, *args: object, **kwargs: object) -> object:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()`"
            " instead."
        )

    def __str__(self) -> str:
        code = readable(self.graph_module, "GraphModule", self.sizes.text)
        code = "\n".join("    " + line for line in code.splitlines())
        signature = str(self.graph_signature).strip().replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n{code}\n    \nGraph signature: \n    {signature}\n    \n"
            f"Range constraints: {self.range_constraints}\n"
        )


def _module_of(program: ExportedProgram, check: bool) -> GraphModule:
    root, graph = Module(), Graph()
    kinds = {s.arg.name: s for s in program.graph_signature.input_specs}
    nodes: dict[Node, Node] = {}
    state = {**program.constants, **program.state_dict}
    placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
    for node in placeholders:
        spec = kinds[str(node.target)]
        if spec.kind is not InputKind.USER_INPUT:
            target = str(spec.target)
            _assign_attr(state[target], root, target)
            name = target.replace(".", "_")
            nodes[node] = graph.create_node("get_attr", target, name=name)
    inputs = [n for n in placeholders if kinds[str(n.target)].kind is InputKind.USER_INPUT]
    nodes.update({node: graph.placeholder(str(node.target)) for node in inputs})
    if check:
        root.add_module("_guards_fn", GuardsFn(_checks(program, [str(n.target) for n in inputs])))
        graph.create_node("call_module", "_guards_fn", tuple(nodes[n] for n in inputs))
    changes = [
        s for s in program.graph_signature.output_specs if s.kind is not OutputKind.USER_OUTPUT
    ]
    for node in program.graph.nodes:
        if node.op == "output":
            _end(graph, node.args[0], len(changes), changes, nodes)
        elif node.op != "placeholder":
            if node.op == "get_attr":
                inner = program.graph_module.get_submodule(str(node.target))
                root.add_module(str(node.target), inner)
            nodes[node] = graph.node_copy(node, lambda n: nodes[n])
    count = program.call_spec.in_spec.children_specs[0].num_children
    names = program.argument_names
    codegen = _CallCodeGen(names[:count], names[count:], [str(n.target) for n in inputs])
    graph.set_codegen(codegen)
    module = GraphModule(root, graph)
    for name in ("train", "eval"):
        module.__dict__[name] = partial(_refuse_mode, name)
    hook = partial(_check_call, names[count:], program.call_spec.in_spec)
    module.register_forward_pre_hook(hook, with_kwargs=True)
    module.__dict__["_in_spec"] = program.call_spec.in_spec
    module.__dict__["_out_spec"] = program.call_spec.out_spec
    return module


def _refuse_mode(name: str, mode: bool = True) -> NoReturn:
    """NotImplementedError: layers' modes are those that a program was exported in."""
    raise NotImplementedError(f"Calling {name}() is not supported yet.")


def _check_call(
    words: list[str], in_spec: TreeSpec, module: Module, args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> None:  # fmt: skip
    """ValueError for a call with other keywords than the program was exported with, or whose
    arguments lie in other containers."""
    if set(words) != kwargs.keys():
        raise ValueError(
            "Ran into a kwarg keyword mismatch: Got the following keywords"
            f" {list(kwargs)} but expected {words}"
        )
    spec = tree_structure((tuple(args), {word: kwargs[word] for word in words}))
    if spec != in_spec:
        raise ValueError(
            f"Trying to flatten user inputs with exported input tree spec: \n{in_spec}\nbut"
            f" actually got inputs with tree spec of: \n{spec}.\nPlease check that the inputs have"
            " the same number and type of args and kwargs as the ones you used when tracing."
        )


def _end(
    graph: Graph, results: Sequence[Any], count: int, changes: Sequence[Any],
    nodes: dict[Node, Node],
) -> None:  # fmt: skip
    """Write changed state back, and return the other results."""
    from mindtorch.ops.namespaces import namespace

    copy_ = namespace("aten").copy_.default
    for spec, value in zip(changes, results, strict=False):
        target = graph.create_node("get_attr", spec.target, name=spec.target.replace(".", "_"))
        graph.call_function(copy_, (target, nodes[value]))
    plain = [nodes[v] if isinstance(v, Node) else v for v in results[count:]]
    graph.output(tuple(plain))


def _checks(program: ExportedProgram, names: list[str]) -> list[Guard]:
    guards: list[Guard] = []
    first: dict[Symbol, tuple[int, int, str]] = {}
    leaves, _ = tree_flatten(program.example_inputs)
    sources = _sources(program)
    places = [
        (at, name, dim, size)
        for at, (name, leaf) in enumerate(zip(names, leaves, strict=True))
        for dim, size in enumerate(leaf.shape if isinstance(leaf, Tensor) else ())
    ]
    for at, name, dim, _ in places:
        symbol = program.sizes.places.get((name, dim))
        if symbol and (name, dim) not in program.sizes.derived:
            first.setdefault(symbol, (at, dim, f"{sources[at]}.size()[{dim}]"))
    for at, leaf in enumerate(leaves):
        if not isinstance(leaf, Tensor) and leaf is not None:
            guards.append((partial(_is_same, at, leaf), f"{sources[at]} == {leaf!r}"))
    for at, name, dim, size in places:
        text, symbol = f"{sources[at]}.size()[{dim}]", program.sizes.places.get((name, dim))
        if symbol is None:
            guards.append((partial(_has_size, at, dim, size, size), f"{text} == {size}"))
            continue
        derived = program.sizes.derived.get((name, dim))
        root = first.get(symbol)
        if root is not None and root[:2] != (at, dim):
            times, more = (derived.times, derived.more) if derived else (1, 0)
            expression = linear(root[2], times, more).replace("*", " * ")
            holds = partial(_follows, at, dim, root[0], root[1], times, more)
            guards.append((holds, f"{text} == {expression}"))
            continue
        bounds = program.sizes.ranges[symbol]
        if bounds.lower is not None and bounds.lower > 2:
            least = partial(_has_size, at, dim, bounds.lower, None)
            guards.append((least, f"{text} >= {bounds.lower}"))
        if bounds.upper is not None:
            guards.append(
                (partial(_has_size, at, dim, 0, bounds.upper), f"{text} <= {bounds.upper}")
            )
    return guards


def _sources(program: ExportedProgram) -> list[str]:
    """How a program writes the leaves of its inputs: `x`, `d['a']`, `l[0]`, `box.field`."""
    args, kwargs = program.example_inputs
    arguments = zip(program.argument_names, (*args, *kwargs.values()), strict=True)
    leaves = [(n, path) for n, v in arguments for path, _ in tree_leaves_with_path(v)]
    return [name + "".join(map(_step, path)) for name, path in leaves]


def _step(key: MappingKey | SequenceKey | GetAttrKey) -> str:
    if isinstance(key, GetAttrKey):
        return f".{key.name}"
    return f"[{key.key!r}]" if isinstance(key, MappingKey) else f"[{key.idx}]"


def _is_same(at: int, value: object, inputs: Sequence[Any]) -> bool:
    return bool(inputs[at] == value)


def _has_size(at: int, dim: int, least: int, most: int | None, inputs: Sequence[Any]) -> bool:
    size = inputs[at].size()[dim]
    return bool(size >= least and (most is None or size <= most))


def _follows(
    at: int, dim: int, root: int, root_dim: int, times: int, more: int, inputs: Sequence[Any]
) -> bool:
    return bool(inputs[at].size()[dim] == times * inputs[root].size()[root_dim] + more)
