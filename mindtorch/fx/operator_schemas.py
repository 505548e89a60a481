"""Owns arguments of calls as a signature has them: by position or by name, with defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import mindtorch

from ..nn.modules.module import Module
from ..ops.namespaces import OpOverload, namespace


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _schema_signature(target: OpOverload) -> inspect.Signature:
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    empty = inspect.Parameter.empty
    return inspect.Signature([
        inspect.Parameter(
            "input" if a.name == "self" else a.name, kinds[bool(a.kwarg_only)],
            default=a.default_value if a.has_default_value() else empty,
        )
        for a in target._schema.arguments
    ])  # fmt: skip


def _signature(target: Callable[..., Any]) -> inspect.Signature | None:
    if isinstance(target, OpOverload):
        return _schema_signature(target)
    ours = str(getattr(target, "__module__", "")).startswith("mindtorch")
    name = getattr(target, "__name__", "")
    layer = getattr(mindtorch.nn.functional, name, None) is target
    if not layer and getattr(mindtorch, name, None) is target:
        packet = getattr(namespace("aten"), name, None)
        kinds = [] if packet is None else [k for k in packet.overloads() if "out" not in k]
        return _schema_signature(getattr(packet, kinds[0])) if len(kinds) == 1 else None
    if (ours and not layer) or not inspect.isfunction(target):
        return None  # a builtin of several signatures
    signature = inspect.signature(target)
    parameters = [p for n, p in signature.parameters.items() if n != "axis"]  # numpy's word for dim
    return inspect.Signature(parameters)


def refuse_mutable(target: object, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """RuntimeError in torch's words for a function of torch's that writes to its arguments."""
    name = getattr(target, "__name__", "")
    if getattr(mindtorch, name or "_", None) is not target:
        return
    packet = getattr(namespace("aten"), name, None)
    kinds = () if packet is None else packet.overloads()
    schemas = [getattr(packet, k)._schema for k in kinds if ("out" in k) == ("out" in kwargs)]
    if schemas and schemas[0].is_mutable:
        raise RuntimeError(
            f"Tried to trace mutable operation {schemas[0]}. FX only supports functional code, so"
            " operations that mutate operands in-place (e.g. via `out` arguments) are not supported"
        )


def _normalized(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any], named: bool
) -> ArgsKwargsPair | None:
    kinds = [p.kind for p in signature.parameters.values()]
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    ours = list(signature.parameters) == ["input", *signature.parameters][: len(kinds)]
    if not all(kind in plain for kind in kinds) and not ours:
        return None
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    values, by_name = [], {}
    for at, (name, parameter) in enumerate(signature.parameters.items()):
        if not named and parameter.kind is not inspect.Parameter.KEYWORD_ONLY and at < len(args):
            values.append(bound.arguments[name])
        else:
            by_name[name] = bound.arguments[name]
    return ArgsKwargsPair(tuple(values), by_name)


def normalize_function(
    target: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None,
    arg_types: object = None, kwarg_types: object = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:  # fmt: skip
    """A function's arguments with defaults; None where its signature is not known."""
    signature = _signature(target)
    if signature is None:
        return None
    return _normalized(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def normalize_module(
    root: Module, target: str, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:  # fmt: skip
    """The arguments of a module of torch's; None of others."""
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"Tried to normalize a module call with target {target} but root did not have a module"
            " by that name."
        ) from error
    if getattr(mindtorch.nn, type(module).__name__, None) is not type(module):
        return None
    signature = inspect.signature(module.forward)
    return _normalized(signature, args, kwargs or {}, normalize_to_only_use_kwargs)
