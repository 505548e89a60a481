"""Kernels of shape: results equal a reference, and what they refuse."""

from typing import Any

import numpy as np
from numpy_harness import Ops


def test_weights_of_a_matrix_unit_have_padded_sizes(nops: Ops) -> None:
    def size(name: str, *args: Any) -> int:
        found = np.zeros(1, np.uint64)
        nops.cann.function(name)(*args, found.ctypes.data)
        return int(found[0])

    assert size("aclnnCalculateMatmulWeightSize", (3, 17, 5)) == 3 * 32 * 16
    assert size("aclnnCalculateMatmulWeightSizeV2", (17, 33), 2) == 32 * 64
    assert size("aclnnCalculateConvolutionWeightSize", (8, 20, 3, 3), False, 1, 1) == 16 * 32 * 9
