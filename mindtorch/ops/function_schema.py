"""Owns the schema of an operator as programs see it: its text, its arguments, what a call binds.

torch prints a schema in its own way (`float k=2.`), names types as TorchScript does, and refuses
a call that does not fit in one of a few sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .._tensor.device import device as Device
from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from .schema import ArgKind, Return, Schema, SchemaArgument, parse

# A schema's type as TorchScript calls it.
_SCRIPT = {"SymInt": "int", "ScalarType": "int", "Scalar": "number", "Layout": "int",
           "MemoryFormat": "int"}  # fmt: skip
_NAMED = frozenset(("Device", "ScalarType"))  # a default of these is a name
_NO_CAST = "#define PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details"


@dataclass(frozen=True, slots=True)
class AliasInfo:
    """What an argument may share: a set of names, and whether the operator writes to it."""

    before_set: frozenset[str]
    is_write: bool

    @property
    def after_set(self) -> frozenset[str]:
        return self.before_set


class Argument:
    """One argument or result."""

    alias_info: AliasInfo | None

    def __init__(self, name: str, type: str, optional: bool, alias: str, writes: bool) -> None:
        inner = type.removesuffix("[]")
        script = _SCRIPT.get(inner, inner)
        script = f"List[{script}]" if type.endswith("[]") else script
        self.name = name
        self.type: str = f"Optional[{script}]" if optional else script
        self.alias_info = AliasInfo(frozenset((alias,)), writes) if alias else None
        self.default_value: Any = None
        self.kwarg_only = False
        self.N: int | None = None
        self._has_default = False

    def has_default_value(self) -> bool:
        return self._has_default

    @property
    def is_write(self) -> bool:
        return self.alias_info is not None and self.alias_info.is_write

    @property
    def is_out(self) -> bool:
        return self.kwarg_only and self.is_write


def _argument(arg: SchemaArgument) -> Argument:
    inner = "Tensor?[]" if arg.kind is ArgKind.OPTIONAL_TENSORS else arg.type
    argument = Argument(arg.name, inner, arg.optional, arg.alias, arg.writes)
    if arg.kind is ArgKind.OPTIONAL_TENSORS:
        argument.type = "List[Optional[Tensor]]"
    argument._has_default = arg.has_default
    if arg.has_default:
        one = arg.type.endswith("[]") and arg.size is None and isinstance(arg.default, int)
        argument.default_value = arg.default if one or arg.type in _NAMED else _of_default(arg)
    argument.kwarg_only, argument.N = arg.keyword_only, arg.size
    return argument


class FunctionSchema:
    """What `op._schema` is."""

    def __init__(self, namespace: str, schema: Schema) -> None:
        self.name: str = f"{namespace}::{schema.name}".removeprefix("::")
        self.overload_name: str = schema.overload
        self._parts = schema

    @cached_property
    def arguments(self) -> list[Argument]:
        return [_argument(a) for a in self._parts.args]

    @cached_property
    def returns(self) -> list[Argument]:
        return [
            Argument(r.name, r.type + "[]" * r.list, False, r.alias, _writes(r, self._parts))
            for r in self._parts.returns
        ]

    @property
    def is_mutable(self) -> bool:
        return self._parts.mutates

    def __str__(self) -> str:
        parts: list[str] = []
        for arg in self._parts.args:
            if arg.keyword_only and "*" not in parts:
                parts.append("*")
            parts.append(_argument_text(arg))
        results = [_result(r, self._parts) for r in self._parts.returns]
        returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
        end = f".{self.overload_name}" if self.overload_name else ""
        return f"{self.name}{end}({', '.join(parts)}) -> {returned}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSchema) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def bind(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[list[Any], dict[str, Any]]:
        """The positional and the keyword-only arguments, defaults filled in.

        RuntimeError, in torch's words, for a call that does not fit.
        """
        declared = self._parts.args
        if len(args) + len(kwargs) > len(declared):
            raise RuntimeError(
                f"{self.name}() expected at most {len(declared)} argument(s) but received"
                f" {len(args) + len(kwargs)} argument(s). Declaration: {self}"
            )
        places = sum(not a.keyword_only for a in declared)
        if len(args) > places:
            raise RuntimeError(
                f"{self.name}() takes {places} positional argument(s) but {len(args)} was/were"
                f" given.  Declaration: {self}"
            )
        values = [self._value(i, arg, args, kwargs) for i, arg in enumerate(declared)]
        self._refuse_names(len(args), kwargs)
        named = {a.name: v for a, v in zip(declared, values, strict=True) if a.keyword_only}
        return values[:places], named

    def _value(
        self, place: int, arg: SchemaArgument, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> object:
        if place < len(args):
            value = args[place]
        elif arg.name in kwargs:
            value = kwargs[arg.name]
        elif arg.has_default:
            return _of_default(arg)
        else:
            raise RuntimeError(
                f"{self.name}() is missing value for argument '{arg.name}'. Declaration: {self}"
            )
        try:
            return _converted(arg, value)
        except TypeError:
            cast = (
                f"Unable to cast {value} to Tensor"
                if arg.type == "Tensor"
                else f"Unable to cast Python instance of type {type(value)} to C++ type '?'"
                f" ({_NO_CAST})"
            )
            raise RuntimeError(
                f"{self.name}() Expected a value of type '{_argument(arg).type}' for argument"
                f" '{arg.name}' but instead found type '{type(value).__name__}'.\n"
                f"Position: {place}\nValue: {value!r}\nDeclaration: {self}\n"
                f"Cast error details: {cast}"
            ) from None

    def _refuse_names(self, count: int, kwargs: Mapping[str, object]) -> None:
        names = [a.name for a in self._parts.args]
        for name in kwargs:
            if name not in names:
                raise RuntimeError(
                    f"Unknown keyword argument '{name}' for operator '{self.name}'. Schema: {self}"
                )
            if names.index(name) < count:
                raise RuntimeError(
                    f"Argument '{name}' specified both as positional and keyword argument."
                    f" Schema: {self}"
                )


def function_schema(namespace: str, text: str) -> FunctionSchema:
    """A FunctionSchema of `name.overload(arguments) -> results`."""
    return FunctionSchema(namespace, parse(text))


def _marked(base: str, alias: str, writes: bool) -> str:
    return f"{base}({alias}{'!' * writes})" if alias else base


def _argument_text(arg: SchemaArgument) -> str:
    base, is_list = arg.type.removesuffix("[]"), arg.type.endswith("[]")
    text = _marked(base, arg.alias, arg.writes)
    text += "?" * (arg.kind is ArgKind.OPTIONAL_TENSORS)
    if is_list:
        text += f"[{arg.size or ''}]"
    text += "?" * arg.optional + f" {arg.name}"
    return text + (f"={_default_text(arg)}" if arg.has_default else "")


def _default_text(arg: SchemaArgument) -> str:
    value = arg.default
    if arg.size and isinstance(value, int):
        value = (value,) * arg.size
    if isinstance(value, str):
        return value if arg.type == "ScalarType" else f'"{value}"'
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, float) or (arg.type == "float" and value.__class__ is int):
        return float_text(value)
    return str(value)


def float_text(value: float) -> str:
    """A float with all its digits, `2.` and `0.10000000000000001`."""
    text = f"{value:.17g}"
    return text + "." * text.lstrip("-").isdigit()


def _writes(result: Return, schema: Schema) -> bool:
    """Whether a result is an argument that the operator writes to."""
    return any(a.alias == result.alias and a.writes for a in schema.args)


def _result(result: Return, schema: Schema) -> str:
    writes = _writes(result, schema)
    name = f" {result.name}" if result.name else ""
    return _marked(result.type, result.alias, writes) + "[]" * result.list + name


def _of_default(arg: SchemaArgument) -> object:
    value = arg.default
    if arg.type == "ScalarType" and isinstance(value, str):
        import mindtorch

        return getattr(mindtorch, value)
    if arg.type == "Device" and isinstance(value, str):
        return Device(value)
    if arg.type.endswith("[]") and value is not None:
        return list(value) if isinstance(value, tuple) else [value] * (arg.size or 1)
    return float(value) if arg.type == "float" and isinstance(value, int) else value


def _converted(arg: SchemaArgument, value: object) -> object:
    """A value as the operator takes it; TypeError for another class."""
    if value is None:
        if arg.optional or arg.type == "Tensor":
            return None
        raise TypeError
    if not arg.type.endswith("[]"):
        return _one(arg.type, value)
    if not isinstance(value, list | tuple):
        if arg.size is None:
            raise TypeError
        return [_one(arg.type[:-2], value)] * arg.size
    may_lack = arg.kind is ArgKind.OPTIONAL_TENSORS
    return [None if v is None and may_lack else _one(arg.type[:-2], v) for v in value]


def _one(kind: str, value: object) -> object:
    if kind == "Tensor":
        return _instance(value, Tensor)
    if kind in ("str", "bool"):
        return _instance(value, str if kind == "str" else bool)
    if kind == "ScalarType":
        return _instance(value, Dtype | int)
    if kind == "Device":
        return Device(_instance(value, Device | str))
    if isinstance(value, Tensor):
        if value.numel() != 1 or value.requires_grad:
            raise TypeError
        value = value.item()
    if kind in ("int", "SymInt"):
        return _instance(value, int)
    if kind == "float":
        return float(_instance(value, int | float))
    return _instance(value, int | float | complex) if kind == "Scalar" else value


def _instance(value: Any, kinds: Any) -> Any:
    if not isinstance(value, kinds):
        raise TypeError
    return value
