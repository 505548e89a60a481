"""Owns the space of rows that compute element by element: ranks, sizes, broadcasting, promotion,
one tensor passed twice, and the numbers of their attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

from mindtorch.ops import OPS, Op
from mindtorch.ops.samples import Arg, Sample

from ....spec.factors import Factor, factor
from ..inputs import FILLS, Input, samples
from .space import LAYOUTS, QUICK_CAP, DesignLevels, DesignScope, Space, capped, common, is_float

# Several roundings whose order nobody promises: where they cancel or overflow, results differ.
_CANCELLING: Final = ("normal", "special", "integer", "halfway", "offset", "nan")
# Poles at zero and at every negative integer: next to them nothing has a relative error.
_POLES: Final = ("normal", "hard", "offset", "nan")
# Rows made of others overflow and round on the way as those do.
_COMPOSED: Final = ("normal", "integer", "nan")
_COMPOSED_ROW: Final = 1025
_COMPOSED_CAP: Final = 1 << 12
_FILLS_OF: Final = {"addcmul": _CANCELLING, "addcdiv": _CANCELLING, "lerp": _CANCELLING,
                    "digamma": _POLES, "polygamma": _POLES}  # fmt: skip
_MASKED: Final = frozenset(("where", "masked_fill"))
_LEAD: Final = (3, 2, 1, 2, 1, 2, 1)
_MEETS: Final = ("same", "lower", "front", "middle", "end", "both", "zero-dim")
_NUMBERS: Final = (2, 1.5, -0.75, True, 0, -3)
_OTHERS: Final = ("float32", "int32", "float16", "float64", "int64", "uint8", "bool", "bfloat16")
# Attributes that a row's samples leave at their defaults.
_EXTRA: Final[dict[str, tuple[dict[str, Any], ...]]] = {
    "add": ({"alpha": 3}, {"alpha": -2}, {"alpha": 0}, {"alpha": 2.5}, {"alpha": -0.625}),
    "sub": ({"alpha": 3}, {"alpha": -2}, {"alpha": 0}, {"alpha": 2.5}, {"alpha": -0.625}),
    "rsub": ({"alpha": 3}, {"alpha": 2.5}),
    "subtract": ({"alpha": 3}, {"alpha": 2.5}),
    "addcmul": ({"value": 3}, {"value": -2}, {"value": 0.75}),
    "addcdiv": ({"value": 3}, {"value": -2}, {"value": 0.75}),
    "round": ({"decimals": 1}, {"decimals": -1}, {"decimals": 3}),
    "nan_to_num": (
        {"nan": 1.5},
        {"posinf": 2.5, "neginf": -3.5},
        {"posinf": 2.5},
        {"neginf": -3.5},
    ),
    "isclose": ({"equal_nan": True}, {"rtol": 0.25, "atol": 0.125}, {"rtol": 0.0, "atol": 0.0}),
    "gelu": ({"approximate": "tanh"},),
}
_MOVED: Final[dict[str, tuple[tuple[Any, ...], ...]]] = {
    "lerp": ((0.75,), (-0.5,)),
    "leaky_relu": ((0.3,), (-0.5,), (0,), (1.5,)),
    "elu": ((0.7, 1.3, 1.9), (2, 1, 1)),
    "hardtanh": ((-0.3, 0.6), (-2, 3)),
    "softplus": ((2.5, 1.5), (0.5, 20), (1, 0.25)),
    "softshrink": ((0.25,), (1.25,), (0,)),
    "hardshrink": ((0.25,), (1.25,), (0,)),
    "threshold": ((0.4, -7.0), (-1.0, 2.5)),
    "threshold_backward": ((0,), (0.5,), (-1.0,)),
    "clamp": ((-0.5, 0.75), (None, 0.25), (-0.25, None), (1, -1), (-1, 2)),
}


def frames(op: Op) -> list[Sample]:
    """The different ways in which the row's samples and tables fill its arguments."""
    return _frames(op.name)


def spoken(op: Op, call: int) -> str:
    """What a frame passes besides tensors: `alpha = 3`."""
    sample = frames(op)[call]
    named = {a.name: v for a, v in zip(op.schema.args, sample.args, strict=False)}
    arguments = {k: v for k, v in {**named, **sample.kwargs}.items() if not isinstance(v, Arg)}
    return ", ".join(f"{k} = {v}" for k, v in arguments.items()) or "tensors alone"


@cache
def _frames(name: str) -> list[Sample]:
    op = OPS[name]
    good = [s for s in samples(op.testing) if not s.error] or [_from_schema(op)]
    frames: dict[str, Sample] = {}
    first = good[0]
    variants = [first, *(Sample(first.args, {**first.kwargs, **extra})
                     for extra in _EXTRA.get(op.name, ()))]  # fmt: skip
    tensors = [a for a in first.args if isinstance(a, Arg)]
    variants += [Sample((*tensors, *rest)) for rest in _MOVED.get(op.name, ())]
    variants += [_numbered(first, n) for n in _numbers(op)]
    both = [_numbered(Sample(first.args, {**first.kwargs, **extra}), n)
            for extra in _EXTRA.get(op.name, ())[:1] for n in _numbers(op)[:2]]  # fmt: skip
    for sample in [*variants, *good, *both]:
        frames.setdefault(_shape_of(sample), sample)
    return list(frames.values())


def _numbers(op: Op) -> tuple[Any, ...]:
    """Numbers for a second operand that may be one; bits have no fractions."""
    if not _union(op):
        return ()
    return _NUMBERS if not op.name.startswith("bitwise_") else (2, 1, 5)


def _union(op: Op) -> bool:
    return len(op.schema.args) > 1 and op.schema.args[1].type == "Tensor|Scalar"


def _numbered(first: Sample, number: Any) -> Sample:
    return Sample((first.args[0], number, *first.args[2:]), first.kwargs)


def _from_schema(op: Op) -> Sample:
    """A call of tensors alone, for rows without samples."""
    count = sum(a.type in ("Tensor", "Tensor|Scalar") for a in op.schema.args)
    rest = _MOVED.get(op.name, ((),))[0]
    return Sample((*(Arg((3, 4)) for _ in range(count)), *rest))


def _shape_of(sample: Sample) -> str:
    args, kwargs = sample.map(lambda a: replace(a, shape=(), dtype=_kind(a), values=None))
    return repr((args, kwargs))


def _kind(arg: Arg) -> str:
    return arg.dtype if arg.dtype == "bool" else "data"


def _operands(op: Op) -> int:
    return max(sum(isinstance(a, Arg) for a in f.args) for f in frames(op))


def _composed(op: Op) -> bool:
    """Whether a row is made of others here, which may need a dimension more than it has."""
    return op.body is not None or (op.lower is not None and not op.kernels.aclnn)


def _factors(op: Op, scope: DesignScope) -> list[Factor]:
    operands, composed = _operands(op), _composed(op)
    fills = _COMPOSED if composed else _FILLS_OF.get(op.name, FILLS)
    factors = common(op, scope, fills)
    # The rows that a composed one is made of meet the longer sizes themselves.
    sizes = scope.upto(_COMPOSED_ROW) if composed else scope.sizes
    factors += [
        factor("row", *sizes), factor("rank", 2, 1, 0, 3, 4, 5, 7 if composed else 8),
        factor("place", "last", "first", "middle"),
        factor("call", *range(len(frames(op)))),
    ]  # fmt: skip
    for i in range(1, operands):
        factors.append(factor(f"meets{i}", *_MEETS))
        factors.append(factor(f"layout{i}", *LAYOUTS))
    if operands > 1 and op.body is None:
        factors.append(factor("promote", "same", *(d for d in _OTHERS if d in scope.dtypes)))
    if operands > 1:
        factors.append(factor("alias", "none", "twice", "out"))
    elif "out" in factors[0].levels:
        factors.append(factor("alias", "none", "out"))
    return factors


def _shape(op: Op, choice: DesignLevels) -> tuple[int, ...]:
    rank, row = choice.number("rank"), choice.number("row")
    if not rank:
        return ()
    lead = list(_LEAD[: rank - 1])
    at = {"last": len(lead), "first": 0, "middle": len(lead) // 2}[choice["place"]]
    return capped([*lead[:at], row, *lead[at:]], at, _COMPOSED_CAP if _composed(op) else QUICK_CAP)


def _broadcast_operand(shape: tuple[int, ...], how: str) -> tuple[int, ...]:
    """The shape of an operand that broadcasts to `shape`."""
    if how == "zero-dim" or not shape:
        return () if how == "zero-dim" or how == "lower" else shape
    ones = {"front": 0, "both": 0, "middle": len(shape) // 2, "end": len(shape) - 1}
    if how == "lower":
        return shape[1:]
    return tuple(1 if d == ones.get(how, -1) else n for d, n in enumerate(shape))


def _build(op: Op, choice: DesignLevels) -> Sample:
    shape = _shape(op, choice)
    frame = frames(op)[choice.number("call")]
    counted: list[Input] = []

    def operand(arg: Arg) -> Input:
        i = len(counted)
        counted.append(_operand(op, arg, shape, choice, i))
        return counted[-1]

    args, kwargs = frame.map(operand)
    if "dtype" in kwargs and not is_float(choice["dtype"]):
        kwargs = {**kwargs}
    return Sample(tuple(args), _whole(op, kwargs, choice))


def _whole(op: Op, kwargs: dict[str, Any], choice: DesignLevels) -> dict[str, Any]:
    """Integer tensors take integer factors only (torch refuses others)."""
    if op.name == "round" and not is_float(choice["dtype"]):
        return {}
    if is_float(choice["dtype"]) or choice["dtype"].startswith("complex"):
        return kwargs
    return {k: int(v) if k in ("alpha", "value", "beta") and isinstance(v, float) else v
            for k, v in kwargs.items()}  # fmt: skip


def _operand(op: Op, arg: Arg, shape: Sequence[int], choice: DesignLevels, i: int) -> Input:
    shape = tuple(shape)
    how = choice.get(f"meets{i}", "same") if i else "same"
    inplace = choice.get("form") == "inplace"
    if not i and choice.get("meets1") == "both" and not inplace and shape:
        shape = (*shape[:-1], 1)
    mask = arg.dtype == "bool" and op.name in _MASKED
    dtype = "bool" if mask else choice["dtype"]
    if i == 1 and not mask and choice.get("promote", "same") != "same":
        halves = {dtype, choice["promote"]} == {"float16", "bfloat16"}
        narrow = inplace and dtype in ("float16", "bfloat16") and choice["promote"] == "float64"
        narrow = narrow or halves or (inplace and dtype == "bool")
        dtype = dtype if narrow else choice["promote"]
    name = "layout" + (str(i) if i else "")
    twice = i > 0 and choice.get("alias") == "twice" and not mask and how == "same"
    twice = twice and dtype == choice["dtype"] and choice.get("meets1", "same") != "both"
    return Input(
        _broadcast_operand(shape, how), dtype, arg.low, arg.high,
        layout=choice.get(name, "contiguous"),
        fill=_fill(op, choice), operand=i, op=op.name, same=0 if twice else None,
    )  # fmt: skip


def _fill(op: Op, choice: DesignLevels) -> str:
    """Operands of complex numbers stay finite too: see values.py."""
    fill = choice["values"]
    if op.name == "isclose" and not is_float(choice["dtype"]):
        return "normal"  # in which type the bound of integers is computed is nobody's promise
    if op.name == "pow" and choice["call"] != "0" and fill == "special":
        return "normal"  # references take roots and quotients for some exponents
    if choice["dtype"] == "float64" and op.name in ("add", "sub") and choice["call"] != "0":
        return "normal"  # with alpha, one rounding or two: float64 has no wider reference
    if _narrowed(choice) and fill not in ("integer", "nan"):
        return "normal"
    plain = fill in ("normal", "halfway")
    return fill if plain or not choice["dtype"].startswith("complex") else "normal"


def _narrowed(choice: DesignLevels) -> bool:
    """Whether integers meet a 16-bit float, whose conversion large ones do not survive."""
    pair = (choice["dtype"], choice.get("promote", "same"))
    narrow = [d for d in pair if d in ("float16", "bfloat16")]
    return pair[1] != "same" and len(narrow) == 1 and any("int" in d for d in pair)


def _singled(op: Op, scope: DesignScope) -> Iterator[dict[str, str]]:
    """Each way of calling with every pair of special values: both NaN, both infinite, by zero."""
    if _operands(op) < 2 or "special" not in _FILLS_OF.get(op.name, FILLS) or _composed(op):
        return
    dtypes = [d for d in ("float32", "int32", "float16") if d in scope.dtypes]
    for call in range(len(frames(op))):
        for dtype in dtypes if scope.full else dtypes[:1]:
            yield {"call": str(call), "dtype": dtype, "values": "special", "row": "257",
                   "rank": "1"}  # fmt: skip


POINTWISE: Final = Space(_factors, _build, _singled)
