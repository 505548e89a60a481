"""What references of several kernels in numpy share."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy_harness import sigmoid

# Of small types in blocks: the exponent of the largest number, and that number.
EMAX = {"float8_e4m3fn": 8, "float8_e5m2": 15}
TOP = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}


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


def turned(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, mode: int) -> np.ndarray:
    x = x.astype(np.float64)
    if mode == 3:
        x, mode = np.concatenate([x[..., ::2], x[..., 1::2]], -1), 0
    if mode == 0:
        a, b = np.split(x, 2, -1)
        other = np.concatenate([-b, a], -1)
    elif mode == 1:
        other = np.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
    else:
        a, b, c, d = np.split(x, 4, -1)
        other = np.concatenate([-b, a, -d, c], -1)
    return x * cos + other * sin


def rms(x: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * gamma.astype(np.float64)


def silu(x: np.ndarray) -> np.ndarray:
    return x * sigmoid(x)


def pack(x: np.ndarray) -> np.ndarray:
    """Eight int4 in each int32, the first in the low bits."""
    words = (x.astype(np.int64).reshape(*x.shape[:-1], -1, 8) & 15) << (4 * np.arange(8))
    return words.sum(-1).astype(np.uint32).view(np.int32)


def powers(x: np.ndarray, axis: int, to: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Elements in the small type, and the exponents in pairs, as the documents lay them out."""
    x = np.moveaxis(x.astype(np.float32), axis, -1)
    pad = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % 64)])
    blocks = pad.reshape(*pad.shape[:-1], -1, 32)
    top = np.abs(blocks).max(-1)
    with np.errstate(divide="ignore"):
        shared = np.where(top > 0, np.floor(np.log2(top)) - EMAX[to.name], -127)
    scale = np.exp2(np.clip(shared, -127, 127)).astype(np.float32)
    y = (blocks / scale[..., None]).reshape(pad.shape)[..., : x.shape[-1]]
    y = np.clip(y, -TOP[to.name], TOP[to.name]).astype(to)
    pairs = np.moveaxis(scale.reshape(*scale.shape[:-1], -1, 2), -2, axis - 1 if axis < 0 else axis)
    return np.moveaxis(y, -1, axis), pairs


def same(given: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(given.astype(np.float32), expected.astype(np.float32))
