"""Owns classes of the language: those that programs script, and the types of modules."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

from mindtorch._tensor.device import device
from mindtorch._tensor.dtype import dtype
from mindtorch._tensor.tensor import Tensor
from mindtorch.nn.modules.module import Module

from .annotations import kind_of
from .graph import NotLowered
from .kinds import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    STR,
    TENSOR,
    ScriptType,
    list_of,
    optional,
)
from .schemas import MISSING, ScriptArgument, ScriptDeclaration, function_schemas
from .unit import CLASSES, HOOKS, ClassType, LoweredFunction, module_path, unique_name

_OF_PYTHON: dict[type, ClassType] = {}
_RETURNED = {"__len__": INT, "__contains__": BOOL}
_MODULES: dict[type, list[ClassType]] = {}


def class_type(cls: type) -> ClassType:
    """The type of a scripted class, whose attributes are those that `__init__` writes."""
    if cls in _OF_PYTHON:
        return _OF_PYTHON[cls]
    if "_torchscript_interface" in vars(cls):
        return _interface_type(cls)
    if not any("__init__" in vars(c) for c in cls.__mro__[:-1]):
        raise NotLowered(f"Unknown type name '{cls.__name__}'")
    name = unique_name(f"{module_path(cls.__module__)}.{cls.__qualname__.rpartition('.')[2]}")
    kind = ScriptType("Class", name=name)
    known = _OF_PYTHON[cls] = CLASSES[name] = ClassType(name, kind, cls)
    for method, function in inspect.getmembers(cls, inspect.isfunction):
        known.methods[method] = _compiler(known, function)
    known.method("__init__")
    return known


def _interface_type(cls: type) -> ClassType:
    """The type of an interface: the declarations of what its class defines."""
    name = unique_name(f"{module_path(cls.__module__)}.{cls.__name__}")
    kind = ScriptType("Interface", name=name)
    known = _OF_PYTHON[cls] = CLASSES[name] = ClassType(name, kind, cls)
    for method, function in vars(cls).items():
        if isinstance(function, FunctionType):
            schema = HOOKS.declaration(function, known)
            known.compiled[method] = LoweredFunction(method, f"{name}.{method}", schema)
    return known


def check_assignment(known: ClassType, name: str, value: object) -> None:
    """RuntimeError for a member of a scripted module that has another type than the one before."""
    kind = known.attributes.get(name)
    interface = CLASSES.get(kind.name) if kind and kind.kind == "Interface" else None
    if interface is None and name not in known.modules:
        actual = kind_of_value(value)
        if kind is not None and actual is not None and not actual.is_a(kind):
            raise RuntimeError(
                f"Could not cast attribute '{name}' to type {kind}: Unable to cast Python instance"
                f" of type {type(value)} to C++ type '?' (#define PYBIND11_DETAILED_ERROR_MESSAGES"
                " or compile in debug mode for details)"
            )
        return
    scripted = isinstance(value, Module) and "_script_type" in value.__dict__
    if not isinstance(value, Module) or not scripted:
        raise RuntimeError(
            "Cannot re-assign modules in a ScriptModule with non-scripted module, tried to replace"
            f" existing module '{name}': {value}"
        )
    other = module_type(value)
    unit = f"(of Python compilation unit at: {id(CLASSES):#x})"
    if interface is None:
        if other is not known.modules[name]:
            raise RuntimeError(
                f"Expected a value of type '{known.modules[name].qualified} {unit}' for field"
                f" '{name}', but found '{other.qualified} {unit}'"
            )
        return
    for method in interface.compiled:
        if method not in other.methods:
            raise RuntimeError(
                f"Object of type {other.qualified} {unit} is not compatible with interface"
                f" {interface.qualified}\nClass '{other.qualified} {unit}' does not have method"
                f" '{method}' but '{interface.qualified}' does.\n"
            )


def declared_class(cls: type, methods: Sequence[str]) -> ClassType:
    """The type of a class of torch's own, of whose methods the declarations are known."""
    if cls not in _OF_PYTHON:
        name = unique_name(f"{module_path(cls.__module__)}.{cls.__name__}")
        kind = ScriptType("Class", name=name)
        known = _OF_PYTHON[cls] = CLASSES[name] = ClassType(name, kind, cls)
        for method in ("__init__", *methods):
            arguments = [ScriptArgument("self", kind)]
            if method == "__exit__":
                arguments += [
                    ScriptArgument(n, ANY) for n in ("exc_type", "exc_value", "traceback")
                ]
            schema = ScriptDeclaration(method, "", arguments, [NONE])
            known.compiled[method] = LoweredFunction(method, f"{name}.{method}", schema)
    return _OF_PYTHON[cls]


def _compiler(known: ClassType, function: Callable[..., Any]) -> Callable[[], LoweredFunction]:
    def compile_() -> LoweredFunction:
        return HOOKS.compile_function(function, known)

    return compile_


def kind_of_value(value: Any) -> ScriptType | None:
    """The type of an attribute's value; None for what the language has no type for."""
    if isinstance(value, bool):
        return BOOL
    for python, kind in ((int, INT), (float, FLOAT), (complex, COMPLEX), (str, STR),
                         (Tensor, TENSOR), (device, DEVICE), (dtype, INT)):  # fmt: skip
        if isinstance(value, python):
            return kind
    if value is None:
        return NONE
    if isinstance(value, tuple):
        parts = [kind_of_value(v) for v in value]
        names = getattr(value, "_fields", None)
        if any(p is None for p in parts) or names:
            return None
        return ScriptType("Tuple", [p for p in parts if p])
    if isinstance(value, list) and value:
        inner = dict.fromkeys(map(kind_of_value, value))
        only = next(iter(inner))
        return list_of(only) if len(inner) == 1 and only is not None else None
    if isinstance(value, dict) and value:
        keys = {kind_of_value(k) for k in value}
        values = {kind_of_value(v) for v in value.values()}
        if len(keys) == len(values) == 1 and None not in keys | values:
            return ScriptType("Dict", [k for k in (*keys, *values) if k is not None])
    if type(value) in _OF_PYTHON:
        return _OF_PYTHON[type(value)].kind
    return None


def _annotations(cls: type) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for each in reversed(cls.__mro__[: cls.__mro__.index(Module)]):
        if each.__module__.split(".")[0] not in ("torch", "mindtorch"):
            result.update(vars(each).get("__annotations__", {}))
    return result


def _final_names(cls: type, hints: Mapping[str, Any]) -> set[str]:
    names = {
        n for n, h in hints.items() if h is typing.Final or typing.get_origin(h) is typing.Final
    }
    return names | set(getattr(cls, "__constants__", ()))


def module_type(module: Module) -> ClassType:
    """The type of a module; modules of one class with members of the same types have one."""
    original: type[Module] = getattr(type(module), "original_class", type(module))
    fixed = module.__dict__.get("_script_type")
    if isinstance(fixed, ClassType):
        return fixed
    name = f"{module_path(original.__module__)}.{original.__qualname__.rpartition('.')[2]}"
    fresh = ClassType("", ScriptType("Class"), original, is_module=True, example=module)
    hints = _annotations(original)
    for child, inner in module._modules.items():
        hint = hints.get(child)
        if isinstance(hint, type) and "_torchscript_interface" in vars(hint):
            fresh.attributes[child] = class_type(hint).kind
        elif inner is not None:
            fresh.modules[child] = module_type(inner)
        else:
            fresh.attributes[child] = NONE
    constants = _final_names(original, hints)
    if original.__module__.split(".")[0] in ("torch", "mindtorch"):
        constants |= {n for n, v in vars(module).items() if _is_setting(n, v)}
    _add_members(fresh, module, hints, constants)
    for known in _MODULES.get(original, []):
        if _same_type(known, fresh):
            return known
    fresh.qualified = unique_name(name)
    fresh.kind = ScriptType("Class", name=fresh.qualified)
    for method, function in methods_of(original).items():
        fresh.methods[method] = _method_compiler(fresh, method, function)
    for each in original.__mro__[: original.__mro__.index(Module)]:
        for name, member in vars(each).items():
            if isinstance(member, property) and member.fget is not None:
                fresh.methods.setdefault(f"__{name}_getter", _compiler(fresh, member.fget))
    CLASSES[fresh.qualified] = fresh
    _MODULES.setdefault(original, []).append(fresh)
    return fresh


_INTERNAL = frozenset((*vars(Module()), "_script_type", "_loaded")) - {"training"}


def _add_members(
    fresh: ClassType, module: Module, hints: Mapping[str, Any], constants: set[str]
) -> None:
    for table in (module._parameters, module._buffers):
        for name, value in table.items():
            fresh.attributes[name] = NONE if value is None else TENSOR
    for name, value in module.__dict__.items():
        if name in _INTERNAL:
            continue
        if name in constants and not isinstance(value, Tensor | Module):
            fresh.constants[name] = value
            continue
        hint = hints.get(name)
        if type(value).__name__ == "Attribute" and isinstance(value, tuple):
            value, hint = value  # torch.jit.Attribute
        try:
            kind = kind_of(hint) if hint is not None else kind_of_value(value)
        except (NotLowered, TypeError):
            kind = None
        if kind is not None:
            fresh.attributes[name] = kind


def _is_setting(name: str, value: object) -> bool:
    """Whether a layer's member is one of those that its class names as constants."""
    plain = isinstance(value, bool | int | float | str | tuple)
    return plain and name != "training" and not name.startswith("_")


def _same_type(known: ClassType, fresh: ClassType) -> bool:
    return (
        known.attributes == fresh.attributes
        and list(known.constants.items()) == list(fresh.constants.items())
        and list(known.modules) == list(fresh.modules)
        and all(known.modules[n] is fresh.modules[n] for n in fresh.modules)
    )


def methods_of(original: type) -> dict[str, Callable[..., Any]]:
    """The methods that a class of modules and those above it define."""
    result: dict[str, Callable[..., Any]] = {}
    for each in reversed(original.__mro__[: original.__mro__.index(Module)]):
        for name, member in vars(each).items():
            if isinstance(member, FunctionType) and (
                name == "forward" or not hasattr(Module, name)
            ):
                result[name] = member
    return result


def _method_compiler(
    fresh: ClassType, name: str, function: Callable[..., Any]
) -> Callable[[], LoweredFunction]:
    module = str(fresh.source.__module__)
    if module.split(".")[0] not in ("torch", "mindtorch"):
        return _compiler(fresh, function)

    def declare() -> LoweredFunction:
        schema = _declared(fresh, name, function)
        full = f"{fresh.qualified}.{schema.name}"
        plain = inspect.unwrap(function)
        return LoweredFunction(
            schema.name, full, schema, lower=lambda: HOOKS.graph_of(plain, fresh, schema)
        )

    return declare


def _declared(fresh: ClassType, name: str, function: Callable[..., Any]) -> ScriptDeclaration:
    """The declaration of a layer's method, whose text is not torch's."""
    head = f"torch.{fresh.source.__module__.partition('.')[2]}.{fresh.source.__name__}.{name}"
    local = ScriptArgument("self", fresh.kind)
    schemas = function_schemas(head)[1]
    if schemas:
        schema = schemas[0]
        bare = schema.name.rpartition(".")[2]
        return ScriptDeclaration(bare, "", [local, *schema.arguments], schema.returns)
    arguments = [local]
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        has = parameter.default is not inspect.Parameter.empty
        default = parameter.default if has else MISSING
        kind = BOOL if isinstance(default, bool) else optional(TENSOR) if has else TENSOR
        kind = STR if name == "__contains__" else kind
        arguments.append(ScriptArgument(parameter.name, kind, default))
    last = list(fresh.modules.values())[-1:] if fresh.source.__name__ == "Sequential" else []
    inner = last[0].method("forward") if last else None
    returns = list(inner.schema.returns) if inner else [_RETURNED.get(name, TENSOR)]
    return ScriptDeclaration(name, "", arguments, returns)


HOOKS.class_type = class_type
