"""Operands of quantised products: integers, their scales, and the packed and inner formats."""

from typing import Any

import numpy as np

RNG = np.random.default_rng(31)


def draw(*shape: int, dtype: Any = "float16") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def codes(*shape: int, bits: int = 8) -> np.ndarray:
    low = -(2 ** (bits - 1))
    return RNG.integers(low, -low, shape).astype(np.int8)


def scale_of(*shape: int, dtype: Any = "float32") -> np.ndarray:
    return (np.abs(draw(*shape)) / 50 + 0.001).astype(dtype)


def inner(x: np.ndarray, wide: int) -> np.ndarray:
    """The inner format: tiles of sixteen rows, column by column of tiles, padded with zeros."""
    *lead, k, n = x.shape
    pads = [(0, 0)] * len(lead) + [(0, -k % 16), (0, -n % wide)]
    x = np.pad(x, pads)
    tiles = x.reshape(*lead, x.shape[-2] // 16, 16, x.shape[-1] // wide, wide)
    return np.ascontiguousarray(np.moveaxis(tiles, -2, -4))


def words(scale: np.ndarray) -> np.ndarray:
    """What aclnnTransQuantParamV2 makes of a scale without an offset."""
    cut = scale.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
    return cut.astype(np.uint64) | np.uint64(1 << 46)


def cut(scale: np.ndarray) -> np.ndarray:
    return (scale.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)


def pack(x: np.ndarray) -> np.ndarray:
    """Eight int4 in each int32, the first in the low bits."""
    words = (x.astype(np.int64).reshape(*x.shape[:-1], -1, 8) & 15) << (4 * np.arange(8))
    return words.sum(-1).astype(np.uint32).view(np.int32)
