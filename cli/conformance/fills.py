"""Owns the values of test inputs: drawn, integer, special, or all of a type; by seed and case."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any, Final

import numpy as np

from .case import Case
from .precision import FORMATS, numpy_dtype

_SPECIALS: Final = (
    0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 0.5, -0.5, 2.0,
)  # fmt: skip
# Largest integers whose sums of products stay exact: K max² below 2^digits (2^8 for bfloat16).
_INTEGER_LIMIT: Final = {"bfloat16": 1, "float16": 2, "float32": 8, "float64": 64}


def generator(case: Case, seed: int, position: int) -> Any:
    """A random stream of one tensor of one case: layouts and forms share it, so they compare."""
    key = f"{case.op}/{case.sample}/{case.dtype}/{case.shape}/{case.fill}/{position}"
    return np.random.default_rng([seed, zlib.crc32(key.encode())])


def values(arg: Any, case: Case, seed: int, position: int) -> Any:
    """The elements of one `Arg` (shape, dtype, low, high, values) for a case."""
    dtype = numpy_dtype(arg.dtype)
    if arg.values is not None:
        return np.array(arg.values).astype(dtype).reshape(arg.shape)
    rng = generator(case, seed, position)
    if arg.dtype in FORMATS and case.fill == "integer":
        limit = _INTEGER_LIMIT[arg.dtype]
        return rng.integers(-limit, limit + 1, arg.shape).astype(dtype)
    if arg.dtype in FORMATS and case.fill == "sweep":
        return every_value(dtype).reshape(arg.shape)
    drawn = _drawn(arg, rng, dtype)
    if arg.dtype in FORMATS and case.fill == "special":
        _sprinkle(drawn, arg.dtype, position)
    return drawn


def _drawn(arg: Any, rng: Any, dtype: Any) -> Any:
    low, high = float(arg.low), float(arg.high)
    if dtype == np.bool_:
        return rng.integers(0, 2, arg.shape).astype(np.bool_)
    if dtype.kind in "iu":
        least = max(int(np.ceil(low)), 0) if dtype.kind == "u" else int(np.ceil(low))
        most = max(int(np.floor(high)), least)
        return rng.integers(least, most + 1, arg.shape).astype(dtype)
    drawn = rng.uniform(low, high, arg.shape)
    if dtype.kind == "c":
        drawn = drawn + 1j * rng.uniform(low, high, arg.shape)
    return np.asarray(drawn).astype(dtype)


def _sprinkle(drawn: Any, name: str, position: int) -> None:
    """Put NaN, infinities, zeros, subnormals and extremes among the values, shifted by position."""
    form = FORMATS[name]
    tiny = 2.0 ** (form.lowest - form.digits + 1)
    special = [*_SPECIALS, tiny, -tiny, 2.0**form.lowest, form.largest, -form.largest]
    flat = drawn.reshape(-1)
    with np.errstate(all="ignore"):
        for i in range(flat.size):
            # Two operands walk the list at different paces, so that pairs differ.
            flat[i] = special[(i * (1 + 2 * position) + position) % len(special)]
    drawn[...] = flat.reshape(drawn.shape)


def every_value(dtype: Any) -> Any:
    """All 65,536 values of a 16-bit type, NaNs included."""
    return np.arange(65536, dtype=np.uint16).view(dtype)


def whole_range(arg: Any) -> Any:
    """The Arg of a sweep: a flat tensor of every 16-bit value."""
    return replace(arg, shape=(65536,), values=None)
