"""Owns what a trace records: a mode that sees each call, and the graph that grows by them."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import mindtorch
from mindtorch._compat.torchscript.attributes import dtype_number
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
    function_schemas,
    operators,
)
from mindtorch._compat.torchscript.traced_graph import (
    ModuleCall,
    Path,
    TracedGraph,
    TracedType,
    declaration_of,
    finished,
)
from mindtorch._compat.torchscript.unit import ClassType, LoweredFunction, module_path
from mindtorch._dispatch.builtins import LAYERS
from mindtorch._dispatch.overrides import TorchFunctionMode, _is_python, alone
from mindtorch._tensor.device import device as Device
from mindtorch._tensor.dtype import dtype as Dtype
from mindtorch._tensor.subclass import OURS
from mindtorch._tensor.tensor import Tensor
from mindtorch.fx.aten import _NAMES, _WHOLE, _memory_options
from mindtorch.fx.casts import CASTS
from mindtorch.fx.fake import outside
from mindtorch.nn.modules.module import Module
from mindtorch.ops.aten_overloads import Call, call_of_function, call_of_row
from mindtorch.ops.spec import Op, aten
from mindtorch.utils._pytree import tree_map

from . import state
from .recurrent import RecurrentStep
from .sizes import SizeNumber, TracerWarning, plain_numbers

_TYPES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16",
    "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte",
    "bool": "Bool", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip
_CONVOLUTIONS = {
    f"conv{'_transpose' * t}{n}d": (n, bool(t)) for n in (1, 2, 3) for t in (False, True)
}  # fmt: skip
_CONSTANTS = (
    "torch.{} results are registered as constants in the trace. You can safely ignore this warning"
    " if you use this function to create tensors out of constant variables that would be the same"
    " every time you call this function. In any other case, this might cause the trace to be"
    " incorrect."
)
# What layers ask torch's settings, by operator.
_BY_CUDNN = {
    "batch_norm": "cudnn_enabled", "group_norm": "cudnn_enabled",
    "instance_norm": "cudnn_enabled", "layer_norm": "cudnn_enable",
}  # fmt: skip
_OF_LAYERS = f"{OURS[0]}nn{OURS[0][-1]}modules"


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
        self.arguments: list[tuple[str, ScriptValue]] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Inside, calls of the modules in the traced one are calls in the graph."""
        every = () if self.module is None else self.module.named_modules()
        inner = [(tuple(n.split(".")), m) for n, m in every if n]
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
        if self.problem is None:
            try:
                step.record(self, result, caller())
            except Exception as error:
                self.problem = error
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
            return list_of(TENSOR)
        if isinstance(value, tuple):
            return ScriptType("Tuple", [self.kind_of(v) for v in value])
        if isinstance(value, dict):
            return ScriptType("Dict", [STR, TENSOR])
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
            return self.trace.number(self.value_of(value, names.get(id(value), "")))
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

    def size(self, tensor: Tensor, dim: int, frame: FrameType, name: str = "") -> SizeNumber:
        """One size, as a number that a value of the graph stands for."""
        self.trace.place = (frame.f_code.co_filename, frame.f_lineno, 0)
        known = self.value_of(tensor, name or _name_in(frame, tensor))
        inputs = [known, self.trace.constant(dim)]
        schema = next(s for s in operators("aten::size") if s.overload == "int")
        step = self.trace.node("aten::size", inputs, [INT], schema=schema).output
        number = SizeNumber.of(int(Tensor.size(tensor, dim)))
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
        names = {} if name == "floordiv" else _names_in(frame)
        self.operator(f"aten::{operator}", schema, values, result, frame, names)

    def script(self, function: Any, args: Sequence[Any], result: Any) -> None:
        """A call of a scripted function."""
        frame = caller()
        names = _names_in(frame)
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


def class_name(module: Module) -> str:
    """The name of a module's class in the language."""
    original: type = getattr(type(module), "original_class", type(module))
    return f"{module_path(original.__module__)}.{original.__qualname__.rpartition('.')[2]}"


def caller() -> FrameType:
    """The frame of the program, or of a layer's `forward`, that is at work."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_back is not None:
        name = frame.f_code.co_filename
        if not name.startswith(OURS) or name.startswith(_OF_LAYERS):
            return frame
        frame = frame.f_back
    return frame or sys._getframe()


def _name_in(frame: FrameType, value: object) -> str:
    return _names_in(frame).get(id(value), "")


def _names_in(frame: FrameType) -> dict[int, str]:
    """The variables of a frame that are tensors, by their addresses; the first name counts."""
    names: dict[int, str] = {}
    for name, value in frame.f_locals.items():
        if isinstance(value, Tensor | SizeNumber):
            names.setdefault(id(value), "" if name == "self" else name)
    return names


class TraceMode(TorchFunctionMode):
    """Sees each call of a traced function; `recorder` is None in a replay."""

    def __init__(self, recorder: TraceRecorder | None, kind: type[Tensor]):
        self.recorder, self.kind = recorder, kind
        self.constants: list[Tensor] = []
        self.names: dict[int, str] = {}  # of the function of torch's Python that is at work

    inside = alone

    def begin(self, names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Note the arguments of the traced function by their names."""
        recorder = self.recorder
        if recorder is None:
            return
        try:
            for name, value in (*zip(names, args, strict=False), *kwargs.items()):
                recorder.input(name, value)
        except Exception as error:
            recorder.problem = error

    def end(self, result: Any) -> None:
        """Note the result."""
        recorder = self.recorder
        if recorder is None or recorder.problem is not None:
            return
        try:
            recorder.returned = recorder.result(result)
        except Exception as error:
            recorder.problem = error

    def size(self, tensor: Tensor, dim: int) -> Any:
        """A size that the program reads."""
        recorder = self.recorder
        if recorder is not None and recorder.problem is None:
            try:
                return recorder.size(tensor, dim, caller())
            except Exception as error:
                recorder.problem = error
        return SizeNumber.of(int(Tensor.size(tensor, dim)))

    def adopted(self, result: Any) -> Any:
        """A call's result, whose tensors are of the class that traces watch."""

        def adopt(value: Any) -> Any:
            if type(value) is Tensor:
                object.__setattr__(value, "__class__", self.kind)
                self.constants.append(value)
            return value

        return tree_map(adopt, result)

    def released(self) -> None:
        """Let the tensors of a trace be plain ones."""
        for tensor in self.constants:
            object.__setattr__(tensor, "__class__", Tensor)

    def _run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        args, kwargs = tree_map(plain_numbers, (tuple(args), dict(kwargs)))
        with outside():
            return function(*args, **kwargs)

    def row(self, op: Op, form: str, raw: Sequence[Any]) -> Any:
        """A row's call."""
        raw = _as_given(op, raw)
        if op.name == "slice":
            end = sys.maxsize if raw[3] is None else raw[3]
            raw = (*raw[:2], raw[2] or 0, end, *raw[4:])
        end = "_" if form in ("inplace", "augmented") else ""
        plain = tree_map(plain_numbers, tuple(raw))
        call = call_of_row(op, end, raw)
        if call is None and op.body is not None:
            return self._followed(op, raw)
        if end:
            named = {a.name: v for a, v in zip(op.schema.args, plain, strict=True)
                     if a.keyword_only}  # fmt: skip
            places = plain[: len(plain) - len(named)]
            result = self._run(op.entry("inplace"), places, named)
        else:
            result = self._run(op.entry("aten"), plain, {})
        result = self.adopted(result)
        if self.recorder is not None:
            self._record(op, call, raw, result)
        return result

    def _followed(self, op: Op, raw: Sequence[Any]) -> Any:
        """A row that torch has in Python: the calls in it, by the names of its arguments."""
        before = self.names
        if self.recorder is not None and "nn" in op.places and _is_python(op):
            self.names = _parameters(op, raw)
        body: Any = op.body
        try:
            with self.inside():
                return body(*raw)
        finally:
            self.names = before

    def _record(self, op: Op, call: Call | None, raw: Sequence[Any], result: Any) -> None:
        recorder, frame = self.recorder, caller()
        if recorder is None or recorder.problem is not None:
            return
        try:
            if op.base_name == "_to_copy":
                source, *places = raw[:3]
                named = dict(zip(("dtype", "device"), places, strict=True))
                now = {"dtype": source.dtype, "device": source.device}
                changes = {k: v for k, v in named.items() if v not in (None, now[k])}
                call = call_of_function("to", (source,), changes)
            if call is None:
                raise NotImplementedError(f"{op.name} is no operator")
            names = self.names or _names_in(frame)
            if "nn" in op.places and _is_python(op) and op.base_name not in LAYERS:
                names = _parameters(op, raw)
            if op.base_name in _CONVOLUTIONS:
                recorder.operator(
                    *_convolution(op.base_name, call), result, frame, names
                )  # fmt: skip
                return
            if op.base_name in _BY_CUDNN:
                call = call[0], call[1], {**call[2], _BY_CUDNN[op.base_name]: True}
            recorder.call(call, result, frame, names)
        except Exception as error:
            recorder.problem = error

    def whole(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """A call whose steps nobody sees."""
        current = state.CURRENT
        before, current.mode, current.decisions = (current.mode, current.decisions), None, None
        try:
            return self.adopted(self._run(function, args, kwargs))
        finally:
            current.mode, current.decisions = before

    def script(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """A call of a scripted function, which is one step."""

        def run(*args: Any, **kwargs: Any) -> Any:
            with state.scripting():
                return function(*args, **kwargs)

        result = self.whole(run, args, kwargs)
        if self.recorder is not None and self.recorder.problem is None:
            try:
                self.recorder.script(function, args, result)
            except Exception as error:
                self.recorder.problem = error
        return result

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        return self.kind.__torch_function__(func, types, args, kwargs or {})

    def function(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a function that is no row."""
        name = func.__name__
        if name in ("tensor", "as_tensor", "from_numpy") and self.recorder is not None:
            warnings.warn(_CONSTANTS.format(name), TracerWarning, stacklevel=4)
        if name == "tensor":
            return self._constant(self._run(func, args, kwargs))
        if name in CASTS and args and isinstance(args[0], Tensor):
            func = Tensor.to
            name, args, kwargs = "to", (args[0], getattr(mindtorch, CASTS[name])), {}
        name = _NAMES.get(getattr(func, "__self__", None), _NAMES.get(name, name))
        if name in _WHOLE:
            named = {**_memory_options(name, kwargs), **kwargs}
            call = call_of_function(name, args, named)
            if call is not None:
                result = self.adopted(self._run(func, args, kwargs))
                self._note(call, result)
                return result
        if self.recorder is not None and name in ("__getitem__", "__setitem__"):
            items = args[1] if isinstance(args[1], tuple) else (args[1],)
            if all(_is_place(item) for item in items):
                with self.inside():
                    return _indexed(args[0], items, *args[2:])
        inner = inspect.unwrap(func)
        with self.inside():
            return inner(*args, **kwargs)

    def _note(self, call: Call, result: Any) -> None:
        recorder, frame = self.recorder, caller()
        if recorder is None or recorder.problem is not None:
            return
        try:
            recorder.call(call, result, frame, _names_in(frame))
        except Exception as error:
            recorder.problem = error

    def filled(self, tensor: Tensor, value: Any) -> None:
        """Write one number everywhere; a number of Python is a tensor of the same dtype."""
        if not isinstance(value, Tensor):
            value = self._run(mindtorch.tensor, (value,), {"dtype": tensor.dtype})
        self._run(Tensor.fill_, (tensor, value), {})
        self._note((mindtorch.ops.aten.fill_.Tensor, (tensor, value), {}), tensor)

    def _constant(self, tensor: Tensor) -> Tensor:
        """A tensor of the program's numbers: a constant, moved and detached."""
        source = tensor.clone()
        self.adopted(tensor)
        call = call_of_function("to", (source,), {"device": Device("cpu"), "dtype": tensor.dtype})
        detached = call_of_function("detach", (tensor,), {})
        if call is not None and detached is not None:
            self._note(call, tensor)
            self._note(detached, tensor)
        return tensor


def _as_given(op: Op, raw: Sequence[Any]) -> Sequence[Any]:
    """A row's arguments with the sizes that its entry took as plain numbers."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not frame.f_code.co_filename.startswith("<mindtorch entry"):
        if not frame.f_code.co_filename.startswith(OURS):
            return raw
        frame = frame.f_back
    if frame is None:
        return raw
    values = [frame.f_locals.get(a.name) for a in op.schema.args]
    return [
        g if isinstance(g, SizeNumber) and plain_numbers(g) == r else r
        for g, r in zip(values, raw, strict=True)
    ]


def _is_place(item: object) -> bool:
    plain = isinstance(item, int | slice | Tensor | None) or item is Ellipsis
    return plain and not isinstance(item, bool)


def _indexed(tensor: Tensor, items: Sequence[Any], *value: Any) -> Tensor | None:
    """The part of a tensor at some places, or a write to it, step by step as traces have it."""
    whole, dim, places = tensor, 0, list[Any]()
    count = sum(1 for i in items if i is not None and i is not Ellipsis)
    for item in items:
        if item is None:
            tensor, dim = mindtorch.unsqueeze(tensor, dim), dim + 1
        elif item is Ellipsis:
            dim += whole.dim() - count
        elif isinstance(item, slice):
            start, stop = item.start or 0, sys.maxsize if item.stop is None else item.stop
            step = 1 if item.step is None else item.step
            tensor, dim = aten.slice(tensor, dim, start, stop, step), dim + 1
        elif isinstance(item, Tensor):
            places += [None] * (dim - len(places)) + [item]
            dim += item.dim() if item.dtype == mindtorch.bool else 1
        else:
            tensor = mindtorch.select(tensor, dim, item)
    if not value:
        if tensor is whole and not places:
            return mindtorch.ops.aten.alias(tensor)
        return tensor if not places else mindtorch.ops.aten.index(tensor, places)
    new = value[0]
    if places:
        new = new if isinstance(new, Tensor) else mindtorch.tensor(new, dtype=tensor.dtype)
        tensor.index_put_(places, new)
    elif not isinstance(new, Tensor) or (new.dim() == 0 and tensor.dim()):
        mode = state.CURRENT.mode
        mode.filled(tensor, new)
    else:
        tensor.copy_(new if new.shape == tensor.shape else new.expand(tensor.shape))
    return None


def _parameters(op: Op, raw: Sequence[Any]) -> dict[int, str]:
    """The names that a function of torch's Python has for its tensors."""
    schemas = function_schemas(f"torch.nn.functional.{op.base_name}")[1]
    names = [a.name for a in (schemas[0].arguments if schemas else [])]
    local = names or [a.name for a in op.schema.args]
    result: dict[int, str] = {}
    for name, value in zip(local, raw, strict=False):
        if isinstance(value, Tensor):
            result.setdefault(id(value), "input" if name == "self" else name)
    return result


def _convolution(name: str, call: Call) -> tuple[str, ScriptDeclaration, dict[str, Any]]:
    """The one operator that all convolutions are in a trace."""
    target, args, kwargs = call
    dims, transposed = _CONVOLUTIONS[name]
    schema, plain = declaration_of("_convolution", ""), declaration_of(name, target._overloadname)
    if schema is None or plain is None:
        raise NotImplementedError(name)
    values = {a.name: a.default for a in plain.arguments if a.default is not MISSING}
    values |= dict(zip([a.name for a in plain.arguments], args, strict=False)) | kwargs
    if isinstance(values["padding"], str):
        raise NotImplementedError("padding by a word")
    for key in ("stride", "padding", "dilation", "output_padding"):
        value = values.get(key, 0)
        values[key] = value if isinstance(value, list | tuple) and len(value) > 1 else [
            value[0] if isinstance(value, list | tuple) else value] * dims  # fmt: skip
    values.update(
        transposed=transposed, benchmark=False, deterministic=False, cudnn_enabled=True,
        allow_tf32=True,
    )  # fmt: skip
    return "aten::_convolution", schema, values
