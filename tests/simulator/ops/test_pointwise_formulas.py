"""Kernels of pointwise: results equal a reference, and what they refuse."""

import numpy as np
from numpy_harness import Ops, Out


def test_powers_of_a_number_take_flags_and_integers(nops: Ops) -> None:
    for exponent in (np.array([0, 1, 3]), np.array([True, False])):
        (given,) = nops("aclnnPowScalarTensor", 2, exponent, Out(exponent.shape, "int64"))
        np.testing.assert_array_equal(given, 2 ** exponent.astype(np.int64))
