"""Owns the objections that turn a pass into MISTRUSTED; refuses to judge accuracy.

Each guard exists because a published rule passes a real defect: an all-zero softmax, a tail that
was never written, a result that depends on what memory held before.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from .metrics import Errors, same
from .precision import Array, format_of, rounded, wide

# benchdnn's shares of zeros beyond which a test proves nothing.
MOSTLY_ZERO: Final = {"accumulated": 0.9}
_OTHERWISE: Final = 0.65
_ENOUGH: Final = 64
_DEVIATIONS: Final = 4.0
_FEW_VALUES: Final = 4
_NEARLY_ALL: Final = 0.9
# What differences of equal sums of numbers around 1 leave: some 100 roundings of float64.
_EQUALS: Final = 2.0**-46


def lost(got: Array, golden: Array, dtype: str) -> str:
    """Zeros where the reference, rounded to `dtype`, has none. Below what a difference of equals
    leaves of float64, or of few results below a unit of rounding, it may mean zero."""
    with np.errstate(all="ignore"):
        ours, theirs = wide(got) == 0, wide(rounded(golden, dtype)) != 0
        if (form := format_of(dtype)) is not None:
            least = form.unit if got.size < _ENOUGH else _EQUALS
            theirs &= np.abs(wide(golden)) >= least
    count = int((ours & theirs).sum())
    if count <= ours.size // 2:
        return ""
    return f"{count} of {ours.size} outputs are zero where the reference is not"


def zeros(got: Array, kind: str) -> str:
    """Nearly nothing but zeros: such inputs show little."""
    if not got.size:
        return ""
    share = float((wide(got) == 0).mean())
    # Of few results that are zero every other time, as those of a relu, more may be by chance.
    chance = _DEVIATIONS * math.sqrt(0.25 / got.size)
    if got.size >= _ENOUGH and share > min(MOSTLY_ZERO.get(kind, _OTHERWISE) + chance, _NEARLY_ALL):
        return f"{share:.0%} of the outputs are zero: the inputs prove little"
    return ""


def constant(golden: Array) -> str:
    """A reference that is nearly always one of very few values shows nothing about indexing; signs,
    which have few but vary, do."""
    if golden.size < _ENOUGH:
        return ""
    values, counts = np.unique(golden.reshape(-1)[:4096], return_counts=True)
    if values.size >= _FEW_VALUES or counts.max() <= _NEARLY_ALL * counts.sum():
        return ""
    return f"the reference has {values.size} different values among {golden.size}"


def tail(deviations: Errors, limit: float) -> str:
    """The last 32 bytes judged alone: unwritten tails hide among many good elements."""
    block = max(32 * 8 // _bits(deviations), 1)
    if deviations.ulp.size < 4 * block:
        return ""
    distance = np.abs(deviations.ulp)
    last, rest = float(distance[-block:].max()), float(distance[:-block].max())
    if last > max(16 * rest, 4 * limit, 4.0):
        return f"the last {block} elements err by {last:.3g} ULP, all others by ≤ {rest:.3g}"
    return ""


def _bits(deviations: Errors) -> int:
    return {11: 16, 8: 16, 24: 32}.get(deviations.form.digits, 64)


def second_run(first: Array, second: Array) -> str:
    """Results of one input that differ between two runs with different memory contents."""
    with np.errstate(all="ignore"):
        differ = int((~same(first, second)).sum())
    if not differ:
        return ""
    return f"a second run differs in {differ} of {first.size} elements"


def trespass(inputs: int, outputs: int) -> list[str]:
    """Memory that changed and may not have."""
    writes = []
    if inputs:
        writes.append(f"{_elements(inputs)} of an input's memory changed")
    if outputs:
        writes.append(f"{_elements(outputs)} outside of the output changed")
    return writes


def _elements(count: int) -> str:
    return "1 element" if count == 1 else f"{count} elements"
