"""Owns torch's parser of arguments: whether a call fits signatures, and what is said if not.

Written after the rules of torch/csrc/utils/python_arg_parser.cpp and invalid_arguments.cpp of
torch 2.13. Calls that failed come here, and the first of each kind before it is made.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from .._tensor.device import device as Device
from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from .class_names import class_name
from .invalid_arguments import invalid_combination

F = TypeVar("F", bound=Callable[..., Any])
# Functions that take numbers for tensors (should_allow_numbers_as_tensors).
_NUMBERS_FIT = frozenset(
    name + end
    for name in ("add", "div", "divide", "mul", "multiply", "sub", "subtract", "true_divide", "to",
                 "floor_divide", "copy")
    for end in ("", "_")
) - {"copy", "to_"}  # fmt: skip
# numpy's names of parameters.
_SECOND = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",)}
_LABELS = {
    "Scalar": "Number", "int64_t": "int", "SymInt": "int", "double": "float",
    "TensorList": "tuple of Tensors", "c10::List<::std::optional<Tensor>>": "tuple of Tensors",
    "IntArrayRef": "tuple of ints", "SymIntArrayRef": "tuple of ints",
    "ArrayRef<double>": "tuple of floats", "ArrayRef<Scalar>": "tuple of Scalars",
    "ScalarList": "tuple of Scalars", "Generator": "torch.Generator", "Storage": "torch.Storage",
    "PyObject*": "object", "ScalarType": "torch.dtype", "Layout": "torch.layout",
    "MemoryFormat": "torch.memory_format", "QScheme": "torch.qscheme", "Device": "torch.device",
    "Stream": "torch.Stream", "std::string": "str", "c10::string_view": "str",
    "std::string_view": "str", "DeviceIndex": "int", "Dimname": "name",
    "DimnameList": "tuple of names",
}  # fmt: skip
_LISTS_OF_INTS = ("IntArrayRef", "SymIntArrayRef")


class FunctionParameter(NamedTuple):
    """A parameter of a signature: `IntArrayRef[2]? dim=None`."""

    kind: str
    size: int
    name: str
    default: str | None
    allow_none: bool
    keyword_only: bool
    numbers_fit: bool

    @property
    def label(self) -> str:
        return _LABELS.get(self.kind, self.kind)

    @property
    def text(self) -> str:
        default = "" if self.default is None else f" = {self.default}"
        return f"{self.label} {self.name}{default}"

    def check(self, value: Any, at: int) -> bool:
        """Whether the parser takes a value; TypeError for an element of a list of tensors."""
        if self.kind in ("TensorList", "c10::List<::std::optional<Tensor>>"):
            return _are_tensors(value, at)
        test = _TESTS.get(self.kind)
        return test is None or bool(test(self, value))


_PARAMETER = re.compile(r"^([^ ?\[]+)(?:\[(\d*)\])?(\?)? (\w+)(?:=(.*))?$")


class FunctionSignature(NamedTuple):
    """One signature of a name, from torch's own text: `abs(Tensor input, *, Tensor out=None)`.

    `least`: parameters without a default; `places`: those that are not for keywords alone;
    `lone_ints`: a list of ints is the only one of these.
    """

    name: str
    params: tuple[FunctionParameter, ...]
    hidden: bool
    least: int
    places: int
    lone_ints: bool

    @property
    def text(self) -> str:
        parts: list[str] = []
        for param in self.params:
            if param.keyword_only and "*" not in parts:
                parts.append("*")
            parts.append(param.text)
        return f"({', '.join(parts)})"


@functools.cache
def parameter(
    text: str, keyword_only: bool = False, numbers_fit: bool = False
) -> FunctionParameter:
    """A parameter from its text."""
    match = _PARAMETER.match(text)
    if match is None:
        raise ValueError(f"no parameter: {text!r}")
    kind, size, none, label, default = match.groups()
    allow_none = bool(none) or default == "None"
    return FunctionParameter(
        kind, int(size or 0), label, default, allow_none, keyword_only, numbers_fit
    )


@functools.cache
def signature(text: str) -> FunctionSignature:
    """A signature from its text."""
    name, _, rest = text.partition("(")
    inside, _, end = rest.rpartition(")")
    params: list[FunctionParameter] = []
    keyword_only = False
    for part in inside.split(", ") if inside else ():
        if part == "*":
            keyword_only = True
        else:
            params.append(parameter(part, keyword_only, name in _NUMBERS_FIT))
    places = sum([not p.keyword_only for p in params])
    return FunctionSignature(
        name,
        tuple(params),
        end in ("|deprecated", "|hidden"),
        sum([p.default is None for p in params]),
        places,
        places == 1 and params[0].kind in _LISTS_OF_INTS and not params[0].size,
    )


def _plain_int(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)


def _scalar_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) and not value.ndim and not value.requires_grad


def _is_real(value: Any) -> bool:
    return bool(value.is_floating_point() or value.is_complex())


def _whole(value: Any) -> bool:
    return not (_is_real(value) or str(value.dtype)[-4:] == "bool")


def _is_int(_: FunctionParameter, value: Any) -> bool:
    return _plain_int(value) or (_scalar_tensor(value) and _whole(value))


def _is_index(value: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return False
    if isinstance(value, Tensor):
        return value.numel() == 1 and _whole(value)
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _is_float(_: FunctionParameter, value: Any) -> bool:
    return isinstance(value, float | int | np.number | np.bool_) or _scalar_tensor(value)


def _is_number(param: FunctionParameter, value: Any) -> bool:
    return isinstance(value, complex) or _is_float(param, value)


def _are_ints(param: FunctionParameter, value: Any) -> bool:
    if isinstance(value, list | tuple):
        return not len(value) or _is_index(value[0])
    if isinstance(value, Tensor):
        return param.size > 0 and value.numel() == 1 and not _is_real(value)
    return param.size > 0 and (_is_index if param.kind[:3] == "Sym" else _plain_int)(value)


def _is_tensor(param: FunctionParameter, value: Any) -> bool:
    if isinstance(value, Tensor) or hasattr(type(value), "__torch_function__"):
        return True
    return param.numbers_fit and isinstance(value, complex | float | int | np.number | np.bool_)


def _are_tensors(value: Any, at: int) -> bool:
    if not isinstance(value, list | tuple):
        return False
    for n, item in enumerate(value):
        if not (isinstance(item, Tensor) or hasattr(type(item), "__torch_function__")):
            raise TypeError(
                f"expected Tensor as element {n} in argument {at}, but got {class_name(item)}"
            )
    return True


def _are_floats(_: FunctionParameter, value: Any) -> bool:
    listed = isinstance(value, list | tuple)
    return listed and (not value or isinstance(value[0], float | int | complex | np.number))


def _are_numbers(_: FunctionParameter, value: Any) -> bool:
    kinds = complex | float | int | np.number | np.bool_
    return isinstance(value, list | tuple) and all(isinstance(v, kinds) for v in value)


def _is_name(_: FunctionParameter, value: Any) -> bool:
    return value is None or isinstance(value, str)


def _are_names(_: FunctionParameter, value: Any) -> bool:
    listed = isinstance(value, list | tuple)
    return listed and (not value or value[0] is None or isinstance(value[0], str))


def _called(name: str) -> Callable[[FunctionParameter, Any], bool]:
    return lambda _, value: type(value).__name__.endswith(name)


_TESTS: dict[str, Callable[[FunctionParameter, Any], bool]] = {
    "Tensor": _is_tensor,
    "Scalar": _is_number,
    "double": _is_float,
    "int64_t": _is_int,
    "SymInt": lambda _, value: _is_index(value),
    "IntArrayRef": _are_ints,
    "SymIntArrayRef": _are_ints,
    "ArrayRef<double>": _are_floats,
    "ArrayRef<Scalar>": _are_numbers,
    "ScalarList": _are_numbers,
    "bool": lambda _, value: isinstance(value, bool | np.bool_),
    "std::string": lambda _, value: isinstance(value, str | bytes),
    "std::string_view": lambda _, value: isinstance(value, str | bytes),
    "c10::string_view": lambda _, value: isinstance(value, str | bytes),
    "ScalarType": lambda _, value: (
        isinstance(value, Dtype)
        or (isinstance(value, type) and value in (float, int, bool, complex))
    ),
    "Device": lambda _, value: _plain_int(value) or isinstance(value, Device | str | bytes),
    "MemoryFormat": _called("memory_format"),
    "Layout": _called("layout"),
    "QScheme": _called("qscheme"),
    "Generator": _called("Generator"),
    "Storage": _called("Storage"),
    "Stream": _called("Stream"),
    "Dimname": _is_name,
    "DimnameList": _are_names,
}


def refusal(
    signatures: Sequence[FunctionSignature], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> TypeError | None:
    """What torch says of a call; None where a signature takes it."""
    return fitted(signatures, args, kwargs)[1]


def fitted(
    signatures: Sequence[FunctionSignature], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[FunctionSignature | None, TypeError | None]:
    """The signature that takes a call, and what torch says of it else."""
    try:
        for row in sorted(signatures, key=lambda s: s.hidden):
            if _fault(row, args, kwargs) is None:
                return row, _unpacking(row, args, kwargs)
        return None, _refusal(signatures, args, kwargs)
    except TypeError as error:  # an element of a list of tensors
        return None, error


def _refusal(
    signatures: Sequence[FunctionSignature], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> TypeError | None:
    if len(signatures) == 1:
        return _fault(signatures[0], args, kwargs)
    count = len(args) + len(kwargs)
    visible = [s for s in signatures if not s.hidden]
    plausible = [s for s in visible if s.least <= count <= len(s.params)]
    if len(plausible) == 1:
        return _fault(plausible[0], args, kwargs)
    name = signatures[0].name
    return TypeError(invalid_combination(f"{name}()", args, kwargs, [s.text for s in visible]))


def of_signatures(*rows: str) -> Callable[[F], F]:
    """Let a function of Python refuse what torch's parser refuses, by these signatures."""
    signatures = [signature(row) for row in rows]

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            if refused := refusal(signatures, args, kwargs):
                raise refused
            return function(*args, **kwargs)

        return cast(F, checked)

    return decorate


def _fault(
    row: FunctionSignature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> TypeError | None:
    """The first fault of a call of one signature."""
    one_by_one = row.lone_ints and len(args) > 1 and _is_index(args[0])
    if len(args) > row.places and not one_by_one:
        return _too_many(row, len(args))
    at, left = 0, len(kwargs)
    for index, param in enumerate(row.params):
        placed = at < len(args)
        if placed and param.keyword_only:
            return _too_many(row, len(args))
        names = (param.name, *_SECOND.get(param.name, ()))
        key = None if placed else next((n for n in names if n in kwargs), None)
        absent = not placed and key is None
        value = args[at] if placed else kwargs.get(key or "")
        if absent and param.default is None:
            return _missing(row, index)
        if not absent and not (value is None and param.allow_none):
            if placed and row.lone_ints and (one_by_one or _is_index(value)):
                at = len(args)
                continue
            if not param.check(value, index):
                return _wrong(row, param, value, at if placed else None)
        at += placed
        left -= key is not None
    return _unknown(row, kwargs, len(args)) if left > 0 else None


def _wrong(
    row: FunctionSignature, param: FunctionParameter, value: Any, at: int | None
) -> TypeError:
    place = "" if at is None else f" (position {at + 1})"
    rather = f", not {class_name(value)}"
    if place and param.kind in _LISTS_OF_INTS and isinstance(value, list | tuple):
        rather = f", but found element of type {class_name(value[0])} at pos 0"
    return TypeError(f"{row.name}(): argument '{param.name}'{place} must be {param.label}{rather}")


def _too_many(row: FunctionSignature, count: int) -> TypeError:
    most, least = row.places, row.least
    if least != most:
        return TypeError(
            f"{row.name}() takes from {least} to {most} positional arguments but {count} were given"
        )
    many, were = "s" * (most != 1), "was" if count == 1 else "were"
    return TypeError(
        f"{row.name}() takes {most} positional argument{many} but {count} {were} given"
    )


def _missing(row: FunctionSignature, index: int) -> TypeError:
    names = [f'"{p.name}"' for p in row.params[index:] if p.default is None]
    one = "s" * (len(names) == 1)  # sic
    return TypeError(
        f"{row.name}() missing {len(names)} required positional argument{one}: {', '.join(names)}"
    )


def _unknown(row: FunctionSignature, kwargs: Mapping[str, Any], places: int) -> TypeError:
    names = [p.name for p in row.params]
    for key in kwargs:
        if key not in names:
            return TypeError(f"{row.name}() got an unexpected keyword argument '{key}'")
        if names.index(key) < places:
            return TypeError(f"{row.name}() got multiple values for argument '{key}'")
    return TypeError("invalid keyword arguments")


def fit_by_class(
    signatures: Sequence[FunctionSignature], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> bool:
    """Whether a signature takes a call for its classes: no tensor stands for a number."""
    rows = (row for row in signatures if _fault(row, args, kwargs) is None)
    return any(not number_of_tensor(row, args, kwargs) for row in rows)


def number_of_tensor(
    row: FunctionSignature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> bool:
    """Whether a tensor stands for a number in a call that a signature takes."""
    last = len(row.params) - 1
    for at, value in enumerate(args):
        if _has_tensor(value) and row.params[min(at, last)].kind not in _OF_TENSORS:
            return True
    for key, value in kwargs.items():
        names = (p.kind for p in row.params if key in (p.name, *_SECOND.get(p.name, ())))
        if _has_tensor(value) and next(names) not in _OF_TENSORS:
            return True
    return False


def _has_tensor(value: object) -> bool:
    ends = (*value[:1], *value[-1:]) if isinstance(value, list | tuple) else (value,)
    return any(isinstance(v, Tensor) for v in ends)


_OF_TENSORS = ("Tensor", "TensorList", "c10::List<::std::optional<Tensor>>", "PyObject*")


def _unpacking(
    row: FunctionSignature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> TypeError | None:
    """What is said of a list of ints whose first is one, where a later one is none."""
    for index, param in enumerate(row.params):
        if param.kind in _LISTS_OF_INTS:
            value = args[index] if index < len(args) else kwargs.get(param.name, ())
            if row.name == "new" and isinstance(value, list):
                continue  # torch reads it as elements, of any numbers
            listed = value if isinstance(value, list | tuple) else (args if row.lone_ints else ())
            for at, part in enumerate(listed):
                if not (_is_index(part) or isinstance(part, bool)):
                    return TypeError(
                        f"{row.name}(): argument '{param.name}' failed to unpack the object at pos"
                        f' {at + 1} with error "type must be tuple of ints,but got'
                        f' {class_name(part)}"'
                    )
    return None
