"""Kernels of matmul: results equal a reference, and what they refuse."""

import numpy as np
import pytest
from numpy_harness import Ops, Out


@pytest.mark.parametrize("op", ["aclnnBatchMatMulWeightNz", "aclnnMatmulWeightNz"])
def test_no_matrices_times_one_are_none(nops: Ops, op: str) -> None:
    (given,) = nops(op, np.zeros((0, 3, 4), np.float16), np.zeros((1, 4, 2), np.float16),
                    Out((0, 3, 2), "float16"), 0)  # fmt: skip
    assert given.shape == (0, 3, 2)
