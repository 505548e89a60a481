"""Owns the named standards of the vendor's operator test kit, so that its verdict can stand beside
ours. They are looser than our rules where kernels err in few elements.

Source: the documents of the public repository cann/ops-test-kit (Precision_Comparison), 2026-10.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from .precision import Array


@dataclass(frozen=True, slots=True)
class Tolerances:
    """Numbers that a case states: share of elements that may be off, relative and absolute
    bounds; None takes the standard's own."""

    relative: float | None = None
    share: float | None = None
    absolute: float = 1e-8


@dataclass(frozen=True, slots=True)
class StandardVerdict:
    """What a standard says of one result."""

    standard: str
    passed: bool
    text: str


PLAIN: Final = Tolerances()
# dtype -> absolute, relative, largest error.
_MIXED: Final = {
    "float16": (2**-9, 2**-9, 0.1), "bfloat16": (2**-6, 2**-6, 1.0),
    "float32": (2**-10, 2**-16, 0.01), "float8_e4m3fn": (2**-2, 2**-4, 1.0),
    "float8_e5m2": (2**-1, 2**-3, 0.1),
}  # fmt: skip
_MIXED_SHARE: Final = 0.99
_MIXED_ULP: Final = 32
_MEAN: Final = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-13,
                "float8_e4m3fn": 2**-3, "float8_e5m2": 2**-2}  # fmt: skip
_CLOSE: Final = {"float16": 1e-3, "bfloat16": 1e-3}
_BITS: Final = {"float16": 10, "bfloat16": 7, "float32": 23, "float8_e4m3fn": 3,
                "float8_e5m2": 2}  # fmt: skip
_REQUANT_SHARE: Final = 0.999
# Level -> allowed ratios of the largest, the mean and the root mean square error.
_RATIOS: Final = {"L0": (10.0, 2.0, 2.0), "L1": (5.0, 1.5, 1.5), "L2": (2.0, 1.2, 1.2)}


def default(dtype: str) -> str:
    """The standard that a dtype has where nobody names one."""
    return "mixed" if dtype in _MIXED else "binary"


def judge(
    standard: str, got: Array, expected: Array, dtype: str, numbers: Tolerances = PLAIN,
    witness: Array | None = None,
) -> StandardVerdict:  # fmt: skip
    """What `standard` says of a result; `witness` is another chip's, for cross_check."""
    if got.shape != expected.shape:
        return StandardVerdict(
            standard, False, f"shape {list(got.shape)}, expected {list(expected.shape)}"
        )
    if standard == "cross_check":
        passed, text = _cross_check(got, expected, witness, dtype)
    elif standard == "binary" or (dtype not in _BITS and standard not in ("quant", "requant")):
        passed, text = _binary(got, expected)
    else:
        with np.errstate(all="ignore"):
            passed, text = _RULES[standard](got, expected, dtype, numbers)
    return StandardVerdict(standard, bool(passed), text)


def _finite(got: Array, expected: Array) -> tuple[Array, Array, int]:
    """Both in float64 where finite, and how many elements are not finite in the same way."""
    a, g = got.astype(np.float64), expected.astype(np.float64)
    g = np.where(np.isfinite(g), g.astype(got.dtype).astype(np.float64), g)
    odd = ~np.isfinite(a) | ~np.isfinite(g)
    same = (a == g) | (np.isnan(a) & np.isnan(g))
    return a[~odd], g[~odd], int((odd & ~same).sum())


def _mixed(got: Array, expected: Array, dtype: str, _numbers: Tolerances) -> tuple[Any, str]:
    absolute, relative, cap = _MIXED[dtype]
    a, g, odd = _finite(got, expected)
    error = np.abs(a - g)
    share = float((error <= absolute + relative * np.abs(g)).mean()) if error.size else 1.0
    ulp = np.exp2(np.floor(np.log2(np.maximum(np.abs(g), 2.0**-126))) - _BITS[dtype])
    over = int(((error > cap) & (error > _MIXED_ULP * ulp)).sum())
    text = f"{share:.4%} within bounds (at least {_MIXED_SHARE:.0%}), {over} beyond the cap"
    return share >= _MIXED_SHARE and not over and not odd, text + _nonfinite(odd)


def _stat_rel_err(got: Array, expected: Array, dtype: str, _numbers: Tolerances) -> tuple[Any, str]:
    a, g, odd = _finite(got, expected)
    error = np.abs(a - g) / (np.abs(g) + 1e-7)
    mean, most = (float(error.mean()), float(error.max())) if error.size else (0.0, 0.0)
    limit = _MEAN[dtype]
    text = f"mean {mean:.3g} (below {limit:.3g}), largest {most:.3g} (below {10 * limit:.3g})"
    return mean < limit and most < 10 * limit and not odd, text + _nonfinite(odd)


def _close(got: Array, expected: Array, dtype: str, numbers: Tolerances) -> tuple[Any, str]:
    relative = numbers.relative if numbers.relative is not None else _CLOSE.get(dtype, 1e-4)
    limit = numbers.share if numbers.share is not None else relative
    a, g, odd = _finite(got, expected)
    outside = np.abs(a - g) > numbers.absolute + relative * np.abs(g)
    share = float(outside.mean()) if outside.size else 0.0
    return share <= limit and not odd, f"{share:.4%} outside (at most {limit:.4%}){_nonfinite(odd)}"


def _cosine(got: Array, expected: Array, _dtype: str, _numbers: Tolerances) -> tuple[Any, str]:
    a, g, odd = _finite(got, expected)
    norm = float(np.linalg.norm(a) * np.linalg.norm(g))
    cosine = float(a @ g) / norm if norm else float(np.array_equal(a, g))
    text = f"1 - cos = {1 - cosine:.3g} (at most 0.01)"
    return 1 - cosine <= 0.01 and not odd, text + _nonfinite(odd)


def _binary(got: Array, expected: Array) -> tuple[bool, str]:
    near = expected.astype(got.dtype)
    width = got.dtype.itemsize
    raw = [np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(-1, width)
           for x in (got, near)]  # fmt: skip
    different = int((raw[0] != raw[1]).any(-1).sum())
    return not different, f"{different} of {got.size} elements differ in bits"


def _requant(got: Array, expected: Array, _dtype: str, _numbers: Tolerances) -> tuple[Any, str]:
    near = expected.astype(got.dtype)
    if got.itemsize != 1:
        return _binary(got, expected)
    codes = [np.ascontiguousarray(x).view(np.int8).astype(np.int16) for x in (got, near)]
    share = float((np.abs(codes[0] - codes[1]) <= 1).mean()) if got.size else 1.0
    return share >= _REQUANT_SHARE, f"{share:.4%} within one code (at least {_REQUANT_SHARE:.1%})"


def _quant(got: Array, expected: Array, _dtype: str, _numbers: Tolerances) -> tuple[Any, str]:
    a, g, odd = _finite(got, expected)
    most = float(np.abs(a - np.rint(g)).max()) if a.size else 0.0
    return most <= 1 and not odd, f"largest difference {most:g} (at most 1){_nonfinite(odd)}"


def _cross_check(
    got: Array, expected: Array, witness: Array | None, dtype: str
) -> tuple[bool, str]:
    if witness is None or witness.shape != got.shape:
        return False, "no result of another chip or library is given"
    ours, theirs = (_errors(x, expected) for x in (got, witness))
    # Nobody is held to less than the error of rounding once.
    least = 2.0 ** -(_BITS.get(dtype, 52) + 1)
    ratios = [a / max(b, least) if a else 0.0 for a, b in zip(ours, theirs, strict=True)]
    levels = [n for n, most in _RATIOS.items() if all(r <= m for r, m in zip(ratios, most,
              strict=True))]  # fmt: skip
    text = "largest {:.3g}, mean {:.3g}, RMS {:.3g} times theirs".format(*ratios)
    odd = _finite(got, expected)[2]
    level = levels[-1] if levels else "below L0"
    return bool(levels) and not odd, f"{text}: {level}{_nonfinite(odd)}"


def _errors(got: Array, expected: Array) -> tuple[float, float, float]:
    a, g, _ = _finite(got, expected)
    error = np.abs(a - g) / (np.abs(g) + 1e-7)
    if not error.size:
        return 0.0, 0.0, 0.0
    return float(error.max()), float(error.mean()), float(np.sqrt((error**2).mean()))


def _nonfinite(count: int) -> str:
    return f"; {count} NaN or Inf elements differ" if count else ""


_RULES: Final[dict[str, Callable[[Array, Array, str, Tolerances], tuple[Any, str]]]] = {
    "mixed": _mixed, "stat_rel_err": _stat_rel_err, "close": _close, "cosine": _cosine,
    "requant": _requant, "quant": _quant,
}  # fmt: skip
