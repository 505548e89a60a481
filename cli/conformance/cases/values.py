"""Owns the values of test inputs: drawn, integer, special, or all of a type; by seed and case."""

# ruff: noqa: ARG001 - the fills of designed cases share one signature

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.random import Generator

from mindtorch.ops.samples import Arg

from ...judge.formats import FORMATS, Format
from ...judge.precision import Array, numpy_dtype
from .case import Case
from .inputs import Input

_SPECIALS: Final = (
    0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 0.5, -0.5, 2.0,
)  # fmt: skip
# Largest integers whose sums of products stay exact: K max² below 2^digits (2^8 for bfloat16).
_INTEGER_LIMIT: Final = {"bfloat16": 1, "float16": 2, "float32": 8, "float64": 64}


def generator(case: Case, seed: int, position: int) -> Generator:
    """A random stream of one tensor of one case: layouts and forms share it, so they compare."""
    key = f"{case.op}/{case.sample}/{case.dtype}/{case.shape}/{case.fill}/{position}"
    return np.random.default_rng([seed, zlib.crc32(key.encode())])


def values(arg: Arg, case: Case, seed: int, position: int) -> Array:
    """The elements of one `Arg` (shape, dtype, low, high, values) for a case."""
    dtype = numpy_dtype(arg.dtype)
    rng = generator(case, seed, position)
    if arg.values is not None:
        fixed = np.array(arg.values).astype(dtype).reshape(arg.shape)
        return (
            _with_imaginary(fixed, rng) if dtype.kind == "c" and case.dtype == arg.dtype else fixed
        )
    if arg.dtype in FORMATS and case.fill == "integer":
        limit = _INTEGER_LIMIT[arg.dtype]
        return rng.integers(-limit, limit + 1, arg.shape).astype(dtype)
    if arg.dtype in FORMATS and case.fill == "sweep":
        return every_value(dtype).reshape(arg.shape)
    if arg.dtype in FORMATS and case.fill == "halves":
        return _halves(arg.shape, rng, position).astype(dtype)
    x = _random_values(arg, rng, dtype)
    if arg.dtype in FORMATS and case.fill == "special":
        _sprinkle(x, arg.dtype, position)
    return x


def _with_imaginary(fixed: Array, rng: Generator) -> Array:
    """Values that a row states as real numbers with imaginary parts, small ones: of a symmetric
    matrix they make a Hermitian one, which definite matrices stay."""
    if not fixed.size or fixed.imag.any():
        return fixed
    smallest = np.abs(fixed.real[fixed.real != 0]).min(initial=1.0) / 4
    imaginary = rng.uniform(-smallest, smallest, fixed.shape)
    square = fixed.ndim > 1 and fixed.shape[-1] == fixed.shape[-2]
    if square and np.array_equal(fixed, fixed.swapaxes(-1, -2)):
        imaginary = (imaginary - imaginary.swapaxes(-1, -2)) / 2
    return np.asarray(fixed + 1j * imaginary).astype(fixed.dtype)


def _random_values(arg: Arg, rng: Generator, dtype: np.dtype[Any]) -> Array:
    low, high = float(arg.low), float(arg.high)
    if dtype == np.bool_:
        return rng.integers(0, 2, arg.shape).astype(np.bool_)
    if dtype.kind in "iu":
        least = max(int(np.ceil(low)), 0) if dtype.kind == "u" else int(np.ceil(low))
        most = max(int(np.floor(high)), least)
        return rng.integers(least, most + 1, arg.shape).astype(dtype)
    x = rng.uniform(low, high, arg.shape)
    if dtype.kind == "c":
        x = x + 1j * rng.uniform(low, high, arg.shape)
    return np.asarray(x).astype(dtype)


def _sprinkle(x: Array, name: str, position: int) -> None:
    """Put NaN, infinities, zeros, subnormals and extremes among the values, shifted by position."""
    form = FORMATS[name]
    tiny = 2.0 ** (form.lowest - form.digits + 1)
    special = [*_SPECIALS, tiny, -tiny, 2.0**form.lowest, form.largest, -form.largest]
    flat = x.reshape(-1)
    with np.errstate(all="ignore"):
        for i in range(flat.size):
            # Two operands walk the list at different paces, so that pairs differ.
            flat[i] = special[(i * (1 + 2 * position) + position) % len(special)]
    x[...] = flat.reshape(x.shape)


def _halves(shape: tuple[int, ...], rng: Generator, position: int) -> Array:
    """Halves of steps, where roundings differ, of what is rounded to 8 bits: the first tensor. What
    scales and shifts it is 1, and its rows end in 127, of which scales are taken that are 1."""
    if position:
        return np.ones(shape)
    values = np.asarray(rng.integers(-253, 254, shape) / 2)
    if shape:
        values[..., -1:] = 127
    return values


def every_value(dtype: np.dtype[Any]) -> Array:
    """All 65,536 values of a 16-bit type, NaNs included."""
    return np.arange(65536, dtype=np.uint16).view(dtype)


def whole_range(arg: Arg) -> Arg:
    """The Arg of a sweep: a flat tensor of every 16-bit value."""
    return replace(arg, shape=(65536,), values=None)


# --- designed cases ---------------------------------------------------------------------------

# Arguments where approximations change their method or lose their digits, by row.
_HARD: Final[dict[str, tuple[tuple[float, float], ...]]] = {
    "sin": ((-1e5, 1e5), (3.1415, 3.1417), (-100, 100)),
    "cos": ((-1e5, 1e5), (1.5707, 1.5709), (-100, 100)),
    "tan": ((-1e4, 1e4), (1.56, 1.58), (-10, 10)),
    "exp": ((-104, 89), (-1e-3, 1e-3), (-20, 12)),
    "exp2": ((-150, 128), (-1e-3, 1e-3)),
    "expm1": ((-1e-4, 1e-4), (-20, 89), (-0.5, 0.5)),
    "log": ((0.999, 1.001), (1e-38, 1e-30), (1, 1e30)),
    "log2": ((0.999, 1.001), (1e-38, 1e-30), (1, 1e30)),
    "log10": ((0.999, 1.001), (1e-38, 1e-30), (1, 1e30)),
    "log1p": ((-1e-4, 1e-4), (-0.9999, -0.99), (0, 1e10)),
    "erf": ((-6, 6), (-1e-3, 1e-3), (1.5, 4)),
    "erfc": ((-6, 10), (2, 9), (-1e-3, 1e-3)),
    "erfinv": ((-1, 1), (0.99, 1), (-1e-3, 1e-3)),
    "tanh": ((-20, 20), (-1e-4, 1e-4), (0.3, 0.8)),
    "sinh": ((-89, 89), (-1e-4, 1e-4)),
    "cosh": ((-89, 89), (-1e-4, 1e-4)),
    "asin": ((0.99, 1), (-1e-4, 1e-4), (-1, 1)),
    "acos": ((0.99, 1), (-1e-4, 1e-4), (-1, 1)),
    "atan": ((-1e6, 1e6), (-1e-4, 1e-4), (0.9, 1.1)),
    "atanh": ((0.99, 1), (-1e-4, 1e-4)),
    "asinh": ((-1e10, 1e10), (-1e-4, 1e-4)),
    "acosh": ((1, 1.001), (1, 1e10)),
    "sigmoid": ((-90, 90), (-20, 20)),
    "silu": ((-90, 90), (-20, 20)),
    "gelu": ((-10, 10), (-6, -3), (-0.1, 0.1)),
    "mish": ((-90, 30), (-20, 20)),
    "softplus": ((-30, 30), (18, 22)),
    "log_sigmoid": ((-90, 90), (-5, 20)),
    "elu": ((-90, 10), (-1e-4, 1e-4)),
    "lgamma": ((0.9, 2.1), (0.01, 30)),
    "digamma": ((1.4, 1.5), (0.01, 30)),
    "rsqrt": ((1e-38, 1e-30), (1, 1e30)),
    "sqrt": ((0, 1e-30), (1, 1e30)),
    "reciprocal": ((1e-30, 1e-20), (1e20, 1e38)),
    "_softmax": ((-90, 90), (80, 100), (-1e4, -0.9e4)),
    "_log_softmax": ((-90, 90), (80, 100), (-1e4, -0.9e4)),
    "softmax": ((-90, 90), (80, 100)),
    "log_softmax": ((-90, 90), (80, 100)),
    "logsumexp": ((-90, 90), (95, 120), (-1e4, -0.9e4)),
    "logaddexp": ((-90, 90), (95, 120)),
    "pow": ((0.9, 1.1), (-10, 10)),
    "atan2": ((-1e-3, 1e-3), (-1e6, 1e6)),
}
_CENTRED: Final = frozenset(("native_layer_norm", "native_group_norm", "_batch_norm_functional",
                             "var", "std"))  # fmt: skip
_CENTRED_NAMES: Final = ("LayerNorm", "DeepNorm", "GroupNorm", "BatchNorm", "InstanceNorm")
# What those take off before anything else, in spreads: so many units a result may be off.
_MEAN: Final = 16.0
_POW: Final = (0.0, -0.0, 1.0, -1.0, 2.0, 3.0, -2.0, 0.5, -0.5, float("inf"), float("-inf"),
               float("nan"), -3.0, 7.0, 1.5)  # fmt: skip
_TIED: Final = (1.0, 0.0, 2.0, 1.0)


def explicit_values(arg: Arg) -> Array:
    """The elements that an `Arg` states."""
    return np.array(arg.values).astype(numpy_dtype(arg.dtype)).reshape(arg.shape)


def designed(arg: Input, key: str, seed: int) -> Array:
    """The elements of an `Input`; `key` is what the case shares with those it is compared to."""
    dtype = numpy_dtype(arg.dtype)
    rng = np.random.default_rng([seed, zlib.crc32(key.encode()), arg.operand])
    if arg.size:
        return _indices(arg, rng).astype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, arg.shape).astype(np.bool_)
    if dtype.name == "int4":
        low, high = max(int(np.ceil(arg.low)), -8), min(int(arg.high), 7)
        return rng.integers(low, high + 1, arg.shape).astype(dtype)
    if dtype.kind in "iu":
        return _whole(arg, rng, dtype)
    if dtype.kind == "c":
        # C and numpy differ in products and quotients of complex infinities and NaNs.
        if arg.fill not in ("normal", "halfway"):
            arg = replace(arg, fill="normal")
        part = np.float32 if arg.dtype == "complex64" else np.float64
        real, imaginary = (_real(arg, rng, np.dtype(part), part().dtype.name) for _ in range(2))
        return (real + 1j * imaginary).astype(dtype)
    return _real(arg, rng, dtype, arg.dtype)


def _real(arg: Input, rng: Generator, dtype: np.dtype[Any], name: str) -> Array:
    shape = arg.shape
    if name not in FORMATS:  # of 8 or 4 bits
        return rng.uniform(arg.low, arg.high, shape).astype(dtype)
    form = FORMATS[name]
    count = int(np.prod(shape))
    with np.errstate(all="ignore"):
        x = rng.uniform(arg.low, arg.high, count)
        filled = WORDS[arg.fill](arg, rng, form, x)
        return np.asarray(filled).astype(dtype).reshape(shape)


def _plain(_arg: Input, _rng: Generator, _form: Format, x: Array) -> Array:
    return x


def _special(arg: Input, _rng: Generator, form: Format, x: Array) -> Array:
    tiny = 2.0 ** (form.lowest - form.digits + 1)
    # float64 has no wider reference: sums on the way must not overflow there.
    most = form.largest / (8 if form.digits == 53 else 1)
    special = [*_SPECIALS, tiny, -tiny, 2.0**form.lowest, most, -most]
    if arg.op.startswith("pow"):
        special = [*_POW]
    n = len(special)
    at = np.arange(x.size)
    # Operands walk the list at different paces, so that every pair meets.
    walk = at if not arg.operand else at // n if arg.operand == 1 else at // n**2 + at
    values = np.array(special)[walk % n]
    if marks := _marks(arg, form):  # once all pairs have met
        values[n * n :] = np.resize(marks, values[n * n :].size)
    return values


def _marks(arg: Input, form: Format) -> list[float]:
    """Limits and thresholds that the call states, of both signs and from 1 down, with neighbours:
    those that the type holds, so that nobody has to round before it compares."""
    dtype = numpy_dtype(form.name)
    marks: list[float] = []
    for mark in (v for m in arg.marks for v in dict.fromkeys((m, -m, 1 - m))):
        if not np.isfinite(mark) or float(dtype.type(mark)) != mark:
            continue
        unit = 2.0 ** max(np.frexp(mark)[1] - form.digits, form.lowest - form.digits + 1)
        marks += (mark, mark + unit, mark - unit)
    return marks


def _mixed(arg: Input, rng: Generator, form: Format, x: Array) -> Array:
    """Zeros of both signs, infinities and NaN here and there among plain numbers."""
    special = np.array(_SPECIALS)[rng.integers(0, len(_SPECIALS), x.size)]
    return np.where(rng.integers(0, 7, x.size) == 0, special, x)


def _integer(arg: Input, rng: Generator, form: Format, x: Array) -> Array:
    limit = _INTEGER_LIMIT[form.name]
    return rng.integers(-limit, limit + 1, x.size)


def _wide(_arg: Input, rng: Generator, form: Format, x: Array) -> Array:
    """Magnitudes over the whole range of exponents, their products and sums included."""
    powers = rng.uniform(form.lowest / 2, form.highest / 2, x.size)
    return np.sign(rng.uniform(-1, 1, x.size)) * np.exp2(powers)


def _halfway(arg: Input, rng: Generator, form: Format, x: Array) -> Array:
    """Pairs whose sums and products lie halfway between neighbours; casts to narrower types too."""
    steps = np.arange(x.size)
    if arg.operand:
        half = 2.0**-form.digits
        return np.where(steps % 2 == 0, half, 1.5) * np.where(steps % 4 < 2, 1.0, -1.0)
    digits = 11 if form.digits > 11 and arg.op in ("_to_copy", "copy") else form.digits - 1
    digits = 8 if form.digits > 8 and arg.op in ("_to_copy", "copy") and steps.size % 2 else digits
    odd = 1 + (2 * (steps % 2 ** min(digits - 1, 30)) + 1) * 2.0**-digits
    return odd * np.where(steps % 3 < 2, 1.0, -1.0)


def _opposed(arg: Input, _rng: Generator, _form: Format, x: Array) -> Array:
    """The first operand negative, the next positive, and so on: every product is negative."""
    return np.abs(x) if arg.operand % 2 else -np.abs(x)


def _positive(_arg: Input, _rng: Generator, _form: Format, x: Array) -> Array:
    return np.abs(x)


def _tiny(_arg: Input, rng: Generator, form: Format, x: Array) -> Array:
    """Subnormals, the smallest normal numbers and zeros of both signs."""
    least = 2.0 ** (form.lowest - form.digits + 1)
    values = rng.integers(-(2**4), 2**4 + 1, x.size) * least
    return np.where(rng.integers(0, 4, x.size) == 0, np.copysign(2.0**form.lowest, x), values)


def _large(_arg: Input, rng: Generator, form: Format, x: Array) -> Array:
    """Near the largest finite number, where sums and squares overflow."""
    most = form.largest / (8 if form.digits == 53 else 1)
    return np.copysign(most * rng.uniform(0.25, 1, x.size), x)


def _hard(arg: Input, rng: Generator, form: Format, x: Array) -> Array:
    ranges = _HARD.get(arg.op)
    if ranges is None:
        return _near_zero(arg, rng, form, x)
    low, high = np.array(ranges)[np.arange(x.size) % len(ranges)].T
    return np.clip(rng.uniform(0, 1, x.size) * (high - low) + low, -form.largest, form.largest)


def _near_zero(arg: Input, rng: Generator, form: Format, x: Array) -> Array:
    return x * np.exp2(rng.integers(-12, 1, x.size))


def _graded(arg: Input, rng: Generator, form: Format, x: Array) -> Array:
    """Magnitudes from 2^-6 to 2^7: where a curve is a line, where it bends, where it is flat; and
    the call's own limits."""
    values = x * np.exp2(rng.integers(-6, 7, x.size))
    if marks := _marks(arg, form):
        values[::5] = np.resize(marks, values[::5].size)
    return values


def _offset(arg: Input, rng: Generator, form: Format, x: Array) -> Array:
    """A large mean over a small spread: differences and variances cancel."""
    # Two passes over numbers around 16 lose 4 bits; one pass loses 8.
    mean = min(2.0 ** (form.digits // 2), _MEAN if _centred(arg.op) else 2.0**10)
    return mean + rng.uniform(-1, 1, x.size)


def _centred(op: str) -> bool:
    """Whether the operator takes a mean off before anything else."""
    return op in _CENTRED or any(word in op for word in _CENTRED_NAMES)


def magnified(case: Case) -> float:
    """How many times a unit of the inputs shows in results that a mean was taken off for."""
    offset = dict(case.factors).get("values") == "offset"
    return _MEAN if offset and _centred(case.op) else 1.0


def _nan(arg: Input, rng: Generator, form: Format, x: Array) -> Array:
    """One NaN: first, last, or somewhere, of one operand."""
    values = x.copy()
    if values.size:
        places = (0, values.size - 1, int(rng.integers(values.size)))
        values[places[int(rng.integers(3))]] = np.nan
    return values


def _infinite(arg: Input, rng: Generator, form: Format, x: Array) -> Array:
    """Rows of nothing but -inf, of +inf with numbers, and plain ones."""
    row = arg.shape[-1] if arg.shape else 1
    which = (np.arange(x.size) // max(row, 1)) % 3
    mixed = np.where(rng.integers(0, 8, x.size) == 0, np.inf, x)
    return np.where(which == 0, -np.inf, np.where(which == 1, mixed, x))


def _ties(arg: Input, rng: Generator, form: Format, x: Array) -> Array:
    return np.array(_TIED)[rng.integers(0, len(_TIED), x.size)]


def _dominant(arg: Input, rng: Generator, form: Format, x: Array) -> Array:
    """Matrices whose diagonals grow and outweigh the rest: no two values of them come close."""
    matrices = (x / 4).reshape(arg.shape)
    count = min(arg.shape[-2:])
    np.einsum("...ii->...i", matrices[..., :count, :count])[...] += 3.0 * np.arange(1, count + 1)
    return matrices.reshape(-1)


def _pivoted(arg: Input, rng: Generator, form: Format, x: Array) -> Array:
    """Dominant matrices with rows one further down, every other one negated."""
    rows = np.roll(_dominant(arg, rng, form, x).reshape(arg.shape), 1, -2)
    return (rows * (-1.0) ** np.arange(arg.shape[-2])[:, None]).reshape(-1)


def _permuted(arg: Input, rng: Generator, form: Format, x: Array) -> Array:
    """Triangular matrices with rows one further down, negated: each column offers one pivot, which
    is negative and not on the diagonal."""
    rows = np.triu(_dominant(arg, rng, form, x).reshape(arg.shape))
    return -np.roll(rows, 1, -2).reshape(-1)


def _half_steps(arg: Input, rng: Generator, form: Format, x: Array) -> Array:
    return _halves(arg.shape, rng, arg.operand).reshape(-1)


def _unit(arg: Input, rng: Generator, form: Format, x: Array) -> Array:
    """Shares with both ends of [0, 1] among them."""
    return np.where(rng.integers(0, 3, x.size) == 0, rng.integers(0, 2, x.size), x)


# What data tensors are filled with, by the word of a factor `values`.
WORDS: Final = {
    "normal": _plain, "graded": _graded, "special": _special, "mixed": _mixed,
    "integer": _integer, "wide": _wide, "halfway": _halfway, "tiny": _tiny, "large": _large,
    "hard": _hard, "offset": _offset, "nan": _nan, "infinite": _infinite,
    "halves": _half_steps, "opposed": _opposed, "positive": _positive,
    "ties": _ties, "dominant": _dominant, "pivoted": _pivoted, "permuted": _permuted, "unit": _unit,
}  # fmt: skip


def _whole(arg: Input, rng: Generator, dtype: np.dtype[Any]) -> Array:
    """Integers: small ones, all of the range, its ends, and beyond what floats hold exactly."""
    info, count = np.iinfo(dtype), int(np.prod(arg.shape))
    low, high = max(int(np.ceil(arg.low)), info.min), min(max(int(arg.high), 1), info.max)
    if arg.fill in ("wide", "large"):
        values = rng.integers(info.min, info.max, count, dtype, endpoint=True)
    elif arg.fill in ("special", "hard", "tiny"):
        ends = [v for v in (0, 1, -1, 2, info.min, info.max, info.max - 1, info.min + 1,
                            2**24 + 1, 2**31 + 3, 2**53 + 1, 100)
                if info.min <= v <= info.max]  # fmt: skip
        at = np.arange(count)
        values = np.array(ends, dtype)[(at if not arg.operand else at // len(ends)) % len(ends)]
    elif arg.fill == "offset":
        base = min(2**53, info.max - 8)
        values = (np.array(base, dtype) + rng.integers(0, 7, count).astype(dtype)).astype(dtype)
    elif arg.fill == "halfway":
        base = min(2**24, info.max - 130)
        values = (base + rng.integers(0, 128, count)).astype(dtype)
    elif arg.fill == "ties":
        values = rng.integers(0, 3, count).astype(dtype)
    else:
        values = rng.integers(low, high + 1, count).astype(dtype)
    if arg.operand and arg.op in _DIVIDES:
        values = np.where(values == 0, 1, values).astype(dtype)
    if arg.operand and arg.op.startswith("bitwise_") and "shift" in arg.op:
        # By as many bits as there are and more, too.
        values = (np.abs(values.astype(np.int64)) % (dtype.itemsize * 8 + 3)).astype(dtype)
    return values.reshape(arg.shape)


# Integers have no quotient by zero.
_DIVIDES: Final = frozenset(("div", "div.mode", "floor_divide", "remainder", "fmod"))


def _indices(arg: Input, rng: Generator) -> Array:
    """Indices into [0, size): `operand` 10 + d says that none may repeat along dimension d."""
    count, size = int(np.prod(arg.shape)), arg.size
    if 10 <= arg.operand < 20:
        return _once(arg, rng)
    if arg.fill == "edges":
        values = np.where(np.arange(count) % 2 == 0, 0, size - 1)
    elif arg.fill == "sorted":
        values = np.sort(rng.integers(0, size, count))
    elif arg.fill == "reversed":
        values = np.arange(count)[::-1] % size
    elif arg.fill == "repeated":
        values = np.full(count, size // 2)
    elif arg.fill == "negative":
        values = rng.permutation(max(count, size))[:count] % size
        values = np.where(np.arange(count) % 2 == 0, values - size, values)
    elif arg.fill == "gaps":
        values = (np.arange(count) * 3) % size
    else:
        values = rng.integers(0, size, count) if count > size else rng.permutation(size)[:count]
    return values.reshape(arg.shape)


def _once(arg: Input, rng: Generator) -> Array:
    at = arg.operand - 10
    along = arg.shape[at]
    if along > arg.size or arg.fill in ("repeated", "edges"):
        values = rng.integers(0, arg.size, arg.shape)
        return np.where(values % 2 == 0, 0, arg.size - 1) if arg.fill == "edges" else values
    order = rng.permutation(arg.size)[:along] if arg.fill != "sorted" else np.arange(along)
    order = order[::-1] if arg.fill == "reversed" else order
    spread = [along if d == at else 1 for d in range(len(arg.shape))]
    return np.broadcast_to(order.reshape(spread), arg.shape).copy()
