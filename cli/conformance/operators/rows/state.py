"""Operators that compare or keep state."""

from __future__ import annotations

from typing import Final

import numpy as np

from ....judge.precision import Array
from ..spec import const, spec, t, take, unspecified

_HALVES: Final = ("float16", "bfloat16", "float32")


@spec(
    "aclnnPrecisionCompare",
    "out:uint32",
    tolerance="exact",
    sparse=True,
    dtypes=_HALVES,
    source="operator document of aclnnPrecisionCompare",
    samples=[
        take(golden=t(4, 5), realdata=t(4, 5)),
        take(golden=t(3, 1), realdata=t(3, 1)),
        take(golden=const(np.ones((2, 3)), "float32"), realdata=const(np.ones((2, 3)), "float32")),
        take(golden=const([0.0, 1.0], "float32"), realdata=const([-0.0, 1.0], "float32")),
    ],
)
def compared(golden: Array, realdata: Array) -> np.uint32:
    """0 for the same bits, else 503."""
    same = np.array_equal(golden, realdata) and np.array_equal(
        np.signbit(golden), np.signbit(realdata)
    )
    return np.uint32(0 if same else 503)


unspecified("aclnnSleep", "keeps the device busy for a number of cycles; it has no result",
            "parameter names of the header")  # fmt: skip
unspecified("aclnnSilentCheck aclnnSilentCheckV2",
            "compares a value with limits and with its past; the codes of its result, and what a "
            "jump is measured in, are not published", "operator documents of both")  # fmt: skip
