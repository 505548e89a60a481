"""Owns the space of matrix products: m, n, k, batch by role, transposed operands, alpha, beta."""

from __future__ import annotations

from typing import Any, Final

from mindtorch.ops import Op
from mindtorch.ops.samples import Sample

from ....spec.factors import Factor, factor
from .space import LAYOUTS, DesignLevels, DesignScope, Space, common, data

_FILLS: Final = ("normal", "integer", "mixed", "nan")
_MATMUL: Final = ("mm", "batched", "vector-left", "vector-right", "dot", "broadcast", "rank4")
_COST: Final = 1 << 22


def _factors(op: Op, scope: DesignScope) -> list[Factor]:
    factors = common(op, scope, _FILLS)
    sizes = scope.upto(1025)
    factors += [
        factor("m", 5, 1, 8, 17, 33, 65, *((129, 257) if scope.full else ())),
        factor("n", 4, 1, 7, 16, 33, 65, *((127, 513) if scope.full else ())),
        factor("k", *sizes, *((4097, 8193) if scope.full else (4097,))),
        factor("layout1", *LAYOUTS),
    ]  # fmt: skip
    if op.name in ("bmm", "baddbmm"):
        factors.append(factor("batch", 2, 1, 3, 17))
    if op.name == "matmul":
        factors.append(factor("ranks", *_MATMUL))
    if op.name == "linear":
        factors += [factor("bias", "yes", "no"), factor("rank", 2, 1, 3, 4)]
    if "beta" in {a.name for a in op.schema.args}:
        factors += [
            factor("beta", 1, 0, 0.5, -2), factor("alpha", 1, 2, -0.75, 0),
            factor("layout2", *LAYOUTS),
            factor("bias", "full", "row", "column", "zero-dim"),
        ]  # fmt: skip
    return factors


def _sizes(selection: DesignLevels) -> tuple[int, int, int]:
    m, n, k = (selection.number(x) for x in "mnk")
    while m * n * k > _COST and m * n > 1:
        m, n = max(1, m // 2), max(1, n // 2)
    return m, n, k


def _build(op: Op, selection: DesignLevels) -> Sample:
    m, n, k = _sizes(selection)
    if op.name == "linear":
        return _linear(op, selection, m, n, k)
    a, b = _shapes(op, selection, m, n, k)
    if "beta" not in {x.name for x in op.schema.args}:
        return Sample((_data(op, a, selection), _data(op, b, selection, 1)))
    out = (*a[:-1], b[-1])
    bias = {"full": out, "row": (n,), "column": (m, 1), "zero-dim": ()}[selection["bias"]]
    if selection.get("form") == "inplace":
        bias = out
    scales = {
        "beta": _scale(selection["beta"], selection),
        "alpha": _scale(selection["alpha"], selection),
    }
    return Sample(
        (data(op, bias, selection), data(op, a, selection, 1), data(op, b, selection, 2)), scales
    )


def _data(op: Op, shape: tuple[int, ...], selection: DesignLevels, operand: int = 0) -> Any:
    """Vectors are not expanded: a sum of equal terms rounds one way, which no bound expects."""
    layout = selection.get("layout" + (str(operand) if operand else ""), "")
    plain = "stepped" if len(shape) == 1 and layout in ("expanded", "middle") else ""
    return data(op, shape, selection, operand, layout=plain)


def _scale(text: str, selection: DesignLevels) -> Any:
    """Integers take integers only."""
    value = float(text)
    return int(value) if value == int(value) or "int" in selection["dtype"] else value


def _shapes(
    op: Op, selection: DesignLevels, m: int, n: int, k: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    batch = selection.number("batch", 2)
    if op.name in ("bmm", "baddbmm"):
        return (batch, m, k), (batch, k, n)
    return {
        "mm": ((m, k), (k, n)),
        "batched": ((2, m, k), (2, k, n)),
        "vector-left": ((k,), (k, n)),
        "vector-right": ((m, k), (k,)),
        "dot": ((k,), (k,)),
        "broadcast": ((3, 1, m, k), (2, k, n)),
        "rank4": ((2, 3, m, k), (2, 3, k, n)),
    }[selection.get("ranks", "mm")]


def _linear(op: Op, selection: DesignLevels, m: int, n: int, k: int) -> Sample:
    lead = {1: (), 2: (m,), 3: (2, m), 4: (2, 1, m)}[selection.number("rank")]
    bias = data(op, (n,), selection, 2) if selection.flag("bias") else None
    return Sample((data(op, (*lead, k), selection), data(op, (n, k), selection, 1), bias))


MATRIX: Final = Space(_factors, _build)
