"""Owns Formula: a row's derivative, compiled; and the AUTOGRAD layer that records and applies it.

A derivative is a function whose parameter names say what it needs: `grad` (of the only result)
or `grads` (of all, zeros where undefined), an argument's name (saved, checked), its name with
`_geom` (its Geometry, nothing is saved), a result's name, `result` or `result_geom`,
or `needs` (which of its targets are wanted).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._dtype import FLOAT
from .._tensor import Tensor
from ..ops.rules import Dynamic
from ..ops.schema import Kind
from ..ops.spec import MISSING, Op, aten
from .grad_mode import LOCAL
from .node import FREED, INFERENCE, STALE, OpNode, counter, keep
from .views import fresh_edge, is_view_of_leaf, rebase, refuse_view, track_view

TENSORS = (Kind.TENSOR, Kind.OPTIONAL_TENSOR, Kind.UNION)
LISTS = (Kind.TENSORS, Kind.OPTIONAL_TENSORS)


class Target:
    """One derivative function: the argument positions it serves and what it reads."""

    __slots__ = ("fn", "positions", "reads", "saved_args", "saved_results")

    def __init__(self, positions: tuple[int, ...], fn: Any, reads: list[tuple[str, int]]):
        self.positions = positions
        self.fn = fn
        self.reads = reads
        self.saved_args = [i for how, i in reads if how == "arg"]
        self.saved_results = [i for how, i in reads if how == "result"]


class Formula:
    """The compiled derivative of one op."""

    __slots__ = (
        "differentiable", "node_class", "op", "positions", "saves", "scalars", "simple", "targets",
    )  # fmt: skip

    def __init__(self, op: Op):
        self.op = op
        rules = {} if op.grad is MISSING else op.grad
        names = [a.name for a in op.schema.args]
        self.targets = [_target(op, names, to, fn) for to, fn in rules.items()]
        covered = sorted(p for t in self.targets for p in t.positions)
        missing = op.grad is MISSING
        self.positions = tuple(op.positions(*TENSORS, *LISTS)) if missing else tuple(covered)
        self.differentiable = bool(self.targets) or missing
        if missing:
            self.targets = [Target(self.positions, _not_implemented(op), [])]
        self.scalars = _scalars_read(op, self.targets)
        read = [i for t in self.targets for i in t.saved_args]
        self.simple = all(op.schema.args[p].kind in TENSORS for p in (*self.positions, *read))
        name = "".join(w[:1].upper() + w[1:] for w in op.base_name.split("_")) + "Backward0"
        if op.base_name.startswith("_"):
            name = name[:1].upper() + name[1:]
        self.node_class = type(name, (OpNode,), {"__slots__": (), "formula": self})
        self.saves = {key: n for n, key in enumerate(_saved_list(self))}
        if self.simple and not missing and self.targets:
            from .compiled import compile_apply

            self.node_class.apply = compile_apply(op, self)  # type: ignore[attr-defined]

    def apply(self, node: OpNode, grads: list[Any]) -> list[Any]:
        """Gradients of the flattened inputs, None where no edge wants one."""
        if node.saved is None:
            raise RuntimeError(FREED)
        index = node.index
        edges = node.edges
        found: list[Any] = [None] * len(edges)
        for target in self.targets:
            places = [index[p] for p in target.positions]
            wanted = [any(edges[i] is not None for i in place) for place in places]
            if True not in wanted:
                continue
            values = [self._read(node, how, i, grads, wanted) for how, i in target.reads]
            result = target.fn(*values)
            if len(places) == 1:
                result = (result,)
            for place, kind, value in zip(places, target.positions, result, strict=True):
                if self.op.schema.args[kind].kind in LISTS:
                    for i, g in zip(place, value or (None,) * len(place), strict=True):
                        found[i] = g
                elif place:
                    found[place[0]] = value
        return found

    def _read(self, node: OpNode, how: str, i: int, grads: list[Any], wanted: list[bool]) -> Any:
        if how == "grad":
            return grads[i]
        if how == "arg" or how == "result":
            return _saved_value(node, how, i)
        if how == "attr":
            return node.args[i]
        if how == "geom":
            return node.args[i]
        if how == "result_geom":
            return node.outs[i]
        if how == "grads":
            return _materialized(node, grads)
        return tuple(wanted)


def _materialized(node: OpNode, grads: list[Any]) -> tuple[Any, ...]:
    return tuple(
        aten.zeros(g.shape, dtype=g.dtype, device=g.device) if v is None else v
        for g, v in zip(node.outs, grads, strict=True)
    )


def _not_implemented(op: Op) -> Any:
    def refuse() -> Any:
        raise RuntimeError(f"derivative for aten::{op.base_name} is not implemented")

    return refuse


def _target(op: Op, names: list[str], to: Any, fn: Any) -> Target:
    targets = (to,) if isinstance(to, str) else tuple(to)
    positions = tuple(names.index(t) for t in targets)
    code = fn.__code__
    reads = [_source(op, names, p) for p in code.co_varnames[: code.co_argcount]]
    return Target(positions, fn, reads)


def _source(op: Op, names: list[str], name: str) -> tuple[str, int]:
    schema = op.schema
    results = [r.name for r in schema.returns]
    if name == "grad":
        return ("grad", 0)
    if name in ("grads", "needs"):
        return (name, 0)
    if name in names:
        kind = schema.args[names.index(name)].kind
        saved = kind in TENSORS or kind in LISTS
        return ("arg" if saved else "attr", names.index(name))
    if name == "result":
        return ("result", 0)
    if name in results:
        return ("result", results.index(name))
    if name.startswith("grad_") and name[5:] in results:
        return ("grad", results.index(name[5:]))
    if name == "result_geom":
        return ("result_geom", 0)
    if name.endswith("_geom") and name[:-5] in names:
        return ("geom", names.index(name[:-5]))
    raise TypeError(f"{op.name}: derivative parameter {name!r} is neither an argument nor a result")


def formula(op: Op) -> Formula:
    """The compiled derivative of `op`, made once."""
    found = op.cache.get("formula")
    if found is None:
        found = op.cache["formula"] = Formula(op)
    return found


def edge(tensor: Tensor) -> tuple[Any, int] | None:
    """Where this tensor's gradient goes, None if it needs none."""
    fn = tensor._fn
    if fn is None or fn is INFERENCE:
        return None
    if fn is STALE:
        again: tuple[Any, int] | None = fresh_edge(tensor)
        return again
    found: tuple[Any, int] = (fn, tensor._nr)
    return found


def autograd(op: Op, plan: Any, args: Sequence[Any]) -> Any:
    """The AUTOGRAD layer for a functional call: run below, put a node on the results."""
    if not LOCAL.grad:
        return track_view(op, plan.run(*args), "no_grad")
    made = op.cache.get("formula") or formula(op)
    if not made.differentiable:
        return plan.run(*args)
    edges, index = _edges(made, args)
    if edges is None:
        return plan.run(*args)
    result = plan.run(*args)
    node = _node(made, plan, args, edges, index)
    _save(node, made, args, result)
    _attach(node, result, op)
    return result


def _edges(made: Formula, args: Sequence[Any]) -> tuple[Any, Any]:
    edges: list[Any] = []
    needed = False
    if made.simple:
        for p in made.positions:
            value = args[p]
            fn = getattr(value, "_fn", None)
            if fn is None:
                edges.append(None)
            else:
                found = edge(value)
                edges.append(found)
                needed = needed or found is not None
        return (edges, None) if needed else (None, None)
    index: dict[int, range] = {}
    for p in made.positions:
        value = args[p]
        start = len(edges)
        for tensor in value if isinstance(value, tuple | list) else (value,):
            found = edge(tensor) if isinstance(tensor, Tensor) else None
            edges.append(found)
            needed = needed or found is not None
        index[p] = range(start, len(edges))
    return (edges, index) if needed else (None, None)


def _node(made: Formula, plan: Any, args: Sequence[Any], edges: Any, index: Any) -> Any:
    node: Any = object.__new__(made.node_class)
    node.seq = next(counter)
    node.edges = edges
    node.args = plan.args
    if made.scalars:
        node.args = tuple(args[i] if i in made.scalars else g for i, g in enumerate(plan.args))
    if index is None:
        index = made.op.cache.get("index")
        if index is None:
            index = {p: (i,) for i, p in enumerate(made.positions)}
            made.op.cache["index"] = index
    node.index = index
    node.outs = plan.outs
    return node


def _scalars_read(op: Op, targets: list[Target]) -> frozenset[int]:
    """Positions of the Scalars that derivatives read: a plan knows their class, not their value."""
    reads = (r for t in targets for r in t.reads)
    kinds = [a.kind for a in op.schema.args]
    return frozenset(i for how, i in reads if how == "attr" and kinds[i] is Kind.SCALAR)


def _saved_list(made: Formula) -> list[tuple[str, int]]:
    """What nodes of this formula save, in the order of `node.saved`."""
    found: list[tuple[str, int]] = []
    for target in made.targets:
        found += [r for r in target.reads if r[0] in ("arg", "result") and r not in found]
    return found


def _save(node: Any, made: Formula, args: Sequence[Any], result: Any) -> None:
    saved: list[Any] = [None] * len(made.saves)
    edges = node.edges
    for target in made.targets:
        if not target.saved_args and not target.saved_results:
            continue
        if not any(edges[i] is not None for p in target.positions for i in node.index[p]):
            continue
        for i in target.saved_args:
            place = made.saves["arg", i]
            if saved[place] is None:
                saved[place] = _keep_argument(args[i])
        for i in target.saved_results if result is not None else ():
            place = made.saves["result", i]
            if saved[place] is None:
                out = result if isinstance(result, Tensor) else result[i]
                saved[place] = keep(out, i)
    node.saved = saved


def _keep_argument(value: Any) -> Any:
    if isinstance(value, Tensor):
        return keep(value, None)
    if isinstance(value, tuple | list):
        return [None if t is None else keep(t, None) for t in value]
    return value


def _saved_value(node: OpNode, how: str, i: int) -> Any:
    if node.saved is None:
        raise RuntimeError(FREED)
    held = node.saved[node.formula.saves[how, i]]
    if held.__class__ is tuple:
        return node.unpack(held)
    if held.__class__ is list:
        return [None if s is None else node.unpack(s) for s in held]
    return held


def _attach(node: Any, result: Any, op: Op) -> None:
    if result.__class__ is Tensor:
        node.outs = (result._geom,)
        if result._geom.dtype.category >= FLOAT:
            result._fn = node
            track_view(op, result, None)
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


def autograd_inplace(op: Op, plan: Any, args: Sequence[Any], write: Any) -> Any:
    """The AUTOGRAD layer for an in-place call: check, save, `write()`, rebase history."""
    target = args[0]
    if not LOCAL.grad:
        write()
        return target
    made = op.cache.get("formula") or formula(op)
    own = edge(target)
    edges, index = _edges(made, args) if made.differentiable else (None, None)
    if edges is None and own is None:
        write()
        return target
    refuse_view(target)
    if own is not None:
        _refuse_leaf(target)
    if target._geom.dtype.category < FLOAT:
        write()
        return target
    node = _node(made, plan, args, edges or [], index)
    held = _original(made, node, args) if edges else args
    if not edges:
        node.edges = [None] * len(made.positions)
    _save(node, made, held, None)
    write()
    _save_results(node, made, target)
    rebase(target, node)
    return target


def _refuse_leaf(target: Tensor) -> None:
    if getattr(target._fn, "variable_ref", None) is not None:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )
    if is_view_of_leaf(target):
        raise RuntimeError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation."
        )


def _original(made: Formula, node: Any, args: Sequence[Any]) -> Sequence[Any]:
    """The arguments, with the target's old value cloned if a derivative will read it."""
    for target in made.targets:
        wanted = any(node.edges[i] is not None for p in target.positions for i in node.index[p])
        if wanted and 0 in target.saved_args:
            return (aten.clone(args[0]), *args[1:])
    return args


def _save_results(node: Any, made: Formula, target: Tensor) -> None:
    for t in made.targets:
        for i in t.saved_results:
            node.saved[made.saves["result", i]] = keep(target, i)
