"""Owns the keys of plans: what of a call's arguments decides how it runs.

Geometries of tensors, classes of numbers (a number that is the schema's default stands for
itself), values of attributes. The lines are written once, into
every entry and into `key_of`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ops.rules import NUMBERS
from ..ops.schema import ArgKind, SchemaArgument
from ..ops.source import compiled
from ..ops.spec import MISSING, Op


def key_lines(op: Op) -> str:
    """The lines that make `key`, and `fn`: the first history among the arguments."""
    args = op.schema.args
    unions = [a for a in args if a.kind is ArgKind.UNION and not a.optional]
    if len(unions) == 1:
        name = unions[0].name
        number = _parts(args, {name: (f"{name}.__class__", None)})
        tensor = _parts(args, {name: (f"{name}._geom", f"{name}._fn")})
        lines = f"        if {name}.__class__ in NUMBERS:\n"
        lines += _assign(number, 12) + "        else:\n"
        lines += _assign(tensor, 12)
    else:
        lines = _assign(_parts(args, {}), 8)
    return lines


def guard_of(op: Op) -> str:
    """The condition for taking the layers instead of running the plan."""
    differentiable = op.grad is MISSING or bool(op.grad)
    tensors = any(a.kind not in (ArgKind.ATTR, ArgKind.INTS) for a in op.schema.args)
    watched = tensors and (differentiable or op.writes.inplace)
    return "fn is not None or MODES.active" if watched else "MODES.active"


def key_of(op: Op, args: Sequence[Any]) -> Any:
    """The key of arguments in plan form, by the lines that entries have."""
    function = op.cache.get("key")
    if function is None:
        scope = {"NUMBERS": NUMBERS, "first_fn": lambda tensors: None, **defaults(op)}
        function = op.cache["key"] = compiled(key_source(op), f"key {op.name}", scope)
    return function(*args)


def key_source(op: Op) -> str:
    """The function `key` of an op's arguments, which an entry's source has beside it."""
    names = ", ".join(a.name for a in op.schema.args)
    return f"def key({names}):\n    if True:\n{key_lines(op)}        return key_\n"


def defaults(op: Op) -> dict[str, Any]:
    """The names by which the lines know the arguments' defaults."""
    return {f"D_{a.name}": a.default for a in op.schema.args if a.has_default}


def _assign(parts: tuple[list[str], list[str]], indent: int) -> str:
    keys, fns = parts
    pad = " " * indent
    key = keys[0] if len(keys) == 1 else f"({', '.join(keys)},)" if keys else "None"
    return f"{pad}key_ = {key}\n{pad}fn = {' or '.join(fns) or 'None'}\n"


def _parts(args: tuple[SchemaArgument, ...], bound: dict[str, Any]) -> tuple[list[str], list[str]]:
    keys: list[str] = []
    fns: list[str] = []
    for arg in args:
        key, fn = bound[arg.name] if arg.name in bound else _part(arg)
        if key:
            keys.append(key)
        if fn:
            fns.append(fn)
    return keys, fns


def _part(arg: SchemaArgument) -> tuple[str | None, str | None]:
    n = arg.name
    if arg.kind is ArgKind.TENSOR:
        return f"{n}._geom", f"{n}._fn"
    if arg.kind is ArgKind.OPTIONAL_TENSOR:
        return f"(None if {n} is None else {n}._geom)", f"(None if {n} is None else {n}._fn)"
    if arg.kind is ArgKind.UNION:
        number = f"{n}.__class__ in NUMBERS or {n} is None"
        return (
            f"({n}.__class__ if {number} else {n}._geom)",
            f"(None if {number} else {n}._fn)",
        )
    if arg.kind in (ArgKind.TENSORS, ArgKind.OPTIONAL_TENSORS):
        none = "None if t is None else " if arg.kind is ArgKind.OPTIONAL_TENSORS else ""
        return f"tuple([{none}t._geom for t in {n}])", f"first_fn({n})"
    if arg.counts_default:
        return f"({n} if {n} is D_{n} else {n}.__class__)", None
    if arg.kind is ArgKind.SCALAR or arg.type == "Generator":
        return f"{n}.__class__", None
    if arg.type in ("Number", "float"):
        return f"{n}, {n}.__class__", None
    return n, None
