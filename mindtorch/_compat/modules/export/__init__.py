"""torch.export: a module's graph of ATen operators, with its state as inputs and a signature."""

from __future__ import annotations

import copy
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import mindtorch
from mindtorch._compat.refusals import refusals
from mindtorch._dispatch.new_sizes import SizeOfValues
from mindtorch._tensor.device import device as Device
from mindtorch._tensor.tensor import Tensor
from mindtorch.fx import Graph, GraphModule
from mindtorch.fx.aten import AtenRecorder, TracedInt, TracedNumber
from mindtorch.fx.call_sites import root_call
from mindtorch.fx.fake import FACTORIES, meta_like
from mindtorch.fx.interpreter import Interpreter
from mindtorch.fx.node import Node, Target
from mindtorch.fx.recorder import Arguments, Function, Keywords, TracedTensor
from mindtorch.library.symbols import ConstraintViolationError, GuardOnDataDependentSymNode
from mindtorch.nn import Module
from mindtorch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from mindtorch.ops.aten_overloads import Call
from mindtorch.ops.namespaces import namespace
from mindtorch.utils import _pytree as pytree
from mindtorch.utils._pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten

from .._decomp import CustomDecompTable as CustomDecompTable
from .._dynamo.exc import Unsupported, UserError
from ..compiler.capture import CURRENT
from .decompositions import default_decompositions as default_decompositions
from .draft import DraftExportReport
from .dynamic_shapes import AdditionalInputs, Dim, ShapesCollection, combined, dims
from .exported_program import CallSpec, ExportedProgram
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)  # fmt: skip
from .shapes_check import entries_of
from .size_search import FixedSize, SizeSearch
from .sizes import DynamicSizes, Symbol, places_of
from .symbolic_values import read_at_inputs, show_sizes
from .unbacked import OF_VALUES, OneMore, UnknownNumbers, refuse_number
from .unflatten import UnflattenedModule, unflatten

_NAMES = (
    "Constraint", "ExportBackwardSignature",
    "FlatArgsAdapter", "ModuleCallEntry", "ModuleCallSignature",
)  # fmt: skip
_WHY = "mindtorch exports whole graphs alone"

__path__ = __path__  # what is not here is in absent_modules.txt
__all__ = ["AdditionalInputs", "Dim", "ExportGraphSignature", "ExportedProgram", "ShapesCollection",
           "UnflattenedModule", "dims", "draft_export", "export", "load", "register_dataclass",
           "save", "unflatten",
           *_NAMES]  # fmt: skip
__getattr__ = refusals("torch.export", _WHY, _NAMES)


_TO_DRAFT = (
    "\n\nThe error above occurred when calling torch.export.export. If you would like to view some"
    " more information about this error, and get a list of all other errors that may occur in your"
    " export call, you can replace your `export()` call with `draft_export()`."
)


class _Recorder(AtenRecorder):
    """Refuses sizes that a program fixes though they may change."""

    named_operands = "cond", "map_impl"

    def __init__(self, sizes: DynamicSizes, read: Sequence[int]):
        sizes.read(read)
        super().__init__(1 + len(sizes.ranges))
        self.symbols = list(sizes.ranges)
        self.numbers = UnknownNumbers(self, sizes, read)
        self.calls: dict[str, str] = {}  # of modules that run, the outermost first, and classes
        self.root_class = ""

    def add_node(self, kind: str, target: Target, args: Arguments, kwargs: Keywords) -> Node:
        node = super().add_node(kind, target, args, kwargs)
        stack = {"L__self__": ("", self.root_class)}
        stack.update({f"L__self__{n}": (n, kind) for n, kind in self.calls.items()})
        node.meta["nn_module_stack"] = stack
        return node

    def size_error(self, version: int) -> Exception:
        symbol = self.symbols[version - 1]
        if symbol in self.numbers.sizes.dims:
            return FixedSize(symbol)
        return GuardOnDataDependentSymNode(
            f"Could not guard on data-dependent expression {symbol}: the program fixes it"
        )

    def function(self, func: Function, args: Arguments, kwargs: Keywords) -> object:
        name, tensor = func.__name__, args[0] if args else None
        if name in ("__int__", "__index__"):
            refuse_number("u0")
        if name == "numpy":
            raise RuntimeError(".numpy() is not supported for tensor subclasses.")
        if isinstance(tensor, TracedTensor):
            if name == "item":
                return self.numbers.read(tensor)
            if name == "tolist":
                return self.numbers.read_list(tensor)
            if name == "__getitem__" and getattr(args[1], "dtype", None) is mindtorch.bool:
                call: Call = namespace("aten").index.Tensor, (tensor, [args[1]]), {}
                return self.numbers.read_size(call, tensor._geom.device)
        result = super().function(func, args, kwargs)
        if name in FACTORIES:
            self.numbers.not_negative(args[:1] if name == "full" else (args, kwargs))
        return result

    def sizes(self, tensor: TracedTensor) -> Any:
        shape = super().sizes(tensor)
        if not self.numbers.items or type(shape) is tuple:
            return shape
        return tuple.__new__(type(shape), map(self.numbers.size, shape))

    def call(self, op: Any, form: str, func: Function, args: Arguments, kwargs: Keywords,
             spelling: Any = None) -> Any:  # fmt: skip
        try:
            return super().call(op, form, func, args, kwargs, spelling)
        except SizeOfValues:
            return self.numbers.read_new_sizes(func, args, kwargs)

    def operator(self, call: Call, run: Function, args: Arguments, kwargs: Keywords) -> object:
        if call[0].overloadpacket.__name__ in OF_VALUES:
            return self.numbers.read_size(call, args[0]._geom.device)
        return super().operator(call, run, args, kwargs)


class _Exporter:
    """Traces one module; what it makes is in `specs` and `recorder`."""

    def __init__(
        self, mod: Module, names: list[str], leaves: list[Any], sizes: DynamicSizes,
        read: Sequence[int],
    ):  # fmt: skip
        self.mod, self.sizes, self.specs = mod, sizes, list[InputSpec]()
        self.recorder = _Recorder(sizes, read)
        self.traced: dict[int, TracedTensor] = {}
        self.constants: dict[str, Tensor] = {}
        persistent = mod.state_dict(keep_vars=True)
        for name, parameter in mod.named_parameters():
            self._add(f"p_{name}", parameter, InputKind.PARAMETER, name, None)
        for name, buffer in mod.named_buffers():
            self._add(f"b_{name}", buffer, InputKind.BUFFER, name, name in persistent)
            if name not in persistent:
                self.constants[name] = buffer
        inputs = [self._input(n, v) for n, v in zip(names, leaves, strict=True)]
        self.inputs = [self.traced.get(id(v), i) for i, v in zip(inputs, leaves, strict=True)]
        for path, module in mod.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, Tensor):
                    self.recorder.constant_names[id(value)] = f"{path}.{name}".lstrip(".")

    def _add(
        self, name: str, tensor: Tensor, kind: InputKind, target: str | None,
        persistent: bool | None,
    ) -> TracedTensor:  # fmt: skip
        node = self.recorder.graph.placeholder(name.replace(".", "_"))
        node.name = str(node.target)  # a builtin's name too
        shapes = self.sizes.versions(node.name, tensor)
        metas = tuple(meta_like(tensor, shape) for shape in shapes)
        if id(tensor) in self.traced:
            metas = self.traced[id(tensor)]._metas
        traced = self.recorder.traced(metas, node, tensor._geom.device)
        self.recorder.numbers.reals[node] = tensor
        self.traced[id(tensor)] = traced  # the last where one tensor is given twice
        self.specs.append(InputSpec(kind, TensorArgument(node.name), target, persistent))
        return traced

    def _input(self, name: str, value: object) -> object:
        before = self.recorder.first_input
        if isinstance(value, Tensor):
            value = self._add(name, value, InputKind.USER_INPUT, None, None)
            self.recorder.first_input = before or value._node
            return value
        node = self.recorder.graph.placeholder(name)
        node.meta["val"] = value
        self.recorder.first_input = before or node
        argument = ConstantArgument(node.name, value)
        self.specs.append(InputSpec(InputKind.USER_INPUT, argument, None))
        return value

    @contextmanager
    def _state(self) -> Iterator[None]:
        """Inside, the module's state is traced tensors."""
        tables = [t for m in self.mod.modules() for t in (m._parameters, m._buffers)]
        before = [dict(table) for table in tables]
        try:
            for table in tables:
                for name, tensor in table.items():
                    if tensor is not None:
                        table[name] = self.traced[id(tensor)]
            yield
        finally:
            for table, plain in zip(tables, before, strict=True):
                table.update(plain)

    @contextmanager
    def _calls(self) -> Iterator[None]:
        """Inside, the recorder knows which modules run."""
        paths = {id(m): path for path, m in self.mod.named_modules() if path}
        counts: Counter[tuple[str, ...]] = Counter()
        calls = self.recorder.calls
        self.recorder.root_class = _class_path(self.mod)

        def enter(module: Module, args: object) -> None:
            if path := paths.get(id(module)):
                within = (*calls, path)
                count = counts[within]
                counts[within] += 1
                name = f"{path}@{count}" if count else path
                calls[name] = _class_path(module)

        def leave(module: Module, args: object, result: object) -> None:
            if id(module) in paths:
                calls.popitem()

        hooks = register_module_forward_pre_hook(enter), register_module_forward_hook(leave)
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def run(self, in_spec: TreeSpec) -> object:
        """The module's result on traced inputs."""
        args, kwargs = tree_unflatten(self.inputs, in_spec)
        CURRENT.compiling, CURRENT.exporting = CURRENT.compiling + 1, True
        try:
            with self._state(), self._calls(), self.recorder.inside():
                return root_call(self.mod, args, kwargs)
        finally:
            CURRENT.compiling, CURRENT.exporting = CURRENT.compiling - 1, False

    def finish(self, leaves: list[Any]) -> list[OutputSpec]:
        """End the graph; constants that it met are inputs before the user's."""
        outputs = [self._output(leaf) for leaf in leaves]
        self.recorder.numbers.finish()
        self.recorder.graph.output(tuple(outputs))
        for name, tensor in self.recorder.constants.items():
            node = TensorArgument(f"c_{name.replace('.', '_')}")
            at = sum(s.kind is not InputKind.USER_INPUT for s in self.specs)
            self.specs.insert(at, InputSpec(InputKind.CONSTANT_TENSOR, node, name))
            self.constants[name] = tensor
        return [_output_spec(o, leaf) for o, leaf in zip(outputs, leaves, strict=True)]

    def check_sizes(self, leaves: list[Any]) -> None:
        """UserError where a size that may change is a number in the graph."""
        if self.recorder.numbers.items:
            return
        placeholders = [n for n in self.recorder.graph.nodes if n.op == "placeholder"]
        if not all("metas" in n.meta for n in placeholders):
            return
        module = _OnMeta(GraphModule(self.recorder.root, self.recorder.graph))
        for version, symbol in enumerate(self.sizes.dims, 1):
            results = module.run(*(n.meta["metas"][version] for n in placeholders))
            for leaf, result in zip(leaves, results, strict=True):
                traced = isinstance(leaf, TracedTensor)
                if traced and leaf._metas[version].shape != result.shape:
                    raise self.recorder.size_error(version)
            size = self.sizes.other_value(symbol) + 1  # which has other divisors
            metas = ((n.name, n.meta["metas"][0]) for n in placeholders)
            shapes = [(m, self.sizes.shape(name, m.shape, symbol, size)) for name, m in metas]
            try:
                module.run(*(meta_like(meta, shape) for meta, shape in shapes))
            except RuntimeError as error:
                raise self.recorder.size_error(version) from error

    def _output(self, leaf: object) -> object:
        if isinstance(leaf, Tensor):
            return self.recorder.node_of(leaf)
        return leaf.make() if isinstance(leaf, TracedNumber) else leaf


_Trace = tuple[_Exporter, list[Any], TreeSpec, list[OutputSpec]]


class _OnMeta(Interpreter):
    """Runs a graph of any device on the meta device."""

    def call_function(self, target: Target, args: Arguments, kwargs: Keywords) -> object:
        def moved(value: object) -> object:
            return Device("meta") if isinstance(value, Device) else value

        return super().call_function(target, *tree_map(moved, (args, kwargs)))


def _output_spec(output: object, leaf: object) -> OutputSpec:
    if not isinstance(output, Node):
        return OutputSpec(OutputKind.USER_OUTPUT, ConstantArgument("", output), None)
    kind = SymIntArgument if isinstance(leaf, TracedInt) else TensorArgument
    return OutputSpec(OutputKind.USER_OUTPUT, kind(output.name), None)


def _class_path(module: Module) -> str:
    return f"{type(module).__module__}.{type(module).__qualname__}"


def _named_leaves(name: str, value: object) -> list[str]:
    """The names of an argument's leaves: `x`, or `x_0`, `x_key`, `x_field` in containers."""
    return ["_".join([name, *map(_step, path)]) for path, _ in pytree.tree_leaves_with_path(value)]


def _step(key: pytree.MappingKey | pytree.SequenceKey | pytree.GetAttrKey) -> str:
    if isinstance(key, pytree.MappingKey):
        return re.sub(r"[^a-zA-Z0-9]", "_", str(key.key)).lower()
    return key.name.lower() if isinstance(key, pytree.GetAttrKey) else str(key.idx)


def _argument_names(mod: Module, args: tuple[Any, ...]) -> list[str]:
    import inspect

    names: list[str] = []
    for parameter in inspect.signature(mod.forward).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{i}" for i in range(len(args) - len(names))]
        else:
            names.append(parameter.name)
    return names[: len(args)]


def export(
    mod: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None, *,
    dynamic_shapes: Any = None, strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:  # fmt: skip
    """The program of a module (torch.export.export).

    GuardOnDataDependentSymNode, a RuntimeError, where it asks a tensor for its values; with
    `strict`, torch._dynamo.exc.Unsupported; torch._dynamo.exc.UserError for `dynamic_shapes` that
    do not fit the arguments or the program.
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    try:
        return _exported(mod, args, dict(kwargs or {}), dynamic_shapes, strict)
    except (GuardOnDataDependentSymNode, UserError, ConstraintViolationError) as error:
        error.args = (f"{error}{_TO_DRAFT}",)
        raise


def draft_export(
    mod: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None, *,
    dynamic_shapes: Any = None, preserve_module_call_signature: tuple[str, ...] = (),
    strict: bool = False, prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:  # fmt: skip
    """The same as `export`, with a report: what that refuses is refused here too."""
    program = export(mod, args, kwargs, dynamic_shapes=dynamic_shapes, strict=strict)
    program._report = DraftExportReport([])
    return program


def _exported(
    mod: Module, args: tuple[Any, ...], words: dict[str, Any], shapes: Any, strict: bool
) -> ExportedProgram:
    if not isinstance(args, tuple):
        raise UserError(
            f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}"
        )
    if isinstance(shapes, ShapesCollection | AdditionalInputs):
        shapes = shapes.dynamic_shapes(mod, args, words)
    leaves, in_spec = tree_flatten((args, words))
    combined(mod, args, words)
    names = _argument_names(mod, args)
    arguments = dict([*zip(names, args, strict=True), *words.items()])
    leaf_names = [n for name, value in arguments.items() for n in _named_leaves(name, value)]
    tensors = {n: v for n, v in zip(leaf_names, leaves, strict=True) if isinstance(v, Tensor)}
    entries = dict(zip(leaf_names, entries_of(arguments, shapes), strict=True))
    search = SizeSearch(places_of(entries, tensors))

    def trace(sizes: DynamicSizes) -> _Trace:
        read: list[int] = []
        while True:
            try:
                result = traced(sizes, read)
            except OneMore as number:
                read.append(number.value)
            else:
                break
        if read and str(result[0].recorder.graph) != str(other_graph(sizes, read)):
            refuse_number("u0")  # what Python made of a number is in the graph
        return result

    def other_graph(sizes: DynamicSizes, read: Sequence[int]) -> Graph:
        others = copy.deepcopy(sizes)
        others.read(read)
        values = [others.other_value(Symbol(f"u{at}")) for at in range(len(read))]
        return traced(others, values)[0].recorder.graph

    def traced(sizes: DynamicSizes, read: Sequence[int]) -> _Trace:
        exporter = _Exporter(mod, leaf_names, leaves, sizes, read)
        try:
            result, out_spec = tree_flatten(exporter.run(in_spec))
        except GuardOnDataDependentSymNode as error:
            if strict:
                raise Unsupported(f"Data-dependent branching\n  Explanation: {error}") from error
            raise
        outputs = exporter.finish(result)
        exporter.check_sizes(result)
        read_at_inputs(exporter.recorder.graph)
        show_sizes(exporter.recorder.graph, sizes)
        return exporter, result, out_spec, outputs

    sizes, (exporter, _, out_spec, outputs) = search.run(trace)
    return ExportedProgram(
        GraphModule(exporter.recorder.root, exporter.recorder.graph),
        ExportGraphSignature(exporter.specs, outputs), _parameters_first(mod),
        exporter.constants, sizes, CallSpec(in_spec, out_spec), (args, words), [*names, *words],
        [path for path, _ in mod.named_modules() if path],
    )  # fmt: skip


def _parameters_first(mod: Module) -> dict[str, Any]:
    """The module's state, buffers behind parameters."""
    state = mod.state_dict(keep_vars=True)
    names = [n for n, _ in (*mod.named_parameters(), *mod.named_buffers()) if n in state]
    return {name: state[name] for name in dict.fromkeys([*names, *state])}


def register_dataclass(cls: type[Any], *, serialized_type_name: str | None = None) -> None:
    """Let instances of a dataclass be inputs and results of what is exported."""
    pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)


def save(
    ep: ExportedProgram, f: Any, *, extra_files: Mapping[str, Any] | None = None,
    **options: object,
) -> None:  # fmt: skip
    """Write an exported program and texts by name to a file: to be read by `load` alone.

    TypeError for other than a program.
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            "The 'ep' parameter must be an instance of 'ExportedProgram', got"
            f" '{type(ep).__name__}' instead."
        )
    mindtorch.save({"program": ep, "files": dict(extra_files or {})}, f)


def load(
    f: Any, *, extra_files: dict[str, Any] | None = None, **options: object
) -> ExportedProgram:  # fmt: skip
    """Read what `save` wrote; as any pickle it may run code, so from sources that are trusted.

    `extra_files` gets the texts of its names.
    """
    start = f.tell() if hasattr(f, "tell") else 0
    with zipfile.ZipFile(f):  # BadZipFile
        pass
    if hasattr(f, "seek"):
        f.seek(start)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*LeafSpec.*", FutureWarning)  # of structures
        archive = mindtorch.load(f, weights_only=False)
    if extra_files is not None:
        extra_files.update({k: v for k, v in archive["files"].items() if k in extra_files})
    program: ExportedProgram = archive["program"]
    return program
