"""Owns the space of rows that draw: sizes, parameters, dtypes; judged by distribution."""

from __future__ import annotations

from typing import Any, Final

from mindtorch.ops import Op
from mindtorch.ops.samples import Sample

from ....spec.factors import Factor, factor
from .space import DesignLevels, DesignScope, Space, first_float

RANDOM_KINDS: Final = {"_uniform": "uniform", "_normal": "normal", "_integers": "integers",
                       "_permutation": "permutation"}  # fmt: skip
_PARAMS: Final = {
    "_uniform": ("0,1", "-3,5", "10,10.5"), "_normal": ("0,1", "2,0.25", "-5,3"),
    "_integers": ("0,2", "0,10", "-7,100", "0,1000000"), "_permutation": ("",),
}  # fmt: skip
_FLOATS: Final = ("float32", "float16", "bfloat16", "float64")


def _factors(op: Op, scope: DesignScope) -> list[Factor]:
    floats = op.name in ("_uniform", "_normal")
    dtypes = [d for d in scope.dtypes if (d in _FLOATS if floats else d in ("int64", "int32"))]
    return [
        factor("form", "random"), factor("dtype", *first_float(dtypes or ["float32"])),
        factor("row", 10007, *scope.sizes), factor("params", *_PARAMS[op.name]),
        factor("rank", 1, 2, 3),
    ]  # fmt: skip


def parameters(op: Op, selection: DesignLevels) -> tuple[Any, ...]:
    """The distribution's parameters."""
    if not selection["params"]:
        return ()
    number = int if op.name == "_integers" else float
    return tuple(number(n) for n in selection["params"].split(","))


def _build(op: Op, selection: DesignLevels) -> Sample:
    row = selection.number("row")
    lead = (2, 1)[: selection.number("rank") - 1] if op.name != "_permutation" else ()
    return Sample(((*lead, row), *parameters(op, selection), 0, 0), {"dtype": selection["dtype"]})


RANDOM: Final = Space(_factors, _build)
