"""Microscaled numbers (MX), which norms, gates and quantization share."""

from __future__ import annotations

from ._words import *

OCP: Final = ("OCP Microscaling Formats (MX) Specification 1.0, section 6.3; op-plugin document "
              "npu_dynamic_dual_level_mx_quant for the order of scales")  # fmt: skip
BLOCK: Final = 32
# aclDataType, and the exponent and value of the largest number.
E5M2, E4M3, E2M1, BF16, FLOAT, FLOAT16 = 35, 36, 40, 27, 0, 1
LARGEST: Final = {E5M2: (15, 57344.0), E4M3: (8, 448.0), E2M1: (2, 6.0)}
SMALL_TYPES: Final = {E5M2: "float8_e5m2", E4M3: "float8_e4m3fn"}


def padded(x: Array, axis: int, multiple: int) -> Array:
    pads = [(0, 0)] * x.ndim
    pads[axis] = (0, -x.shape[axis] % multiple)
    return np.pad(x, pads)


def shared_exponent(peak: Array, to: int, algorithm: int) -> Array:
    """Exponents of the powers of two for blocks of these peaks.

    Algorithm 0 takes the peak's own exponent less the type's largest; 1 takes the least that
    brings the peak within the type's values.
    """
    top, largest = LARGEST[to]
    if algorithm == 1:
        mantissa, exponent = np.frexp(peak / largest)
        exponent = np.where(mantissa == 0.5, exponent - 1, exponent)
    else:
        exponent = np.frexp(peak)[1] - 1 - top
    return np.where(peak == 0, -127, np.clip(exponent, -127, 127))


def microscaled(x: Array, axis: int, to: int, algorithm: int = 0) -> tuple[Array, Array]:
    """(elements of the small type before rounding, scales [..., pairs of blocks, ..., 2])."""
    axis %= x.ndim
    wide = padded(x, axis, 2 * BLOCK)
    cut = (*wide.shape[:axis], wide.shape[axis] // BLOCK, BLOCK, *wide.shape[axis + 1 :])
    exponent = shared_exponent(np.abs(wide.reshape(cut)).max(axis + 1), to, algorithm)
    each = np.repeat(exponent, BLOCK, axis).take(np.arange(x.shape[axis]), axis)
    limit = LARGEST[to][1]
    pairs = exponent.reshape(*exponent.shape[:axis], -1, 2, *exponent.shape[axis + 1 :])
    scales = np.ldexp(1.0, np.moveaxis(pairs, axis + 1, -1))
    return np.clip(np.ldexp(x, -each), -limit, limit), scales


def as_float32(y: Array) -> Array:
    """As float32, in which kernels compute: a peak beside a power of two decides on the scale."""
    return y.astype(np.float32).astype(np.float64)
