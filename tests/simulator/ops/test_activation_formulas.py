"""Kernels of activation: results equal a reference, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy_harness import Ops, Out, close, sigmoid

RNG = np.random.default_rng(41)


def draw(*shape: int, dtype: Any = "float16") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def differences(f: Callable[..., Any], inputs: list[np.ndarray], which: int) -> np.ndarray:
    """The gradient of a scalar function by central differences."""
    x = inputs[which].astype(np.float64)
    out = np.empty(x.size)
    for i in range(x.size):
        values = []
        for step in (1e-5, -1e-5):
            moved = x.copy().reshape(-1)
            moved[i] += step
            args = [*inputs]
            args[which] = moved.reshape(x.shape)
            values.append(float(f(*args)))
        out[i] = (values[0] - values[1]) / 2e-5
    return out.reshape(x.shape)


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
