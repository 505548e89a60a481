"""Kernels of activation: results equal a reference, and what they refuse."""

from typing import Any

import numpy as np
from numpy_harness import Ops, Out, close, sigmoid
from numpy_references import differences

RNG = np.random.default_rng(41)


def draw(*shape: int, dtype: Any = "float16") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def test_clipped_gates_and_their_gradients(nops: Ops) -> None:
    x, g, group = (
        draw(4, 8, dtype="float32") * 2,
        draw(4, 4, dtype="float32"),
        np.array([1, 2], np.int64),
    )
    for interleaved in (False, True):

        def value(x: np.ndarray, interleaved: bool = interleaved) -> Any:
            a, b = (x[:, ::2], x[:, 1::2]) if interleaved else (x[:, :4], x[:, 4:])
            a, b = np.minimum(a, 1.5), np.clip(b, -1.5, 1.5)
            return (a * sigmoid(1.2 * a) * (b + 0.3)) * np.array([1, 1, 1, 0])[:, None]

        args = group, -1, 1.2, 1.5, 0.3, interleaved
        (y,) = nops.both("aclnnClippedSwiglu", x, *args, Out((4, 4)))
        close(y, value(x.astype(float)))
        (dx,) = nops.both("aclnnClippedSwigluGrad", g, x, *args, Out(x.shape))
        close(dx, differences(lambda x: (value(x) * g).sum(), [x.astype(float)], 0), 1e-3)
