"""Kernels of loss: results equal a reference, and what they refuse."""

from typing import Any

import numpy as np
import pytest
from numpy_harness import Ops, Out, close, softmax

RNG = np.random.default_rng(83)


def draw(*shape: int, dtype: Any = "float16") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("kept", [False, True])
def test_a_part_of_the_vocabulary_has_its_loss(nops: Ops, kept: bool) -> None:
    x, w, target = draw(5, 8), draw(7, 8), np.array([10, 3, 16, 12, 40])
    logits = x.astype(np.float64) @ w.T.astype(float)
    outs = [Out((5,)) for _ in range(3)]
    top, total, predicted, bits, masked, found = nops(
        "aclnnFusedLinearOnlineMaxSum",
        [x, w, target],
        [10, 16, *outs],
        [Out((1,), "uint8"), Out((5,), "int64"), Out((5, 7), "float16")],
    )
    outside = (target < 10) | (target > 16)
    local = np.where(outside, 0, target - 10)
    close(top, logits.max(-1))
    close(total, np.exp(logits - logits.max(-1, keepdims=True)).sum(-1), 1e-4)
    np.testing.assert_array_equal(masked, local)
    np.testing.assert_array_equal(np.unpackbits(bits), [*outside, 1, 1, 1])
    close(predicted, np.where(outside, 0, logits[np.arange(5), local] - logits.max(-1)), 1e-4)
    loss, p = nops(
        "aclnnFusedCrossEntropyLossWithMaxSum",
        [top, total, predicted],
        [0.0, None, None, found],
        [Out((5,)), Out((5, 7))],
    )
    close(loss, np.log(total) - predicted)
    close(p, softmax(found.astype(float)), 3e-3)
    grad = draw(5, dtype="float32")
    rest = (None, None, p) if kept else (top, total, None)
    dx, dw = nops(
        "aclnnFusedLinearCrossEntropyLossGrad",
        [grad, x, w, bits, masked],
        [0.0, *rest],
        [Out(x.shape, "float16"), Out(w.shape, "float16")],
    )
    d = softmax(logits)
    d[np.arange(5), local] -= ~outside
    d *= grad[:, None]
    close(dx, d @ w.astype(float), 5e-3)
    close(dw, d.T @ x.astype(float), 5e-3)
