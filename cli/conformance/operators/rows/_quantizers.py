"""Quantization that formulas of several families use."""

from __future__ import annotations

from typing import Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import const

INT8: Final = 2


def _dropped(scale: Array, axis: int | None) -> Array:
    return scale.reshape(-1) if axis is None else scale.squeeze(axis)


def dynamic(
    x: Array, smooth: Array | None = None, most: int = 127, axis: int | None = -1
) -> tuple[Array, Array]:
    """(steps, scale): a row's largest magnitude becomes `most`; a row of zeros divides by 1.

    `axis` None: of the whole tensor.
    """
    y = x if smooth is None else x * smooth
    scale = np.abs(y).max(axis, keepdims=True) / most
    return y / np.where(scale == 0, 1.0, scale), _dropped(scale, axis)


def packed_scales(values: Array) -> Arg:
    """Scales as aclnnTransQuantParam packs them: the bits of a float32 in the low half."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return const(bits, "uint64")
