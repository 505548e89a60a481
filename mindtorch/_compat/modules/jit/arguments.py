"""Owns how compiled code takes its arguments: by a declaration, each converted to its type."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from mindtorch._compat.torchscript.classes import kind_of_value
from mindtorch._compat.torchscript.kinds import INFERRED, ScriptType
from mindtorch._compat.torchscript.schemas import MISSING, ScriptArgument, ScriptDeclaration
from mindtorch._tensor.device import device as Device
from mindtorch._tensor.dtype import dtype as Dtype
from mindtorch._tensor.tensor import Tensor

_NUMBERS: dict[str, Callable[[Any], complex]] = {"int": operator.index, "float": float,
                                             "complex": complex, "bool": bool}  # fmt: skip


class _UnfitError(Exception):
    """A value that is not of a type; the text says why."""


def passed(
    declaration: ScriptDeclaration, args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """The values of all parameters, by place and by name; RuntimeError where a call is unfit."""
    name, parameters = declaration.name, declaration.arguments
    if len(args) > len(parameters):
        raise RuntimeError(
            f"{name}() expected at most {len(parameters)} argument(s) but received"
            f" {len(args)} argument(s). Declaration: {declaration}"
        )
    values, left = [], dict(kwargs)
    for position, parameter in enumerate(parameters):
        if position >= len(args) and parameter.name not in left:
            if parameter.default is MISSING:
                raise RuntimeError(
                    f"{name}() is missing value for argument '{parameter.name}'. Declaration:"
                    f" {declaration}"
                )
            values.append(parameter.default)
            continue
        value = args[position] if position < len(args) else left.pop(parameter.name)
        try:
            values.append(converted(parameter.kind, value))
        except _UnfitError as error:
            text = _refusal(name, parameter, position, value)
            raise RuntimeError(
                f"{text}\nDeclaration: {declaration}\nCast error details: {error}"
            ) from None
    for key in left:
        if any(p.name == key for p in parameters):
            raise RuntimeError(
                f"Argument '{key}' specified both as positional and keyword argument. Schema:"
                f" {declaration}"
            )
        raise RuntimeError(
            f"Unknown keyword argument '{key}' for operator '{name}'. Schema: {declaration}"
        )
    pairs = list(zip(parameters, values, strict=True))
    places = tuple(v for p, v in pairs if not p.keyword)
    return places, {p.name: v for p, v in pairs if p.keyword}


def _refusal(name: str, parameter: ScriptArgument, position: int, value: object) -> str:
    fields = ", ".join(getattr(value, "_fields", ()))
    actual = type(value).__name__ + (f" (aka NamedTuple({fields}))" if fields else "")
    inferred = parameter.kind is INFERRED
    kind = parameter.kind.annotation() + " (inferred)" * inferred
    text = f"{name}() Expected a value of type '{kind}' for argument '{parameter.name}' but"
    text += f" instead found type '{actual}'."
    if inferred:
        text += f"\nInferred '{parameter.name}' to be of type 'Tensor' because it was not"
        text += " annotated with an explicit type."
    return f"{text}\nPosition: {position}\nValue: {value!r}"


def converted(kind: ScriptType, value: object) -> object:
    """A value of Python as compiled code has it."""
    match kind.kind:
        case "Tensor":
            if value is not None and not isinstance(value, Tensor):
                raise _UnfitError(f"Unable to cast {value} to Tensor")
        case "int" | "float" | "complex" | "bool":
            return _number(kind.kind, value)
        case "str" if isinstance(value, bytes):
            return value.decode()
        case "str" if not isinstance(value, str):
            raise _cast(value)
        case "Device":
            if not isinstance(value, str | Device):
                raise _cast(value)
            return Device(value)
        case "Optional" if value is not None:
            return converted(kind.args[0], value)
        case "Union" if (actual := kind_of_value(value)) is not None and not actual.is_a(kind):
            text = f"Expected a member of {kind.annotation()} but instead found type"
            raise _UnfitError(f"{text} {actual.annotation()}")
        case "List":
            return _list(kind.args[0], value)
        case "Dict":
            if not isinstance(value, dict) and value != []:
                raise _cast(value)
            key, inner = kind.args
            return {converted(key, k): converted(inner, v) for k, v in dict(value or {}).items()}
        case "Tuple":
            return _tuple(kind, value)
    return value


def _cast(value: object) -> _UnfitError:
    return _UnfitError(
        f"Unable to cast Python instance of type {type(value)} to C++ type '?' (#define"
        " PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)"
    )


def _number(kind: str, value: object) -> object:
    if (kind == "int" and isinstance(value, Dtype)) or (kind == "bool" and value is None):
        return value if kind == "int" else False
    if not isinstance(value, Tensor) and isinstance(value, str | Sequence):
        raise _cast(value)
    number: Any = value.item() if isinstance(value, Tensor) else value
    try:
        number = _NUMBERS[kind](int(number) if number is not value and kind == "int" else number)
    except (TypeError, ValueError):
        raise _cast(value) from None
    if kind == "int" and not -(2**63) <= number < 2**63:
        raise _cast(value)
    return number


def _list(kind: ScriptType, value: object) -> object:
    if isinstance(value, str | Tensor | dict) or not isinstance(value, Iterable):
        raise _cast(value)
    try:
        if kind.kind == "Tensor" and any(v is None for v in value):
            raise _cast(value)
        return [converted(kind, v) for v in value]
    except _UnfitError:
        if kind.kind in ("Tensor", *_NUMBERS):
            raise _cast(value) from None
        raise


def _tuple(kind: ScriptType, value: object) -> object:
    if not isinstance(value, Collection):
        raise _UnfitError(f"'{type(value).__name__}' object is not iterable")
    if len(value) != len(kind.args):
        raise _UnfitError(
            f"Object {value} had a different number of elements than type {kind.annotation()}"
        )
    parts = [converted(k, v) for k, v in zip(kind.args, value, strict=True)]
    make = getattr(type(value), "_make", tuple)
    return make(parts)
