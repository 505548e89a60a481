"""Owns what names and attributes of a program stand for."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from mindtorch._autograd.grad_mode import no_grad
from mindtorch._tensor.device import device
from mindtorch._tensor.dtype import dtype
from mindtorch._tensor.tensor import Tensor
from mindtorch.nn.modules.module import Module

from .annotations import kind_of, named_tuple
from .classes import class_type, declared_class
from .errors import ScriptError
from .graph import NotLowered, Place, ScriptValue
from .kinds import BOOL, FLOAT, INFERRED, INT, STR, TENSOR, ScriptType
from .matching import Supplied, bound, call_operator, filled
from .schemas import ScriptDeclaration, function_schemas, has_operator, operators
from .scope import Lowering
from .sugar import (
    Cast,
    ClassObject,
    FunctionChoice,
    IgnoredFunction,
    Method,
    ModuleObject,
    NamedTuple,
    OperatorCall,
    Printing,
    PythonObject,
    Raised,
    Returning,
    Simple,
    Special,
    Sugar,
    TensorCast,
    TupleOfThings,
)
from .unit import HOOKS, ClassType, LoweredFunction, class_of, unique_name

_SPECIAL = ("tuple", "getattr", "hasattr", "isinstance", "list", "dict", "range", "zip",
            "enumerate")  # fmt: skip
_BUILTIN = {
    **{n: f"aten::{n}" for n in ("len", "hex", "oct", "round", "hash", "all", "any", "divmod",
                                 "sum", "ord", "chr", "bin", "pow", "complex", "sorted")},
    **{n: f"prim::{n}" for n in ("id", "min", "max", "abs")},
}  # fmt: skip
_MAGIC_NAMES = ("len", "hex", "oct", "round")
_CASTS = {"float": ("aten::Float", FLOAT), "int": ("aten::Int", INT), "bool": ("aten::Bool", BOOL),
          "str": ("aten::str", STR)}  # fmt: skip
_DTYPES = {"byte": 0, "char": 1, "double": 7, "float": 6, "cfloat": 9, "cdouble": 10, "int": 3,
           "long": 4, "short": 2, "half": 5}  # fmt: skip
_OF_TENSORS = (
    "dtype device grad data shape is_cuda is_cpu is_xpu is_sparse is_sparse_csr is_mkldnn"
    " is_quantized is_meta requires_grad layout T H ndim name itemsize nbytes is_nested"
)
_PROPERTIES = {
    "Tensor": {**dict.fromkeys(_OF_TENSORS.split(), "prim"), "is_leaf": "aten", "mT": "aten",
               "mH": "aten", "real": "aten", "imag": "aten", "retains_grad": "aten"},
    "Device": {"type": "prim", "index": "prim"},
}  # fmt: skip
_FORMS = {"annotate": "annotate", "fork": "fork", "_fork": "fork", "isinstance": "isinstance"}
_OF_JIT = {"is_scripting": "aten::is_scripting", "wait": "aten::wait", "_wait": "aten::wait"}
_IN_MATH = {"fabs": "fabs", "mod": "fmod", "remainder": "mathremainder", "fsum": "sum"}
_SPACES = {"_linalg": "linalg_", "_fft": "fft_", "_special": "special_"}


_NUMBERED_DTYPES = (
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool qint8"
    " quint8 qint32 bfloat16 quint4x2 quint2x4 bits1x8 bits2x4 bits4x2 bits8 bits16 float8_e5m2"
    " float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz uint16 uint32 uint64"
)


def dtype_number(value: object) -> int:
    """The number that stands for a dtype in a program."""
    return _NUMBERED_DTYPES.split().index(str(value).rpartition(".")[2])


class Attributes(Lowering):
    """Names and attributes."""

    def name(self, name: str) -> Sugar:
        """What a name stands for: a variable, a function of Python, a global."""
        hit = self.find(name, self.frame)
        if hit is not None:
            return hit
        if name in _SPECIAL:
            return Special(name)
        if name in _CASTS:
            return Cast(*_CASTS[name], f"__{name}__")
        if name in _BUILTIN:
            return OperatorCall(_BUILTIN[name], None, f"__{name}__" if name in _MAGIC_NAMES else "")
        if name == "print":
            return Printing()
        if name == "AssertionError":
            return Raised("AssertionError")
        if name in self.names:
            return self.python(self.names[name], None, False)
        if hasattr(builtins, name):
            return self.python(getattr(builtins, name), None, False)
        if name in self.errors:
            raise ScriptError(f"{self.errors[name]}and was used here", True)
        raise ScriptError(f"undefined value {name}", True)

    def annotation(self, node: ast.expr) -> ScriptType:
        """The type that an expression names."""
        try:
            names = {**vars(builtins), **self.names}
            return kind_of(eval(compile(ast.Expression(node), "<annotation>", "eval"), names))
        except NameError as error:
            raise ScriptError(f"Unknown type name '{ast.unparse(node)}'") from error

    def python(self, value: Any, place: Place | None, constant: bool) -> Sugar:
        """What an object of Python stands for; numbers only where they are constants."""
        if constant:
            fresh = self.python_constant(value, place)
            if fresh is not None:
                return Simple(fresh)
        if isinstance(value, dtype):
            return Simple(self.graph.constant(dtype_number(value), place))
        if isinstance(value, device):
            return Simple(self.graph.constant(value, place))
        name = type(value).__name__
        if name in ("layout", "memory_format"):
            table = {"strided": 0, "sparse_coo": 1, "sparse_csr": 2, "contiguous_format": 0,
                     "preserve_format": 1, "channels_last": 2, "channels_last_3d": 3}  # fmt: skip
            return Simple(self.graph.constant(table[str(value).split(".")[-1]], place))
        if isinstance(value, ModuleType):
            return PythonObject(value)
        if isinstance(value, type):
            return self._python_class(value)
        if isinstance(value, Module):
            raise NotLowered("a module that is a global")
        return self._python_function(value)

    def python_constant(self, value: Any, place: Place | None) -> ScriptValue | None:
        """A number, a text or a tuple of such as a constant; None for anything else."""
        if isinstance(value, tuple):
            members = [self.python_constant(v, place) for v in value]
            if any(m is None for m in members):
                return None
            return self.tuple_of([m for m in members if m is not None])
        if value is None or isinstance(value, bool | int | float | complex | str):
            return self.graph.constant(value, place)
        return None

    def _python_class(self, value: type) -> Sugar:
        if issubclass(value, BaseException):
            return Raised(f"{value.__module__}.{value.__qualname__}")
        if issubclass(value, tuple) and hasattr(value, "_fields"):
            return NamedTuple(named_tuple(value), value)
        if value is no_grad:
            return ClassObject(declared_class(value, ("__enter__", "__exit__")))
        if value is device:
            return OperatorCall("aten::device")
        if value is Tensor or issubclass(value, Module):
            return PythonObject(value)
        return ClassObject(class_type(value))

    def _python_function(self, value: Any) -> Sugar:
        name = getattr(value, "__name__", "")
        module = str(getattr(value, "__module__", "") or "")
        if getattr(value, "__self__", None) is math or module == "math":
            return OperatorCall(f"aten::{_IN_MATH.get(name, name)}")
        ours = module.partition(".")[0] in ("mindtorch", "torch", "")
        if ours and callable(value):
            if module.endswith("jit") or ".jit" in module:
                if name in _FORMS:
                    return Special(_FORMS[name])
                if name in _OF_JIT:
                    return OperatorCall(_OF_JIT[name])
            hit = self._function_of_torch(name, module, value)
            if hit is not None:
                return hit
        if isinstance(value, FunctionType | BuiltinFunctionType) or hasattr(value, "_function"):
            lowered = HOOKS.function_of(value)
            assert isinstance(lowered, Sugar)
            return lowered
        raise ScriptError(
            f"python value of type '{type(value).__name__}' cannot be used as a value. Perhaps it"
            " is a closed over global variable? If so, please consider passing it in as an"
            " argument or use a local variable instead.",
            isinstance(value, bool | int | float | str),
        )

    @staticmethod
    def _function_of_torch(name: str, module: str, value: Any) -> Sugar | None:
        last = module.rpartition(".")[2]
        builtin = isinstance(value, BuiltinFunctionType)
        if not builtin:
            for space in ("torch.nn.functional", "torch.functional", "torch.nn.init"):
                flag, schemas = function_schemas(f"{space}.{name}")
                if schemas:
                    return FunctionChoice([_declared(s) for s in schemas], flag)
        prefix = "" if name.startswith(_SPACES.get(last, "-")) else _SPACES.get(last, "")
        for operator in (f"aten::{prefix}{name}", f"aten::{last}_{name}"):
            if has_operator(operator):
                return OperatorCall(operator)
        return None

    # Values.

    def as_value(self, sugar: Sugar) -> ScriptValue:
        """The value that something is."""
        match sugar:
            case Simple(value=value) | ModuleObject(value=value):
                return value
            case TupleOfThings(members=members):
                return self.tuple_of([self.as_value(m) for m in members])
            case PythonObject(value=value):
                raise ScriptError(
                    f"python value of type '{type(value).__name__}' cannot be used as a value."
                )
        raise ScriptError(f"{type(sugar).__name__.lower()} cannot be used as a value")

    # Attributes.

    def attribute(self, owner: Sugar, name: str, place: Place) -> Sugar:
        """What an attribute of something stands for."""
        match owner:
            case PythonObject(value=value):
                member = getattr(value, name, None)
                if member is None:
                    raise ScriptError(f"module '{value.__name__}' has no attribute '{name}'")
                return self.python(member, place, True)
            case ModuleObject():
                return self._of_module(owner, name, place)
            case ClassObject() if name == "__new__":
                return Special("__new__")
            case Simple(value=value):
                return self._of_value(value, name, place)
        raise ScriptError(f"attribute lookup is not defined on {type(owner).__name__.lower()}")

    def method_of(self, value: ScriptValue, name: str) -> Method | None:
        """The method of an object of the language; None for other values and names."""
        known = class_of(value.kind)
        function = known.method(name) if known else None
        return Method(value, name, function) if function else None

    def _of_value(self, value: ScriptValue, name: str, place: Place) -> Sugar:
        kind = value.kind
        if kind == TENSOR and name in _DTYPES:
            return TensorCast(_DTYPES[name], value)
        space = _PROPERTIES.get(kind.kind, {}).get(name)
        if space:
            return Simple(self.operator(None, f"{space}::{name}", value))
        if kind.kind == "Tuple" and name in kind.fields:
            number = kind.fields.index(name)
            index = self.graph.constant(number)
            node = self.graph.insert("prim::TupleIndex", [value, index], (kind.args[number],))
            return Simple(node.output)
        known = class_of(kind)
        if known is not None:
            method = self.method_of(value, name)
            if method is not None:
                return method
            if name in known.attributes:
                return Simple(self.get_attribute(value, name, known.attributes[name]))
        operator = "to" if name == "type" else name
        if self._takes_self(f"aten::{operator}", kind):
            return OperatorCall(f"aten::{operator}", Supplied(value))
        if kind == TENSOR and name == "tolist":
            return Special("tolist")
        hint = " Did you forget to initialize an attribute in __init__()?" * (kind.kind == "Class")
        raise ScriptError(
            f"'{_object(kind)}' object has no attribute or method '{name}'.{hint}",
            kind.kind in ("Tensor", "int", "float", "str", "List", "Dict"),
        )

    @staticmethod
    def _takes_self(operator: str, kind: ScriptType) -> bool:
        for schema in operators(operator):
            for argument in schema.arguments:
                if argument.name == "self":
                    known: dict[str, ScriptType] = {}
                    concrete = (
                        filled(argument.kind, known) if bound(argument.kind, kind, known) else None
                    )
                    if concrete is not None and kind.is_a(concrete):
                        return True
        return False

    def get_attribute(self, owner: ScriptValue, name: str, kind: ScriptType) -> ScriptValue:
        """An attribute's value, named like the attribute."""
        value = self.graph.insert("prim::GetAttr", [owner], (kind,), name=name).output
        return value.named(f"_{name}" if name[:1].isdigit() else name)

    def _of_module(self, owner: ModuleObject, name: str, place: Place) -> Sugar:
        kind = owner.type
        if name in kind.modules:
            child = kind.modules[name]
            return ModuleObject(self.get_attribute(owner.value, name, child.kind), child)
        if name in kind.attributes:
            return Simple(self.get_attribute(owner.value, name, kind.attributes[name]))
        if name in kind.constants:
            return self.python(kind.constants[name], place, True)
        if name in ("items", "values", "keys", "named_children", "children") and kind.modules:
            names, modules = self.submodules(owner)
            if name in ("values", "children"):
                return Returning(TupleOfThings(modules))
            pairs: list[Sugar] = [TupleOfThings([*p]) for p in zip(names, modules, strict=True)]
            return Returning(TupleOfThings(names if name == "keys" else pairs))
        if name == "_modules":
            return owner
        member = kind.ignored(name)
        if member is not None:
            return IgnoredFunction(*member, owner.value)
        function = kind.method(name)
        if function is not None:
            return Method(owner.value, function.name, function)
        getter = kind.method(f"__{name}_getter")
        if getter is not None:
            return self.call_sugar(Method(owner.value, f"__{name}_getter", getter), place, [], {})
        static = inspect.getattr_static(kind.source, name, None)
        if isinstance(static, staticmethod):
            return self.python(static.__func__, place, False)
        raise ScriptError(
            f"Module '{kind.qualified.rpartition('.')[2]}' has no attribute '{name}' "
        )

    def submodules(self, owner: ModuleObject) -> tuple[list[Sugar], list[Sugar]]:
        """The names of the modules inside of a module, and the modules, each read."""
        names: list[Sugar] = []
        modules: list[Sugar] = []
        for name, child in owner.type.modules.items():
            names.append(Simple(self.graph.constant(name)))
            value = self.get_attribute(owner.value, name, child.kind)
            modules.append(ModuleObject(value, child))
        return names, modules

    def owns(self, owner: Sugar, name: str) -> bool:
        """Whether something has an attribute."""
        known: ClassType | None = None
        if isinstance(owner, ModuleObject):
            known = owner.type
        elif isinstance(owner, Simple):
            known = class_of(owner.value.kind)
        if known is None:
            raise ScriptError("hasattr's first argument must be an object")
        tables = (known.modules, known.attributes, known.constants, known.methods)
        return any(name in table for table in tables)

    def set_attribute(self, owner: Sugar, name: str, value: ScriptValue, place: Place) -> None:
        """Write an attribute of an object."""
        target = self.as_value(owner)
        known = owner.type if isinstance(owner, ModuleObject) else class_of(target.kind)
        if known is None:
            raise ScriptError(
                f"Tried to set an attribute: {name} on a non-class: {target.kind.annotation()}"
            )
        if name not in known.attributes and name not in known.modules:
            if self.source.tree.name != "__init__" or known is not self.owner:
                raise ScriptError(
                    f"Tried to set nonexistent attribute: {name}. Did you forget to initialize it"
                    " in __init__()?"
                )
            known.attributes[name] = value.kind
        expected = known.attributes[name]
        if not value.kind.is_a(expected):
            raise ScriptError(
                f"Wrong type for attribute assignment. Expected {expected.annotation()} but got"
                f" {value.kind.annotation()}"
            )
        self.graph.insert("prim::SetAttr", [target, value], name=name)

    def schema_of(self, name: str) -> ScriptDeclaration:
        """The declaration of an operator that has one."""
        return operators(name)[0]

    def item(self, place: Place, value: ScriptValue, index: ScriptValue) -> Sugar:
        """The element of a list, a text, a dict or a tensor at an index."""
        if value.kind.kind in ("List", "str", "Dict"):
            return Simple(self.operator(place, "aten::__getitem__", value, index))
        if value.kind == TENSOR:
            passed = [Supplied(value), Supplied(constant=0), Supplied(index)]
            return Simple(call_operator(self.graph, place, "aten::select", passed))
        raise ScriptError(f"'{value.kind.annotation()}' object is not subscriptable")


def _object(kind: ScriptType) -> str:
    return "Tensor (inferred)" if kind is INFERRED else kind.annotation()


_DECLARED: dict[str, LoweredFunction] = {}


def _declared(schema: ScriptDeclaration) -> LoweredFunction:
    """A function of torch's, whose name is taken when it is first met."""
    key = str(schema)
    if key not in _DECLARED:
        name = schema.name.rpartition(".")[2]
        _DECLARED[key] = LoweredFunction(name, unique_name(f"__torch__.{schema.name}"), schema)
    return _DECLARED[key]
