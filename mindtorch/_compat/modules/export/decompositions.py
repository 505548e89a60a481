"""Owns programs in core operators (ExportedProgram.run_decompositions)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from mindtorch._tensor.tensor import Tensor
from mindtorch.fx import GraphModule
from mindtorch.fx.aten import traced_int
from mindtorch.fx.decompositions import CoreRecorder, Table
from mindtorch.fx.node import Node, map_arg
from mindtorch.ops.namespaces import OpOverload, namespace
from mindtorch.utils._pytree import tree_map

from .._decomp import CustomDecompTable
from .exported_program import DECOMPOSE, ExportedProgram
from .graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)  # fmt: skip
from .symbolic_values import show_sizes
from .unbacked import traced_float

_ATEN = namespace("aten")


def default_decompositions() -> CustomDecompTable:
    """What `run_decompositions` follows where it is given no table."""
    return CustomDecompTable()


_KNOWN = {"compared", "ints", "of_values"}  # in a node's meta, of numbers


class _Decomposer(CoreRecorder):
    """Runs a program's nodes again; writes become results."""

    named_operands = "cond", "map_impl"

    def __init__(self, program: ExportedProgram, table: Table):
        self.table = table
        super().__init__(1 + len(program.sizes.ranges))
        self.program = program
        self.values: dict[Node, Any] = {}
        self.changed: dict[str, Any] = {}

    def change(self, tensor: Tensor, value: Tensor) -> None:
        """A tensor of the state has another value from now on."""
        for node, known in list(self.values.items()):
            if known is tensor:
                self.values[node] = value
                if node.op == "placeholder":
                    self.changed[node.name] = value

    def place(self, node: Node) -> None:
        """A placeholder again."""
        again = self.graph.placeholder(node.name)
        if "metas" in node.meta:
            metas = node.meta["metas"]
            device = node.meta["val"].device
            self.values[node] = self.traced(metas, again, device)
        else:
            self.values[node] = again

    def step(self, node: Node) -> None:
        """A call again, in core operators."""
        args, kwargs = map_arg((node.args, dict(node.kwargs)), lambda n: self.values[n])
        target: Any = node.target
        if node.op == "get_attr":
            self.values[node] = self.program.graph_module.get_submodule(target)
            return
        if "compared" in node.meta or node.meta.get("of_values"):
            self.values[node] = self.copied(node, args, kwargs)
            return
        if target is _ATEN._assert_tensor_metadata.default:
            named = {n: v for n, v in kwargs.items() if n != "dtype"}
            noted = (self.argument(args[0]), None, None, kwargs.get("dtype", *args[3:]))
            self.values[node] = self.add_node("call_function", target, noted, named)
            return
        if not isinstance(target, OpOverload):
            with self.inside():
                self.values[node] = target(*args, **kwargs)
            return
        name = target.overloadpacket.__name__
        with self.inside():
            if name == "sym_size":
                self.values[node] = args[0].shape[args[1]]
            elif name[-1] == "_" and name not in self.always and target not in self.table:
                plain = getattr(getattr(_ATEN, name[:-1]), target._overloadname)
                self.values[node] = value = plain(*args, **kwargs)
                self.change(args[0], value)
            else:
                self.values[node] = self.operator((target, args, kwargs), target, args, kwargs)

    def copied(self, node: Node, args: Any, kwargs: Any) -> object:
        """What values decide, as it is in the program."""
        target: Any = node.target
        again = self.add_node(
            "call_function",
            _ATEN._local_scalar_dense.default if target is _ATEN.item.default else target,
            *tree_map(self.argument, (tuple(args), kwargs)),
        )
        again.meta.update(
            {k: v for k, v in node.meta.items() if k in ("compared", "ints", "of_values")}
        )
        if "ints" in node.meta:
            return traced_int(node.meta["ints"], lambda: again)
        if "number" in node.meta:
            return traced_float(again, node.meta["number"])
        if "metas" in node.meta:
            return self.traced(node.meta["metas"], again, args[0]._geom.device)
        return again


def decompose(program: ExportedProgram, table: Table | None) -> ExportedProgram:
    """The program with operators of a table, the default one if None, made of others.

    What it writes to its state are results before the others.
    """
    recorder = _Decomposer(program, default_decompositions() if table is None else table)
    results: Sequence[Any] = ()
    for node in program.graph.nodes:
        if node.op == "placeholder":
            recorder.place(node)
        elif node.op == "output":
            results = [map_arg(a, lambda n: recorder.values[n]) for a in node.args[0]]
        else:
            recorder.step(node)
    specs = program.graph_signature.input_specs
    changes = [s for s in specs if s.arg.name in recorder.changed]
    nodes = [recorder.node_of(recorder.changed[s.arg.name]) for s in changes]
    plain = [
        recorder.node_of(r) if isinstance(r, Tensor) else recorder.argument(r) for r in results
    ]
    recorder.graph.output((*nodes, *plain))
    recorder.graph.eliminate_dead_code()
    show_sizes(recorder.graph, program.sizes)
    outputs = [_change(s, n) for s, n in zip(changes, nodes, strict=True)]
    for spec, value in zip(program.graph_signature.output_specs, plain, strict=True):
        argument = TensorArgument(value.name) if isinstance(value, Node) else spec.arg
        outputs.append(OutputSpec(spec.kind, argument, spec.target))
    return ExportedProgram(
        GraphModule(recorder.root, recorder.graph), ExportGraphSignature(list(specs), outputs),
        program.state_dict, program.constants, program.sizes, copy.deepcopy(program.call_spec),
        program.example_inputs, program.argument_names, program.module_paths,
    )  # fmt: skip


def _change(spec: InputSpec, node: Node) -> OutputSpec:
    kinds = {InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
             InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION}  # fmt: skip
    kind = kinds.get(spec.kind, OutputKind.USER_INPUT_MUTATION)
    return OutputSpec(kind, TensorArgument(node.name), spec.target or spec.arg.name)


DECOMPOSE.append(decompose)
