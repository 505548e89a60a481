"""Owns what a trace records: a mode that sees each call, and the graph that grows by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import mindtorch
from mindtorch._compat.torchscript.attributes import dtype_number
from mindtorch._compat.torchscript.classes import kind_of_value
from mindtorch._compat.torchscript.compiler import compiled
from mindtorch._compat.torchscript.graph import NotLowered, ScriptValue
from mindtorch._compat.torchscript.kinds import (
    DEVICE,
    FLOAT,
    INT,
    STR,
    TENSOR,
    ScriptType,
    list_of,
    without_none,
)
from mindtorch._compat.torchscript.schemas import (
    MISSING,
    ScriptArgument,
    ScriptDeclaration,
    operators,
)
from mindtorch._compat.torchscript.traced_graph import (
    ModuleCall,
    Path,
    TracedGraph,
    TracedType,
    declaration_of,
    finished,
    untraced,
)
from mindtorch._compat.torchscript.unit import ClassType, LoweredFunction, module_path
from mindtorch._tensor.device import device as Device
from mindtorch._tensor.dtype import dtype as Dtype
from mindtorch._tensor.tensor import Tensor
from mindtorch.fx.fake import outside
from mindtorch.nn.modules.module import Module
from mindtorch.ops.aten_overloads import Call

from . import state
from .frames import caller, name_in, names_in
from .recurrent import RecurrentStep
from .sizes import SizeNumber, plain_numbers

_TYPES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16",
    "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte",
    "bool": "Bool", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip


def traced_type(tensor: Tensor) -> TracedType:
    """The type of a tensor with what a trace saw of it."""
    name = _TYPES.get(str(tensor.dtype).rpartition(".")[2], "Tensor")
    parts = [str(s) for s in tuple(tensor.shape)]
    if tensor.dim() and str(tensor.layout) == "torch.strided":
        parts.append(f"strides=[{', '.join(map(str, tensor.stride()))}]")
    parts += [f"requires_grad={int(tensor.requires_grad)}", f"device={tensor.device}"]
    return TracedType(f"{name}({', '.join(parts)})")


class TraceRecorder:
    """The graph of one trace, and which of its values each tensor is."""

    def __init__(self, module: Module | None):
        self.module, self.root = module, None
        self.paths: dict[int, Path] = {}
        self.alive: list[object] = []  # so that no other object has the same address
        self.values: dict[int, ScriptValue] = {}
        self.wrapped: dict[tuple[type, float], Tensor] = {}
        self.problem: Exception | None = None
        self.returned: ScriptValue | None = None
        if module is not None:
            self.root = ModuleCall((), None, class_name(module))
            for name, inner in module.named_modules(remove_duplicate=False):
                for table in (inner._parameters, inner._buffers, inner.__dict__):
                    for key, value in table.items():
                        if isinstance(value, Tensor):
                            path = (*(name.split(".") if name else ()), key)
                            self.paths.setdefault(id(value), path)
        self.trace = TracedGraph(self.root)
        for name, inner in () if module is None else module.named_modules(remove_duplicate=False):
            self.trace.class_names[tuple(name.split(".")) if name else ()] = class_name(inner)
        self.arguments: list[tuple[str, ScriptValue]] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Inside, calls of the modules in the traced one are calls in the graph."""
        every = () if self.module is None else self.module.named_modules()
        inner = [(tuple(n.split(".")) if n else (), m) for n, m in every]
        for path, each in inner:
            each.__dict__["forward"] = self._entered(path, each, each.forward)
        try:
            yield
        finally:
            for _, each in inner:
                del each.__dict__["forward"]

    def _entered(self, path: Path, module: Module, forward: Any) -> Callable[..., Any]:
        def enter(*args: object, **kwargs: object) -> object:
            trace, before = self.trace, self.trace.current
            if path:
                trace.current = ModuleCall(path, before, class_name(module))
                trace.calls = True
            try:
                return self._layer(module, forward, args, kwargs)
            finally:
                trace.current = before

        return enter

    def _layer(self, module: Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> object:
        """A module's result; recurrent layers are one step."""
        step = RecurrentStep.of(module, args, kwargs)
        mode = state.CURRENT.mode
        if step is None or mode is None:
            return forward(*args, **kwargs)
        result = mode.whole(forward, args, kwargs)
        step.warn()
        mode.tell(lambda recorder: step.record(recorder, result, caller()))
        return result

    def finish(self, name: str, classes: dict[Path, ClassType]) -> LoweredFunction:
        """The function of the graph; NotLowered where a step could not be noted."""
        if self.problem is None and self.returned is not None:
            try:
                name = name.replace("<lambda>", "_lambda")
                return finished(self.trace, name, self.arguments, self.returned, classes)
            except Exception as error:
                self.problem = error
        text = f"a step of the trace has no operator: {self.problem}"
        raise NotLowered(text) from self.problem

    # Values.

    def note(self, tensor: object, value: ScriptValue) -> None:
        """A tensor, or a number, is a value from now on."""
        self.alive.append(tensor)
        self.values[id(tensor)] = value

    def input(self, name: str, value: object) -> None:
        """An argument of the traced function: a tensor, or a tuple or a list of some."""
        entry = self.trace.graph.block.entry
        self.arguments.append((name, self._input(entry.add_output(self.kind_of(value)), value)))
        self.arguments[-1][1].named(name)

    def started(self) -> None:
        """Number what follows as torch does, after the inputs and all members of the module."""
        for module in self.module.modules() if self.module is not None else ():
            tables = (module._parameters, module._buffers, module._modules)
            members = [v for table in tables for v in table.values() if v is not None]
            self.trace.graph.count += len(members) + 2  # `training` and a flag of hooks

    def _input(self, known: ScriptValue, value: Any) -> ScriptValue:
        if isinstance(value, Tensor):
            self.note(value, known)
        elif isinstance(value, tuple | list):
            tupled = isinstance(value, tuple)
            kind = "prim::TupleUnpack" if tupled else "prim::ListUnpack"
            node = self.trace.node(kind, [known], [self.kind_of(v) for v in value], False)
            for output, inner in zip(node.outputs, value, strict=True):
                self._input(output, inner)
        elif isinstance(value, dict):
            for key, inner in value.items():
                label = self.trace.constant(key)
                schema = operators("aten::__getitem__")[-1]
                step = self.trace.node(
                    "aten::__getitem__", [known, label], [self.kind_of(inner)], schema=schema
                )
                self._input(step.output, inner)
        else:
            raise NotImplementedError(f"an input of type {type(value).__name__}")
        return known

    def kind_of(self, value: Any) -> ScriptType:
        """The type of an argument or a result."""
        if isinstance(value, Tensor):
            return traced_type(value)
        if isinstance(value, list):
            return list_of(untraced(self.kind_of(value[0])) if value else TENSOR)
        if isinstance(value, tuple):
            return ScriptType("Tuple", [self.kind_of(v) for v in value])
        if isinstance(value, dict):
            key, inner = next(iter(value.items()), ("", None))
            return ScriptType("Dict", [kind_of_value(key) or STR, untraced(self.kind_of(inner))])
        if isinstance(value, SizeNumber):
            name = "Double" if isinstance(value, float) else "Long"
            return TracedType(f"{name}(requires_grad=0, device=cpu)")
        return TENSOR

    def value_of(self, tensor: Tensor | SizeNumber, name: str = "") -> ScriptValue:
        """The value of a tensor; one that no call made is an attribute or a constant."""
        known = self.values.get(id(tensor))
        if known is not None:
            if name and not known.name:
                known.named(name)
            return known
        if isinstance(tensor, SizeNumber):
            with outside():
                tensor = mindtorch.tensor(plain_numbers(tensor))
        path = self.paths.get(id(tensor))
        if path is not None:
            return self.trace.attribute(path)
        if tensor.requires_grad and not tensor.is_leaf:
            raise NotImplementedError("a tensor with a history from outside of the trace")
        constant = self.trace.constant(tensor.detach(), traced_type(tensor))
        return constant

    def result(self, value: Any) -> ScriptValue:
        """The value of what the traced function gives."""
        if isinstance(value, Tensor | SizeNumber):
            return self.value_of(value)
        if isinstance(value, dict):
            pairs = [v for k, inner in value.items() for v in (self.trace.constant(k),
                     self.result(inner))]  # fmt: skip
            kind = ScriptType("Dict", [STR, TENSOR])
            return self.trace.node("prim::DictConstruct", pairs, [kind], False).output
        members = [self.result(v) for v in value]
        if isinstance(value, list):
            return self.trace.listed(members, TENSOR)
        kind = ScriptType("Tuple", [m.kind for m in members])
        return self.trace.node("prim::TupleConstruct", members, [kind], False).output

    # Calls.

    def call(self, call: Call, result: Any, frame: FrameType, names: Mapping[int, str]) -> None:
        """One operator that ran."""
        target, args, kwargs = call
        operator = target.overloadpacket.__name__
        schema = declaration_of(operator, target._overloadname)
        if schema is None:
            raise NotImplementedError(f"aten::{operator} has no declaration")
        places = [a for a in schema.arguments if not a.keyword]
        values = {a.name: v for a, v in zip(places, args, strict=False)} | dict(kwargs)
        self.operator(f"aten::{operator}", schema, values, result, frame, names)

    def operator(
        self, kind: str, schema: ScriptDeclaration, values: Mapping[str, Any], result: Any,
        frame: FrameType, names: Mapping[int, str],
    ) -> None:  # fmt: skip
        """A step with its arguments by their names."""
        self.trace.place = (frame.f_code.co_filename, frame.f_lineno, 0)
        inputs = []
        for argument in schema.arguments:
            default = None if argument.default is MISSING else argument.default
            inputs.append(self._argument(argument, values.get(argument.name, default), names))
        results = result if isinstance(result, tuple) else (result,)
        listed = isinstance(result, list) or (
            isinstance(result, tuple) and len(schema.returns) == 1
        )
        kinds = [list_of(TENSOR)] if listed else [self.kind_of(r) for r in results]
        node = self.trace.node(kind, inputs, kinds, schema=schema)
        outputs = node.outputs
        if listed:
            outputs = self.trace.node(
                "prim::ListUnpack", [node.output], [self.kind_of(r) for r in result], False
            ).outputs
            results = tuple(result)
        for tensor, output in zip(results, outputs, strict=True):
            if isinstance(tensor, Tensor | SizeNumber):
                self.note(tensor, output)

    def _argument(
        self, argument: ScriptArgument, value: Any, names: Mapping[int, str]
    ) -> ScriptValue:  # fmt: skip
        kind = without_none(argument.kind)
        if value is None:
            return self.trace.constant(None)
        if isinstance(value, Tensor):
            return self.value_of(value, names.get(id(value), ""))
        if kind.kind == "Tensor":
            if id(value) in self.values:
                return self.value_of(value, names.get(id(value), ""))
            return self._wrapped(plain_numbers(value))
        if kind.kind == "List":
            many = value if isinstance(value, list | tuple) else [value] * (argument.length or 1)
            inner = ScriptArgument("", kind.args[0])
            members = [self._argument(inner, v, names) for v in many]
            return self.trace.listed(members, kind.args[0])
        if isinstance(value, SizeNumber) and id(value) in self.values:
            step = "ScalarImplicit" if kind.kind == "Scalar" else "Int"
            return self.trace.number(self.value_of(value, names.get(id(value), "")), step)
        return self._constant(kind, plain_numbers(value))

    def _constant(self, kind: ScriptType, value: Any) -> ScriptValue:
        if isinstance(value, Dtype):
            return self.trace.constant(dtype_number(value), INT)
        if isinstance(value, str) and kind == DEVICE:
            value = Device(value)
        if kind == INT and not isinstance(value, int):
            text = str(value)
            numbers = {"torch.contiguous_format": 0, "torch.preserve_format": 1,
                       "torch.channels_last": 2, "torch.channels_last_3d": 3}  # fmt: skip
            value = numbers.get(text, 0)
        if kind == FLOAT and isinstance(value, int):
            value = float(value)
        return self.trace.constant(value)

    def _wrapped(self, value: Any) -> ScriptValue:
        """A number where an operator takes a tensor."""
        key = type(value), value
        if key not in self.wrapped:
            dtype = mindtorch.float64 if isinstance(value, float) else None
            with outside():
                self.wrapped[key] = mindtorch.tensor(value, dtype=dtype)
        tensor = self.wrapped[key]
        return self.trace.constant(tensor, traced_type(tensor))

    def size(
        self, tensor: Tensor, dim: int | None, frame: FrameType, name: str = ""
    ) -> SizeNumber:  # fmt: skip
        """One size, or how many numbers there are, as a number that a value stands for."""
        self.trace.place = (frame.f_code.co_filename, frame.f_lineno, 0)
        inputs = [self.value_of(tensor, name or name_in(frame, tensor))]
        kind, overload = ("aten::numel", "") if dim is None else ("aten::size", "int")
        inputs += [] if dim is None else [self.trace.constant(dim)]
        schema = next(s for s in operators(kind) if s.overload == overload)
        step = self.trace.node(kind, inputs, [INT], schema=schema).output
        number: SizeNumber = SizeNumber.of(size_of(tensor, dim))
        self.note(number, self._tensor_of(step))
        return number

    def _tensor_of(self, number: ScriptValue) -> ScriptValue:
        kind = TracedType("Long(device=cpu)")
        schema = operators("prim::NumToTensor")[0]
        return self.trace.node("prim::NumToTensor", [number], [kind], False, schema=schema).output

    def arithmetic(self, name: str, sides: tuple[Any, Any], result: SizeNumber) -> None:
        """A number that is computed of sizes."""
        frame = caller()
        operator = {"add": "add", "sub": "sub", "mul": "mul", "floordiv": "floor_divide",
                    "truediv": "div", "mod": "remainder"}[name]  # fmt: skip
        schema = declaration_of(operator, "default" if operator == "floor_divide" else "Tensor")
        if schema is None:
            raise NotImplementedError(operator)
        values = dict(zip([a.name for a in schema.arguments], sides, strict=False))
        names = {} if name == "floordiv" else names_in(frame)
        self.operator(f"aten::{operator}", schema, values, result, frame, names)

    def script(self, function: Any, args: Sequence[Any], result: Any) -> None:
        """A call of a scripted function."""
        frame = caller()
        names = names_in(frame)
        lowered = compiled(function)
        self.trace.place = (frame.f_code.co_filename, frame.f_lineno, 0)
        target = self.trace.graph.function(lowered.name, lowered)
        target.node.attributes["call"] = self.trace.current
        inputs = [
            self._argument(a, plain_numbers(v), names)
            for a, v in zip(lowered.schema.arguments, args, strict=False)
        ]
        node = self.trace.node("prim::CallFunction", [target, *inputs], lowered.schema.returns)
        if isinstance(result, Tensor):
            self.note(result, node.output)


def size_of(tensor: Tensor, dim: int | None) -> int:
    """A size of a tensor, or how many numbers there are."""
    return int(Tensor.numel(tensor) if dim is None else Tensor.size(tensor, dim))


def class_name(module: Module) -> str:
    """The name of a module's class in the language."""
    original: type = getattr(type(module), "original_class", type(module))
    return f"{module_path(original.__module__)}.{original.__qualname__.rpartition('.')[2]}"
