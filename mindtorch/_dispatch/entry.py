"""Owns the entries: one Python function per op and form, written from the schema.

An entry makes a key from Geometries, classes of numbers and attributes, finds the plan and runs it.
It is generated, as dataclasses do, because generic `*args` binding costs more than a small
op. Forms: "aten" (schema's names), "function" (torch.name: `input`, `out=`), "method"
(`*size` where torch has it), "inplace" (name_), "operator" (two positional arguments) and
"augmented" (`a += b`), which leave to Python what a tensor cannot take.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from textwrap import indent
from types import FunctionType
from typing import Any, NoReturn

from .._autograd.codegen import compiled_functions
from .._autograd.forward import moved_in_place
from .._autograd.grad_mode import LOCAL, MODES
from .._autograd.layer import refuse_recorded, reshape_inplace
from .._autograd.node_names import LABELS, Rule, labelled, write_whole
from .._autograd.views import track_view
from .._compat import passed_on, unsupported_dtypes
from .._compat.argument_errors import (
    FORMS,
    explained,
    explained_here,
    explained_inside,
    parsed,
    refuse_more,
    suits,
)
from .._compat.deprecated_signatures import has_older, older_call
from .._compat.missing_args import MARKS, Missing, refuse_missing
from .._compat.signatures import python_function
from .._tensor.tensor import Tensor
from ..ops.returns import named_tuple
from ..ops.rules import NUMBERS
from ..ops.schema import ArgKind, SchemaArgument
from ..ops.source import compiled
from ..ops.spec import Op, aten
from . import programs, slow, slow_batches
from .autocast import applies, recast
from .bind import PLAIN, listed, refuse_kinds, refuse_shared, refused, sizes_of
from .dispatcher import layers, layers_inplace, layers_of_method, layers_of_operator
from .documentation import WRITING, document
from .key import defaults, guard_of, key_lines, key_source
from .out import out_call
from .overrides import PLAIN_TENSORS, hand_over_composite, operated_by_mode
from .slow import plans_of

_BODY = """\
def {name}({params}):
{prelude}    try:
{key}        plan = plans[key_]
    except (KeyError, AttributeError, TypeError):
        plan = None
    if plan is None:
        return {miss}
    if {guard}:
        if MODES.active:
            return {named}(layers(op, plan, ({args})))
        if LOCAL.grad:
            return {named}(record(plan, {run}))
{views}    return {named}(plan.run({run}))
"""

_INPLACE = """\
def {name}({params}):
{prelude}    try:
{key}        plan = plans[key_]
    except (KeyError, AttributeError, TypeError):
        plan = None
    if plan is None:
        return {miss}
    if {guard}:
        return layers(op, plan, ({args}))
    plan.run((self,), {run})
    self._storage.value += 1
    return self
"""


def write(op: Op, form: str) -> Callable[..., Any]:
    """The entry of an op in a form."""
    if form == "inplace" and op.is_view:
        return _inplace_view(op)
    entry = _composite(op, form) if op.body else _generate(op, form)
    if entry is not op.body and form != "aten":  # bodies call that one
        entry.__doc__ = document((op,), form)
        entry.__dict__["__signature__"] = EntrySignature(op, form, entry)
    return entry


class EntrySignature(inspect.Signature):
    """What `help` shows, worked out when it is first read: no default where an argument is
    required, and numpy's names of others."""

    __slots__ = ("_entry", "_op", "_renames")
    _parameters: Mapping[str, inspect.Parameter]
    _return_annotation: Any

    def __init__(self, op: Op, form: str, entry: Callable[..., Any]):
        self._op, self._entry, self._renames = op, entry, form == "function"
        self._return_annotation = inspect.Signature.empty

    def __getattr__(self, name: str) -> Any:
        if name != "_parameters":
            raise AttributeError(name)
        self._parameters = {p.name: p for p in self._read()}
        return self._parameters

    def __reduce__(self) -> Any:
        return inspect.Signature, (tuple(self.parameters.values()),)

    def _read(self) -> list[inspect.Parameter]:
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(_unsigned(self._entry)).parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD or parameter.name in ("older", "more"):
                continue
            if isinstance(parameter.default, Missing):
                follows = bool(parameters) and parameters[-1].default is not parameter.empty
                parameter = parameter.replace(default=... if follows else parameter.empty)
            parameters.append(parameter)
        names = {a.name for a in self._op.schema.args} if self._renames else frozenset()
        defaults = {p.name: None if p.default is p.empty else p.default for p in parameters}
        return parameters + [
            inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=defaults[SECOND_NAMES[n]])
            for n in ("axis", "keepdims") if SECOND_NAMES[n] in names
        ]  # fmt: skip


def _unsigned(entry: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose parameters an entry has, without a signature of its own."""
    inner = inspect.unwrap(entry)
    if inner is not entry or not isinstance(entry, FunctionType):
        return inner
    code, scope = entry.__code__, entry.__globals__
    bare = FunctionType(code, scope, "", entry.__defaults__, entry.__closure__)
    bare.__kwdefaults__ = entry.__kwdefaults__
    return bare


@functools.lru_cache(8)
def _parameters(body: Callable[..., Any] | None) -> Mapping[str, inspect.Parameter]:
    """A body's parameters, which several parts of its entry look at."""
    return inspect.signature(body).parameters if body is not None else {}


# Forms of Python's operators.
OPERATORS = frozenset(("operator", "augmented"))


def _miss(form: str) -> str:
    return "operated" if form in OPERATORS else "slow_method" if form == "method" else "slow"


def _generate(op: Op, form: str) -> Callable[..., Any]:
    inplace = form in WRITING
    args = op.schema.args
    key, guard = key_lines(op), guard_of(op)
    varargs = form in ("method", "inplace") and takes_varargs(op)
    names = [a.name for a in args]
    source = (_INPLACE if inplace else _BODY).format(
        name=op.base_name + ("_" if inplace else ""),
        params=_params(op, form, varargs),
        prelude=_prelude(op, form, varargs),
        key=key,
        args=", ".join(names) + ("," if names else ""),
        run=", ".join(names),
        guard=guard,
        views=_views(op, form),
        named=_named(op, form),
        miss=_as_named(op, form, f"{_miss(form)}(op, ({', '.join(names)}{',' if names else ''}))"),
    )
    scope = _scope(op, inplace, form)
    if "key" not in op.cache:  # to compile both at once takes hardly longer
        source += "\n" + key_source(op)
    entry = compiled(source, f"entry {op.name} as {form}", scope)
    op.cache.setdefault("key", scope.get("key"))
    entry.__module__ = "mindtorch"
    return entry


def _inplace_view(op: Op) -> Callable[..., Any]:
    """The in-place form of a view: the tensor takes the view's geometry."""
    view = op.entry("method")

    def run(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if MODES.active and LOCAL.dispatches and self._fn is None and not kwargs:
            seen: Tensor = aten._asked_in_place(op, (self, *args))
            return seen
        try:
            reshaped = view(self, *args, **kwargs)
        except TypeError as error:
            raise explained(f".{run.__name__}", args, kwargs) or error from None
        except (IndexError, RuntimeError):
            refuse_recorded(self)
            raise
        if MODES.active and LOCAL.dual:
            moved_in_place(self, reshaped)
        return reshape_inplace(self, reshaped)

    run.__name__ = run.__qualname__ = f"{op.base_name}_"
    run.__doc__ = document((op,), "inplace")
    return run


def straight(op: Op, form: str, others: Callable[..., Any]) -> Callable[..., Any]:
    """An op's entry that hands calls without a plan of its own to `others`: a choice of overloads.

    What the op is called with most costs no more than where it has no overloads.
    """
    params, prelude = _open_params(op, form)
    names = ", ".join(a.name for a in op.schema.args)
    source = (_INPLACE if form == "inplace" else _BODY).format(
        name=op.base_name + ("_" if form == "inplace" else ""),
        params=params,
        prelude="".join(f"    {line}\n" for line in prelude),
        key=key_lines(op),
        miss=f"others({', '.join(a.name for a in arguments(op, form))})",
        args=names + ",",
        run=names,
        guard=guard_of(op),
        views=_views(op, form),
        named=_named(op, form),
    )
    scope = {**_scope(op, form == "inplace", form), "others": others}
    entry: Callable[..., Any] = compiled(source, f"entry {op.name} as {form}, overloaded", scope)
    entry.__module__ = "mindtorch"
    entry.__doc__ = others.__doc__
    entry.__dict__["__signature__"] = EntrySignature(op, form, entry)
    return entry


def _open_params(op: Op, form: str) -> tuple[str, list[str]]:
    """Parameters that take any call, and the lines that pass on what the op does not take."""
    args = arguments(op, form)
    varargs = form in ("method", "inplace") and takes_varargs(op)
    names = [a.name for a in args]
    names[-1] = "*" * varargs + names[-1]
    labels = ["input" if form == "function" and n == "self" else n for n in names]
    params = [
        n + ("" if n[0] == "*" else _default(a, form)) for n, a in zip(labels, args, strict=True)
    ]
    odd = ["extra"]
    if not varargs:
        params, names, odd = [*params, "*more"], [*names, "*more"], [*odd, "more"]
    lines, out = [], ""
    if form == "function":
        params, odd, out = [*params, "out=None"], [*odd, "out is not None"], ", out=out"
        lines.append("self = input")
    lines += [f"if {' or '.join(odd)}:", f"    return others({', '.join(names)}{out}, **extra)"]
    if varargs:
        ints = args[-1].name
        lines.append(f"if len({ints}) == 1 and {ints}[0].__class__ is not int:")
        lines.append(f"    given_{ints} = {ints}; {ints} = {ints}[0]")
        lines.append(f"elif not {ints}:")
        lines.append(f"    given_{ints} = (); {ints} = named_ints(op, {ints!r}, extra)")
    lines += _listed(op, form)
    return ", ".join([*params, "**extra"]), lines


def _views(op: Op, form: str) -> str:
    """A view that is made without gradients has a note of it."""
    if not op.is_view:
        return ""
    names = ", ".join(a.name for a in op.schema.args)
    return f"        return {_named(op, form)}(track_view(plan.run({names})))\n"


def _listed(op: Op, form: str) -> list[str]:
    """Lines that put sizes into tuples, and keep what equals an int from passing for one."""
    first = int(form in ("method", *WRITING))
    return [
        f"if {a.name}.__class__ not in PLAIN:"
        f" given_{a.name} = {a.name}; {a.name} = listed(op, {at}, {first}, {a.name})"
        for at, a in enumerate(op.schema.args)
        if a.kind is ArgKind.INTS
    ]


def _named(op: Op, form: str) -> str:
    """What makes the named tuple of several results; nothing where users don't see them."""
    return "named" if form in ("function", "method") and named_tuple(op) else ""


def _as_named(op: Op, form: str, call: str) -> str:
    """The same for a call that a class may have answered, by no tuple."""
    return f"answered({_named(op, form)}, {call})" if _named(op, form) else call


def answered(named: Callable[..., Any], result: Any) -> Any:
    """A named tuple of a tuple; what else a class gave, as it is."""
    return named(result) if result.__class__ is tuple else result


_LAYERS = {"method": layers_of_method, "operator": layers_of_operator}


def _scope(op: Op, inplace: bool, form: str) -> dict[str, Any]:
    """The globals that entries read."""
    plans = plans_of(op, inplace)
    scope: dict[str, Any] = {
        "LOCAL": LOCAL, "MODES": MODES, "NUMBERS": NUMBERS, "Tensor": Tensor, "op": op,
        "older_call": older_call, "plans": plans, "PLAIN": PLAIN, "listed": listed,
        "slow": slow.slow_inplace if inplace else slow.slow, "out_call": out_call,
        "slow_method": slow.slow_method,
        "operated": slow.operated_inplace if inplace else slow.operated,
        "layers": layers_inplace if inplace else _LAYERS.get(form, layers), "first_fn": first_fn,
        "renamed": renamed, "named_ints": named_ints,
        "named": _make(op), "named_out": _make(op, "_out"),
        "answered": answered, "track_view": track_view, "refuse_more": refuse_more,
        "placed": placed,
        **defaults(op), **MARKS,
    }  # fmt: skip

    def record(plan: Any, *args: Any) -> Tensor | tuple[Tensor, ...]:
        """Stands in until the first recorded call, which has the derivative read."""
        scope["record"] = compiled_functions(op).record
        return scope["record"](plan, *args)

    scope["record"] = record
    return scope


def takes_more(op: Op, form: str = "function") -> bool:
    """Whether an entry catches what is too many, to refuse it in torch's words."""
    return not has_older(op, form) and several_of(op, form) is None


def takes_varargs(op: Op) -> bool:
    """Whether the method takes `*ints`: its only positional argument is an int list.

    Of the lists that one int stands for, those that are the only argument at all.
    """
    rest = [a for a in op.schema.args if not a.keyword_only][1:]
    if len(rest) != 1 or rest[0].kind is not ArgKind.INTS:
        return False
    return rest[0].size is None or (rest[0].size == 1 and len(op.schema.args) == 2)


def named_ints(op: Op, name: str, extra: dict[str, Any]) -> Any:
    """The ints of a method's `*ints` that came by name; their default, or torch's TypeError."""
    arg = next(a for a in op.schema.args if a.name == name)
    if name in extra:
        return extra.pop(name)
    if arg.has_default:
        return arg.default
    text = f'{op.base_name}() missing 1 required positional arguments: "{name}"'
    raise explained_here() or TypeError(text)


def several_of(op: Op, form: str) -> SchemaArgument | None:
    """The argument that a variadic op takes as its last positional ones."""
    if not op.api.variadic or form not in ("function", "aten"):
        return None
    return [a for a in op.schema.args if not a.keyword_only][-1]


def refuse_lone_list(op: Op, tensors: tuple[Any, ...]) -> NoReturn:
    """TypeError in torch's words for a list where a variadic op takes tensors alone."""
    name = op.schema.args[0].name
    raise explained_inside(op.base_name, {name: tensors}) or TypeError(f"{name} must be tensors")


def arguments(op: Op, form: str) -> tuple[SchemaArgument, ...]:
    """The schema's arguments in the form's order: a method has `self` first."""
    if form != "method":
        return op.schema.args
    return tuple(sorted(op.schema.args, key=lambda a: a.name != "self"))


def _default(arg: SchemaArgument, form: str) -> str:
    """What a parameter is where a call does not give it: users are told of it in torch's words."""
    if arg.has_default:
        return f"=D_{arg.name}"
    if form == "aten" or form in OPERATORS or (arg.name == "self" and form != "function"):
        return ""
    return f"=OF_{form.upper()}"


def _make(op: Op, end: str = "") -> Any:
    kind = named_tuple(op, end)
    return None if kind is None else functools.partial(tuple.__new__, kind)


# What is called so often that a dictionary for unknown names would be felt.
_QUICK = frozenset(("add", "div", "mul", "sub"))


def _takes_extra(op: Op, form: str) -> bool:
    """Whether an entry catches names that it does not have.

    Some are numpy's, and of a name with several signatures torch lists them.
    """
    if form == "aten":
        return False
    several = op.base_name not in _QUICK and any(a.kind is ArgKind.UNION for a in op.schema.args)
    return several or any(a.name in ("dim", "keepdim") for a in op.schema.args)


def _params(op: Op, form: str, varargs: bool) -> str:
    if form in OPERATORS:
        return ", ".join(a.name for a in op.schema.args[:2])
    parts = []
    starred = False
    several = several_of(op, form)
    for arg in arguments(op, form):
        name = "input" if form == "function" and arg.name == "self" else arg.name
        if arg is several:
            parts.append("*" + name)
            starred = True
            continue
        if varargs and arg.kind is ArgKind.INTS and not arg.keyword_only:
            parts.append("*" + name)
            starred = True
            continue
        if arg.keyword_only and not starred and form != "aten":
            parts.append("*older" if has_older(op, form) else "*" + "more" * (form in FORMS))
            starred = True
        parts.append(name + _default(arg, form))
    if form == "function":
        parts += ["out=None"] if starred else ["*more", "out=None"]
    elif form in FORMS and not starred:
        parts.append("*more")
    if _takes_extra(op, form) or varargs:
        parts.append("**extra")
    return ", ".join(parts)


def _prelude(op: Op, form: str, varargs: bool) -> str:
    lines = []
    names = [a.name for a in op.schema.args]
    tuple_text = ", ".join(names) + ("," if names else "")
    if form in OPERATORS:
        lines += [f"{a.name} = D_{a.name}" for a in op.schema.args[2:]]
        if op.body is not None:
            other = op.schema.args[1].name
            lines += [
                f"{other} = operand(op, {other})",
                f"if {other} is None:",
                "    return NotImplemented",
            ]
        return "".join(f"    {line}\n" for line in lines)
    if has_older(op, form):
        labels = ["input" if form == "function" and n == "self" else n for n in names]
        first = labels[: sum(not a.keyword_only for a in op.schema.args)]
        lines.append(f"if older: return older_call(op, {form!r}, ({', '.join(first)}, *older))")
    several = several_of(op, form)
    if several is not None:
        # A lone list holds them; a lone tensor is the only one of them.
        n = several.name
        lone = f" and isinstance({n}[0], LISTS)" if several.kind is ArgKind.TENSORS else ""
        whole = form == "function" and op.api.variadic == "alone"
        unpacked = f"refuse_lone_list(op, {n})" if whole else f"{n}[0]"
        lines.append(f"if len({n}) == 1{lone}: {n} = {unpacked}")
    if form == "function" and "self" in names:
        lines.append("self = input")
    if varargs:
        ints = next(a.name for a in op.schema.args if a.kind is ArgKind.INTS)
        lines += [f"if len({ints}) == 1 and {ints}[0].__class__ is not int:"]
        lines += [f"    given_{ints} = {ints}; {ints} = {ints}[0]"]
        lines += [f"elif not {ints}:"]
        lines += [f"    given_{ints} = (); {ints} = named_ints(op, {ints!r}, extra)"]
    if _takes_extra(op, form) or varargs:
        lines += ["if extra:", f"    return renamed(op, {form!r}, locals(), extra)"]
    if form == "function":
        call = f"out_call(op, out, ({tuple_text}))"
        if takes_more(op):
            lines += ["if more or out is not None:"]
            lines += [f"    if more: return placed(op, ({tuple_text}), more)"]
        else:
            lines.append("if out is not None:")
        named = f"{_named(op, form)}_out" if _named(op, form) else ""
        lines.append(f"    return {named}({call})")
    elif form in FORMS and not varargs and takes_more(op, form):
        lines += ["if more:", "    refuse_more()"]
    lines += _listed(op, form)
    return "".join(f"    {line}\n" for line in lines)


def _missing_check(op: Op, form: str) -> str:
    """A composite's look at what the call lacks; nothing where Python looks itself."""
    args = op.schema.args
    labels = {a.name: "input" if a.name == "self" and form == "function" else a.name for a in args}
    needed = [labels[a.name] for a in args if _default(a, form).startswith("=OF")]
    if form in OPERATORS or not needed or several_of(op, form):
        return ""
    tests = " or ".join(f"{n}.__class__ is Missing" for n in needed)
    if _takes_extra(op, form):
        tests = f"not extra and ({tests})"  # another name may give it
    values = f"({', '.join(labels.values())},)"
    return f"    if {tests}:\n        refuse_call(op, {form!r}, {values})\n"


_ASKING: dict[str, Any] = {
    "LISTS": (tuple, list), "PLAIN_TENSORS": PLAIN_TENSORS,
    "hand_over_composite": hand_over_composite, "operated_by_mode": operated_by_mode,
    "MODES": MODES, "LOCAL": LOCAL,
}  # fmt: skip


_ONE_TENSOR = (ArgKind.TENSOR, ArgKind.OPTIONAL_TENSOR)


def _look_at_classes(op: Op, form: str) -> str:
    """Lines that let a first argument that is no plain tensor have the call, where it wants it."""
    looked = (ArgKind.TENSOR, ArgKind.UNION, ArgKind.TENSORS)
    first = next((a for a in op.schema.args if a.kind in looked), None)
    if form in OPERATORS:  # a function mode that sees names has the operator itself
        names = ", ".join(a.name for a in op.schema.args)
        test = "    if MODES.active and LOCAL.functions:\n"
        return f"{test}        return operated_by_mode(op, {form!r}, ({names},), body)\n"
    if form == "aten":
        return ""
    n = first.name if first is not None else ""
    parameters = _parameters(op.body)
    is_layer = "nn" in op.places and form == "function"
    names = ", ".join(parameters if is_layer else (a.name for a in op.schema.args))
    test = "MODES.active and (LOCAL.functions or LOCAL.profilers or LOCAL.dispatches)"
    if first is not None and first.kind is ArgKind.TENSORS:
        test += f" or {n}.__class__ in LISTS and not PLAIN_TENSORS.issuperset(map(type, {n}))"
    elif first is not None:
        test += f" or {n}.__class__ not in PLAIN_TENSORS"
    for arg in op.schema.args if is_layer else ():  # a layer's function asks its other tensors too
        name = arg.name
        if arg is not first and name in parameters and arg.kind in _ONE_TENSOR:
            absent = f"{name} is not None and " * (arg.kind is ArgKind.OPTIONAL_TENSOR)
            test += f" or ({absent}{name}.__class__ not in PLAIN_TENSORS)"
    lines = (
        f"    if {test}:\n"
        f"        answer = hand_over_composite(op, {form!r}, ({names},))\n"
        f"        if answer is not NotImplemented: return answer\n"
    )
    if first is not None and first.kind is ArgKind.TENSOR and not is_layer:
        lines += f"        if not isinstance({n}, Tensor): refuse_call(op, {form!r}, ({names},))\n"
    return lines


def first_fn(tensors: Any) -> Any:
    """The first gradient edge among tensors, None if there is none."""
    for tensor in tensors:
        if tensor is not None and tensor._fn is not None:
            return tensor._fn
    return None


def placed(op: Op, values: tuple[Any, ...], more: tuple[Any, ...]) -> Any:
    """A call with `out` among its arguments, as functions of Python have it; else TypeError."""
    function = python_function(op.base_name)
    names = () if function is None else function.__code__.co_varnames
    if "out" not in names or len(values) + len(more) > len(names):
        refuse_more()
    named = dict(zip(names, (*values, *more), strict=False))
    return op.entry("function")(**named)


# numpy's names of torch's parameters, which torch takes too.
SECOND_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input"}


def renamed(op: Op, form: str, named: dict[str, Any], extra: dict[str, Any]) -> Any:
    """A call with numpy's names (`axis=`); TypeError in torch's words for an unknown one."""
    names = [a.name for a in op.schema.args]
    values = {n: named[n] for n in names}
    for name, value in extra.items():
        target = SECOND_NAMES.get(name)
        target = "self" if target == "input" and "self" in names else target
        default = next((a.default for a in op.schema.args if a.name == target), None)
        passed = target in names and named[target].__class__ is not Missing
        if target not in names or (passed and named[target] is not default):
            text = f"{op.base_name}() got an unexpected keyword argument '{name}'"
            raise explained_here() or TypeError(text)
        values[target] = value
    if any(v.__class__ is Missing for v in values.values()):
        refuse_call(op, form, tuple(values.values()))
    if named.get("out") is not None:
        return op.entry("function")(
            **{"input" if n == "self" else n: v for n, v in values.items()}, out=named["out"]
        )
    return op.entry("inplace" if form == "inplace" else form)(
        **{"input" if n == "self" and form == "function" else n: v for n, v in values.items()}
    )


def _body(op: Op) -> Any:
    """A composite's body, behind autocast and a look at the dtypes that torch's cpu lacks."""
    body = op.body
    if body is not None and op.name in LABELS:
        body = _labelling(body, LABELS[op.name])
    if body is not None and op.base_name in slow_batches.COMPOSITES:
        body = slow_batches.warning(op.base_name, body)
    if body is not None and op.dtypes.unsupported:
        body = _refusing(op, body)
    return _recasting(op, body) if body is not None and op.dtypes.autocast else body


def _refusing(op: Op, body: Any) -> Any:
    """A body that gives torch's error for the dtypes that its cpu lacks."""

    fitting_dtypes: set[Any] = (
        set()
    )  # dtypes of the first tensor, where that is all that is asked for

    @functools.wraps(body)
    def run(*args: Any, **kwargs: Any) -> Any:
        tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
        device = tensors[0]._geom.device.type if tensors else "meta"
        if device != "meta" and (device, tensors[0].dtype) not in fitting_dtypes:
            op.bind()
            geoms = [a._geom if isinstance(a, Tensor) else a for a in args]
            unsupported_dtypes.refuse(
                op.dtypes.unsupported, op.infer,
                geoms if op.infer else [t._geom for t in tensors], device,
            )  # fmt: skip
            alike = all(t.dtype is tensors[0].dtype for t in tensors)
            if op.infer is None and alike and not unsupported_dtypes.REFERENCES.passed:
                fitting_dtypes.add((device, tensors[0].dtype))
        try:
            return body(*args, **kwargs)
        except ValueError:
            if tensors and tensors[0].dtype.itemsize != 2:  # halves are torch's cpu's own matter
                unsupported_dtypes.refuse(op.dtypes.unsupported, None, [tensors[0]._geom], device)
            raise

    return run


def _recasting(op: Op, body: Any) -> Any:
    """A body that autocast casts the tensors of, where it has a rule: what is inside runs as is."""

    @functools.wraps(body)
    def run(*args: Any, **kwargs: Any) -> Any:
        before = LOCAL.autocast
        if not before or not applies(op, args):
            return body(*args, **kwargs)
        args = recast(op, args) or args
        LOCAL.autocast = None
        try:
            return body(*args, **kwargs)
        finally:
            LOCAL.autocast = before

    return run


def _labelling(body: Any, label: str | Rule) -> Any:
    """A body whose result's node is named as torch names it."""

    @functools.wraps(body)
    def run(*args: Any, **kwargs: Any) -> Any:
        result = body(*args, **kwargs)
        return result if result is args[0] else labelled(result, label, args)

    return run


def _look_at_numbers(op: Op, form: str) -> str:
    """Lines that refuse Python numbers where only tensors are taken, or one number is."""
    tensors = [a.name for a in op.schema.args if a.kind is ArgKind.TENSOR]
    join = " or "
    if op.api.number_first:
        tensors, join = [a.name for a in op.schema.args[:2]], " and "
    if not tensors:
        return ""
    tests = join.join(f"{n}.__class__ in NUMBERS" for n in tensors)
    names = ", ".join(a.name for a in op.schema.args)
    return f"    if {tests}:\n        refuse_call(op, {form!r}, ({names},))\n"


def refuse_call(op: Op, form: str, values: tuple[Any, ...]) -> None:
    """TypeError in torch's words where a call does not fit the row; nothing where it may."""
    message = explained_here()
    if message is not None:
        raise message from None
    refuse_missing(op, values)
    refuse_kinds(op, values, int(form in ("method", *WRITING)))


# Classes of attributes that need no look; what else torch takes for them, argument_errors.py says.
_PLAIN_ATTRIBUTES = {"int": ("int",), "SymInt": ("int",), "str": ("str",), "bool": ("bool",),
                     "float": ("float", "int")}  # fmt: skip


def _look_at_attributes(op: Op, form: str, look: str = "") -> str:
    """Lines that have numbers, words and flags of other classes looked at."""
    tests: list[str] = []
    for arg in () if op.api.variadic else op.schema.args:
        if arg.name == "memory_format":  # named by text inside, by an object outside
            continue
        classes = _PLAIN_ATTRIBUTES.get(arg.type) if arg.kind is ArgKind.ATTR else None
        if classes:
            n, none = arg.name, ["None"] * (arg.optional or arg.default is None)
            fits = [f"{n}.__class__ is {c}" for c in classes] + [f"{n} is None" for _ in none]
            tests.append(f"({' or '.join(fits)})")
    if not tests:
        return ""
    look = look or f"look_at(op, {form!r}, ({', '.join(a.name for a in op.schema.args)},))"
    return f"    if not ({' and '.join(tests)}):\n        {look}\n"


def refuse_attributes(op: Op, form: str, values: tuple[Any, ...]) -> None:
    """TypeError in torch's words for a number, word or flag that is none."""
    first = int(form in ("method", *WRITING))
    for at, (arg, value) in enumerate(zip(op.schema.args, values, strict=True), -first):
        if arg.kind is not ArgKind.ATTR or arg.name == "memory_format":
            continue
        if arg.type in _PLAIN_ATTRIBUTES and not suits(arg, value):
            if message := explained_here():
                raise message
            if not isinstance(value, Tensor):  # what a tensor stands for, the body says
                raise refused(op, arg, at, value)


def _look_at_sizes(op: Op, first: int) -> str:
    """Lines that have all but ints and tuples of them looked at."""
    lines = ""
    parameters = _parameters(op.body)
    for at, arg in enumerate(op.schema.args):
        n = arg.name
        if arg.kind is ArgKind.INTS and not (
            n in parameters and "Tensor" in str(parameters[n].annotation)
        ):
            word = f" or {n}.__class__ is str" * (
                "str" in str(parameters[n].annotation) if n in parameters else 0
            )
            ends = f"{n}[0].__class__ is {n}[-1].__class__ is int"
            plain = f"{n}.__class__ is tuple and {n} and {ends}"
            lines += f"    if not ({n}.__class__ is int or {plain}{word}):\n"
            lines += f"        given_{n} = {n}; {n} = sizes_of(op, {at}, {first}, {n})\n"
    return lines


# Functions of torch.nn.functional that torch parses in C.
IN_C = frozenset((
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "bilinear", "channel_shuffle", "conv1d", "conv2d",
    "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "cosine_similarity", "layer_norm", "linear", "one_hot", "pdist", "pixel_shuffle",
    "pixel_unshuffle", "prelu", "rms_norm", "scaled_dot_product_attention",
))  # fmt: skip


def _sized(op: Op, body: Any) -> Any:
    """A layer's body, behind a look at its sizes where it takes any."""
    lines = _look_at_classes(op, "function") + _look_at_sizes(op, 0)
    if op.base_name in IN_C:
        lines += _look_at_attributes(op, "function")
    elif op.base_name in passed_on.NAMES:
        lines += _look_at_attributes(op, "function", "pass_on(name, locals())")
    parameters = _parameters(body)
    replays = programs.replays(op) and {a.name for a in op.schema.args} <= set(parameters)
    if not lines and not replays:
        return body
    defaults = {n: p.default for n, p in parameters.items()}
    params = [n + f"=D[{n!r}]" * (p.default is not p.empty) for n, p in parameters.items()]
    named = [n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
    if named:
        params.insert(len(parameters) - len(named), "*")
    passed = ", ".join(f"{n}={n}" if n in named else n for n in parameters)
    source = f"def {op.base_name}({', '.join(params)}):\n"
    source += programs.lookup(op).format(named="") * replays
    lines += programs.observation(passed).format(named="") * replays
    source += f"    try:\n{indent(lines, '    ')}        return body({passed})\n"
    values = ", ".join(f"{n!r}: {n}" for n in parameters)
    source += "    except (AttributeError, RuntimeError, TypeError) as error:\n"
    source += f"        refuse_layer(op, error, {{{values}}})\n"
    source += "        raise\n"
    scope = {
        "refuse_layer": refuse_layer, "D": defaults, "body": body, "op": op, "sizes_of": sizes_of,
        "pass_on": passed_on.pass_on, "name": op.base_name, "look_at": refuse_attributes,
        **_ASKING,
    }  # fmt: skip
    if replays:
        scope.update(_replaying(op, body, list(parameters)))
    return functools.wraps(body)(compiled(source, f"layer {op.name}", scope))


def refuse_layer(op: Op, error: Exception, values: dict[str, Any]) -> None:
    """TypeError in torch's words where a layer's function passes on what C does not take.

    A public attribute that a value does not have is one that torch's function reads too.
    """
    passed_on.pass_on(op.base_name, values)
    public = isinstance(error, AttributeError) and (error.name or "_")[0] != "_"
    if (
        public
        or op.base_name in IN_C
        or (isinstance(error, RuntimeError) and _computed(error, values))
    ):
        return
    if message := explained_inside(op.base_name, values):
        raise message from None


def _computed(error: RuntimeError, values: dict[str, Any]) -> bool:
    """Whether a body computes with what it has, not compares a tensor that stands for a number."""
    flag = isinstance(values.get("inplace"), Tensor)  # torch's function asks it first
    return flag or not str(error).startswith("Boolean value of")


def _replaying(op: Op, body: Any, names: list[str]) -> dict[str, Any]:
    """What the lines of `programs.lookup` read, and what records."""
    unmuted, muted = programs.tables(op)
    return {
        "programs": unmuted, "muted": muted, "unrecorded": {}, "MODES": MODES, "LOCAL": LOCAL,
        "NUMBERS": NUMBERS, "first_fn": first_fn, "observe": programs.Observer(op, body, names),
        **defaults(op), **_ASKING,
    }  # fmt: skip


def original_of(values: tuple[Any, ...]) -> Tensor:
    """What a composite reads of a tensor that it will write to: a copy for derivatives."""
    self: Tensor = values[0]
    if LOCAL.grad and any(isinstance(v, Tensor) and v.requires_grad for v in values):
        return self.clone()
    return self


def _composite(op: Op, form: str) -> Callable[..., Any]:
    """The entry of a composite: its body, with the form's names; a layer's body has them."""
    body = _body(op)
    if form != "method" and "nn" in op.places:
        sized = _sized(op, body)
        return parsed(op.base_name)(sized) if op.base_name in IN_C else sized
    varargs = form in ("method", "inplace") and takes_varargs(op)
    names = ", ".join(a.name for a in op.schema.args)
    original = f"original(({names},))"
    end = "_" if form in WRITING else ""
    replays = not end and programs.replays(op)
    result = (
        f"write_whole(self, fitting(op, self, body({names.replace('self', original, 1)})))"
        if end
        else f"{_named(op, form)}(body({names}))"
    )
    source = f"def {op.base_name}{end}({_params(op, form, varargs)}):\n"
    prelude = _prelude(op, form, varargs)
    if replays:
        prelude += programs.lookup(op).format(named=_named(op, form))
    source += prelude + _missing_check(op, form) + _look_at_classes(op, form)
    first = int(form in ("method", *WRITING))
    source += _look_at_numbers(op, form) + _look_at_sizes(op, first)
    source += _look_at_attributes(op, form) if form in ("function", "method") else ""
    if end and op.writes.apart:
        source += f"    refuse_shared((self,), ({names},)[1:])\n"
    if replays:
        source += programs.observation(names).format(named=_named(op, form))
    source += f"    try:\n        return {result}\n"
    if form in OPERATORS:  # Python asks the other operand, as after torch's operators
        source += "    except TypeError:\n        return NotImplemented\n"
    else:
        source += "    except (AttributeError, TypeError):\n"
        source += f"        refuse_call(op, {form!r}, ({names},))\n        raise\n"
    if end:
        source += "    except (IndexError, RuntimeError):\n"
        source += "        refuse_recorded(self)\n        raise\n"
    scope: dict[str, Any] = {
        **defaults(op), "NUMBERS": NUMBERS, "Tensor": Tensor,
        "body": body, "op": op, "operand": slow.operand, "out_call": out_call,
        "refuse_lone_list": refuse_lone_list,
        "renamed": renamed, "named_ints": named_ints,
        "named": _make(op), "named_out": _make(op, "_out"),
        "refuse_call": refuse_call, "refuse_more": refuse_more, "placed": placed,
        "look_at": refuse_attributes,
        "sizes_of": sizes_of,
        "PLAIN": PLAIN, "listed": listed, "refuse_shared": refuse_shared,
        "original": original_of, "older_call": older_call, **MARKS,
        "refuse_recorded": refuse_recorded,
        "Missing": Missing, "fitting": slow.fitting, "write_whole": write_whole,
        **_ASKING,
    }  # fmt: skip
    if replays:
        scope.update(_replaying(op, body, [a.name for a in op.schema.args]))
    return compiled(source, f"composite {op.name} as {form}", scope)


Op.write = write
