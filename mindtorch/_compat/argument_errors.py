"""Owns what is said of a call that fits no signature of a name, in the words of torch's parser.

Only failed calls come here.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from .._tensor.tensor import Tensor
from ..ops.schema import SchemaArgument
from .argument_parser import fit_by_class, fitted, number_of_tensor, parameter, refusal
from .class_names import class_name as class_name
from .failed_calls import FORMS as FORMS, failed_call
from .missing_args import Missing
from .signatures import counted_by_python, python_function, signatures_of

# What the numbers of a call by an older signature, before its tensors, are, in their order.
OLDER_FACTORS = {
    **dict.fromkeys(("add", "sub"), ("alpha",)),
    **dict.fromkeys(("addcmul", "addcdiv"), ("value",)),
    **dict.fromkeys(("addmm", "addmv", "addr", "addbmm", "baddbmm"), ("beta", "alpha")),
}

F = TypeVar("F", bound=Callable[..., Any])
# What functions raise that were given what they do not take.
SIGNS = (AttributeError, RuntimeError, TypeError, ValueError)


def explained(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TypeError | None:
    """What torch says of a call by name (`.add` is a method); None where it takes it."""
    counted = counted_by_python(name)
    if counted is None:
        rows = signatures_of(name)
        return refusal(rows, args, kwargs) if rows else _bound_by_python(name, args, kwargs)
    full, most = counted
    if kwargs:
        return TypeError(f"{full}() takes no keyword arguments")
    if len(args) == most:
        return None
    takes = "exactly one argument" if most else "no arguments"
    return TypeError(f"{full}() takes {takes} ({len(args)} given)")


def checked(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TypeError | bool | None:
    """What torch says of a call before it is made, if it refuses it; else whether it takes every
    call of these classes. None where torch has no signatures of the name."""
    rows = signatures_of(name)
    if not rows:
        return (explained(name, args, kwargs) or True) if counted_by_python(name) else None
    values = (*args, *kwargs.values())
    if any(map(_has_the_call, values)):
        return False
    row, refused = fitted(rows, args, kwargs)
    if refused:
        return False if _is_older(name, args) else refused
    if not all(map(_is_known, values)) or row is None:
        return False
    return not number_of_tensor(row, args, kwargs) or fit_by_class(rows, args, kwargs)


def _has_the_call(value: object, depth: int = 2) -> bool:
    """Whether the class of a value, or of one in a list, sees the call: it is no tensor of ours."""
    if isinstance(value, list | tuple):
        return depth > 0 and any(_has_the_call(v, depth - 1) for v in value[:16])
    kind = type(value)
    ours = isinstance(value, Tensor) and _is_plain(kind)
    return hasattr(kind, "__torch_function__") and not ours


def _is_older(name: str, args: Sequence[Any]) -> bool:
    """Whether a call is by an older signature: a number comes right before a tensor."""
    return name.strip("._") in OLDER_FACTORS and any(
        isinstance(one, int | float | complex) and isinstance(next_one, Tensor)
        for one, next_one in itertools.pairwise(args)
    )


def _is_plain(kind: type) -> bool:
    """Whether a class is Python's, numpy's or ours: it lasts, and leaves calls to us."""
    return kind.__module__.partition(".")[0] in _LASTING


def _is_known(value: object, depth: int = 16) -> bool:
    """Whether the class of a value lasts as long as the process, as those of its elements do."""
    return _is_plain(type(value)) and (
        not isinstance(value, list | tuple)
        or (depth > 0 and all(_is_known(v, depth - 1) for v in (*value[:1], *value[1:][-1:])))
    )


_LASTING = ("builtins", "mindtorch", "numpy", "torch")


def _bound_by_python(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TypeError | None:
    """What Python says of a call of a name that torch has in Python."""
    function = python_function(name)
    if function is None:
        return None
    try:
        function(*([None] if name[0] == "." else []), *args, **kwargs)
    except TypeError as error:
        return error
    return None


def explained_here() -> TypeError | None:
    """What torch says of the call whose entry is on the stack."""
    call = failed_call()
    return None if call is None else explained(call.name, call.args, call.kwargs)


def explained_inside(name: str, values: Mapping[str, Any]) -> TypeError | None:
    """What torch says where a function of Python passes its values on to one of C by this name."""
    for row in signatures_of(f"_VF.{name}") or signatures_of(name):
        args: list[Any] = []
        for param in row.params:
            if param.keyword_only or param.name not in values:
                break
            args.append(values[param.name])
        if len(args) >= row.least and (message := refusal([row], args, {})):
            return message
    return None


def parsed(
    name: str = "",
    method: bool = False,
    first: Callable[[Mapping[str, Any]], None] = lambda named: None,
) -> Callable[[F], F]:
    """Have a function written by hand refuse calls as torch's parser does, once it has failed.

    `first` sees what is passed by name before the function runs.
    """

    def put(function: F) -> F:
        full = "." * method + (name or function.__name__)

        def explain(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if message := explained(full, args[method:], kwargs):
                raise message from None

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                if kwargs:
                    first(kwargs)
                return function(*args, **kwargs)
            except SIGNS:
                explain(args, kwargs)
                raise

        run.__dict__["parsed"] = function, explain, first

        if name:
            run.__name__ = run.__qualname__ = name
        if not method:
            run.__dict__["as_method"] = parsed(name, method=True)(function)
        return cast("F", run)

    return put


def refuse_more() -> None:
    """TypeError in torch's words for more arguments than a function or method has."""
    raise explained_here() or TypeError("too many arguments")


def refused_input(name: str, value: object) -> TypeError:
    """What torch says where a function's first argument is no tensor."""
    args = () if value.__class__ is Missing else (value,)
    return explained(name, args, {}) or TypeError(f"{name}(): argument 'input' must be Tensor")


# Attributes as a schema calls them, and as torch's parser does.
_KINDS = {"int": "int64_t", "SymInt": "SymInt", "float": "double", "bool": "bool",
          "str": "std::string"}  # fmt: skip


def suits(arg: SchemaArgument, value: object) -> bool:
    """Whether torch's parser takes a value for an attribute; a missing one is told elsewhere."""
    if value.__class__ is Missing:
        return True
    if value is None:
        return arg.optional or (arg.has_default and arg.default in (None, ()))
    kind = _KINDS.get(arg.type, "PyObject*")
    return parameter(f"{kind} {arg.name}").check(value, 0)
