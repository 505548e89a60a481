"""What a precision mode asked of an operator costs its results; source: the aclnnMatmul document.

Which overflow mode a device has decides what 16-bit results out of range are (document of
aclrtFloatOverflowMode, CANN 9.1).

With cubeMathType 1 or 3 the matrix unit of Atlas A2, A3 and 950 rounds factors of float32 to
HFLOAT32; with 1 or 2, 310P, 310B and 910 round them to float16, and refuse mode 0 for float32.
Mode 0 keeps float32, so that a device which rounds all the same fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np

import mindtorch
from aclnn_bindings import product_of
from aclnn_bindings.interface import catalog

from ...judge.classes import Requirement
from ...judge.precision import Array, name_of, rounded
from ..cases.recipe import Recipe
from .environment import modes

_MODE = "cubeMathType"
_HALVES = frozenset({"310p", "310b", "910"})
_LARGEST: Final = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38}
_ROUNDS: Final = frozenset({"float16", "hfloat32"})
_SUMS = frozenset({"composite", "accumulated", "chained"})


def in_mode(
    need: Requirement, recipe: Recipe, calls: Sequence[str], device: str, mode: int | None = None
) -> Requirement:
    """The requirement with the rounding that the case's mode allows, or that of a recorded call's
    `mode`; the recipe asks for the mode that this product has."""
    singles = any(name_of(slot.array) == "float32" for slot in recipe.slots)
    if not singles or device.startswith(("cpu", "meta")) or not _multiplies(need, calls):
        return need
    halves = _product() in _HALVES
    mode = recipe.kwargs.get(_MODE, 0) if mode is None else mode
    if halves and mode == 0:
        mode = 1
        if calls and not recipe.args:
            recipe.kwargs[_MODE] = mode
    if mode not in (1, 2, 3):
        return need
    if halves and _saturates(device):
        _saturate(recipe)
    # What a rounded factor costs is a share of the sum of magnitudes, whatever cancels in it.
    accumulator = "float16" if halves or mode == 2 else "hfloat32"
    return replace(need, tier="ratio", magnitude=need.magnitude or "self", accumulator=accumulator)


def _saturate(recipe: Recipe) -> None:
    """Give the call what a unit that saturates factors makes of them: no infinities, no NaN."""
    limit = _LARGEST["float16"]
    for array in (slot.array for slot in recipe.slots if name_of(slot.array) == "float32"):
        own = array if array.flags.writeable else array.base  # which an expanded one repeats
        own[...] = np.clip(np.nan_to_num(own, nan=0.0), -limit, limit)


def of_gradient(need: Requirement, forward: Requirement) -> Requirement:
    """The requirement of a gradient: products of the same factors, rounded as `forward`'s are."""
    if forward.accumulator not in _ROUNDS:
        return need
    return replace(need, tier="ratio", magnitude="self", accumulator=forward.accumulator)


def in_overflow_mode(got: Array, expected: Array, dtype: str, device: str) -> Array:
    """`expected`, with what came where saturation gives that: the largest number, or 0 for NaN."""
    if dtype not in _LARGEST or expected.dtype.kind != "f" or not _saturates(device):
        return expected
    with np.errstate(all="ignore"):
        value = rounded(expected, dtype).astype(np.float64)
        limit = np.where(np.isnan(value), 0.0, np.copysign(_LARGEST[dtype], value))
        saturated = ~np.isfinite(value) & (got.astype(np.float64) == limit)
    return np.where(saturated, limit, expected)


@cache
def _saturates(device: str) -> bool:
    npu = device.startswith("npu")
    return npu and modes(mindtorch.npu.get_device_name())["overflow"] == "saturates"


def _multiplies(need: Requirement, calls: Sequence[str]) -> bool:
    """Whether a case may reach the matrix unit: by its calls, or, of a row that is composed of
    others, by its class."""
    return any(map(_has_modes, calls)) if calls else need.name in _SUMS


@cache
def _has_modes(call: str) -> bool:
    op = catalog.load(catalog.versions()[-1]).ops.get(call)
    return op is not None and any(param.name == _MODE for param in op.params)


@cache
def _product() -> str | None:
    return product_of(mindtorch.npu.get_device_name())
