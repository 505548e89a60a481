"""Quantization that formulas of several families use."""

from __future__ import annotations

from ....spec import content
from ._words import *


def _dropped(scale: Array, axis: int | None) -> Array:
    return scale.reshape(-1) if axis is None else scale.squeeze(axis)


def dynamic(
    x: Array, smooth: Array | None = None, most: float = 127, axis: int | None = -1
) -> tuple[Array, Array]:
    """(steps, scale): a row's largest magnitude becomes `most`; a row of zeros divides by 1.

    `axis` None: of the whole tensor.
    """
    y = x if smooth is None else x * smooth
    scale = np.abs(y).max(axis, keepdims=True) / most
    return y / np.where(scale == 0, 1.0, scale), _dropped(scale, axis)


def packed_scales(values: Array) -> Array:
    """Scales as aclnnTransQuantParam packs them: the bits of a float32 in the low half."""
    return np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)


def words(shape: str, dtype: str = "u64") -> Domain:
    """Scales as aclnnTransQuantParam packs them: float32 from 2^-7 to 2^-5 without their low 13
    bits, which hardware drops, in the low halves of words; bit 46 may be set. Powers of two bring
    sums to half steps."""

    def make(rng: Generator, pattern: str, draw: Draw) -> Array:
        bits = rng.integers(0x3C000000 >> 13, 0x3D000000 >> 13, resolve(shape, draw)) << 13
        bits = bits & 0x7F800000 if pattern == "powers" else bits
        return np.asarray(bits | (1 << 46 if pattern == "marked" else 0))

    return content(make, "plain marked powers", dtype, shape=shape)


def real_scales(packed: Array) -> Array:
    """The scales of such words; floats are themselves."""
    if packed.dtype.kind == "f":
        return packed
    return packed.astype(np.uint32).view(np.float32).astype(np.float64)


def powers(shape: str, least: int, most: int, dtype: str = "f32") -> Domain:
    """Powers of two: what they scale is exact."""
    return content(lambda rng, _, draw: np.exp2(rng.integers(least, most, resolve(shape, draw))),
                   "powers", dtype, shape=shape)  # fmt: skip
