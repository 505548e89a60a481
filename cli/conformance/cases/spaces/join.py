"""Owns the space of rows that move whole tensors: joining, repeating, padding, casting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any, Final

from mindtorch.ops import Op
from mindtorch.ops.samples import Sample

from ....spec.factors import Factor, factor
from ..inputs import Input
from .space import LAYOUTS, QUICK_CAP, DesignLevels, DesignScope, Space, capped, common, data

_TENSORS: Final = (2, 1, 3, 4, 5, 8, 9, 17, 33)
_PADS: Final = ("1,2", "0,0", "3,0", "0,5", "1,0,0,2", "2,2,1,1", "-1,2", "2,-1", "1,1,1,1,1,1")


def _factors(op: Op, scope: DesignScope) -> list[Factor]:
    factors = common(op, scope)
    factors += [
        factor("row", *scope.sizes), factor("batch", 3, 1, 2, 17, 65),
        factor("rank", 2, 1, 3, 4, 6),
        *_DESIGNS[op.name](op, scope),
    ]  # fmt: skip
    return factors


def _joined(op: Op, scope: DesignScope) -> list[Factor]:
    shapes = [
        factor("tensors", *_TENSORS), factor("dim", "last", "first", "middle", "negative"),
        factor("layout1", *LAYOUTS),
    ]  # fmt: skip
    if op.name == "cat":
        shapes += [factor("others", "other", "same", "empty", "one"),
                  factor("promote", "same", *(d for d in ("float64", "int32", "float16")
                                              if d in scope.dtypes))]  # fmt: skip
    return shapes


def _cast(_op: Op, scope: DesignScope) -> list[Factor]:
    return [factor("to_dtype", "same", *scope.dtypes)]


_DESIGNS: Final[dict[str, Callable[[Op, DesignScope], list[Factor]]]] = {
    "cat": _joined,
    "stack": _joined,
    "_to_copy": _cast,
    "clone": lambda _op, _scope: [],
    "zero": lambda _op, _scope: [],
    "fill": lambda _op, _scope: [factor("value", 2, 0, 1.5, -3, True)],
    "copy": lambda _op, scope: [factor("promote", "same", *scope.dtypes),
                                factor("layout1", *LAYOUTS)],
    "repeat": lambda _op, _scope: [factor("repeats", 2, 1, 3, 0, 5), factor("lead", "no", "yes")],
    "constant_pad_nd": lambda _op, _scope: [factor("pad", *_PADS),
                                            factor("value", 0, 1.5, -2, 7)],
    "nonzero": lambda _op, _scope: [],
    "masked_select": lambda _op, _scope: [factor("layout1", *LAYOUTS),
                                          factor("mask", "same", "lower", "front")],
    "masked_scatter": lambda _op, _scope: [factor("layout1", *LAYOUTS)],
}  # fmt: skip
JOINED: Final = frozenset(_DESIGNS)


def _shape(selection: DesignLevels, most: int = 6) -> tuple[int, ...]:
    rank, row, batch = (selection.number(n) for n in ("rank", "row", "batch"))
    lead = [batch, 2, 1, 2, 1][: min(rank, most) - 1]
    return capped([*lead, row], len(lead), QUICK_CAP)


def _build(op: Op, selection: DesignLevels) -> Sample:
    shape = _shape(selection)
    if op.name in ("cat", "stack"):
        return _joining(op, selection, shape)
    x = data(op, shape, selection)
    if op.name == "_to_copy":
        to = selection["dtype"] if selection["to_dtype"] == "same" else selection["to_dtype"]
        return Sample((_castable(x, to),), {"dtype": to, "device": None})
    if op.name in ("clone", "zero", "nonzero"):
        return Sample((x,))
    if op.name == "fill":
        return Sample((x, _number(selection)))
    if op.name == "copy":
        dtype = selection["dtype"] if selection["promote"] == "same" else selection["promote"]
        return Sample((x, _castable(data(op, shape, selection, 1, dtype), selection["dtype"])))
    if op.name == "repeat":
        times = [selection.number("repeats"), *([1] * (len(shape) - 1))]
        return Sample((x, tuple([2, *times] if selection.flag("lead") else times)))
    if op.name == "constant_pad_nd":
        return Sample((x, _pad(selection["pad"], shape), _number(selection)))
    mask = Input(_mask(selection, shape), "bool", layout=selection["layout1"])
    if op.name == "masked_select":
        return Sample((x, mask))
    return Sample((x, mask, data(op, shape, selection, 2)))


def _mask(selection: DesignLevels, shape: tuple[int, ...]) -> tuple[int, ...]:
    how = selection.get("mask", "same")
    return shape[1:] if how == "lower" else (1, *shape[1:]) if how == "front" else shape


def _castable(x: Input, to: str) -> Input:
    """Values whose conversion C and torch define: no overflow from floats to integers."""
    from dataclasses import replace

    if not x.dtype.startswith(("float", "bfloat", "complex")) or "int" not in to:
        return x
    low = 0.0 if to == "uint8" else -100.0
    fill = x.fill if x.fill in ("normal", "integer") else "normal"
    return replace(x, low=low, high=100.0, fill="normal" if to == "uint8" else fill)


def _number(selection: DesignLevels) -> Any:
    if selection["value"] == "True":
        return True
    value = float(selection["value"])
    if "int" in selection["dtype"] or selection["dtype"] == "bool":
        return abs(int(value))
    return int(value) if value == int(value) else value


def _pad(text: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    pads = [int(n) for n in text.split(",")][: 2 * len(shape)]
    return tuple(max(p, 0) if shape[-1 - i // 2] < 2 else p for i, p in enumerate(pads))


def _joining(op: Op, selection: DesignLevels, shape: tuple[int, ...]) -> Sample:
    rank = len(shape)
    at = {"last": rank - 1, "first": 0, "middle": rank // 2, "negative": rank - 1}[selection["dim"]]
    count = selection.number("tensors")
    shape = capped(shape, rank - 1, QUICK_CAP // count)
    shape = (*shape[:-1], min(shape[-1], max(QUICK_CAP * 2 // count, 1)))
    tensors = [_member(op, selection, shape, at, i) for i in range(count)]
    return Sample((tensors, -1 if selection["dim"] == "negative" else at))


def _member(op: Op, selection: DesignLevels, shape: tuple[int, ...], at: int, i: int) -> Input:
    sizes = list(shape)
    if i and op.name == "cat":
        how = selection["others"]
        sizes[at] = {
            "same": sizes[at],
            "other": sizes[at] // 2 + i,
            "one": 1,
            "empty": 0 if i == 1 else sizes[at] // 2 + i,
        }[how]  # between the others
    promote = selection.get("promote", "same")
    promoted = promote != "same" and not selection["dtype"].startswith("complex")
    dtype = promote if i == 1 and promoted else ""
    return data(
        op,
        sizes,
        selection,
        i,
        dtype,
        layout=selection["layout1"] if i % 2 else selection["layout"],
    )


def _singled(op: Op, scope: DesignScope) -> Iterator[dict[str, str]]:
    """Each pair of types of a cast with every special value: what is lost is lost for one pair."""
    if op.name == "_to_copy":
        for dtype, to in permutations(scope.dtypes, 2):
            yield {"dtype": dtype, "to_dtype": to, "values": "special", "row": "33"}


JOIN: Final = Space(_factors, _build, _singled)
