"""Owns `__torch_function__`: classes and modes that see calls of torch's functions.

A call with an instance of a subclass of Tensor (but for Parameter's kin), or of any class that
has the method, goes to that method; results are given the subclass, as torch does.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from itertools import chain
from types import FunctionType, MethodDescriptorType, MethodWrapperType
from typing import Any, TypeVar, cast

from .._autograd.grad_mode import LOCAL, MODES
from .._autograd.scope import StepScope
from .._compat.argument_errors import SIGNS
from .._compat.failed_calls import FORMS, failed_call
from .._compat.missing_args import before_missing
from .._compat.signatures import counted_by_python, python_function
from .._compat.warn_once import warn_once
from .._tensor.device import device as Device
from .._tensor.dtype import dtype as Dtype
from .._tensor.geometry import Size
from .._tensor.subclass import (
    DOOR,
    LOCAL as SUBCLASS,
    Marked,
    disabled_torch_function_impl as _disabled,
    off,
)
from .._tensor.tensor import Tensor
from ..ops.namespaces import OpOverload, OpOverloadPacket
from ..ops.spec import SPACES, Op
from .attributes import AttributeWatch
from .builtins import FUNCTIONS, LAYERS, function_of, object_of
from .composites import in_c, whole_row
from .dispatch_modes import factory_call
from .profiled_names import FUNCTIONS as PROFILED, LIKES, profiled_function, profiled_whole

F = TypeVar("F", bound=Callable[..., Any])
# Set by `publish`: `function`, what users call by an op's base name.
PUBLISHED: dict[str, Callable[[Op], Any]] = {}


def overriding(args: Iterable[Any], seen: set[int] | None = None) -> list[Any]:
    """The arguments whose classes want the call, those of subclasses first; once per class.

    `seen`: lists that were looked through already; one may hold itself.
    """
    if SUBCLASS.off and (SUBCLASS.below or not WRAPPERS):
        return []
    handlers: dict[type, Any] = {}
    for arg in args:
        kind = arg.__class__
        if kind is Tensor:
            if arg._geom.__class__ is Marked:
                arg._geom = arg._geom.plain
        elif kind is tuple or kind is list:
            seen = set() if seen is None else seen
            if id(arg) in seen:
                continue
            seen.add(id(arg))
            for inner in overriding(arg, seen):
                handlers.setdefault(type(inner), inner)
        elif kind not in handlers and _overrides(kind):
            handlers[kind] = arg
    return sorted(handlers.values(), key=lambda a: -len(type(a).__mro__)) if handlers else []


def _overrides(kind: type) -> bool:
    if kind in WRAPPERS:
        return not SUBCLASS.below
    if SUBCLASS.off:
        return False
    if isinstance(kind, type(Tensor)):
        if getattr(kind, "__torch_function__", _disabled) is not _disabled:
            return True
        return hasattr(kind, "_row_call")
    return kind.__module__ != "builtins" and hasattr(kind, "__torch_function__")


# Classes made by `_make_wrapper_subclass`, which see operators by `__torch_dispatch__`.
WRAPPERS: set[type] = set()


def _takes_rows(value: object) -> bool:
    """Whether a value's class is asked for rows; one with a `__torch_function__` of its own is
    asked for functions first."""
    kind = type(value)
    if kind in WRAPPERS:
        return bool(SUBCLASS.off) or hasattr(kind, "_ask")
    return hasattr(kind, "_row_call")


def call(op: Op, form: str, kinds: Sequence[Any], raw: Sequence[Any]) -> Any:
    """Hand a row's call to the classes that want it; TypeError where all decline.

    A class with `_row_call` takes the row itself, with its arguments in the schema's order; one
    with `_as_written` says which of them the program gives, and how.
    """
    for kind in kinds:
        if _takes_rows(kind):
            return kind._row_call(op, form, raw)
    form = "inplace" if form == "augmented" else form
    spelling = getattr(type(kinds[0]), "_as_written", _as_given)
    args, kwargs = spelling(op, form, raw)
    return hand_over(_public(op, form), kinds, args, kwargs)


def hand_over(
    func: Callable[..., Any], kinds: Sequence[Any], args: Sequence[Any], kwargs: dict[str, Any],
    python_name: str = "",
) -> Any:  # fmt: skip
    """Ask each class in turn; `python_name` is that of a function that torch writes in Python."""
    func, types = object_of(func), tuple(type(a) for a in kinds)
    if _in_python(func):
        types = _with_tensors(types, args)
    for instance in kinds:  # whose method may be one of the class or of instances
        ours = getattr(type(instance), "_ask", None)
        if ours is not None:
            result = ours(func, types, args, kwargs)
        else:
            method = instance.__torch_function__
            if getattr(method, "__self__", None) is instance:
                _warn_of_plain_method(func)
            result = method(func, types, args, *_named(func, kwargs))
        if result is not NotImplemented:
            return result
    if python_name:
        raise TypeError(
            f"no implementation found for '{python_name}' on types that implement"
            f" __torch_function__: {list(types)}"
        )
    handlers = "".join(f"\n\n  - tensor subclass {kind}" for kind in types)
    name = resolve_name(func) or _module_name(func)
    if isinstance(func, OpOverload | OpOverloadPacket):
        name = f"torch.ops{getattr(func, 'overloadpacket', func)}"  # as torch spells it
    raise TypeError(
        f"Multiple dispatch failed for '{name}'; all"
        f" __torch_function__ handlers returned NotImplemented:{handlers}\n\nFor more information,"
        " try re-running with TORCH_LOGS=not_implemented"
    )


def _is_bare(func: Callable[..., Any]) -> bool:
    """Whether a function is a method of C that parses no arguments."""
    if not isinstance(func, MethodDescriptorType):
        return False
    return func.__name__[:2] == "__" or counted_by_python(f".{func.__name__}") is not None


def _with_tensors(types: tuple[type, ...], args: Iterable[Any]) -> tuple[type, ...]:
    """The classes that are asked, and Tensor, which torch's functions of Python count as one."""
    every = dict.fromkeys(type(a) for a in args)
    if Tensor not in every:
        return types
    order = [k for k in every if k is Tensor or k in types]
    subclasses = [k for k in order[order.index(Tensor) + 1 :] if issubclass(k, Tensor)]
    return tuple(
        inner
        for k in order if k not in subclasses
        for inner in ((*subclasses, k) if k is Tensor else (k,))
    )  # fmt: skip


def _warn_of_plain_method(func: Callable[..., Any]) -> None:
    """What torch says of a `__torch_function__` that is no method of the class."""
    end = "as a plain method is deprecated and will be an error in future, please define it as a"
    end += " classmethod."
    if _in_python(func):
        text = f"Defining your `__torch_function__ {end}"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
    else:
        warn_once(f"Defining your `__torch_function__` {end} ")


# Methods that are Python's here, and slots of C in torch.
_SLOTS_OF_C = frozenset(("__delitem__", "__getitem__", "__setitem__"))


def _in_python(func: Callable[..., Any]) -> bool:
    """Whether torch's function is written in Python."""
    return isinstance(func, FunctionType) and func.__name__ not in _SLOTS_OF_C


def _named(func: Callable[..., Any], kwargs: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Keyword arguments as torch hands them on: functions of C leave out an empty dict."""
    named = kwargs or _in_python(func) or isinstance(func, OpOverload | OpOverloadPacket)
    return (kwargs,) if named else ()


def hand_over_operator(
    operator: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """A call of an operator of torch.ops, to the mode or to the classes that want it;
    NotImplemented where there is none, or where its rows are asked for instead."""
    kinds = overriding((*args, *kwargs.values()))
    if by_name():
        return ask(operator, tuple(type(k) for k in kinds), args, kwargs)
    if LOCAL.functions or not kinds or any(hasattr(type(k), "_row_call") for k in kinds):
        return NotImplemented
    return hand_over(operator, kinds, args, kwargs)


def hand_over_out(op: Op, out: object, raw: Sequence[Any]) -> Any:
    """A call with `out=`, to the mode or to the classes that want it; NotImplemented without."""
    kinds = [] if SUBCLASS.off else overriding((*(out if type(out) is tuple else (out,)), *raw))
    kinds = [k for k in kinds if not hasattr(type(k), "_row_call")]
    if not kinds and not (MODES.active and by_name()):
        return NotImplemented
    args, kwargs = _as_called(op, raw)
    kwargs = {**kwargs, "out": out}
    if by_name():
        return ask(_public(op, "function"), tuple(type(k) for k in kinds), args, kwargs)
    return hand_over(_public(op, "function"), kinds, args, kwargs)


DOOR.update(hand_over=hand_over, function_of=function_of, hand_over_operator=hand_over_operator)


# Places of a row in which it is a function: of torch, of nn.functional, of linalg and its kin.
_FUNCTIONS = frozenset(("function", "nn", "nn_", *SPACES))


# Methods of operators that torch's own are not called after; `x + y` is Tensor.add.
OF_OPERATORS = {
    "bitwise_and": "__and__", "bitwise_not": "__invert__", "bitwise_or": "__or__",
    "bitwise_xor": "__xor__", "eq": "__eq__", "floor_divide": "__floordiv__", "pow": "__pow__",
}  # fmt: skip


def _method(op: Op, form: str) -> Callable[..., Any] | None:
    """The method that a call of these forms is of; None where its arguments stand otherwise."""
    name = op.base_name
    if form == "operator":
        name = OF_OPERATORS.get(name, name)
    elif form != "method":
        return None
    return getattr(Tensor, name, None) if op.schema.args[0].name == "self" else None


def _public(op: Op, form: str) -> Callable[..., Any]:
    """What users call: torch.name, that of nn.functional, or the method."""
    key = f"public {form}"
    if key not in op.cache:
        if (method := _method(op, form)) is not None:
            op.cache[key] = method
        elif form == "inplace":
            op.cache[key] = getattr(Tensor, op.base_name + "_")
        elif op.places & _FUNCTIONS:
            op.cache[key] = PUBLISHED["function"](op)
        else:
            op.cache[key] = getattr(Tensor, op.base_name, None) or op.entry("aten")
    return op.cache[key]


def _is_python(op: Op) -> bool:
    """Whether torch's function is written in Python: it hands on what has a default by name."""
    name = op.base_name
    return name in FUNCTIONS or ("nn" in op.places and name not in LAYERS)


def _as_called(
    op: Op, raw: Sequence[Any], form: str = "function"
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments, without those that are the defaults."""
    if _is_python(op):
        pairs = list(zip(op.schema.args, raw, strict=True))
        plain = tuple(value for arg, value in pairs if not arg.has_default)
        options = {arg.name: value for arg, value in pairs if arg.has_default}
        full = "." * (form != "function") + op.base_name
        function = None if "nn" in op.places else python_function(full)
        order = () if function is None else function.__code__.co_varnames
        if "out" not in order:
            return plain, options
        return plain, {n: options.get(n) for n in order if n in options or n == "out"}
    args, kwargs, left_out = [], {}, False
    for arg, value in zip(op.schema.args, raw, strict=True):
        if arg.has_default and _is_default(value, arg.default):
            left_out = True
        elif arg.keyword_only or left_out:
            kwargs[arg.name] = value
        else:
            args.append(value)
    return tuple(args), kwargs


def _is_default(value: Any, default: Any) -> bool:
    """Whether an argument is what it would be if left out; values of other classes are not asked:
    their `==` may be anything."""
    return value is default or (value.__class__ is default.__class__ and bool(value == default))


_ASKS = "__torch_function__"
# Classes whose calls nobody else may want: Tensor, and Parameter once it is met.
PLAIN_TENSORS: set[type] = {Tensor}


class _EveryName(Container[str]):
    def __contains__(self, name: object) -> bool:
        return True


EVERY = _EveryName()  # the `_composites` of a class that takes each as a whole


def hand_over_composite(op: Op, form: str, values: Sequence[Any]) -> Any:
    """The same for a row in Python; NotImplemented where no class wants the call as a whole.

    A class with `_row_call` takes the rows that such a row is made of, or those whose names are in
    its `_composites` as a whole.
    """
    if LOCAL.functions:
        return through_mode(op, form, values)
    kinds = overriding(values)
    if not kinds:
        flat = chain.from_iterable(v if isinstance(v, tuple | list) else (v,) for v in values)
        classes = (type(v) for v in flat)
        PLAIN_TENSORS.update(k for k in classes if getattr(k, _ASKS, None) is _disabled)
        if LOCAL.dispatches and not LOCAL.profilers:
            result = whole_row(op, values)
            return in_c(op, form, values) if result is NotImplemented else result
        return profiled_whole(op, values) if LOCAL.profilers else NotImplemented
    for kind in filter(_takes_rows, kinds):
        if op.base_name in getattr(type(kind), "_composites", ()):
            return kind._row_call(op, form, values)
    if any(map(_takes_rows, kinds)):
        return NotImplemented
    spelling = getattr(type(kinds[0]), "_as_written", _as_given)
    args, kwargs = spelling(op, form, values)
    is_layer = "nn" in op.places and _is_python(op)
    name = f"torch.nn.functional.{op.base_name}" if is_layer else ""
    return hand_over(_public(op, form), kinds, args, kwargs, name)


def _as_given(op: Op, form: str, raw: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments as the program gave them; what is Python in torch hands on
    all of its options by name."""
    call = None if _is_python(op) or form not in FORMS else failed_call()
    if call is None or call.name.strip("._") != op.base_name.strip("_"):
        return _as_composite(op, raw, form)
    return (*call.self, *call.args), call.kwargs


def _as_composite(
    op: Op, values: Sequence[Any], form: str = "function"
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    args, kwargs = _as_called(op, values, form)
    if op.api.variadic and args and isinstance(args[-1], tuple | list):
        args = (*args[:-1], *args[-1])
    return args, kwargs


def seen_by_modes(function: F) -> F:
    """A function written by hand whose calls modes see as a whole."""

    # One frame for both.
    inner, explain, first = getattr(function, "parsed", (function, None, lambda named: None))
    seen = PROFILED | LIKES

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if MODES.active:
            if LOCAL.functions:
                return ask(call, (), args, kwargs)
            if LOCAL.dispatches:
                result = factory_call(function.__name__, args, kwargs)
                if result is not NotImplemented:
                    return result
            if LOCAL.profilers and function.__name__ in seen:
                return profiled_function(function.__name__, call, args, kwargs)
        if explain is not None:
            for value in (*args, *kwargs.values()):
                if value.__class__ not in _USUAL and (foreign := _foreign(args, kwargs)):
                    return hand_over(call, foreign, args, kwargs)
        elif (
            args
            and args[0].__class__ is not Tensor
            and args[0].__class__ not in _USUAL
            and (foreign := _foreign(args, kwargs))
        ):
            return hand_over(call, foreign, args, kwargs)
        try:
            if kwargs:
                first(kwargs)
            return inner(*args, **kwargs)
        except SIGNS:
            if explain is not None:
                if foreign := _foreign(args, kwargs):
                    return hand_over(call, foreign, args, kwargs)
                explain(args, kwargs)
            raise

    return cast("F", call)


# Classes of most arguments, which see no calls.
_USUAL = frozenset((bool, float, int, list, str, tuple, type(None), Tensor, Dtype, Device, Size))


def _foreign(args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments that see calls: programs' classes of tensors, and tracers' proxies."""
    kinds = overriding((*args, *kwargs.values()))
    return [kind for kind in kinds if _is_foreign(kind) or _is_of_program(type(kind))]


def _is_of_program(kind: type) -> bool:
    """Whether a class of tensors is no part of this package, and sees functions, not rows."""
    package = kind.__module__.partition(".")[0]
    return package not in ("mindtorch", "torch") and not hasattr(kind, "_row_call")


def _is_foreign(value: object) -> bool:
    """Whether a value with `__torch_function__` is no tensor and no tracer's of rows."""
    return not (isinstance(value, Tensor) or hasattr(type(value), "_row_call"))


def hand_over_choice(op: Op, form: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The same before a choice among rows, of which `op` is the first; its defaults are dropped."""
    kinds = overriding((*args, *kwargs.values()))
    if not kinds or not all(map(_is_foreign, kinds)):
        return NotImplemented
    call = None if _is_python(op) else failed_call()
    if call is None:
        places = before_missing(args)
        after = op.schema.args[len(places) :]
        options = {a.name: a.default for a in after if a.has_default} | kwargs
        if _is_python(op) and all(a.name in options for a in after):
            raw = (*places, *(options[a.name] for a in after))
            return hand_over(_public(op, form), kinds, *_as_called(op, raw))
        return hand_over(_public(op, form), kinds, places, kwargs)
    values, kwargs = (*call.self, *call.args), call.kwargs
    spelling, rest = getattr(type(kinds[0]), "_as_written", None), op.schema.args[len(values) :]
    if spelling and not kwargs and all(a.has_default for a in rest):
        values, kwargs = spelling(op, form, (*values, *(a.default for a in rest)))
    return hand_over(_public(op, form), kinds, values, kwargs)


def _torch_function(
    cls: type[Tensor],
    func: Callable[..., Any],
    types: Sequence[type],
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """Run the call on plain tensors; results are of this class (torch.Tensor's own method)."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with off():
        result = func(*args, **(kwargs or {}))
    return result if func in get_default_nowrap_functions() else _converted(result, cls)


def _converted(result: Any, cls: type[Tensor]) -> Any:
    if cls is Tensor:
        return result
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, tuple | list):
        results = [_converted(r, cls) for r in result]
        return type(result)(results)
    return result


Tensor.__torch_function__ = classmethod(_torch_function)  # type: ignore[attr-defined]


def get_default_nowrap_functions() -> set[Any]:
    """Functions whose results keep their own class."""
    return {vars(Tensor)["grad"].__get__, getattr(Tensor, "_base").__get__}  # noqa: B009


class DisableTorchFunctionSubclass(StepScope):
    """Instances of subclasses are plain tensors inside."""

    def steps(self) -> Iterator[None]:
        before = SUBCLASS.off
        try:
            SUBCLASS.off = before + 1
            yield
        finally:
            SUBCLASS.off = before


class DisableTorchFunction(StepScope):
    """Neither subclasses nor modes see calls inside."""

    def steps(self) -> Iterator[None]:
        before, off = LOCAL.functions, SUBCLASS.off
        try:
            SUBCLASS.off = off + 1
            LOCAL.functions = ()
            yield
        finally:
            LOCAL.functions, SUBCLASS.off = before, off


@contextmanager
def alone(mode: TorchFunctionMode) -> Iterator[None]:
    """Inside, one mode sees all calls of functions, those without its tensors too."""
    before, LOCAL.functions = LOCAL.functions, (mode,)
    MODES.active += 1
    try:
        yield
    finally:
        MODES.active -= 1
        LOCAL.functions = before


class TorchFunctionMode(StepScope):
    """A context whose `__torch_function__` sees every call of a torch function inside."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        raise NotImplementedError

    def steps(self) -> Iterator[Any]:
        before = LOCAL.functions
        try:
            MODES.active += 1
            _attributes.enter()
            LOCAL.functions = (*before, self)
            yield self
        finally:
            LOCAL.functions = before
            _attributes.leave()
            MODES.active -= 1

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance, to be entered."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets calls pass."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return func(*args, **(kwargs or {}))


def through_mode(op: Op, form: str, args: Sequence[Any]) -> Any:
    """Hand a row's call to the innermost mode, which is off inside its own function.

    A mode with `row` takes the row itself, with its arguments in the schema's order.
    """
    row = getattr(LOCAL.functions[-1], "row", None)
    if row is not None:
        return row(op, form, args)
    return ask(_public(op, form), (), *_as_given(op, form, args))


def operated_by_mode(
    op: Op, form: str, args: tuple[Any, Any], body: Callable[[Any, Any], Any]
) -> Any:
    """One of Python's operators that is made of others; a mode that takes rows sees those."""
    name = OF_OPERATORS.get(op.base_name, f"__{op.base_name.strip('_')}__")
    method = getattr(Tensor, name, None) if by_name() else None
    return body(*args) if method is None else ask(method, (), args[:2], {})


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """The modes that are on, the innermost last."""
    return list(LOCAL.functions)


def by_name() -> bool:
    """Whether a mode is on that sees calls by their functions, and not by rows."""
    return bool(LOCAL.functions) and not hasattr(LOCAL.functions[-1], "row")


def ask(
    func: Callable[..., Any], types: Sequence[type], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    modes, func = LOCAL.functions, object_of(func)
    if not types and (_in_python(func) or isinstance(func, MethodWrapperType) or _is_bare(func)):
        types = _with_tensors((), args)
    LOCAL.functions = modes[:-1]
    try:
        return modes[-1].__torch_function__(func, types, args, *_named(func, kwargs))
    finally:
        LOCAL.functions = modes


_attributes = AttributeWatch(lambda func, args, kwargs: ask(func, (), args, kwargs), by_name)


def has_torch_function(args: Iterable[Any]) -> bool:
    """Whether a mode is on, or a class among the arguments wants the call."""
    return bool(LOCAL.functions) or bool(overriding(tuple(args)))


def has_torch_function_unary(arg: object) -> bool:
    """The same of one argument."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    """The same of several."""
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Hand a call to the mode, or to the classes that want it; TypeError where all decline."""
    relevant = tuple(relevant_args)
    kinds = overriding(relevant)
    if LOCAL.functions:
        types = _with_tensors(tuple(type(k) for k in kinds), relevant)
        result = ask(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = resolve_name(public_api) or f"{public_api.__module__}.{public_api.__name__}"
    return hand_over(public_api, kinds, args, kwargs, name)


def _ask_for_gradients(
    function: Callable[..., Any], tensors: Sequence[Any], *args: Any, **options: Any
) -> Any:
    """A function of torch.autograd, to the mode or to the classes of its tensors that want it;
    NotImplemented without."""
    kinds = [
        value for value in overriding(tensors)
        if not _takes_rows(value) and type(value) not in WRAPPERS
        and not hasattr(type(value), "_differentiable")
    ]  # fmt: skip
    if not kinds and not by_name():
        return NotImplemented
    return handle_torch_function(function, tensors, *args, **options)


DOOR["ask_for_gradients"] = _ask_for_gradients


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a function: classes among the arguments that `dispatcher` names come first."""

    def wrap(func: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(func)
        def inside(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(inside, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return inside

    return wrap


def asking_by_name(function: F) -> F:
    """A function written in Python, of a tensor: modes and classes are asked, all by name."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not SUBCLASS.off or LOCAL.functions:
            tensor = args[0] if args else kwargs.get("tensor")
            asked = overriding((tensor,)) and not hasattr(type(tensor), "_row_call")
            if asked or by_name():
                values = signature.bind(*args, **kwargs)
                values.apply_defaults()
                named = dict(values.arguments)
                places = (named.pop("self"),) if "self" in named else ()
                return handle_torch_function(call, (tensor,), *places, **named)
        return function(*args, **kwargs)

    call.__dict__["asks_modes"] = True
    call.__module__ = function.__module__.replace("mindtorch", "torch", 1)  # as layers say it
    return cast("F", call)


def is_tensor_like(inp: object) -> bool:
    """Whether a value is a tensor, or of a class with `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is found in Tensor."""
    name = getattr(func, "__name__", "")
    return getattr(Tensor, name, None) is func or name == "__get__"


# Where torch looks for a function, the last place first.
_NAMESPACES = (
    "special", "fft", "linalg", "Tensor", "nn.init", "nn.functional", "functional", ""
)  # fmt: skip


def resolve_name(f: Callable[..., Any]) -> str | None:
    """A function's name with the place that torch has it in; None for one of no such place."""
    from importlib import import_module

    name = getattr(f, "__name__", None)
    if not isinstance(name, str):
        return None
    if name == "__get__":
        owner = getattr(f, "__self__", None)
        names = (n for kind in Tensor.__mro__ for n, v in vars(kind).items() if v is owner)
        return next((f"torch.Tensor.{n}.__get__" for n in names), None)
    for space in _NAMESPACES:
        place = f"torch.{space}".rstrip(".")
        owner = Tensor if space == "Tensor" else import_module(place.replace("torch", "mindtorch"))
        candidates = [name.removeprefix(f"{space}_")]
        if owner is Tensor:
            candidates += [f"__{name}__", OF_OPERATORS.get(name, name)]
            candidates += ["__rtruediv__"] * (name == "__rdiv__")
            candidates = candidates[::-1]
        for candidate in candidates:
            if getattr(owner, candidate, None) is f:
                return f"{place}.{candidate}"
    return None


def _module_name(func: Callable[..., Any]) -> str:
    return f"torch.{getattr(func, '__name__', func)}"


def enable_reentrant_dispatch() -> AbstractContextManager[None]:
    """A context without effect: functions may always call functions."""
    from contextlib import nullcontext

    return nullcontext()
