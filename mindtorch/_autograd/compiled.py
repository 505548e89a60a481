"""Owns the fast forms of a Formula: `record` and `apply` written out for one op.

They say the same as `formula.autograd` and `Formula.apply`, which stay the reference and serve what
is not compiled: lists of tensors, and calls under modes. Written out because the generic
loops over inputs cost more than a small operation.
"""

from __future__ import annotations

from typing import Any

from .._dtype import FLOAT
from .._tensor import wrap
from ..ops.rules import NUMBERS
from ..ops.schema import Kind
from ..ops.spec import Op
from .formula import Formula, _attach, _materialized, _saved_list, autograd, edge, formula
from .node import FREED, INFERENCE, OpNode, _Sentinel, counter, keep


def compile_record(op: Op) -> Any:
    """`record(plan, *args)`: the AUTOGRAD layer for calls with gradients on and no mode active."""
    made = formula(op)
    if not made.simple or not made.differentiable:
        return lambda plan, *args: autograd(op, plan, args)
    scope = _scope(op, made)
    exec(compile(_record_source(op, made), f"<record {op.name}>", "exec"), scope)
    return scope["record"]


def compile_apply(op: Op, made: Formula) -> Any:
    """`apply(node, grads)` for a Formula without list arguments."""
    scope = _scope(op, made)
    exec(compile(_apply_source(op, made), f"<backward {op.name}>", "exec"), scope)
    return scope["apply"]


def _scope(op: Op, made: Formula) -> dict[str, Any]:
    scope: dict[str, Any] = {
        "FREED": FREED, "INFERENCE": INFERENCE, "NUMBERS": NUMBERS, "Sentinel": _Sentinel,
        "attach": _attach, "cls": made.node_class, "counter": counter, "edge": edge, "keep": keep,
        "materialized": _materialized, "new": object.__new__, "op": op, "unpack": OpNode.unpack,
        "wrap": wrap, "FLOAT": FLOAT,
    }  # fmt: skip
    for i, target in enumerate(made.targets):
        scope[f"f{i}"] = target.fn
    return scope


def _record_source(op: Op, made: Formula) -> str:
    args = op.schema.args
    params = ", ".join(f"a{i}" for i in range(len(args)))
    lines = [f"def record(plan, {params}):"]
    for p in made.positions:
        lines += _edge_lines(p, args[p].kind)
    some = " and ".join(f"e{p} is None" for p in made.positions)
    lines += [f"    if {some}:", f"        return plan.run({params})"]
    lines += [
        f"    out = plan.run({params})",
        "    node = new(cls)",
        "    node.seq = next(counter)",
    ]
    edges = "".join(f"e{p}, " for p in made.positions)
    lines += [f"    node.edges = ({edges})", "    node.index = None"]
    places = range(len(args))
    held = "".join(f"a{i}, " if i in made.scalars else f"plan.args[{i}], " for i in places)
    lines += [f"    node.args = ({held})" if made.scalars else "    node.args = plan.args"]
    single = len(op.schema.returns) == 1 and not op.schema.returns[0].list
    # A shape that the kernel decides is in the result, not in the plan.
    lines += ["    node.outs = (out._geom,)" if single else "    node.outs = plan.outs"]
    saved = _saved_list(made)
    parts = [_save_expression(op, made, how, i) for how, i in saved]
    lines += [f"    node.saved = ({''.join(part + ', ' for part in parts)})"]
    if single and not op.is_view:
        lines += ["    if plan.outs[0].dtype.category >= FLOAT:", "        out._fn = node"]
    else:
        lines += ["    attach(node, out, op)"]
    return "\n".join([*lines, "    return out", ""])


def _edge_lines(p: int, kind: Kind) -> list[str]:
    absent = {
        Kind.TENSOR: "",
        Kind.OPTIONAL_TENSOR: f"None if a{p} is None else ",
        Kind.UNION: f"None if a{p}.__class__ in NUMBERS or a{p} is None else ",
    }[kind]
    return [
        f"    e{p} = {absent}a{p}._fn",
        f"    if e{p} is not None:",
        f"        e{p} = (e{p}, a{p}._nr) if e{p}.__class__ is not Sentinel else edge(a{p})",
    ]


def _save_expression(op: Op, made: Formula, how: str, i: int) -> str:
    users = sorted({p for t in made.targets if (how, i) in t.reads for p in t.positions})
    if how == "arg":
        value = (
            f"(a{i}, a{i}._storage.value, None) if a{i}._fn is not INFERENCE else keep(a{i}, None)"
        )
        kind = op.schema.args[i].kind
        if kind is Kind.UNION:
            value = f"a{i} if a{i}.__class__ in NUMBERS or a{i} is None else ({value})"
        elif kind is Kind.OPTIONAL_TENSOR:
            value = f"None if a{i} is None else ({value})"
    else:
        single = len(op.schema.returns) == 1 and not op.schema.returns[0].list
        out = "out" if single else f"out[{i}]"
        value = f"(wrap({out}._geom, {out}._storage), {out}._storage.value, {i})"
    if len(users) == len(made.positions):
        return f"({value})"
    wanted = " or ".join(f"e{p} is not None" for p in users)
    return f"(({value}) if {wanted} else None)"


def _apply_source(op: Op, made: Formula) -> str:
    lines = ["def apply(node, grads):", "    saved = node.saved", "    if saved is None:"]
    lines += ["        raise RuntimeError(FREED)"]
    names = "".join(f"e{p}, " for p in made.positions)
    lines += [f"    {names}= node.edges", f"    {''.join(f'r{p} = ' for p in made.positions)}None"]
    saved = _saved_list(made)
    for i, target in enumerate(made.targets):
        wanted = " or ".join(f"e{p} is not None" for p in target.positions)
        reads = ", ".join(_read(op, made, target, how, k, saved) for how, k in target.reads)
        results = "".join(f"r{p}, " for p in target.positions)
        results = results if len(target.positions) > 1 else results[:-2]
        lines += [f"    if {wanted}:", f"        {results} = f{i}({reads})"]
    returned = "".join(f"r{p}, " for p in made.positions)
    return "\n".join([*lines, f"    return ({returned})", ""])


def _read(op: Op, made: Formula, target: Any, how: str, i: int, saved: Any) -> str:
    if how == "grad":
        return f"grads[{i}]"
    if how in ("arg", "result"):
        at = saved.index((how, i))
        held = f"saved[{at}]"
        if how == "arg" and op.schema.args[i].kind is not Kind.TENSOR:
            return f"(unpack(node, {held}) if {held}.__class__ is tuple else {held})"
        return f"unpack(node, {held})"
    if how in ("attr", "geom"):
        return f"node.args[{i}]"
    if how == "result_geom":
        return f"node.outs[{i}]"
    if how == "grads":
        return "materialized(node, grads)"
    return "(" + "".join(f"e{p} is not None, " for p in target.positions) + ")"
