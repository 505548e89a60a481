"""Quantization with scales taken from the data."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .....judge.precision import Array
from ...spec import const, f16, spec, t, take
from .._defaults import STEPS
from .._ignored import one_value
from .._quantizers import INT8, _dropped, dynamic

_PAGES: Final = "op-plugin documents npu_quantize, npu_dynamic_quant, npu_anti_quant; equal logic"
Q: Final[dict[str, Any]] = {"source": _PAGES, "tolerance": "composite",
                            "steps": True}  # fmt: skip
HALVES: Final = ("float16", "bfloat16")
_DYNAMIC: Final = [take(x=f16(4, 32)), take(x=f16(2, 3, 64), smoothScalesOptional=f16(64)),
                   take(x=f16(5, 1024)), take(x=f16(3, 2056))]  # fmt: skip
spec("aclnnDynamicQuant", "yOut:int8 scaleOut:float32", samples=_DYNAMIC, dtypes=HALVES, **Q)(
    lambda x, smoothScalesOptional: dynamic(x, smoothScalesOptional))  # fmt: skip


def asymmetric(
    x: Array, smooth: Array | None = None, most: int = 127, axis: int | None = -1
) -> tuple[Array, Array, Array]:
    """(steps, scale, offset): -most - 1 is a row's least value and `most` its largest."""
    y = x if smooth is None else x * smooth
    top, low = y.max(axis, keepdims=True), y.min(axis, keepdims=True)
    scale = (top - low) / (2 * most + 1)
    whole = np.where(scale == 0, 1.0, scale)
    offset = most - top / whole
    return y / whole + offset, _dropped(scale, axis), _dropped(offset, axis)


def _by_group(x: Array, smooth: Array | None, ends: Array | None) -> Array | None:
    """Factors of each row: those of the group whose end lies behind it, or the same for all."""
    if smooth is None or ends is None:
        return smooth
    return smooth[np.searchsorted(ends, np.arange(len(x)), "right")]


_MOST: Final = {2: 127, 29: 7}
_BY_MODE: Final = {"pertoken": -1, "pertensor": None, "perchannel": -2}
# Four bits, and factors by groups of rows.
FOUR: Final = 29
_GROUP_FACTORS: Final = {"x": f16(7, 32), "smoothScalesOptional": f16(3, 32, low=0.5),
                         "groupIndexOptional": const([2, 5, 7], "int32")}  # fmt: skip
spec("aclnnDynamicQuantV2", "yOut:dstType scaleOut:float32 offsetOut:float32", **Q,
     dtypes=HALVES, samples=[*(take(**s.kwargs, dstType=INT8) for s in _DYNAMIC),
                             take(**_DYNAMIC[1].kwargs, dstType=FOUR),
                             take(**_GROUP_FACTORS, dstType=INT8)])(
    lambda x, smoothScalesOptional, groupIndexOptional, dstType: asymmetric(
        x, _by_group(x, smoothScalesOptional, groupIndexOptional), _MOST[dstType]))  # fmt: skip


def _either(
    x: Array, smoothScalesOptional: Array | None, groupIndexOptional: Array | None,
    isSymmetrical: bool, dstType: int, quantMode: str,
) -> tuple[Array | None, ...]:  # fmt: skip
    smooth = _by_group(x, smoothScalesOptional, groupIndexOptional)
    if isSymmetrical:
        return (*dynamic(x, smooth, _MOST[dstType], _BY_MODE[quantMode]), None)
    return asymmetric(x, smooth, _MOST[dstType], _BY_MODE[quantMode])


spec("aclnnDynamicQuantV3 aclnnDynamicQuantV4",
     "yOut:dstType scaleOut:float32 offsetOut:float32",
     uncovered="dstTypeMax",
     **Q, dtypes=HALVES, samples=[
         *(take(**s.kwargs, dstType=INT8, isSymmetrical=y, quantMode="pertoken", dstTypeMax=0.0)
           for s in _DYNAMIC for y in (True, False)),
         *(take(**k, dstType=d, isSymmetrical=y, quantMode=m, dstTypeMax=0.0)
           for y in (True, False)
           for k, d, m in ((_DYNAMIC[1].kwargs, FOUR, "pertoken"),
                           (_GROUP_FACTORS, INT8, "pertoken"),
                           (_DYNAMIC[1].kwargs, INT8, "pertensor"))),
         take(**_DYNAMIC[1].kwargs, dstType=INT8, isSymmetrical=True, quantMode="perchannel",
              dstTypeMax=0.0)])(_either)  # fmt: skip
_STEPS: Final[dict[str, Any]] = {"tolerance": "composite", "steps": True,
                                 "specials": False}  # fmt: skip


def _half(x: Array) -> Array:
    return x.astype(np.float16).astype(np.float64)


@spec("aclnnFlatQuant aclnnFlatQuantV3", "out:int4 quantScale:float32",
      uncovered="groupListOptional dstTypeMax groupListType",
      **_STEPS,
      dtypes=("float16",), rule={"norm": 2.0**14, "reason": "both products are rounded to half: "
      "between two halves a sum may go to either"}, source="Sun et al.: FlatQuant, 2024, "
      "equation 4; the golden of op-plugin's test test_npu_kronecker_quant", samples=[
          take(x=f16(3, 4, 16), kroneckerP1=f16(4, 4), kroneckerP2=f16(16, 16), clipRatio=c,
               dstTypeMax=0.0, groupListType=0) for c in (1.0, 0.75)])  # fmt: skip
def flat(x: Array, kroneckerP1: Array, kroneckerP2: Array, clipRatio: float) -> tuple[Array, Array]:
    """P1 x P2 for each row, whose peak times clipRatio is the largest step."""
    y = _half(kroneckerP1 @ _half(x @ kroneckerP2))
    scale = np.abs(y).max((1, 2)) / (7 * clipRatio)
    return y / scale[:, None, None], scale


@spec("aclnnRotateQuant", "yOut:int8 scaleOut:float32",
      ignored=one_value("axis trans"),
      uncovered="alpha roundMode scaleAlg dstTypeMax",
      **_STEPS, dtypes=("float16", "bfloat16"),
      source="op-plugin document npu_rotate_quant",
      samples=[
          take(x=f16(4, 128), rotation=const(np.eye(16)[:, ::-1] * sign, "float16"), alpha=None,
               axis=-1, roundMode="rint", scaleAlg=0, dstTypeMax=0.0, trans=False)
          for sign in (1, np.where(np.arange(16) % 3, 1, -0.5))])  # fmt: skip
def rotated(x: Array, rotation: Array) -> tuple[Array, Array]:
    """Pieces of rows times the rotation; a row's scale is its peak over 127. Rotations that move
    and halve leave nothing to round between the two."""
    size = len(rotation)
    y = (x.reshape(*x.shape[:-1], -1, size) @ rotation).reshape(x.shape)
    scale = np.abs(y).max(-1) / 127
    return y / scale[..., None], scale


@spec("aclnnQuantMax", "y:dstType amax:float32",
      uncovered="roundMode",
      **_STEPS, dtypes=("float32",),
      source="torch_npu's document of npu_quant_max: elements over the scale, and the peak",
      samples=[take(x=t(6, 8, low=-9, high=9), scale=const([s], "float32"), roundMode="rint",
                    dstType=to) for s in (0.5, 0.125) for to in (35, 36)])  # fmt: skip
def with_peak(x: Array, scale: Array) -> tuple[Array, Array]:
    return x / scale, np.abs(x).max()[None]


@spec("aclnnGroupedQuantMax", "y:dstType amax:float32",
      uncovered="roundMode",
      **_STEPS, dtypes=("float32",),
      source="torch_npu's document of npu_quant_max, group by group", samples=[
          take(x=t(6, 8, low=-9, high=9), scale=const([0.5, 2.0], "float32"), roundMode="rint",
               dstType=36, groupList=const(g, "int64")) for g in ([2, 6], [5, 6])])  # fmt: skip
def with_peaks(x: Array, scale: Array, groupList: Array) -> tuple[Array, Array]:
    which = np.repeat(np.arange(len(scale)), np.diff(groupList, prepend=0))
    peaks = [np.abs(x[which == g]).max() for g in range(len(scale))]
    return x / scale[which][:, None], np.array(peaks)


_LARGEST: Final = {2: 127.0, 35: 57344.0, 36: 448.0}


@spec("aclnnDynamicBlockQuant aclnnDynamicBlockQuantV2", "yOut:dstType scaleOut:float32",
      uncovered="roundModeOptional dstTypeMax",
      constant="dstType rowBlockSize colBlockSize",
      **STEPS, dtypes=("float16", "bfloat16"),
      source="op-plugin document npu_dynamic_block_quant", samples=[
          take(x=t(*shape, dtype="float16", low=-9, high=9), minScale=least, dstType=2,
               roundModeOptional="rint", rowBlockSize=1, colBlockSize=128, dstTypeMax=0.0)
          for shape, least in (((3, 200), 0.0), ((2, 4, 128), 0.0), ((3, 130), 0.2),
                               ((1040, 6), 0.0))])  # fmt: skip
def by_blocks(
    x: Array, minScale: float, dstType: int, rowBlockSize: int, colBlockSize: int
) -> tuple[Array, Array]:
    """A block's scale is its peak over the type's largest, and `minScale` at least."""
    rows, columns = x.shape[-2:]
    starts = range(0, rows, rowBlockSize), range(0, columns, colBlockSize)
    y, scale = np.zeros(x.shape), np.zeros((*x.shape[:-2], *(len(s) for s in starts)))
    for i, row in enumerate(starts[0]):
        for j, column in enumerate(starts[1]):
            tile = np.s_[..., row : row + rowBlockSize, column : column + colBlockSize]
            scale[..., i, j] = np.maximum(np.abs(x[tile]).max((-2, -1)) / _LARGEST[dstType],
                                          minScale)  # fmt: skip
            y[tile] = x[tile] / scale[..., i, j][..., None, None]
    return y, scale
