"""Quantisation after a turn of rows, by the peak of a tensor, of what norms and gates leave."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import given, spec, t, take

_STEPS: Final[dict[str, Any]] = {"family": "quantisation", "tolerance": "composite", "steps": True,
                                 "specials": False}  # fmt: skip


def _h(*shape: int, **more: Any) -> Arg:
    return t(*shape, dtype="float16", **more)


def _half(x: Array) -> Array:
    return x.astype(np.float16).astype(np.float64)


@spec("aclnnFlatQuant aclnnFlatQuantV3", "out:int4 quantScale:float32", **_STEPS,
      dtypes=("float16",), rule={"norm": 2.0**14, "reason": "both products are rounded to half: "
      "between two halves a sum may go to either"}, source="Sun et al.: FlatQuant, 2024, "
      "equation 4; the golden of op-plugin's test test_npu_kronecker_quant", samples=[
          take(x=_h(3, 4, 16), kroneckerP1=_h(4, 4), kroneckerP2=_h(16, 16), clipRatio=c,
               dstTypeMax=0.0, groupListType=0) for c in (1.0, 0.75)])  # fmt: skip
def flat(x: Array, kroneckerP1: Array, kroneckerP2: Array, clipRatio: float) -> tuple[Array, Array]:
    """P1 x P2 for each row, whose peak times clipRatio is the largest step."""
    y = _half(kroneckerP1 @ _half(x @ kroneckerP2))
    scale = np.abs(y).max((1, 2)) / (7 * clipRatio)
    return y / scale[:, None, None], scale


@spec("aclnnRotateQuant", "yOut:int8 scaleOut:float32", **_STEPS, dtypes=("float16", "bfloat16"),
      source="op-plugin document npu_rotate_quant",
      samples=[
          take(x=_h(4, 128), rotation=given(np.eye(16)[:, ::-1] * sign, "float16"), alpha=None,
               axis=-1, roundMode="rint", scaleAlg=0, dstTypeMax=0.0, trans=False)
          for sign in (1, np.where(np.arange(16) % 3, 1, -0.5))])  # fmt: skip
def rotated(x: Array, rotation: Array) -> tuple[Array, Array]:
    """Pieces of rows times the rotation; a row's scale is its peak over 127. Rotations that move
    and halve leave nothing to round between the two."""
    size = len(rotation)
    y = (x.reshape(*x.shape[:-1], -1, size) @ rotation).reshape(x.shape)
    scale = np.abs(y).max(-1) / 127
    return y / scale[..., None], scale


@spec("aclnnQuantMax", "y:dstType amax:float32", **_STEPS, dtypes=("float32",),
      source="torch_npu's document of npu_quant_max: elements over the scale, and the peak",
      samples=[take(x=t(6, 8, low=-9, high=9), scale=given([s], "float32"), roundMode="rint",
                    dstType=to) for s in (0.5, 0.125) for to in (35, 36)])  # fmt: skip
def with_peak(x: Array, scale: Array) -> tuple[Array, Array]:
    return x / scale, np.abs(x).max()[None]


@spec("aclnnGroupedQuantMax", "y:dstType amax:float32", **_STEPS, dtypes=("float32",),
      source="torch_npu's document of npu_quant_max, group by group", samples=[
          take(x=t(6, 8, low=-9, high=9), scale=given([0.5, 2.0], "float32"), roundMode="rint",
               dstType=36, groupList=given(g, "int64")) for g in ([2, 6], [5, 6])])  # fmt: skip
def with_peaks(x: Array, scale: Array, groupList: Array) -> tuple[Array, Array]:
    which = np.repeat(np.arange(len(scale)), np.diff(groupList, prepend=0))
    peaks = [np.abs(x[which == g]).max() for g in range(len(scale))]
    return x / scale[which][:, None], np.array(peaks)


@spec("aclnnInplaceQuantScatterV2", "selfRef:selfRef", family="cache", tolerance="gradient",
      steps=True, dtypes=("int8",), source="op-plugin document npu_quant_scatter and its test",
      samples=[
          take(selfRef=t(2, 9, 32, dtype="int8", low=-8, high=8), indices=given([5, 0], "int32"),
               updates=t(2, 3, 32, dtype="bfloat16"), quantScales=t(
                   1, 1, 32, dtype="bfloat16", low=0.05, high=0.2), quantZeroPoints=None, axis=-2,
               quantAxis=-1, reduction=1, roundMode="rint")])  # fmt: skip
def scattered_steps(selfRef: Array, indices: Array, updates: Array, quantScales: Array) -> Array:
    """Batch b's rows, divided by their scales, lie from indices[b] on."""
    out = selfRef.astype(np.float64)
    for b, row in enumerate(indices):
        out[b, row : row + updates.shape[1]] = updates[b] / quantScales[0]
    return out
