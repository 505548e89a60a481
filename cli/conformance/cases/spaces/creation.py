"""Owns the space of rows that make tensors from numbers alone."""

from __future__ import annotations

from typing import Final

from mindtorch.ops import Op
from mindtorch.ops.samples import Sample

from ....spec.factors import Factor, factor
from .space import QUICK_CAP, DesignLevels, DesignScope, Space, capped, first_float

# Types that hold an odd number beyond float32's, or the float next to it.
_WIDE: Final = ("float32", "float64", "int32", "int64")
_SHAPES: Final = {"full": True, "zeros": True, "ones": True}
CREATED: Final = frozenset(("full", "zeros", "ones", "arange", "linspace", "eye.m"))


def _factors(op: Op, scope: DesignScope) -> list[Factor]:
    factors = [factor("form", "functional"), factor("dtype", *first_float(scope.dtypes))]
    if op.name in _SHAPES:
        factors += [factor("row", *scope.sizes), factor("rank", 2, 1, 0, 3, 8)]
        if op.name == "full":
            factors.append(factor("value", 2, 0, -3, 1.5, True, 100000))
        return factors
    if op.name == "eye.m":
        return [*factors, factor("m", 5, 1, 17, 65, 257), factor("n", 5, 1, 16, 33, 129)]
    factors += [
        factor("row", *scope.sizes),
        factor("start", 0, -3, 0.5, 10, 2**24 + 1),
        factor("step", 1, 2, -1, 0.25, 1 - 2**-20),  # the last one fills 20 bits
    ]
    return factors


def _build(op: Op, selection: DesignLevels) -> Sample:
    kwargs = {"dtype": selection["dtype"]}
    if op.name == "eye.m":
        return Sample((selection.number("n"), selection.number("m")), kwargs)
    row = selection.number("row")
    if op.name in _SHAPES:
        lead = (2, 1, 3, 1, 1, 2, 1)[: max(selection.number("rank") - 1, 0)]
        shape = capped((*lead, row), len(lead), QUICK_CAP) if selection["rank"] != "0" else ()
        return (
            Sample((shape, _value(selection)), kwargs)
            if op.name == "full"
            else Sample((shape,), kwargs)
        )
    return Sample(_range(op, selection, row), kwargs)


def _value(selection: DesignLevels) -> float | int | bool:
    if selection["value"] == "True":
        return True
    value = float(selection["value"])
    if "int" in selection["dtype"] or selection["dtype"] == "bool":
        return int(abs(value)) % 128
    return int(value) if value == int(value) else value


def _range(op: Op, selection: DesignLevels, row: int) -> tuple[float | int, ...]:
    start, step = float(selection["start"]), float(selection["step"])
    if start > 100 and selection["dtype"] not in _WIDE:
        start = 10.0
    step = float(int(step) or 1) if start > 100 else step
    row = min(row, {"float16": 1025, "bfloat16": 129}.get(selection["dtype"], row))
    if "float" not in selection["dtype"]:
        start, step = float(int(start)), float(int(step) or 1)
        most = {"uint8": 100, "int8": 60, "int16": 16000}.get(selection["dtype"], row)
        row = min(row, most)
        start, step = (0.0, 1.0) if selection["dtype"] == "uint8" else (start, step)
    if op.name == "linspace":
        # Whole numbers between whole steps: what is cut off next to one is nobody's promise.
        steps = row if "float" in selection["dtype"] else row - 1
        return (_plain(start), _plain(start + step * steps), row)
    # Between two elements, where the end's rounding counts none more or less.
    end = start + step * (row if step == int(step) else row - 0.5)
    return (_plain(start), _plain(end), _plain(step))


def _plain(value: float) -> float | int:
    return int(value) if value == int(value) else value


CREATION: Final = Space(_factors, _build)
