"""Kernels of foreach: results equal a reference, and what they refuse."""

import numpy as np
import pytest
from numpy_harness import Array, Ops, Out

RNG = np.random.default_rng(3)


def draw(*shape: int, dtype: object = "float32") -> Array:
    return RNG.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("name", ["aclnnForeachAddList", "aclnnForeachSubList"])
def test_sums_of_half_lists_round_once_and_differences_twice(nops: Ops, name: str) -> None:
    """ops-nn: foreach_add_list has one step, foreach_sub_list multiplies, then subtracts."""
    a, b = draw(50, dtype="float16"), draw(50, dtype="float16")
    alpha = np.array([5.5], np.float16)
    (given,) = nops(name, (a,), (b,), alpha, (Out((50,), "float16"),))
    wide = a + alpha.astype(np.float32) * b  # the product is exact in float32
    expected = wide.astype(np.float16) if "Add" in name else a - alpha * b
    np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("size", [1.0, 1e-6, 300.0])
@pytest.mark.parametrize("name", ["aclnnForeachAddcmulList", "aclnnForeachAddcdivList"])
def test_products_of_half_lists_round_each_step(nops: Ops, name: str, size: float) -> None:
    a, c = draw(80, dtype="float16"), draw(80, dtype="float16")
    b = (RNG.normal(size=80) * size).astype(np.float16)
    value = np.array([3.7], np.float16)
    (given,) = nops(name, (a,), (b,), (c,), value, (Out((80,), "float16"),))
    with np.errstate(all="ignore"):
        step = b * c if "mul" in name else b / c
        np.testing.assert_array_equal(given, a + step * value)
