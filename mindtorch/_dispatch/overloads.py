"""Owns the choice among rows that share a base name: by how many arguments, names and classes.

`max(x)`, `max(x, 1)` and `max(x, y)` are three rows. The first call with given classes of arguments
finds the row whose schema takes them; later calls look it up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any, cast

from .._compat.argument_errors import explained, explained_here, explained_inside
from .._compat.missing_args import Missing, before_missing
from .._compat.signatures import python_function
from .._tensor.dtype import dtype as Dtype, of_python
from .._tensor.tensor import Tensor
from ..ops.schema import ArgKind, SchemaArgument
from ..ops.spec import OPS, LazyAten, Op, overloads
from . import overrides
from .bind import NUMBERS_AS_TENSORS, number, tensor_first
from .documentation import document
from .entry import SECOND_NAMES, arguments, straight, takes_varargs

# What functions that torch has in Python pass their arguments on to.
_PASSED_ON = {"split": "split_with_sizes"}
_PLACE = {"function": "function", "method": "method", "inplace": "method", "aten": ""}


def rows_of(name: str, form: str) -> list[Op]:
    """The rows that `name` can mean in a form, the one without an overload's name first."""
    place = _PLACE[form]
    rows = [
        op
        for op in overloads(name)
        if (place in op.places if place else op.places & {"function", "method"})
        and (op.writes.inplace or form != "inplace")
    ]
    return sorted(rows, key=lambda op: "." in op.name)


def entry_of(op: Op, form: str, name: str = "") -> Callable[..., Any]:
    """What users call under an op's base name in a form: its entry, or a choice among several.

    `name` is another one that torch has for it, which its errors tell.
    """
    rows = rows_of(op.base_name, form) if form in _PLACE else []
    first, plain = rows[0] if rows else op, op.base_name + "_" * (form == "inplace")
    if name in ("", plain) and len(rows) < 2:
        entry: Callable[..., Any] = first.entry(form)
        return entry
    key = f"choice {form} {name or plain}"
    if key not in first.cache:
        if len(rows) < 2:
            first.cache[key] = named(first.entry(form), name)
        else:
            first.cache[key] = overloaded(name or plain, tuple(rows), form)
    return cast(Callable[..., Any], first.cache[key])


def named(entry: Callable[..., Any], name: str) -> Callable[..., Any]:
    """An entry under another name: what finds the name of a failed call reads it from the code."""
    if not isinstance(entry, FunctionType):
        return entry
    code = entry.__code__.replace(co_name=name)
    copy = FunctionType(code, entry.__globals__, name, entry.__defaults__, entry.__closure__)
    copy.__kwdefaults__ = entry.__kwdefaults__
    copy.__dict__.update(entry.__dict__)
    copy.__qualname__, copy.__doc__, copy.__module__ = name, entry.__doc__, entry.__module__
    return copy


def overloaded(name: str, rows: Sequence[Op], form: str) -> Callable[..., Any]:
    """One function of several rows; TypeError in torch's words where none takes the arguments."""
    cache: dict[Any, Callable[..., Any]] = {}

    def call(*args: Any, **kwargs: Any) -> Any:
        key: Any = tuple([a.__class__ for a in args])
        if kwargs:
            key = (key, *kwargs, *[v.__class__ for v in kwargs.values()])
        entry = cache.get(key)
        if entry is None:
            answer = overrides.hand_over_choice(rows[0], form, args, kwargs)
            if answer is not NotImplemented:
                return answer
            op = choose(name, rows, form, args, kwargs)
            entry = cache[key] = _spelled(op, form, kwargs)
        return entry(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__module__ = "mindtorch"
    call.__doc__ = document(rows, form)
    if not _leads(rows, form):
        return call
    return named(straight(rows[0], form, call), name)


def _leads(rows: Sequence[Op], form: str) -> bool:
    """Whether the first row's plans may be tried before the choice: all rows need what it needs."""
    first, needed = rows[0], [_needed(op) for op in rows]
    plain = first.body is None and not any(a.keyword_only for a in first.schema.args)
    if form in ("method", "inplace") and takes_varargs(first):
        needed[0].discard(first.schema.args[-1].name)
    return plain and all(needed[0] <= names for names in needed)


def _needed(op: Op) -> set[str]:
    return {a.name for a in op.schema.args if not a.has_default}


def _spelled(op: Op, form: str, kwargs: Mapping[str, Any]) -> Callable[..., Any]:
    """The entry, behind a change of names where arguments came by numpy's."""
    entry: Callable[..., Any] = op.entry(form)
    self_name = "input" if form == "function" else "self"
    names = [self_name if a.name == "self" else a.name for a in op.schema.args]
    if all(k in names or k == "out" for k in kwargs):
        return entry

    def renamed(*args: Any, **kwargs: Any) -> Any:
        values = {n: v for n, v in zip(names, args, strict=False) if v.__class__ is not Missing}
        values |= {k if k in names else _second(op, k): v for k, v in kwargs.items()}
        return entry(values.pop(self_name), **values)

    return renamed


def _second(op: Op, name: str) -> str:
    """What a row calls an argument that came by another name."""
    function = python_function(op.base_name)
    names = () if function is None else function.__code__.co_varnames
    if name in names[: len(op.schema.args)]:  # as torch's function of Python calls it
        argument = op.schema.args[names.index(name)].name
        return "input" if argument == "self" else argument
    return SECOND_NAMES.get(name, name)


def choose(
    name: str, rows: Sequence[Op], form: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Op:
    """The first row that takes the arguments as they are, else the first that can convert them."""
    args = before_missing(args)
    operands = (
        tensor_first(args, "", rows[0].base_name in NUMBERS_AS_TENSORS)
        if any(op.api.number_first for op in rows)
        else args
    )
    for strict in (True, False):
        for op in rows:
            bound = _bound(op, form, operands, kwargs)
            if bound is not None and all(_suits(a, v, strict) for a, v in bound):
                return op
    method = form in ("method", "inplace")
    full = "." * method + name
    if name in _PASSED_ON and args:
        if not isinstance(args[0], Tensor):
            return cast("Op", getattr(args[0], name)(*args[1:], **kwargs))
        names = ("input", "split_sizes", "dim")
        if error := explained_inside(_PASSED_ON[name], dict(zip(names, args, strict=False))):
            raise error
    named = {k: v for k, v in kwargs.items() if v is not None or k != "out"}
    error = explained_here() or explained(full, args[method:], named)
    raise error or TypeError(f"{name}() received an invalid combination of arguments")


def _bound(
    op: Op, form: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[tuple[SchemaArgument, Any]] | None:
    """Arguments with their values; None where too many, unknown or missing ones are given."""
    places = [a for a in arguments(op, form) if not a.keyword_only]
    if form in ("method", "inplace") and takes_varargs(op) and len(args) > 2:
        args = (args[0], tuple(args[1:]))
    if len(args) > len(places):
        return None
    bound = dict(zip([a.name for a in places], args, strict=False))
    for name, value in _named(op, form, kwargs):
        if name in bound:
            return None
        bound[name] = value
    known = {a.name: a for a in op.schema.args}
    if not bound.keys() <= known.keys() or not _needed(op) <= bound.keys():
        return None
    return [(known[name], value) for name, value in bound.items()]


def _named(op: Op, form: str, kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    names = {a.name for a in op.schema.args}
    for name, value in kwargs.items():
        if name == "out" and form == "function":
            continue
        name = name if name in names else _second(op, name)
        yield ("self" if name == "input" and "self" in names else name), value


def _suits(arg: SchemaArgument, value: Any, strict: bool) -> bool:
    """Whether an argument takes a value: as it is, or converted where not `strict`."""
    if value is None:
        return arg.optional or (arg.has_default and arg.default is None)
    if arg.kind in (ArgKind.TENSOR, ArgKind.OPTIONAL_TENSOR):
        return isinstance(value, Tensor)
    if arg.kind in (ArgKind.TENSORS, ArgKind.OPTIONAL_TENSORS):
        return isinstance(value, list | tuple) and all(isinstance(v, Tensor) for v in value)
    if arg.kind is ArgKind.UNION:
        return isinstance(value, Tensor) or number(value) is not None
    if arg.kind is ArgKind.INTS:
        return _is_int(value, strict) or (
            isinstance(value, list | tuple) and all(_is_int(v, False) for v in value)
        )
    if arg.kind is ArgKind.SCALAR or arg.type in ("Number", "float"):
        if isinstance(value, Tensor):  # its value is not read: that would wait for the device
            return not strict and value.numel() == 1
        return number(value) is not None
    return _ATTRIBUTES[arg.type](value, strict) if arg.type in _ATTRIBUTES else True


def _is_int(value: Any, strict: bool) -> bool:
    if isinstance(value, Tensor):
        return not strict and value.numel() == 1
    return hasattr(value.__class__, "__index__") and not (strict and isinstance(value, bool))


_ATTRIBUTES: dict[str, Callable[[Any, bool], bool]] = {
    "int": _is_int,
    "bool": lambda value, strict: isinstance(value, bool if strict else bool | int),
    "str": lambda value, strict: isinstance(value, str),
    "ScalarType": lambda value, strict: isinstance(of_python(value), Dtype),
}


def _load(name: str) -> Any:
    """`aten.name`: a row, a choice among overloads, or the overload in `name_overload`."""
    rows = rows_of(name, "aten")
    if len(rows) > 1:
        return overloaded(name, tuple(rows), "aten")
    op = OPS.get(name) or (rows[0] if rows else None)
    for at in (i for i, char in enumerate(name) if char == "_"):
        op = op or OPS.get(f"{name[:at]}.{name[at + 1 :]}")
    if op is None:
        raise AttributeError(f"no op named {name}")
    return op.entry("aten")


LazyAten.load = staticmethod(_load)
