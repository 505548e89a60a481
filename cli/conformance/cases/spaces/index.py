"""Owns the space of rows that index: where indices point, how many there are, which dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mindtorch.ops import Op
from mindtorch.ops.samples import Sample

from ....spec.factors import Factor, factor
from ..inputs import FILLS, INDEX_FILLS, Input
from .space import (
    INDEX_DTYPES,
    LAYOUTS,
    QUICK_CAP,
    DesignLevels,
    DesignScope,
    Space,
    common,
    data,
    indices,
)

# Rows whose result depends on the order of repeated indices: none may repeat.
_ONCE: Final = frozenset(("scatter.src", "index_copy", "index_put"))
_MANY: Final = frozenset(("index", "index_put"))
_KEYS: Final = ("one", "two", "gap", "second", "broadcast", "inner-gap", "wide")
_PADDING: Final = (-1, 0, 2)
_RUN: Final = 1031
_BEYOND_INT16: Final = 65537  # positions that no narrower index type holds


def _factors(op: Op, scope: DesignScope) -> list[Factor]:
    sums = op.testing.tolerance != "exact"
    factors = common(op, scope, ("normal", "mixed", "integer") if sums else FILLS)
    # Sums of equal terms round one way, which no bound expects: no stride 0 in what is added.
    layouts = [x for x in LAYOUTS if not (sums and x in ("expanded", "middle"))]
    if op.name == "embedding_dense_backward":
        factors[2] = factor("layout", *layouts)
    patterns = [p for p in INDEX_FILLS if op.name not in _ONCE or p != "repeated"]
    if op.name in _MANY:
        patterns.append("negative")  # which other rows refuse, as torch does
    factors += [
        factor("pattern", *patterns), factor("index", *_index_dtypes(op)),
        factor("count", *scope.upto(1025), *((65537,) if scope.full else ())),
        factor("size", *scope.upto(4097), _BEYOND_INT16), factor("batch", 3, 1, 17, 65),
        factor("layouti", *layouts),
    ]  # fmt: skip
    if op.name in _MANY:
        factors.append(factor("keys", *_KEYS))
    elif "dim" in {a.name for a in op.schema.args}:
        factors.append(factor("dim", 0, 1, 2, -1, -2, -3))
    if "value" in {a.name for a in op.schema.args}:
        factors.append(factor("value", 2, 0, 1, -3, 2.5))
    if op.name in _TAKES_SOURCE:
        factors.append(factor("layout1", *layouts))
    if op.name == "index_add":
        factors.append(factor("alpha", 1, 2, -3, 0))
    if op.name == "index_put":
        factors += [
            factor("accumulate", "no", "yes"),
            factor("source", "full", "zero-dim", "lower"),
        ]
    if op.name == "scatter_reduce":
        factors += [factor("reduce", *_REDUCTIONS), factor("include_self", "yes", "no")]
    if op.name.startswith("embedding"):
        factors += [factor("padding", *_PADDING), factor("frequency", "no", "yes")]
    return factors


def _index_dtypes(op: Op) -> tuple[str, ...]:
    """gather and scatter take int64 alone (torch: "Expected dtype int64 for index")."""
    return INDEX_DTYPES[:1] if op.name.startswith(("gather", "scatter")) else INDEX_DTYPES


_REDUCTIONS: Final = ("sum", "prod", "mean", "amax", "amin")
_FEW: Final = 8  # factors of a product, whose range grows with them
_TAKES_SOURCE: Final = frozenset(("scatter.src", "scatter_add", "scatter_reduce", "index_add",
                                  "index_copy", "index_put"))  # fmt: skip


def _place(selection: DesignLevels) -> tuple[list[int], int, int, int]:
    """(shape, dim from 0, dim as given, count of indices)."""
    size, batch, count = (selection.number(n) for n in ("size", "batch", "count"))
    dim = selection.number("dim")
    at = dim % 3
    shape = [batch, 2, batch]
    shape[at] = size
    while shape[0] * shape[1] * shape[2] > QUICK_CAP or count * batch * 2 * batch > QUICK_CAP:
        if batch == 1:
            break
        batch = max(1, batch // 4)
        shape = [n if d == at else min(n, batch) for d, n in enumerate(shape)]
    return shape, at, dim, count


def _once(op: Op, count: int, size: int) -> int:
    return min(count, size) if op.name in _ONCE else count


def _build(op: Op, selection: DesignLevels) -> Sample:
    return _BUILDERS[op.name](op, selection)


def _number(selection: DesignLevels) -> Any:
    value = float(selection["value"])
    if selection["dtype"] == "bool":
        return bool(value)
    if selection["dtype"] == "uint8":
        value = abs(value)
    whole = value == int(value) or "int" in selection["dtype"]
    return int(value) if whole else value


def _elementwise(op: Op, selection: DesignLevels) -> Sample:
    """gather and scatter: an index per element."""
    shape, at, dim, count = _place(selection)
    count = min(_once(op, count, shape[at]), _FEW if selection.get("reduce") == "prod" else count)
    where = [count if d == at else n for d, n in enumerate(shape)]
    if selection["batch"] == "17":
        where = [n if d == at else max(1, n - 1) for d, n in enumerate(where)]
    index = _along(indices(where, shape[at], selection), at)
    args: list[Any] = [data(op, shape, selection), dim, index]
    if op.name == "scatter_reduce":
        args += [data(op, where, selection, 1), selection["reduce"]]
        return Sample(tuple(args), {"include_self": selection.flag("include_self")})
    if op.name in ("scatter.src", "scatter_add"):
        args.append(data(op, where, selection, 1))
    elif op.name == "scatter.value":
        args.append(_number(selection))
    return Sample(tuple(args))


def _along(index: Input, at: int) -> Input:
    """Mark the dimension in which indices must not repeat."""
    from dataclasses import replace

    return replace(index, operand=10 + at)


def _slices(op: Op, selection: DesignLevels) -> Sample:
    """index_select and its kin: a list of indices along one dimension."""
    shape, at, dim, count = _place(selection)
    count = _once(op, count, shape[at])
    args: list[Any] = [data(op, shape, selection), dim, indices((count,), shape[at], selection)]
    where = [count if d == at else n for d, n in enumerate(shape)]
    if op.name in ("index_add", "index_copy"):
        args.append(data(op, where, selection, 1))
    elif op.name == "index_fill":
        args.append(_number(selection))
    return Sample(
        tuple(args), {"alpha": selection.number("alpha")} if op.name == "index_add" else {}
    )


def _keyed(op: Op, selection: DesignLevels) -> Sample:
    """index and index_put: tensors for some dimensions, gaps, masks."""
    size, batch, count = (selection.number(n) for n in ("size", "batch", "count"))
    batch = min(batch, 17, max(QUICK_CAP // (4 * size), 1))
    lead = (3,) if selection["keys"] == "inner-gap" else ()
    shape: tuple[int, ...] = (*lead, size, batch, 4)
    if selection["keys"] == "wide":  # what one index names is longer than kernels move at once
        size, count = min(size, 33), min(count, 17)
        shape = (size, 1, _RUN)
    repeats = op.name == "index" or selection.flag("accumulate")
    count = count if repeats else min(count, size)
    count = min(count, 4097)
    first = indices((count,), size, selection)
    keys, result = _keys(selection, shape, count, first)
    args: list[Any] = [data(op, shape, selection), keys]
    if op.name == "index_put":
        # Equal terms added many times round one way: what accumulates differs.
        how = "full" if selection.flag("accumulate") else selection["source"]
        values = {"full": result, "zero-dim": (), "lower": result[1:]}[how]
        args += [data(op, values, selection, 1), selection.flag("accumulate")]
    return Sample(tuple(args))


def _keys(
    selection: DesignLevels, shape: tuple[int, ...], count: int, first: Input
) -> tuple[list[Any], tuple[int, ...]]:
    """(indices per dimension, shape of what they pick)."""
    how = selection["keys"]
    if how == "inner-gap":  # what is picked moves to the front: [count, 3, batch]
        last = indices((count,), shape[3], selection)
        return [None, first, None, last], (count, shape[0], shape[2])
    other = indices((count,), shape[1], selection)
    last = indices((count,), shape[2], selection)
    if how == "two":
        return [first, other], (count, shape[2])
    if how == "gap":
        return [first, None, last], (count, shape[1])
    if how == "second":
        few = indices((min(count, shape[1]),), shape[1], selection)
        return [None, few], (shape[0], few.shape[0], shape[2])
    if how == "broadcast":
        few = indices((min(count, 3), 1), shape[0], selection)
        row = indices((min(shape[1], 5),), shape[1], selection)
        return [few, row], (few.shape[0], row.shape[0], shape[2])
    return [first], (count, *shape[1:])


def _embedding(op: Op, selection: DesignLevels) -> Sample:
    rows, width, count = (
        selection.number("size"),
        selection.number("batch"),
        selection.number("count"),
    )
    rows = max(rows, 3)
    width = min(width, max(QUICK_CAP // rows, 1))
    shape = (2, count) if selection["layouti"] != "contiguous" else (count,)
    where = indices(shape, rows, selection)
    padding = selection.number("padding")
    if op.name == "embedding":
        return Sample((data(op, (rows, width), selection), where))
    grad = data(op, (*shape, width), selection)
    return Sample((grad, where, rows, padding, selection.flag("frequency")))


_BUILDERS: Final[dict[str, Callable[[Op, DesignLevels], Sample]]] = {
    **dict.fromkeys(
        ("gather", "scatter.src", "scatter.value", "scatter_add", "scatter_reduce"), _elementwise
    ),
    **dict.fromkeys(("index_select", "index_add", "index_copy", "index_fill"), _slices),
    **dict.fromkeys(("index", "index_put"), _keyed),
    **dict.fromkeys(("embedding", "embedding_dense_backward"), _embedding),
}
INDEX: Final = Space(_factors, _build)
INDEXED: Final = frozenset(_BUILDERS)
