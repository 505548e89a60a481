"""Owns what torch's parser of arguments says of a call that fits no signature of a name.

Only failed calls come here. How a call was written, which of its arguments came by name, is read
from the caller's bytecode: entries see values alone.
"""

from __future__ import annotations

import dis
import functools
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeVar, cast

import numpy as np

from .._tensor.device import device as Device
from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from ..ops.schema import Arg, Kind
from ..ops.spec import Op
from .class_names import class_name as class_name
from .missing_args import Missing
from .signatures import OPTIONS, TEXT

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Param:
    """A parameter as torch shows it: `tuple of ints dim = None`."""

    kind: str
    name: str
    optional: bool
    keyword_only: bool
    none: bool

    def takes(self, value: Any) -> bool:
        """Whether torch's parser takes a value; kinds that are not known take all."""
        if value is None:
            return self.none or self.kind in ("Tensor?", "object")
        test = _TESTS.get(self.kind)
        return test is None or test(self, value)


@dataclass(frozen=True)
class Signature:
    """One signature of a name."""

    params: tuple[Param, ...]

    @property
    def least(self) -> int:
        return sum(not p.optional for p in self.params)

    @property
    def places(self) -> int:
        return sum(not p.keyword_only for p in self.params)

    @property
    def lone_ints(self) -> bool:
        return self.places == 1 and self.params[0].kind == "tuple of ints"


_PARAM = re.compile(r"^([a-zA-Z][\w.]*(?: of \w+)?) (\w+)(?: = (.*))?$")


@functools.cache
def _table() -> dict[str, tuple[str, ...]]:
    table: dict[str, list[str]] = {}
    name = ""
    for line in TEXT.replace("<options>", OPTIONS).strip().splitlines():
        if line.startswith(" "):
            table[name].append(line[1:])
        else:
            name = line
            table[name] = []
    return {name: tuple(rows) for name, rows in table.items()}


def method_rows(rows: Sequence[str]) -> list[str]:
    """A function's signatures as its method has them."""
    methods = [r for r in rows if r.startswith("(Tensor input")]
    short = [re.sub(r"(, \*)?, \w[\w ]* out = None|^\(Tensor input", "", r) for r in methods]
    return ["(" + r.removeprefix(", ") if r[:1] != "(" else r for r in short]


def rows_of(name: str, method: bool) -> tuple[str, ...]:
    """The signatures that torch lists for a name, () where it has one."""
    table = _table()
    if not method:
        return table.get(name, ())
    derived = method_rows(table.get(name.rstrip("_"), ()))
    return table.get("." + name) or table.get("." + name.rstrip("_")) or tuple(derived)


@functools.cache
def signature(text: str) -> Signature:
    """A signature from torch's text of it."""
    params, named = [], False
    for part in re.split(r", (?![^{}]*\})", text[1:-1]):
        match = _PARAM.match(part)
        if part == "*":
            named = True
        elif match:
            kind, name, default = match.groups()
            params.append(Param(kind, name, default is not None, named, default == "None"))
    return Signature(tuple(params))


_LABELS = {"Scalar": "Number", "ScalarType": "torch.dtype", "int[]": "tuple of ints", "int": "int",
          "Tensor[]": "tuple of Tensors", "bool": "bool", "str": "str", "SymInt": "int",
          "SymInt[]": "tuple of ints", "float": "float", "Tensor": "Tensor",
          "Tensor|Scalar": "Tensor", "Number": "Number"}  # fmt: skip


def _of_row(op: Op, method: bool) -> Signature:
    params = [_param(a) for a in op.schema.args if not (method and a.name == "self")]
    if not method and params:
        params.append(Param("Tensor?", "out", True, True, True))
    return Signature(tuple(params))


def _param(arg: Arg) -> Param:
    kind = _LABELS.get(arg.type, "object")
    kind = "union" if arg.kind is Kind.UNION else kind
    none = arg.optional or (arg.has_default and arg.default in (None, ()))
    name = "input" if arg.name == "self" else arg.name
    return Param(kind, name, arg.has_default, arg.keyword_only, none)


def suits(arg: Arg, value: object) -> bool:
    """Whether torch's parser takes a value for an attribute; a missing one is told elsewhere."""
    return value.__class__ is Missing or _param(arg).takes(value)


def _is_int(value: Any) -> bool:
    if isinstance(value, Tensor):
        return not value.ndim and not value.is_floating_point() and not value.is_complex()
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)


# Names of lists that take an int for all of them: those that are written with a length.
_LONE = frozenset(("dim", "stride", "padding", "dilation", "kernel_size", "output_size", "tol",
                   "output_padding", "shifts"))  # fmt: skip


def _is_ints(param: Param, value: Any) -> bool:
    if isinstance(value, list | tuple):
        return not value or _is_int(value[0]) or value[0] is None
    return param.name in _LONE and _is_int(value)


def _is_number(param: Param, value: Any) -> bool:
    if isinstance(value, Tensor):
        return not value.ndim and not value.requires_grad
    return isinstance(value, int | float | complex | np.number | np.bool_)


def _is_float(param: Param, value: Any) -> bool:
    return _is_number(param, value) and not isinstance(value, complex)


_TESTS: dict[str, Any] = {
    "Tensor": lambda p, v: isinstance(v, Tensor),
    "Tensor?": lambda p, v: isinstance(v, Tensor | tuple | list),
    "union": lambda p, v: isinstance(v, Tensor) or _is_number(p, v),
    "Number": _is_number,
    "float": _is_float,
    "int": lambda p, v: _is_int(v),
    "tuple of ints": _is_ints,
    "tuple of Tensors": lambda p, v: isinstance(v, list | tuple),
    "tuple of floats": lambda p, v: isinstance(v, list | tuple),
    "tuple of Scalars": lambda p, v: isinstance(v, list | tuple),
    "bool": lambda p, v: isinstance(v, bool | np.bool_),
    "str": lambda p, v: isinstance(v, str),
    "torch.dtype": lambda p, v: isinstance(v, Dtype) or v in (float, int, bool),
    "torch.device": lambda p, v: isinstance(v, Device | str | int),
    "torch.memory_format": lambda p, v: type(v).__name__ == "memory_format",
    "torch.layout": lambda p, v: type(v).__name__ == "layout",
    "torch.Generator": lambda p, v: type(v).__name__ == "Generator",
    "torch.Storage": lambda p, v: type(v).__name__.endswith("Storage"),
}
# numpy's names of parameters.
_SECOND = {"dim": "axis", "keepdim": "keepdims", "input": "x", "other": "x2"}


# What functions raise that were given what they do not take.
_SIGNS = (AttributeError, RuntimeError, TypeError, ValueError)


def parsed(text: str = "", method: bool = False) -> Callable[[F], F]:
    """Have a function written by hand refuse calls as torch's parser does, once it has failed.

    `text` is its signature in torch, where it has one alone.
    """

    def put(function: F) -> F:
        name = function.__name__

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except _SIGNS:
                texts = () if text else rows_of(name, method)
                signatures = [signature(t) for t in texts or (text.replace("<options>", OPTIONS),)]
                if not (text or texts):
                    raise
                if message := refusal(name, signatures, texts, args[method:], kwargs):
                    raise message from None
                raise

        return cast("F", run)

    return put


def parsed_row(op: Op, function: F) -> F:
    """As `parsed`, of a row's function whose arguments torch parses in C."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except _SIGNS:
            texts = rows_of(op.base_name, False)
            signatures = [signature(t) for t in texts] or [_of_row(op, False)]
            if message := refusal(op.base_name, signatures, texts, args, kwargs):
                raise message from None
            raise

    return cast("F", run)


def refusal(
    name: str, signatures: Sequence[Signature], texts: Sequence[str],
    args: Sequence[Any], kwargs: Mapping[str, Any],
) -> TypeError | None:  # fmt: skip
    """What torch says of a call; None where it takes it, as far as can be seen.

    With several signatures, the one that takes as many arguments says what is wrong; where more
    take as many, or none does, all are listed.
    """
    count = len(args) + len(kwargs)
    fitting = [s for s in signatures if s.least <= count <= len(s.params)]
    if not texts or len(fitting) == 1:
        return _first_fault(name, (fitting or signatures)[0], args, kwargs)
    faults = [_first_fault(name, s, args, kwargs) for s in fitting]
    if None in faults:
        return None
    if unpacking := next((f for f in faults if f and "failed to unpack" in str(f)), None):
        return unpacking
    kinds = ", ".join(class_name(v) for v in args)
    named = "".join(f"{k}={class_name(v)}, " for k, v in kwargs.items())
    kinds = f"{kinds}, {named}"[:-2] if args and named else kinds or named
    listed = "one of:\n" + "".join(f" * {t}\n" for t in texts) if len(texts) > 1 else texts[0]
    return TypeError(
        f"{name}() received an invalid combination of arguments - got ({kinds}), but expected"
        f" {listed}"
    )


def _first_fault(
    name: str, row: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> TypeError | None:
    lone = row.lone_ints and (not args or _is_int(args[0]))  # ints one by one
    if len(args) > row.places and not lone:
        return _too_many(name, row, len(args))
    left = dict(kwargs)
    for at, param in enumerate(row.params):
        placed = at < len(args) and not param.keyword_only
        key = param.name if param.name in left else _SECOND.get(param.name, param.name)
        if not placed and key not in left:
            if not param.optional:
                return _absent(name, row.params[at:])
            continue
        value = args[at] if placed else left.pop(key)
        if not param.takes(value) and not (lone and placed):
            place = f" (position {at + 1})" if placed else ""
            kind = "Tensor" if param.kind in ("union", "Tensor?") else param.kind
            rather = f", not {class_name(value)}"
            if kind == "tuple of ints" and isinstance(value, list | tuple):
                rather = f", but found element of type {class_name(value[0])} at pos 0"
            return TypeError(f"{name}(): argument '{param.name}'{place} must be {kind}{rather}")
        if message := _unpacking(name, param, value):
            return message
    for key in left:
        known = any(key == p.name for p in row.params)
        problem = "multiple values for argument" if known else "an unexpected keyword argument"
        return TypeError(f"{name}() got {problem} '{key}'")
    return None


def _unpacking(name: str, param: Param, value: object) -> TypeError | None:
    """What torch says of a list of ints whose first is one, where a later one is none."""
    if param.kind == "tuple of ints" and isinstance(value, list | tuple):
        for at, part in enumerate(value):
            if part is not None and not _is_int(part) and not hasattr(part, "__index__"):
                return TypeError(
                    f"{name}(): argument '{param.name}' failed to unpack the object at pos {at + 1}"
                    f' with error "type must be tuple of ints,but got {class_name(part)}"'
                )
    return None


def refused_input(name: str, value: object) -> TypeError:
    """What torch says where a function's first argument is no tensor."""
    if value.__class__ is Missing:
        return TypeError(f'{name}() missing 1 required positional arguments: "input"')
    return TypeError(
        f"{name}(): argument 'input' (position 1) must be Tensor, not {class_name(value)}"
    )


def _too_many(name: str, row: Signature, count: int) -> TypeError:
    most, least = row.places, row.least
    if least != most:
        return TypeError(
            f"{name}() takes from {least} to {most} positional arguments but {count} were given"
        )
    many, were = "s" * (most != 1), "was" if count == 1 else "were"
    return TypeError(f"{name}() takes {most} positional argument{many} but {count} {were} given")


def _absent(name: str, params: Sequence[Param]) -> TypeError:
    lacking = ", ".join(f'"{p.name}"' for p in params if not p.optional)
    count = sum(not p.optional for p in params)
    one = "s" * (count == 1)  # sic
    return TypeError(f"{name}() missing {count} required positional argument{one}: {lacking}")


def explained_here(op: Op) -> TypeError | None:
    """What torch says of the call whose entry is on the stack, before its values are complete."""
    frame: FrameType | None = sys._getframe(1)
    written_for = f"<mindtorch entry {op.name} "
    while frame is not None and not frame.f_code.co_filename.startswith(written_for):
        frame = frame.f_back
    if frame is None:
        return None
    place, values = frame.f_code.co_filename, frame.f_locals
    form = place.strip("<>").removesuffix(", overloaded").rpartition(" ")[2]
    params = [a for a in op.schema.args if a.name in values]
    return unchosen(op.base_name, form, params, [values[a.name] for a in params], {}, op)


def explained(
    op: Op, form: str, values: Sequence[Any], extra: Mapping[str, Any] | None = None
) -> TypeError | None:
    """What torch says of a call of a row with these values, in the schema's order.

    `extra` are arguments by names that the row does not have.
    """
    if form not in FORMS:
        return None
    return unchosen(op.base_name, form, op.schema.args, values, extra or {}, op)


def unchosen(
    name: str, form: str, params: Sequence[Arg], args: Sequence[Any],
    kwargs: Mapping[str, Any], op: Op | None = None,
) -> TypeError | None:  # fmt: skip
    """What torch says of a call that fits none of the rows of a name, of which one has `params`.

    `op` is the only row where there are no others.
    """
    method = form != "function"
    texts = rows_of(name + "_" * (form == "inplace"), method)
    if form not in FORMS or not (texts or op):
        return None
    placed, named = list(args[method:]), dict[str, Any]()
    if len(args) <= len(params):
        placed, named = call_arguments(params[: len(args)], form, args)
    name += "_" * (form == "inplace")
    signatures = [signature(t) for t in texts] or ([_of_row(op, method)] if op else [])
    named |= {k: v for k, v in kwargs.items() if v is not None or k != "out"}
    return refusal(name, signatures, texts, placed, named)


FORMS = frozenset(("function", "method", "inplace"))


# Methods that torch has in Python, so that Python counts their arguments, `self` among them.
_IN_PYTHON = frozenset(("istft", "norm", "split", "stft", "unflatten", "unique_consecutive"))


def refuse_more(op: Op, values: Sequence[Any], more: Sequence[Any], form: str = "function") -> None:
    """TypeError in torch's words for more arguments by place than a function or method has."""
    if not more:
        return
    method, name = form != "function", op.base_name + "_" * (form == "inplace")
    pairs = [
        (a, v)
        for a, v in zip(op.schema.args, values, strict=True)
        if not (method and a.name == "self")
    ]
    named = keywords_of_call()
    texts = rows_of(name, method)
    signatures = [signature(t) for t in texts] or [_of_row(op, method)]
    if method and name in _IN_PYTHON:
        most, least = len(pairs) + 1, 1 + sum(not a.has_default for a, _ in pairs)
        raise TypeError(
            f"Tensor.{name}() takes from {least} to {most} positional arguments but"
            f" {len(pairs) + 1 + len(more)} were given"
        )
    if method and not pairs:
        raise TypeError(f"TensorBase.{name}() takes no arguments ({len(more)} given)")
    kwargs = {a.name: v for a, v in pairs if a.keyword_only and a.name in named}
    args = [*(v for a, v in pairs if not a.keyword_only), *more]
    message = refusal(name, signatures, texts, args, kwargs)
    raise message or TypeError(f"{name}(): too many arguments")


def call_arguments(
    params: Sequence[Arg], form: str, values: Sequence[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments as the call gave them: by place, by name."""
    named = keywords_of_call()
    pairs = [(a, v) for a, v in zip(params, values, strict=True)]
    if form != "function":
        pairs = [(a, v) for a, v in pairs if a.name != "self"]
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    behind = False
    last = _last_place(pairs, named)
    for at, (arg, value) in enumerate(pairs):
        name = "input" if arg.name == "self" else arg.name
        second = _SECOND.get(name, "")
        if value.__class__ is Missing or (
            at > last and arg.has_default and value is arg.default and name not in named
        ):
            behind = True
        elif name in named or second in named:
            kwargs[name if name in named else second] = value
        elif arg.keyword_only or behind:
            kwargs[name] = value
        elif method_ints(params, form) and value.__class__ is tuple:
            args += value
        else:
            args.append(value)
    return args, kwargs


def _last_place(pairs: Sequence[tuple[Arg, Any]], named: Sequence[str]) -> int:
    """The last argument that was surely given by place: what stands before it was too."""
    places = [
        at
        for at, (arg, value) in enumerate(pairs)
        if not arg.keyword_only
        and arg.name not in named
        and _SECOND.get(arg.name, "") not in named
        and value.__class__ is not Missing
        and not (arg.has_default and value is arg.default)
    ]
    return places[-1] if places else -1


def method_ints(params: Sequence[Arg], form: str) -> bool:
    """Whether a method takes its ints one by one: `x.view(2, 3)`."""
    rest = [a for a in params if not a.keyword_only and a.name != "self"]
    return form != "function" and len(rest) == 1 and rest[0].type == "int[]" and not rest[0].size


def keywords_of_call() -> tuple[str, ...]:
    """The names by which the call of the entry on the stack gave arguments; () if unknown."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith("<mindtorch "):
        frame = frame.f_back
    while frame is not None and (
        frame.f_code.co_filename.startswith("<mindtorch ")
        or frame.f_globals.get("__name__", "").startswith("mindtorch._dispatch")
    ):
        frame = frame.f_back
    return () if frame is None else _keywords(frame)


def _keywords(frame: FrameType) -> tuple[str, ...]:
    """The names in the call that a frame is at: KW_NAMES, or the constant under CALL_KW."""
    recent: list[dis.Instruction] = []
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset > frame.f_lasti:
            break
        recent = [*recent[-2:], instruction]
    if not recent or not recent[-1].opname.startswith("CALL"):
        return ()
    if recent[-1].opname in ("CALL_KW", "CALL_FUNCTION_KW"):
        at = recent[-2].arg
    else:
        at = next((i.arg for i in recent if i.opname == "KW_NAMES"), None)
    constants = frame.f_code.co_consts
    names = constants[at] if at is not None and at < len(constants) else ()
    return names if isinstance(names, tuple) else ()
