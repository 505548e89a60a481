"""Blocks of small floats that share a power of two as their scale (MX)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .....judge.precision import Array, numpy_dtype
from ...spec import const, spec, t, take
from .._functions import swiglu
from .._ignored import one_value, reserved
from .._microscaling import (
    BF16,
    BLOCK,
    E4M3,
    FLOAT,
    LARGEST,
    MX,
    MX_NORM,
    OCP,
    SMALL_TYPES,
    as_float32,
    microscaled,
    padded,
    shared_exponent,
)

_WIDE: Final[dict[str, Any]] = {"low": -70, "high": 70}
_PLAIN: Final[dict[str, Any]] = {"roundModeOptional": "rint", "blocksize": BLOCK,
                                 "dstTypeMax": 0.0, "maxLowBound": 0.0}  # fmt: skip


@spec("aclnnDynamicMxQuant aclnnDynamicMxQuantV2 aclnnDynamicMxQuantV3",
      "yOut:dstType mxscaleOut:float8_e8m0fnu",
      uncovered="roundModeOptional blocksize dstTypeMax maxLowBound",
      **MX, samples=[
          take(x=t(*shape, **_WIDE), axis=axis, dstType=to, scaleAlg=how, **_PLAIN)
          for shape, axis in (((3, 80), -1), ((80, 3), 0), ((2, 33, 4), 1), ((5, 64), 1))
          for to in SMALL_TYPES for how in (0, 1)])  # fmt: skip
def dynamic(x: Array, axis: int, dstType: int, scaleAlg: int) -> tuple[Array, Array]:
    return microscaled(x, axis, dstType, scaleAlg)


@spec("aclnnDynamicMxQuantWithDualAxis aclnnDynamicMxQuantWithDualAxisV2",
      "y1Out:dstType mxscale1Out:float8_e8m0fnu y2Out:dstType mxscale2Out:float8_e8m0fnu",
      uncovered="roundModeOptional dstTypeMax",
      **MX,
      samples=[take(x=t(*shape, dtype="float16", **_WIDE), dstType=to, scaleAlg=0, **_PLAIN)
               for shape in ((4, 64), (2, 70, 36)) for to in SMALL_TYPES])  # fmt: skip
def both_axes(x: Array, dstType: int, scaleAlg: int) -> tuple[Array, Array, Array, Array]:
    return *microscaled(x, -1, dstType, scaleAlg), *microscaled(x, -2, dstType, scaleAlg)


def _restored(x: Array, mxscale: Array, axis: int) -> Array:
    axis %= x.ndim
    flat = np.moveaxis(mxscale, -1, axis + 1)
    flat = flat.reshape(*flat.shape[:axis], -1, *flat.shape[axis + 2 :])
    return x * np.repeat(flat, BLOCK, axis).take(np.arange(x.shape[axis]), axis)


def _stored(*shape: int, axis: int, to: int) -> dict[str, Any]:
    """A quantised tensor with its scales, as the forward operator gives them."""
    values = t(*shape, **_WIDE).array().astype(np.float64)
    y, scale = microscaled(values, axis, to)
    small = SMALL_TYPES[to]
    return {"x": const(y.astype(numpy_dtype(small)).astype(np.float64), small),
            "mxscale": const(scale, "float8_e8m0fnu"), "axis": axis}  # fmt: skip


@spec("aclnnAntiMxQuant", "y:dstType", **{**MX, "steps": False, "tolerance": "rounded"},
      samples=[take(**_stored(*shape, axis=axis, to=to), dstType=kind)
               for shape, axis in (((3, 80), -1), ((80, 3), 0)) for to in SMALL_TYPES
               for kind in (FLOAT, BF16)])  # fmt: skip
def restored(x: Array, mxscale: Array, axis: int) -> Array:
    return _restored(x, mxscale, axis)


def squares(x: Array, to: int, algorithm: int = 0) -> tuple[Array, Array, Array]:
    """Squares of 32 by 32 in the last two dims share an exponent, which lies in both orders."""
    rows, columns = x.shape[-2:]
    wide = padded(padded(x, -1, BLOCK), -2, BLOCK)
    m, n = wide.shape[-2] // BLOCK, wide.shape[-1] // BLOCK
    cut = wide.reshape(*x.shape[:-2], m, BLOCK, n, BLOCK)
    exponent = shared_exponent(np.abs(cut).max((-3, -1)), to, algorithm)
    across = np.repeat(exponent, BLOCK, -2)[..., :rows, :]
    down = np.repeat(exponent, BLOCK, -1)[..., :columns]
    each = np.repeat(across, BLOCK, -1)[..., :columns]

    def paired(e: Array, axis: int) -> Array:
        pads = [(0, 0)] * e.ndim
        pads[axis] = (0, e.shape[axis] % 2)
        even = np.pad(e, pads, constant_values=-127)
        axis %= e.ndim
        pairs = even.reshape(*e.shape[:axis], -1, 2, *e.shape[axis + 1 :])
        return np.ldexp(1.0, np.moveaxis(pairs, axis + 1, -1))

    limit = LARGEST[to][1]
    return np.clip(np.ldexp(x, -each), -limit, limit), paired(across, -1), paired(down, -2)


_SQUARE_OUTS: Final = "yOut:dstType scale1Out:float8_e8m0fnu scale2Out:float8_e8m0fnu"


@spec(
    "aclnnDynamicBlockMxQuant",
    _SQUARE_OUTS,
    uncovered="roundModeOptional dstTypeMax",
    **MX,
    samples=[
        take(x=t(*shape, dtype="float16", **_WIDE), dstType=to, scaleAlg=a, **_PLAIN)
        for shape, a in (((40, 70), 0), ((2, 64, 33), 0), ((40, 70), 1))
        for to in SMALL_TYPES
    ],
)
def by_squares(x: Array, dstType: int, scaleAlg: int) -> tuple[Array, Array, Array]:
    return squares(x, dstType, scaleAlg)


_LINES: Final = "where a group's scales begin is read from op-plugin's test of the operator"


def grouped(x: Array, ends: Array, to: int, algorithm: int = 0) -> tuple[Array, Array]:
    """Blocks along rows begin anew in each group; group g's scales begin at line rows / 64 + g."""
    values, begin = np.zeros(x.shape), 0
    scales = np.full((len(x) // (2 * BLOCK) + len(ends), x.shape[1], 2), 2.0**-127)
    for g, end in enumerate(ends):
        if end > begin:
            values[begin:end], part = microscaled(x[begin:end], 0, to, algorithm)
            scales[begin // (2 * BLOCK) + g :][: len(part)] = part
        begin = end
    return values, scales


@spec("aclnnGroupedDynamicMxQuant aclnnGroupedDynamicMxQuantV2",
      "y:dstType mxscale:float8_e8m0fnu",
      ignored=one_value("blocksize"),
      uncovered="roundMode dstTypeMax",
      **{**MX, "source": f"{OCP}; {_LINES}"},
      samples=[take(x=t(130, 5, dtype="float16", **_WIDE), roundMode="rint", dstType=to,
                    groupIndex=const(ends, "int32"), blocksize=BLOCK, scaleAlg=0, dstTypeMax=0.0)
               for ends in ([40, 130], [64, 64, 130]) for to in SMALL_TYPES])  # fmt: skip
def by_groups(x: Array, groupIndex: Array, dstType: int, scaleAlg: int = 0) -> tuple[Array, Array]:
    return grouped(x, groupIndex, dstType, scaleAlg)


@spec("aclnnGroupedDynamicMxQuantWithDualAxis",
      "y1Out:dstDtype y1ScaleOut:float8_e8m0fnu y2Out:dstDtype y2ScaleOut:float8_e8m0fnu",
      ignored=reserved("maxDtypeValue"),
      uncovered="roundModeOptional",
      **{**MX, "source": f"{OCP}; {_LINES}"}, samples=[
          take(x=t(130, 40, dtype="float16", **_WIDE), groupIndex=const([40, 130], "int64"),
               roundModeOptional="rint", scaleAlg=0, dstDtype=to, maxDtypeValue=0.0)
          for to in SMALL_TYPES])  # fmt: skip
def both_by_groups(
    x: Array, groupIndex: Array, dstDtype: int, scaleAlg: int
) -> tuple[Array, Array, Array, Array]:
    return *microscaled(x, -1, dstDtype, scaleAlg), *grouped(x, groupIndex, dstDtype, scaleAlg)


_GATED: Final[dict[str, Any]] = {
    **MX_NORM, "source": f"Shazeer: GLU Variants Improve Transformer, 2020; {OCP}"}  # fmt: skip
_GATES: Final[dict[str, Any]] = {"roundModeOptional": "rint", "maxDtypeValue": 0.0}


@spec("aclnnSwigluMxQuant", "yOut:dstType mxscaleOut:float8_e8m0fnu",
      uncovered="groupIndexOptional activateDim swigluMode clampLimit gluAlpha gluBias "
                "groupMode axis roundModeOptional maxDtypeValue",
      **_GATED, samples=[
    take(x=t(3, n, dtype="float16"), activateDim=-1, activateLeft=left, swigluMode=0, groupMode=0,
         clampLimit=7.0, gluAlpha=1.702, gluBias=1.0, axis=-1, dstType=to, scaleAlg=how, **_GATES)
    for n, left, how in ((128, True, 0), (128, False, 1), (144, True, 1))
    for to in SMALL_TYPES])  # fmt: skip
def gated(x: Array, activateLeft: bool, dstType: int, scaleAlg: int) -> tuple[Array, Array]:
    return microscaled(as_float32(swiglu(x, activateLeft)), -1, dstType, scaleAlg)


_ENDS: Final = (None, const([40, 130], "int64"))


def _both(
    y: Array, ends: Array | None, to: int, algorithm: int
) -> tuple[Array, Array, Array, Array]:
    y = as_float32(y)
    columns = grouped(y, ends, to, algorithm) if ends is not None else (
        microscaled(y, -2, to, algorithm))  # fmt: skip
    return *microscaled(y, -1, to, algorithm), *columns


@spec(
    "aclnnSwigluMxQuantWithDualAxis",
    "y1Out:dstType mxscale1Out:float8_e8m0fnu y2Out:dstType mxscale2Out:float8_e8m0fnu",
    ignored=reserved("maxDtypeValue"),
    uncovered="roundModeOptional",
    **_GATED,
    samples=[
        take(
            x=t(130, 128, dtype="float16"),
            groupIndexOptional=ends,
            activateLeft=left,
            dstType=to,
            scaleAlg=0,
            **_GATES,
        )
        for ends in _ENDS
        for to, left in zip(SMALL_TYPES, (True, False), strict=True)
    ],
)
def gated_both(
    x: Array, groupIndexOptional: Array | None, activateLeft: bool, dstType: int, scaleAlg: int
) -> tuple[Array, Array, Array, Array]:
    return _both(swiglu(x, activateLeft), groupIndexOptional, dstType, scaleAlg)


def swiglu_gradient(x: Array, grad: Array, left: bool) -> Array:
    """silu'(g) = s (1 + g (1 - s)) for s = sigmoid(g); the other half gets silu(g)."""
    a, b = np.split(x, 2, -1)
    gate, value = (a, b) if left else (b, a)
    s = 1 / (1 + np.exp(-gate))
    parts = grad * value * s * (1 + gate * (1 - s)), grad * gate * s
    return np.concatenate(parts if left else parts[::-1], -1)


@spec("aclnnSwigluBackwardMxQuantWithDualAxis",
      "y1Out:dstDtype mxscale1Out:float8_e8m0fnu y2Out:dstDtype mxscale2Out:float8_e8m0fnu",
      ignored=reserved("maxDtypeValue")
      | one_value("roundModeOptional"),
      constant="dstDtype",
      **_GATED, samples=[
          take(x=t(130, 128, dtype="float16"), yGrad=t(130, 64, dtype="float16", low=-1),
               groupIndexOptional=ends, activateLeft=left, dstDtype=E4M3, scaleAlg=how, **_GATES)
          for ends, left, how in zip(_ENDS, (True, False), (0, 1), strict=True)])  # fmt: skip
def gated_back(
    x: Array, yGrad: Array, groupIndexOptional: Array | None, activateLeft: bool, dstDtype: int,
    scaleAlg: int,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    dx = swiglu_gradient(x, yGrad, activateLeft)
    return _both(dx, groupIndexOptional, dstDtype, scaleAlg)


# Of float4 e2m1: the exponent of its largest number, and that.
_TOP, _LARGEST = 2, 6.0
_CODES: Final = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -1, -2, -4, -6])


@spec("aclnnDynamicDualLevelMxQuant", "yOut:float4_e2m1fn level0ScaleOut:float32 "
      "level1ScaleOut:float8_e8m0fnu",
      ignored=one_value("level0BlockSize level1BlockSize"),
      uncovered="smoothScaleOptional roundModeOptional",
      **{**MX, "source": "op-plugin document "
      "npu_dynamic_dual_level_mx_quant", "dtypes": ("float16",)}, samples=[
          take(x=t(*shape, dtype="float16", low=-9, high=9), smoothScaleOptional=smooth,
               roundModeOptional="rint", level0BlockSize=512, level1BlockSize=32)
          for shape, smooth in (((3, 512), None), ((2, 2, 1024), None))])  # fmt: skip
def dual_level(x: Array) -> tuple[Array, Array, Array]:
    """512 elements share a real scale; what is left, in x's type, an exponent for each 32."""
    pieces = x.reshape(*x.shape[:-1], -1, 512)
    first = np.abs(pieces).max(-1) / _LARGEST
    left = pieces / np.where(first, first, 1)[..., None].astype(np.float32)
    left = left.astype(np.float16).astype(np.float64).reshape(*x.shape[:-1], -1, 32)
    exponent = np.frexp(np.abs(left).max(-1))[1] - 1 - _TOP
    y = np.clip(np.ldexp(left, -exponent[..., None]), -_LARGEST, _LARGEST)
    second = np.ldexp(1.0, exponent).reshape(*x.shape[:-1], -1, 2)
    return y.reshape(x.shape), first, second


@spec("aclnnMxToBlockMxQuant", "y:dstType scale1:float8_e8m0fnu scale2:float8_e8m0fnu", **MX,
      samples=[
          take(x=const(_CODES[np.arange(np.prod(shape)) * 5 % 13].reshape(shape), "float4_e2m1fn"),
               mxscale=const(np.exp2(np.arange(np.prod(shape) // 32) % 4 - 1.0).reshape(
                   *shape[:-1], -1, 2), "float8_e8m0fnu"), dstType=to)
          for shape in ((64, 64), (2, 32, 128)) for to in (35, 36)])  # fmt: skip
def other_blocks(x: Array, mxscale: Array, dstType: int) -> tuple[Array, Array, Array]:
    return squares(_restored(x.astype(np.float64), mxscale, -1), dstType)
