"""Owns the functions written from a Formula: how a call is recorded, and how its node is applied.

Written out per op because loops over inputs cost more than a small operation. For each op:
`record(plan, *args)` runs a call and puts a node on its results, `capture(plan, own, *args)` makes
the node of a call that is about to write to its first argument, `apply(node, grads)` gives the
gradients of the arguments, lists spread out, None where no edge wants one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from .._tensor.dtype import FLOAT
from .._tensor.slots import grown
from .._tensor.tensor import Tensor, wrap
from ..ops.rules import NUMBERS, Dynamic
from ..ops.schema import ArgKind
from ..ops.source import compiled
from ..ops.spec import MISSING, Op, aten
from .formula import LISTS, Formula, GradTarget, formula
from .node import FREED, INFERENCE, STALE, Node, Sentinel, counter, keep, read_at_once
from .node_names import named_slope, row_name
from .product_nodes import PRODUCTS, SAVED_AS, next_edges, rows_of, second_first, weight_transpose
from .saved_values import PREFIX, RAW_PREFIX, saved_names
from .views import fresh_edge


class OpNode(Node):
    """The node of a row's call: one subclass per op, made on first use.

    `args` and `outs` are what the plan knows of arguments and results; `index` says where the
    edges of each argument stand, for ops that take lists.
    """

    __slots__ = ()
    args: Any
    index: Any
    op: Op

    def name(self) -> str:
        base = type(self).__name__
        if self.op.grad is MISSING:
            base = f"torch::autograd::{base}"
        return self.label or row_name(base, self.op.name, self.args)

    def next_edges(self) -> tuple[Any, ...]:
        return next_edges(self)

    def saved_order(self) -> range:
        late = self.op.name in PRODUCTS and second_first(self.op.name, self.args)
        return range(len(self.saved or ()))[:: -1 if late else 1]

    def __getattr__(self, name: str) -> object:
        raw = name.startswith(RAW_PREFIX)
        read = None
        if raw or name.startswith(PREFIX):
            read = saved_names(self, raw).get(name[len(RAW_PREFIX if raw else PREFIX) :])
        if read is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return read()

    def __dir__(self) -> list[str]:
        raw = (RAW_PREFIX + name for name in saved_names(self, True))
        return [*super().__dir__(), *(PREFIX + name for name in saved_names(self)), *raw]


class GeneratedFunctions:
    """The written functions of one op; `record` is for calls under no mode, `watched` for all."""

    __slots__ = ("__dict__", "_scope", "formula", "node_class", "op")

    def __init__(self, op: Op):
        self.formula = rule = formula(op)
        scope = _scope(rule)
        apply = compiled(_apply(rule), f"backward {op.name}", scope)
        members = {"__slots__": (), "__module__": "builtins", "apply": apply, "op": op}
        self.node_class = scope["cls"] = type(_node_name(op), (OpNode,), members)
        self.op, self._scope = op, scope

    @cached_property
    def record(self) -> Callable[..., Any]:
        return compiled(_record(self.formula, _PLAIN), f"record {self.op.name}", self._scope)

    @cached_property
    def watched(self) -> Callable[..., Any]:
        place = f"record {self.op.name} under modes"
        return compiled(_record(self.formula, _WATCHED), place, self._scope)

    @cached_property
    def capture(self) -> Callable[..., Any]:
        return compiled(_capture(self.formula), f"capture {self.op.name}", self._scope)


def compiled_functions(op: Op) -> GeneratedFunctions:
    """The written functions of `op`, made once."""
    if "written" not in op.cache:
        op.cache["written"] = GeneratedFunctions(op)
    functions: GeneratedFunctions = op.cache["written"]
    return functions


def edge(tensor: Tensor) -> tuple[Any, int] | None:
    """Where this tensor's gradient goes, None if it needs none."""
    fn = tensor._fn
    if fn is None or fn is INFERENCE:
        return None
    if fn is STALE:
        again: tuple[Any, int] | None = fresh_edge(tensor)
        return again
    return (fn, tensor._nr)


def _edges(tensors: Sequence[Tensor | None]) -> tuple[Any, ...] | None:
    """The edges of a list argument, None where no element needs a gradient."""
    edges = tuple([None if t is None else edge(t) for t in tensors])
    return edges if any(e is not None for e in edges) else None


def _keep_list(tensors: Sequence[Tensor | None]) -> list[Any]:
    return [None if t is None else keep(t, None) for t in tensors]


def _unpack_list(node: Node, saved: list[Any]) -> list[Any]:
    return [None if s is None else node.unpack(s) for s in saved]


def _spread(edges: Any, grads: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The gradients of a list argument, one for each of its edges."""
    if grads is None:
        return (None,) * len(edges)
    if len(grads) != len(edges):
        raise RuntimeError(f"derivative gave {len(grads)} gradients for {len(edges)} tensors")
    return grads


def _materialized(node: OpNode, grads: list[Any]) -> tuple[Any, ...]:
    return tuple(
        aten.zeros(g.shape, dtype=g.dtype, device=g.device) if v is None else v
        for g, v in zip(node.outs, grads, strict=True)
    )


def _attach(node: Any, result: Any, op: Op) -> None:
    """Make `node` the history of each result that can have one."""
    if isinstance(result, Tensor):
        if result._geom.dtype.category >= FLOAT:
            result._fn = node
        return
    many = len(op.schema.returns) == 1
    if any(g.__class__ is Dynamic for g in node.outs):
        node.outs = tuple(out._geom for out in result)
    for i, out in enumerate(result):
        if isinstance(out, Tensor) and out._geom.dtype.category >= FLOAT:
            out._fn = node
            out._nr = i
            if many and op.is_view:
                out._creation = "multi"


def _node_name(op: Op) -> str:
    if op.grad is MISSING:
        return "NotImplemented"
    return "".join(word.title() for word in op.base_name.split("_")) + "Backward0"


def _scope(rule: Formula) -> dict[str, Any]:
    scope: dict[str, Any] = {
        "FLOAT": FLOAT, "FREED": FREED, "INFERENCE": INFERENCE, "NUMBERS": NUMBERS,
        "Sentinel": Sentinel, "attach": _attach, "clone": lambda t: aten.clone(t),
        "counter": counter, "edge": edge, "edges_of": _edges, "keep": keep,
        "grown": grown, "keep_list": _keep_list, "materialized": _materialized,
        "op": rule.op, "read_at_once": read_at_once, "rows_of": rows_of,
        "second_first": second_first, "spread": _spread, "unpack": OpNode.unpack,
        "unpack_list": _unpack_list, "unread": _unread,
        "weight_transpose": weight_transpose, "wrap": wrap,
    }  # fmt: skip
    for i, target in enumerate(rule.targets):
        scope[f"f{i}"] = named_slope(rule.op.name, target.fn)
    return scope


# How a tensor is kept: by hand where no mode asks for more than its version.
_WATCHED = "keep({t}, {n})"
_PLAIN = "({t}, {t}._storage.value, None) if {t}._fn is not INFERENCE else keep({t}, None)"
_PLAIN_RESULT = "(wrap({t}._geom, {t}._storage), {t}._storage.value, {n})"


def _record(rule: Formula, form: str) -> str:
    op = rule.op
    params = _params(op)
    lines = [f"def record(plan, {params}):"]
    if not rule.positions:
        return "\n".join([*lines, f"    return plan.run({params})", ""])
    lines += _edge_lines(rule)
    lines += [f"    if {_none(rule)}:", f"        return plan.run({params})"]
    single = _single(op)
    # A shape that the kernel decides is in the result, not in the plan.
    outs = "(out._geom,)" if single else "plan.outs"
    # Hooks see results with their history, which the node is first.
    late = form is _WATCHED and any(how == "result" for how, _ in rule.saved)
    parts = [
        "None" if late and read[0] == "result" else _save(rule, read, form) for read in rule.saved
    ]
    if form is _WATCHED and op.name not in PRODUCTS:
        # Hooks see arguments before the kernel runs: a second run may end there.
        places = [i for i, read in enumerate(rule.saved) if read[0] == "arg"]
        lines += [f"    s{i} = {parts[i]}" for i in places]
        parts = [f"s{i}" if i in places else part for i, part in enumerate(parts)]
    elif form is _WATCHED:
        # Hooks see a factor that the gradient of the other asks for.
        parts = [
            f"({part}) if e{1 - i} is not None else (a{i}, a{i}._storage.value, None)"
            for i, part in enumerate(parts)
        ]
        lines += ["    late = second_first(op.name, plan.args)", f"    if late: s1 = {parts[1]}"]
        lines += [f"    s0 = {parts[0]}", f"    if not late: s1 = {parts[1]}"]
        parts = ["s0", "s1"]
    lines += [f"    out = plan.run({params})"]
    lines += [_node_line(rule, outs, f"({''.join(part + ', ' for part in parts)})")]
    if form is _WATCHED and rule.saved:
        lines += ["    read_at_once(node)"]
    if single and not op.is_view:
        lines += ["    if plan.outs[0].dtype.category >= FLOAT:", "        out._fn = node"]
    else:
        lines += ["    attach(node, out, op)"]
        if op.is_view:  # what is said of a view is said of its views
            lines += ["    if a0._creation is not None: out._creation = a0._creation"] * single
    if late:
        parts = [
            _save(rule, read, form) if read[0] == "result" else f"node.saved[{i}]"
            for i, read in enumerate(rule.saved)
        ]
        lines += [f"    node.saved = ({', '.join(parts)},)"]
    return "\n".join([*lines, "    return out", ""])


def _capture(rule: Formula) -> str:
    """`capture(plan, own, …)`: the node, its results not yet kept; None where none is needed.

    `own` says that the target has a history of its own, which needs a node in any case. The
    target's old value is cloned if a derivative will read it.
    """
    lines = [f"def capture(plan, own, {_params(rule.op)}):", *_edge_lines(rule)]
    lines += [f"    if not own and {_none(rule)}:", "        return None"]
    if ("arg", 0) in rule.saved:
        lines += [
            f"    if {_needs_gradient(rule, rule.users(('arg', 0)))}:",
            "        a0 = clone(a0)",
        ]
    parts = [_save(rule, r, _WATCHED) if r[0] == "arg" else "None" for r in rule.saved]
    saved = "".join(part + ", " for part in parts)
    lines += [_node_line(rule, "plan.outs", f"[{saved}]"), "    return node", ""]
    return "\n".join(lines)


def _apply(rule: Formula) -> str:
    lines = ["def apply(node, grads):", "    saved = node.saved", "    if saved is None:"]
    lines += ["        raise RuntimeError(FREED)"]
    if rule.lists:
        lines += ["    edges, index = node.edges, node.index"]
        lines += [f"    e{p} = edges[index[{n}]]" for n, p in enumerate(rule.positions)]
    else:
        lines += [f"    {_tuple('e', rule)} = node.edges"]
    if rule.positions:
        lines += [f"    {''.join(f'r{p} = ' for p in rule.positions)}None"]
    names = [arg.name for arg in rule.op.schema.args]
    targets = sorted(enumerate(rule.targets), key=lambda t: names[t[1].positions[0]])
    for i, target in targets:  # in torch's order
        condition = " or ".join(_wants(rule, p) for p in target.positions)
        reads = ", ".join(_read(rule, target, read) for read in target.reads)
        results = ", ".join(f"r{p}" for p in target.positions)
        lines += [f"    if {condition}:", f"        {results} = f{i}({reads})"]
    parts = [f"*spread(e{p}, r{p}), " if _is_list(rule, p) else f"r{p}, " for p in rule.positions]
    return "\n".join([*lines, f"    return ({''.join(parts)})", ""])


def _params(op: Op) -> str:
    return ", ".join(f"a{i}" for i in range(len(op.schema.args)))


def _tuple(letter: str, rule: Formula) -> str:
    return "(" + "".join(f"{letter}{p}, " for p in rule.positions) + ")"


def _single(op: Op) -> bool:
    return len(op.schema.returns) == 1 and not op.schema.returns[0].list


def _is_list(rule: Formula, p: int) -> bool:
    return rule.op.schema.args[p].kind in LISTS


def _none(rule: Formula) -> str:
    return " and ".join(f"e{p} is None" for p in rule.positions) or "True"


def _needs_gradient(rule: Formula, positions: list[int]) -> str:
    """Whether a gradient goes to one of these arguments, before edges are spread out."""
    return " or ".join(f"e{p} is not None" for p in positions)


def _wants(rule: Formula, p: int) -> str:
    """Whether a gradient goes to argument `p`, in `apply`."""
    return f"any([e is not None for e in e{p}])" if _is_list(rule, p) else f"e{p} is not None"


def _edge_lines(rule: Formula) -> list[str]:
    lines = []
    for p in rule.positions:
        kind = rule.op.schema.args[p].kind
        if kind in LISTS:
            lines += [f"    e{p} = edges_of(a{p})"]
            continue
        absent = {
            ArgKind.TENSOR: "",
            ArgKind.OPTIONAL_TENSOR: f"None if a{p} is None else ",
            ArgKind.UNION: f"None if a{p}.__class__ in NUMBERS or a{p} is None else ",
        }[kind]
        lines += [
            f"    e{p} = {absent}a{p}._fn",
            f"    if e{p} is not None:",
            f"        e{p} = (e{p}, a{p}._nr) if e{p}.__class__ is not Sentinel else edge(a{p})",
        ]
    return lines


def _node_line(rule: Formula, outs: str, saved: str) -> str:
    edges, index = _tuple("e", rule), "None"
    if rule.lists:
        parts, places, start = [], [], "0"
        for p in rule.positions:
            size = f"len(a{p})" if _is_list(rule, p) else "1"
            end = f"{start} + {size}"
            parts.append(f"*(e{p} or (None,) * len(a{p}))" if _is_list(rule, p) else f"e{p}")
            places.append(f"slice({start}, {end})" if _is_list(rule, p) else start)
            start = end
        edges, index = f"({', '.join(parts)},)", f"({', '.join(places)},)"
    args = "plan.args"
    if rule.scalars:
        count = len(rule.op.schema.args)
        arguments = (f"a{i}, " if i in rule.scalars else f"plan.args[{i}], " for i in range(count))
        args = f"({''.join(arguments)})"
    return f"    node = grown(cls, next(counter), {edges}, {outs}, {saved}, {args}, {index})"


def _save(rule: Formula, read: tuple[str, int], form: str) -> str:
    how, i = read
    if how == "arg":
        reshaped = SAVED_AS.get((rule.op.name, i)) if form is _WATCHED else None
        if reshaped:
            form = f"keep({{t}}, None, {reshaped})"
        value = _save_argument(rule.op.schema.args[i].kind, f"a{i}", form)
    else:
        out = "out" if _single(rule.op) else f"out[{i}]"
        value = (_PLAIN_RESULT if form is _PLAIN else _WATCHED).format(t=out, n=i)
    users = rule.users(read)
    if len(users) == len(rule.positions):
        return f"({value})"
    return f"(({value}) if {_needs_gradient(rule, users)} else None)"


def _save_argument(kind: ArgKind, name: str, form: str) -> str:
    if kind in LISTS:
        return f"keep_list({name})"
    value = form.format(t=name, n=None)
    if kind is ArgKind.UNION:
        return f"{name} if {name}.__class__ in NUMBERS or {name} is None else ({value})"
    return f"None if {name} is None else ({value})" if kind is ArgKind.OPTIONAL_TENSOR else value


def _read(rule: Formula, target: GradTarget, read: tuple[str, int]) -> str:
    how, i = read
    if how == "grad":
        return f"grads[{i}]"
    if how in ("arg", "result"):
        return _read_saved(rule, read, f"saved[{rule.saved.index(read)}]")
    if how in ("attr", "geom"):
        return f"node.args[{i}]"
    if how == "result_geom":
        return f"node.outs[{i}]"
    if how == "grads":
        return "materialized(node, grads)"
    return "(" + "".join(f"{_wants(rule, p)}, " for p in target.positions) + ")"


def _read_saved(rule: Formula, read: tuple[str, int], place: str) -> str:
    how, i = read
    kind = rule.op.schema.args[i].kind if how == "arg" else ArgKind.TENSOR
    if kind in LISTS:
        return f"unpack_list(node, {place})"
    if kind is not ArgKind.TENSOR:
        return f"(unpack(node, {place}) if {place}.__class__ is tuple else {place})"
    other = _OF_OTHER.get((rule.op.name, i)) if how == "arg" else None
    if other is not None:
        return f"(unpack(node, {place}) if e{other} is not None else unread(node, {place}))"
    return f"unpack(node, {place})"


# Arguments of products that only the other's gradient reads: without it torch does not keep them,
# so that they may be written to before `backward`.
_OF_OTHER = {("linear", 0): 1, ("linear", 1): 0}


def _unread(node: Any, saved: Any) -> Tensor:
    """A saved tensor as it is now; what hooks packed is unpacked as they do."""
    tensor = saved[0]
    return tensor if isinstance(tensor, Tensor) else node.unpack(saved)
