"""Reads annotations of Python as types of the language."""

from __future__ import annotations

import enum
import typing
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from mindtorch._tensor.device import device
from mindtorch._tensor.dtype import dtype
from mindtorch._tensor.tensor import Tensor

from . import kinds
from .graph import NotLowered
from .kinds import ScriptType, list_of, optional
from .schemas import constant_text
from .unit import HOOKS, module_path

_PLAIN: dict[object, ScriptType] = {
    Tensor: kinds.TENSOR, int: kinds.INT, float: kinds.FLOAT, bool: kinds.BOOL, str: kinds.STR,
    complex: kinds.COMPLEX, None: kinds.NONE, NoneType: kinds.NONE, device: kinds.DEVICE,
    dtype: kinds.INT, Any: kinds.ANY, list: ScriptType("AnyList"), tuple: ScriptType("AnyTuple"),
}  # fmt: skip
_NAMED = {"Tensor": kinds.TENSOR, "number": kinds.SCALAR, "Device": kinds.DEVICE}


def named_tuple(kind: type) -> ScriptType:
    """The type of a class of named tuples."""
    hints = typing.get_type_hints(kind)
    fields: tuple[str, ...] = vars(kind)["_fields"]
    parts = [kind_of(hints.get(f, Tensor)) for f in fields]
    result = ScriptType("Tuple", parts, f"{module_path(kind.__module__)}.{kind.__name__}", fields)
    defaults = vars(kind).get("_field_defaults", {})
    result.defaults = {f: f" = {constant_text(v)}" for f, v in defaults.items()}
    return result


def kind_of(annotation: Any) -> ScriptType:
    """The type that an annotation names; NotLowered for one that the language has not."""
    try:
        if annotation in _PLAIN:
            return _PLAIN[annotation]
    except TypeError:
        pass
    if isinstance(annotation, str) and annotation in _NAMED:
        return _NAMED[annotation]
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is typing.Final:
        return kind_of(inner[0])
    if origin is list:
        return list_of(kind_of(inner[0]))
    if origin is dict:
        return ScriptType("Dict", [kind_of(i) for i in inner])
    if origin is tuple:
        return ScriptType("Tuple", [kind_of(i) for i in inner if i != ()])
    if origin in (typing.Union, UnionType):
        rest = [kind_of(i) for i in inner if i is not NoneType]
        if len(rest) == 1:
            return optional(rest[0])
        union = ScriptType("Union", rest)
        return ScriptType("Union", [*rest, kinds.NONE]) if len(rest) < len(inner) else union
    if isinstance(annotation, type):
        if issubclass(annotation, tuple) and hasattr(annotation, "_fields"):
            return named_tuple(annotation)
        if issubclass(annotation, Tensor):
            return kinds.TENSOR
        if issubclass(annotation, enum.Enum):
            raise NotLowered(f"enumerations: {annotation.__name__}")
        return HOOKS.class_type(annotation).kind
    if getattr(origin, "__name__", "") == "Future":
        return ScriptType("Future", [kind_of(inner[0])])
    raise NotLowered(f"Unknown type name '{annotation}'")
