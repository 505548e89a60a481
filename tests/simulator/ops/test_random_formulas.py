"""Kernels of random: results equal a reference, and what they refuse."""

import numpy as np
import pytest
from numpy_harness import Ops, Out


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_normal_values_are_drawn_on_every_product_that_had_them(nops: Ops, dtype: str) -> None:
    mean, std = np.full((400,), 3, dtype), np.full((400,), 0.5, dtype)
    (given,) = nops("aclnnNormalTensorTensor", mean, std, 7, 0, Out((400,), dtype))
    assert abs(float(given.mean()) - 3) < 0.1
    assert abs(float(given.astype(np.float64).std()) - 0.5) < 0.1
