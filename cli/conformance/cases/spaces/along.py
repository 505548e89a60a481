"""Owns the space of rows that work along dimensions: reductions, scans, sorts, softmax, moves.

Their schemas say what they take: `dim`, `keepdim`, `k`, `descending` … each has values that matter.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

from mindtorch.ops import Op
from mindtorch.ops.samples import Sample

from ....spec.factors import Factor, factor
from ..inputs import FILLS, SUMMED
from .space import (
    FULL_CAP,
    LAYOUTS,
    QUICK_CAP,
    DesignLevels,
    DesignScope,
    Space,
    common,
    data,
    is_float,
    span_of,
)

_YES_NO: Final = ("no", "yes")
# What other reductions are given: values along a row whose result stays in range.
_FACTORS: Final[dict[str, Callable[[DesignScope], Factor]]] = {
    "keepdim": lambda _: factor("keepdim", *_YES_NO),
    "descending": lambda _: factor("descending", *_YES_NO),
    "stable": lambda _: factor("stable", *_YES_NO),
    "largest": lambda _: factor("largest", "yes", "no"),
    "sorted": lambda _: factor("sorted", "yes", "no"),
    "correction": lambda _: factor("correction", 1, 0, 2, 3),
    "ord": lambda _: factor("ord", 2, 1, 0, 3, "inf", "-inf", 2.5, -1),
    "k": lambda s: factor("k", 1, 2, 7, 8, 9, 17, 33, 65, *((129, 1025) if s.full else ()), "all"),
    "dtype": lambda s: factor(
        "to_dtype", "none",
        *(d for d in ("float32", "float64", "int64", "float16") if d in s.dtypes),
    ),
    "shifts": lambda _: factor("shifts", 1, -1, 3, 0, 1000, -1000),
    "diagonal": lambda _: factor("diagonal", 0, 1, -1, 2, -2, 40, -40),
}  # fmt: skip
_LIST_DIM: Final = ("one", "negative", "two", "all")
# Rows that take one dimension twice, as torch does.
_REPEATED_DIM: Final = frozenset(("roll",))
_FULLY: Final = ("sum", "mean", "all", "any", "var", "std", "linalg_vector_norm", "nansum",
                 "count_nonzero")  # fmt: skip
_RANKS: Final = (2, 3, 4, 5, 7)
_SECOND: Final = {
    "_softmax_backward_data": (0.0, 1.0),
    "_log_softmax_backward_data": (-4.0, 0.0),
}


def _dims(op: Op) -> list[str]:
    """How the row names its dimensions: one, several, all, none at all."""
    arg = next((a for a in op.schema.args if a.name in ("dim", "dims")), None)
    if arg is None:
        return []
    if arg.type.startswith("int["):
        levels = list(_LIST_DIM)
        levels = levels if arg.optional or op.name in ("amax", "amin") else levels[:3]
        return [*levels, "again"] if op.name in _REPEATED_DIM else levels
    return ["one", "negative", *(["all"] if arg.optional else [])]


# Their values stay in range only near 1.
PRODUCTS: Final = frozenset(("prod", "prod.dim", "cumprod"))


def _span(op: Op, selection: DesignLevels, count: int) -> tuple[float, float]:
    """Where values are drawn from: products of `count` stay near 1."""
    if op.name not in PRODUCTS or not is_float(selection["dtype"]):
        return span_of(op)
    width = min(0.5, 1 / max(count, 1) ** 0.5)
    return 1 - width, 1 + width


def _fills(op: Op) -> tuple[str, ...]:
    if op.name in PRODUCTS:
        return ("normal", "nan")
    if op.name in _SECOND:
        return ("normal", "nan", "ties")
    if op.testing.tolerance == "exact":
        return (*FILLS, "infinite", "ties")
    soft = op.name.endswith("softmax") or op.name == "logsumexp"
    return (*SUMMED, "infinite", "ties", *(("hard",) if soft else ()))


def _factors(op: Op, scope: DesignScope) -> list[Factor]:
    factors = common(op, scope, _fills(op))
    if op.testing.tolerance == "accumulated":
        # Sums of equal terms round one way, which no bound expects: no stride 0 in what is added.
        factors[2] = factor("layout", *(x for x in LAYOUTS if x not in ("expanded", "middle")))
    factors += [
        factor("row", *scope.sizes), factor("inner", 1, 2, 9, 33), factor("rank", *_RANKS),
        factor("batch", 3, 1, 2, 17, 33, *((257,) if scope.full else ())),
        factor("at", "last", "first", "middle"),
    ]  # fmt: skip
    if dims := _dims(op):
        factors.append(factor("dims", *dims))
    names = [a.name for a in op.schema.args]
    factors += [make(scope) for name, make in _FACTORS.items() if name in names]
    if op.name in _SECOND:
        factors.append(factor("layout1", *LAYOUTS))
    return factors


def _shape(selection: DesignLevels) -> tuple[tuple[int, ...], int]:
    """(shape, position of the row's dimension)."""
    row, batch, inner = (selection.number(n) for n in ("row", "batch", "inner"))
    cap = FULL_CAP if row > QUICK_CAP else QUICK_CAP
    rest = [batch, *((1, 2, 1, 1, 2)[: selection.number("rank") - 2])]
    at = {"last": len(rest), "first": 0, "middle": len(rest) // 2}[selection["at"]]
    sizes = [*rest[:at], row, *rest[at:]]
    if at < len(sizes) - 1:
        sizes[-1] = max(sizes[-1], inner)
    for d in range(len(sizes)):
        if d != at and prod(sizes) > cap:
            sizes[d] = 1
    return tuple(sizes), at


def _build(op: Op, selection: DesignLevels) -> Sample:
    if op.name in PRODUCTS and selection["dtype"].startswith("complex"):
        # |1 + i| to the power of a long row overflows.
        row = str(min(selection.number("row"), 17))
        selection = DesignLevels({**selection, "row": row, "batch": "1", "inner": "1"})
    shape, at = _shape(selection)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    operand = 0
    for arg in op.schema.args:
        if arg.type == "Tensor":
            plain = _span(
                op, selection, _count(selection, shape, at) if op.name != "prod" else prod(shape)
            )
            span = _SECOND.get(op.name, plain) if operand else plain
            args.append(data(op, shape, selection, operand, span=span))
            operand += 1
            continue
        value = _value(op, arg.name, selection, shape, at)
        if value is _ABSENT:
            continue
        if arg.keyword_only:
            kwargs[arg.name] = value
        else:
            args.append(value)
    return Sample(tuple(args), kwargs)


_ABSENT: Final = object()


def _value(op: Op, name: str, selection: DesignLevels, shape: tuple[int, ...], at: int) -> Any:
    if name in ("dim", "dims"):
        return _dim(op, name, selection, shape, at)
    if name in ("keepdim", "descending", "stable", "largest", "sorted"):
        return selection.flag(name)
    if name == "half_to_float":
        return False
    if name == "k":
        return _k(selection["k"], shape[at])
    if name == "correction":
        return selection.number("correction")
    if name == "ord":
        return float(selection["ord"])
    if name == "dtype":
        return _converted(selection)
    if name == "shifts":
        first = selection.number("shifts")
        return {"two": (first, first), "again": (first, 2)}.get(selection["dims"], (first,))
    if name == "diagonal":
        return selection.number("diagonal")
    return None


def _converted(selection: DesignLevels) -> Any:
    """`dtype=`: wider floats, so that the conversion of the input rounds nothing."""
    to, dtype = selection["to_dtype"], selection["dtype"]
    order = ("float16", "float32", "float64")
    wider = dtype in order and to in order and order.index(to) >= order.index(dtype)
    small = "int" in dtype and selection["values"] in ("normal", "integer", "ties")
    return to if wider or small or (to == "int64" and "int" in dtype) else _ABSENT


def _count(selection: DesignLevels, shape: tuple[int, ...], at: int) -> int:
    return prod(shape) if selection.get("dims") == "all" else shape[at]


def _k(level: str, size: int) -> int:
    return size if level == "all" else min(int(level), size)


def _dim(op: Op, name: str, selection: DesignLevels, shape: tuple[int, ...], at: int) -> Any:
    arg = next(a for a in op.schema.args if a.name == name)
    how = selection["dims"]
    if not arg.type.startswith("int["):
        return None if how == "all" else at - len(shape) if how == "negative" else at
    if how == "all":
        return () if not arg.optional else None
    other = (at + 1) % len(shape)
    several = {"negative": (at - len(shape),), "two": (at, other), "again": (at, at)}
    return several.get(how, (at,))


ALONG: Final = Space(_factors, _build)
