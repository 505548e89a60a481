"""Kernels of matmul: results equal a reference, and what they refuse."""

from typing import Any

import numpy as np
import pytest
from numpy_harness import Ops, Out, close, e4m3
from products import on

RNG = np.random.default_rng(83)


def draw(*shape: int, dtype: Any = "float16") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


@on("950")
@pytest.mark.parametrize("op", ["", "add", "mul", "relu"])
def test_products_go_on_into_an_operation(nops: Ops, op: str) -> None:
    a, b, third = draw(3, 8), draw(8, 5), draw(3, 5)
    extra = third if op in ("add", "mul") else None
    (y,) = nops("aclnnFusedMatmul", a, b, None, extra, op, 0, Out((3, 5), "float16"))
    m = a.astype(float) @ b.astype(float)
    close(y, {"": m, "add": m + third, "mul": m * third, "relu": np.maximum(m, 0)}[op], 3e-3)


@pytest.mark.parametrize("op", ["aclnnBatchMatMulWeightNz", "aclnnMatmulWeightNz"])
def test_no_matrices_times_one_are_none(nops: Ops, op: str) -> None:
    (given,) = nops(op, np.zeros((0, 3, 4), np.float16), np.zeros((1, 4, 2), np.float16),
                    Out((0, 3, 2), "float16"), 0)  # fmt: skip
    assert given.shape == (0, 3, 2)


@on("950")
def test_small_operands_are_turned_and_scaled(nops: Ops) -> None:
    x, w = (RNG.integers(-3, 4, s).astype(e4m3) for s in ((5, 2, 8), (2, 8, 16)))
    rows, cols = RNG.random(5).astype(np.float32), RNG.random(16).astype(np.float32)
    (y,) = nops(
        "aclnnTransposeQuantBatchMatMul",
        [x, w, None, rows, cols],
        [1, 0, (1, 0, 2), (0, 1, 2), (1, 0, 2), 1],
        Out((5, 2, 16), "float16"),
    )
    exact = np.einsum("mbk,bkn->mbn", x.astype(np.float64), w.astype(np.float64))
    np.testing.assert_allclose(y, exact * rows[:, None, None] * cols, rtol=1e-3)
