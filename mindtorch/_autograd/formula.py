"""Owns Formula: what a row's derivative needs and serves; refuses to run anything.

A derivative is a function whose parameter names say what it needs: `grad` (of the only result)
or `grads` (of all, zeros where undefined), an argument's name (saved, checked), its name with
`_geom` (its Geometry, nothing is saved), a result's name, `result` or `result_geom`,
or `needs` (which of its targets are wanted). A `Derivative` says the names beside the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops.schema import ArgKind
from ..ops.spec import MISSING, Derivative, Op

TENSORS = (ArgKind.TENSOR, ArgKind.OPTIONAL_TENSOR, ArgKind.UNION)
LISTS = (ArgKind.TENSORS, ArgKind.OPTIONAL_TENSORS)


class GradTarget:
    """One derivative function: the argument positions it serves and what it reads.

    `reads` are `(kind of source, number)` in the order of the function's parameters.
    """

    __slots__ = ("fn", "positions", "reads")

    def __init__(
        self, positions: tuple[int, ...], fn: Callable[..., Any], reads: list[tuple[str, int]]
    ):
        self.positions = positions
        self.fn = fn
        self.reads = reads


class Formula:
    """The derivative of one op, read from its row.

    `positions` are the arguments that gradients go to, `saved` what nodes keep, in order, `lists`
    whether a differentiable argument is a list, `scalars` the numbers that derivatives read.
    """

    __slots__ = ("differentiable", "lists", "op", "positions", "saved", "scalars", "targets")

    def __init__(self, op: Op):
        self.op = op
        if op.grad is MISSING:
            places = tuple(op.positions(*TENSORS, *LISTS))
            self.targets = [GradTarget(places, _not_implemented(op), [])] if places else []
        else:
            names = [a.name for a in op.schema.args]
            self.targets = [_target(op, names, to, fn) for to, fn in op.grad.items()]
        self.positions = tuple(sorted(p for t in self.targets for p in t.positions))
        self.differentiable = bool(self.targets)
        self.lists = any(op.schema.args[p].kind in LISTS for p in self.positions)
        self.saved = _saved(op, self.targets)
        self.scalars = _scalars_read(op, self.targets)

    def users(self, read: tuple[str, int]) -> list[int]:
        """The positions whose derivatives read this."""
        return sorted({p for t in self.targets if read in t.reads for p in t.positions})


def formula(op: Op) -> Formula:
    """The derivative of `op`, read once."""
    if "formula" not in op.cache:
        op.cache["formula"] = Formula(op)
    read: Formula = op.cache["formula"]
    return read


def _not_implemented(op: Op) -> Callable[..., Any]:
    def refuse() -> Any:
        raise RuntimeError(f"derivative for aten::{op.base_name} is not implemented")

    return refuse


def _target(op: Op, names: list[str], to: str | tuple[str, ...], derivative: Any) -> GradTarget:
    targets = (to,) if isinstance(to, str) else tuple(to)
    positions = tuple(names.index(t) for t in targets)
    if isinstance(derivative, Derivative):
        fn, parameters = derivative.fn, derivative.reads
    else:
        fn, code = derivative, derivative.__code__
        parameters = code.co_varnames[: code.co_argcount]
    return GradTarget(positions, fn, [_source(op, names, p) for p in parameters])


def _source(op: Op, names: list[str], name: str) -> tuple[str, int]:
    schema = op.schema
    results = [r.name for r in schema.returns]
    if name == "grad":
        return ("grad", 0)
    if name in ("grads", "needs"):
        return (name, 0)
    if name in names:
        kind = schema.args[names.index(name)].kind
        return ("arg" if kind in (*TENSORS, *LISTS) else "attr", names.index(name))
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


def _saved(op: Op, targets: list[GradTarget]) -> list[tuple[str, int]]:
    """What nodes keep, in the order of `node.saved`: torch's, arguments before results, by name."""
    names = [name_in_torch(op.name, a.name) for a in op.schema.args]
    # The results of decompositions have names in torch, U S Vh; others are numbered.
    results = [r.name if r.name and r.name[0].isupper() else "" for r in op.schema.returns]
    reads = {r for t in targets for r in t.reads if r[0] in ("arg", "result")}
    return sorted(reads, key=lambda r: (r[0], (names if r[0] == "arg" else results)[r[1]], r[1]))


# What torch calls arguments of the operator that a row records as.
_NAMES = {
    ("linear", "input"): "mat1", ("linear", "weight"): "mat2", ("matmul", "other"): "tensor",
}  # fmt: skip


def name_in_torch(row: str, argument: str) -> str:
    """The name of a row's argument in torch's derivative."""
    return _NAMES.get((row, argument), argument)


def _scalars_read(op: Op, targets: list[GradTarget]) -> frozenset[int]:
    """Positions of the Scalars that derivatives read: a plan knows their class, not their value."""
    reads = (r for t in targets for r in t.reads)
    kinds = [a.kind for a in op.schema.args]
    return frozenset(i for how, i in reads if how == "attr" and kinds[i] is ArgKind.SCALAR)
