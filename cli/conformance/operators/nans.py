"""Owns what a NaN leaves open: where a formula multiplies it by 0, a kernel may pass it over.

Padding, masks that drop and weights at the edge of a filter contribute 0 times a value; documents
do not say whether a kernel multiplies there or reads nothing. Either is right: such an element is
the same whatever finite value stands in the NaN's place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ...judge.precision import Array
from ..cases.recipe import Recipe, Slot
from ..run.reference import Golden

# Two tell a factor of 0 from what counts, also in an even function; large ones tell it from a
# maximum that another element wins.
_SMALL: Final = (-1.0, 0.5)
_LARGE: Final = (-1e4, 3e3)
# A factor below it is 0 in the precision of the kernel.
_NOTHING: Final = 1e-6


def with_open_places(
    golden: Golden, recipe: Recipe, got: Sequence[Array], reference: Callable[[Recipe], Golden]
) -> Golden:
    """`golden` with finite references where NaN was multiplied by 0 and a finite value came."""
    places = [_open(v, g) for v, g in zip(golden.values, got, strict=True)]
    if not any(p.any() for p in places):
        return golden
    others = [reference(_instead(recipe, v)).values for v in (*_SMALL, *_LARGE)]
    values = [
        np.where(place & _idle(*tried), tried[0], value) if place.any() else value
        for value, place, *tried in zip(golden.values, places, *others, strict=True)
    ]
    return replace(golden, values=values)


def _open(value: Any, got: Array) -> Array:
    if value is None or value.dtype.kind != "f" or value.shape != got.shape:
        return np.zeros((), bool)
    with np.errstate(invalid="ignore"):
        return np.isnan(value) & np.isfinite(got.astype(np.float64))


def _idle(low: Array, high: Array, lowest: Array, highest: Array) -> Array:
    """Where a value's size does not count, from results for small and for large ones."""
    with np.errstate(all="ignore"):
        near = np.abs(high - low) <= _NOTHING * (_SMALL[1] - _SMALL[0]) * np.maximum(1, np.abs(low))
        far = np.abs(highest - lowest) <= _NOTHING * (_LARGE[1] - _LARGE[0])
        return np.asarray(near & far)


def _instead(recipe: Recipe, value: float) -> Recipe:
    """The recipe with `value` for each NaN."""
    known: dict[int, Slot] = {}

    def finite(slot: Slot) -> Slot:
        if id(slot) not in known:
            array = slot.array
            if array.dtype.kind in "fV" and array.size:
                array = np.where(np.isnan(array), np.asarray(value, array.dtype), array)
            known[id(slot)] = replace(slot, array=array.astype(slot.array.dtype))
        return known[id(slot)]

    args, kwargs = recipe.fill(finite)
    return replace(recipe, args=args, kwargs=kwargs, slots=[finite(s) for s in recipe.slots])
