"""Owns the entries: one Python function per op and form, written from the schema.

An entry makes a key from Geometries, classes of numbers and attributes, finds the plan and runs it.
It is generated, as dataclasses do, because generic `*args` binding costs more than a small
op. Forms: "aten" (schema's names), "function" (torch.name: `input`, `out=`), "method"
(`*size` where torch has it), "inplace" (name_), "operator" (two positional arguments).
"""

from __future__ import annotations

from typing import Any

from .._autograd.compiled import compile_record
from .._autograd.grad_mode import LOCAL, MODES
from .._tensor import Tensor
from ..ops.rules import NUMBERS
from ..ops.schema import Arg, Kind
from ..ops.spec import MISSING, OPS, Op, aten
from . import slow
from .dispatcher import layers, layers_inplace
from .plans import table

_BODY = """\
def {name}({params}):
{prelude}    try:
{key}        plan = plans[key]
    except (KeyError, AttributeError, TypeError):
        plan = None
    if plan is None:
        return slow(op, ({args}))
    if {guard}:
        if MODES.active or not LOCAL.grad:
            return layers(op, plan, ({args}))
        return record(plan, {run})
    return plan.run({run})
"""

_INPLACE = """\
def {name}({params}):
{prelude}    try:
{key}        plan = plans[key]
    except (KeyError, AttributeError, TypeError):
        plan = None
    if plan is None:
        return slow(op, ({args}))
    if {guard}:
        return layers(op, plan, ({args}))
    plan.run((self,), {run})
    self._storage.value += 1
    return self
"""


def functional_entry(op: Op) -> Any:
    """The entry with the schema's own names."""
    return entry(op, "aten")


def entry(op: Op, form: str) -> Any:
    """The entry of an op in a form, made on first use."""
    found = op.cache.get(form)
    if found is None:
        found = slow.composite_entry(op, form) if op.body else _generate(op, form)
        op.cache[form] = found
    return found


def _generate(op: Op, form: str) -> Any:
    inplace = form == "inplace"
    args = op.schema.args
    key, guard = _key(op, args)
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
    )
    return compile_function(op, source, inplace)


def compile_function(op: Op, source: str, inplace: bool) -> Any:
    """The function that `source` defines, with the globals that entries read."""
    plans = op.cache.setdefault("plans_" if inplace else "plans", None)
    if plans is None:
        plans = op.cache["plans_" if inplace else "plans"] = table()
    scope: dict[str, Any] = {
        "LOCAL": LOCAL, "MODES": MODES, "NUMBERS": NUMBERS, "Tensor": Tensor, "op": op,
        "plans": plans,
        "slow": slow.slow_inplace if inplace else slow.slow, "out_call": slow.out_call,
        "layers": layers_inplace if inplace else layers, "first_fn": slow.first_fn,
        "renamed": slow.renamed, "refused": slow.refused,
        "D": {a.name: a.default for a in op.schema.args},
    }  # fmt: skip

    def record(plan: Any, *args: Any) -> Any:
        scope["record"] = made = compile_record(op)
        return made(plan, *args)

    scope["record"] = record
    name = source[4 : source.index("(")]
    exec(compile(source, f"<entry {op.name}>", "exec"), scope)
    made = scope[name]
    made.__module__ = "mindtorch"
    made.__qualname__ = name
    made.__doc__ = op.text
    return made


def takes_varargs(op: Op) -> bool:
    """Whether the method takes `*ints`: its only positional argument is an unsized int list."""
    rest = [a for a in op.schema.args if not a.keyword_only][1:]
    return len(rest) == 1 and rest[0].kind is Kind.INTS and rest[0].size is None


def _params(op: Op, form: str, varargs: bool) -> str:
    if form == "operator":
        return ", ".join(a.name for a in op.schema.args[:2])
    parts = []
    starred = False
    for arg in op.schema.args:
        name = "input" if form == "function" and arg.name == "self" else arg.name
        if varargs and arg.kind is Kind.INTS and not arg.keyword_only:
            parts.append("*" + name)
            starred = True
            continue
        if arg.keyword_only and not starred and form != "aten":
            parts.append("*")
            starred = True
        parts.append(name + (f"=D[{arg.name!r}]" if arg.has_default else ""))
    if form == "function":
        parts += ["out=None"] if starred else ["*", "out=None"]
    if (form != "aten" and any(a.name in ("dim", "keepdim") for a in op.schema.args)) or varargs:
        parts.append("**extra")
    return ", ".join(parts)


def _prelude(op: Op, form: str, varargs: bool) -> str:
    lines = []
    names = [a.name for a in op.schema.args]
    tuple_text = ", ".join(names) + ("," if names else "")
    if form == "operator":
        lines += [f"{a.name} = D[{a.name!r}]" for a in op.schema.args[2:]]
        if op.schema.args[1].kind is Kind.UNION:
            other = op.schema.args[1].name
            lines += [
                f"if not (isinstance({other}, Tensor) or {other}.__class__ in NUMBERS):",
                f"    if refused({other}):",
                "        return NotImplemented",
            ]
        return "".join(f"    {line}\n" for line in lines)
    if form == "function" and "self" in names:
        lines.append("self = input")
    if varargs:
        ints = next(a.name for a in op.schema.args if a.kind is Kind.INTS)
        lines += [f"if len({ints}) == 1 and {ints}[0].__class__ is not int:"]
        lines += [f"    {ints} = {ints}[0]"]
        lines += [f"elif not {ints} and extra:", f"    {ints} = extra.pop({ints!r})"]
    if (any(n in ("dim", "keepdim") for n in names) and form != "aten") or varargs:
        lines += ["if extra:", f"    return renamed(op, {form!r}, locals(), extra)"]
    if form == "function":
        lines += ["if out is not None:", f"    return out_call(op, out, ({tuple_text}))"]
    lines += [
        f"if {a.name}.__class__ is list: {a.name} = tuple({a.name})"
        for a in op.schema.args
        if a.kind is Kind.INTS
    ]
    return "".join(f"    {line}\n" for line in lines)


def _key(op: Op, args: tuple[Arg, ...]) -> tuple[str, str]:
    """The lines that make `key` and `fn`, and the condition for taking the layers."""
    differentiable = op.grad is MISSING or bool(op.grad)
    unions = [a for a in args if a.kind is Kind.UNION and not a.optional]
    if len(unions) == 1:
        name = unions[0].name
        number = _parts(args, {name: (f"{name}.__class__", None)})
        tensor = _parts(args, {name: (f"{name}._geom", f"{name}._fn")})
        lines = f"        if {name}.__class__ in NUMBERS:\n"
        lines += _assign(number, differentiable, 12) + "        else:\n"
        lines += _assign(tensor, differentiable, 12)
    else:
        lines = _assign(_parts(args, {}), differentiable, 8)
    has_tensors = any(a.kind is not Kind.ATTR and a.kind is not Kind.INTS for a in args)
    watch_fn = has_tensors and (differentiable or _writes_possible(op))
    return lines, "fn is not None or MODES.active" if watch_fn else "MODES.active"


def _writes_possible(op: Op) -> bool:
    return op.inplace


def _assign(parts: tuple[list[str], list[str]], differentiable: bool, indent: int) -> str:
    keys, fns = parts
    pad = " " * indent
    key = keys[0] if len(keys) == 1 else f"({', '.join(keys)},)" if keys else "None"
    return f"{pad}key = {key}\n{pad}fn = {' or '.join(fns) or 'None'}\n"


def _parts(args: tuple[Arg, ...], given: dict[str, Any]) -> tuple[list[str], list[str]]:
    keys: list[str] = []
    fns: list[str] = []
    for arg in args:
        key, fn = given[arg.name] if arg.name in given else _part(arg)
        if key:
            keys.append(key)
        if fn:
            fns.append(fn)
    return keys, fns


def _part(arg: Arg) -> tuple[str | None, str | None]:
    n = arg.name
    if arg.kind is Kind.TENSOR:
        return f"{n}._geom", f"{n}._fn"
    if arg.kind is Kind.OPTIONAL_TENSOR:
        return f"(None if {n} is None else {n}._geom)", f"(None if {n} is None else {n}._fn)"
    if arg.kind is Kind.UNION:
        number = f"{n}.__class__ in NUMBERS or {n} is None"
        return (
            f"({n}.__class__ if {number} else {n}._geom)",
            f"(None if {number} else {n}._fn)",
        )
    if arg.kind in (Kind.TENSORS, Kind.OPTIONAL_TENSORS):
        none = "None if t is None else " if arg.kind is Kind.OPTIONAL_TENSORS else ""
        return f"tuple([{none}t._geom for t in {n}])", f"first_fn({n})"
    if arg.kind is Kind.SCALAR or arg.type == "Generator":
        return f"{n}.__class__", None
    if arg.type in ("Number", "float"):
        return f"{n}, {n}.__class__", None
    return n, None


def _load(name: str) -> Any:
    op = OPS.get(name)
    if op is None:
        base, _, overload = name.rpartition("_")
        op = OPS.get(f"{base}.{overload}")
    if op is None:
        raise AttributeError(f"no op named {name}")
    return entry(op, "aten")


aten._load = _load
