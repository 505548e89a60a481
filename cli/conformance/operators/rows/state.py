"""Operators that compare or keep state."""

from __future__ import annotations

import numpy as np

from ....judge.precision import Array
from ....spec import *
from ..row import unspecified
from .pointwise import COMPARED, compared as likened, ramp


@spec("aclnnPrecisionCompare",
      Rule("exact", "operator document of aclnnPrecisionCompare", sparse=True), COMPARED,
      golden=content(ramp, "ramp zero", "f16 bf16 f32", shape="*S"),
      realdata=likened("golden"), out=out("u32"))  # fmt: skip
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
