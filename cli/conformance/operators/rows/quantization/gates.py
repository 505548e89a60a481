"""Gated activations whose results are quantized."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .....judge.precision import Array
from ...spec import const, f16, spec, t, take
from .._defaults import FLOAT_STEPS, GATED_STEPS
from .._functions import gelu, swiglu
from .._quantizers import dynamic

_FOUR: Final = 29  # aclDataType


def swiglu_quant(
    x: Array, smoothScalesOptional: Array, activateLeft: bool, groupIndexOptional: Array | None,
    quantModeOptional: str, offsetsOptional: Array | None, groupListType: int = 0, dstType: int = 2,
) -> tuple[Array, Array | None]:  # fmt: skip
    """The second result is what a row is multiplied by: 127 (of four bits 7) over its largest, as
    the operator's documents have it from CANN 8.3 on (8.1 and 8.2 printed its reciprocal, and
    multiplied too). Groups end where groupIndex says, or have as many rows (groupListType 1).
    Static modes multiply by the scales and add offsets."""
    group = np.zeros(len(x), np.int64)
    if groupIndexOptional is not None:
        ends = np.cumsum(groupIndexOptional) if groupListType else groupIndexOptional
        group = np.searchsorted(ends, np.arange(len(x)), "right")
    y = swiglu(x, activateLeft)
    scale, offset = (None if p is None else p.reshape(len(p), -1)[group]
                     for p in (smoothScalesOptional, offsetsOptional))  # fmt: skip
    y = y * scale
    if quantModeOptional == "static":
        return y + offset, None
    factor = (7 if dstType == _FOUR else 127) / np.abs(y).max(-1)
    return y * factor[..., None], factor


_GROUPS: Final = const([4, 9, 12], "int32")
_SWISH: Final = [
    *(take(x=f16(4, 64), smoothScalesOptional=t(1, 32, low=0.5), groupIndexOptional=const(
        [4], "int32"), activateLeft=left, quantModeOptional="dynamic", groupListType=0, dstType=2)
      for left in (True, False)),
    take(x=f16(12, 64), smoothScalesOptional=t(3, 32, low=0.5), groupIndexOptional=_GROUPS,
         activateLeft=True, quantModeOptional="dynamic", groupListType=0, dstType=2),
    *(take(x=f16(12, 64), smoothScalesOptional=t(*n, low=3, high=9), offsetsOptional=t(
        *n, low=-9, high=9), groupIndexOptional=_GROUPS, activateLeft=True,
        quantModeOptional="static", groupListType=0, dstType=2) for n in ((3, 32), (3,))),
]  # fmt: skip
_SWISH_OUTS: Final[dict[str, Any]] = {**GATED_STEPS, "dtypes": ("float16", "bfloat16", "float32")}
spec("aclnnSwiGluQuant", "yOut:int8 scaleOut:float32", **_SWISH_OUTS, samples=_SWISH)(
    lambda x, smoothScalesOptional, activateLeft, groupIndexOptional, quantModeOptional,
    offsetsOptional: swiglu_quant(x, smoothScalesOptional, activateLeft, groupIndexOptional,
                                  quantModeOptional, offsetsOptional))  # fmt: skip
spec("aclnnSwiGluQuantV2", "yOut:dstType scaleOut:float32", **_SWISH_OUTS, samples=[
    *_SWISH,
    take(x=f16(12, 64), smoothScalesOptional=t(3, 32, low=0.5), groupIndexOptional=const(
        [4, 5, 3], "int32"), activateLeft=True, quantModeOptional="dynamic", groupListType=1,
         dstType=2),
    take(x=f16(4, 64), smoothScalesOptional=t(1, 32, low=0.5), groupIndexOptional=None,
         activateLeft=True, quantModeOptional="dynamic", groupListType=0, dstType=_FOUR)])(
    swiglu_quant)  # fmt: skip


def dequant_swiglu_quant(
    x: Array,
    weightScaleOptional: Array,
    activationScaleOptional: Array,
    biasOptional: Array | None,
    quantScaleOptional: Array,
    quantOffsetOptional: Array | None,
    groupIndexOptional: Array | None,
    activateLeft: bool,
    quantModeOptional: str,
    swigluMode: int = 0,
    clampLimit: float = 7.0,
    gluAlpha: float = 1.702,
    gluBias: float = 1.0,
) -> tuple[Array, Array | None]:
    """groupIndex counts rows of groups, which have scales of their own. A bias of integers counts
    products. swigluMode 1 takes neighbours as pairs, 2 halves; both hold their members within the
    limit (GPT-OSS)."""
    group = np.zeros(len(x), np.int64)
    if groupIndexOptional is not None:
        group = np.repeat(np.arange(len(groupIndexOptional)), groupIndexOptional)
    bias = 0 if biasOptional is None else np.atleast_2d(biasOptional)[group]
    whole = biasOptional is not None and biasOptional.dtype.kind == "i"
    y = (x + bias if whole else x) * weightScaleOptional[group] * activationScaleOptional
    y = y if whole else y + bias
    if swigluMode:
        a, b = (y[..., 0::2], y[..., 1::2]) if swigluMode == 1 else np.split(y, 2, -1)
        a, b = np.minimum(a, clampLimit), np.clip(b, -clampLimit, clampLimit)
        y = a / (1 + np.exp(-gluAlpha * a)) * (b + gluBias)
    else:
        y = swiglu(y, activateLeft)
    if quantModeOptional == "static":
        assert quantOffsetOptional is not None
        return y / quantScaleOptional[group] + quantOffsetOptional[group], None
    return dynamic(y, quantScaleOptional[group])


def _dequantised(groups: list[int], **more: Any) -> Any:
    rows, g = sum(groups), len(groups)
    return take(**{
        "x": t(rows, 64, dtype="int32", low=-900, high=900),
        "weightScaleOptional": t(g, 64, low=0.001, high=0.01),
        "activationScaleOptional": t(rows, 1, low=0.5), "biasOptional": None,
        "quantScaleOptional": t(g, 32, low=0.5), "quantOffsetOptional": None,
        "groupIndexOptional": const(groups, "int64"), "activateLeft": True,
        "quantModeOptional": "dynamic", "dstType": 2, "roundModeOptional": "rint",
        "activateDim": -1, "swigluMode": 0, "clampLimit": 7.0, "gluAlpha": 1.702, "gluBias": 1.0,
        **more})  # fmt: skip


_DEQUANTISED: Final = [
    _dequantised([4]), _dequantised([4], activateLeft=False), _dequantised([2, 0, 3]),
    _dequantised([2, 3], biasOptional=t(2, 64, dtype="int32", low=-300, high=300)),
    _dequantised([2, 3], biasOptional=t(2, 64)),
    _dequantised([5], quantModeOptional="static", quantScaleOptional=t(1, 32, low=0.05, high=0.2),
                 quantOffsetOptional=t(1, 32, low=-9, high=9)),
]  # fmt: skip
spec("aclnnDequantSwigluQuant", "yOut:int8 scaleOut:float32", **GATED_STEPS, dtypes=("float32",),
     samples=_DEQUANTISED)(
    lambda x, weightScaleOptional, activationScaleOptional, biasOptional, quantScaleOptional,
    quantOffsetOptional, groupIndexOptional, activateLeft, quantModeOptional:
    dequant_swiglu_quant(
        x, weightScaleOptional, activationScaleOptional, biasOptional, quantScaleOptional,
        quantOffsetOptional, groupIndexOptional, activateLeft, quantModeOptional))  # fmt: skip
spec("aclnnDequantSwigluQuantV2", "yOut:int8 scaleOut:float32",
     uncovered="dstType roundModeOptional activateDim",
     **GATED_STEPS, dtypes=("float32",),
     samples=[*_DEQUANTISED,
              *(_dequantised([2, 3], swigluMode=m, clampLimit=1.5, gluAlpha=1.3, gluBias=0.7)
                for m in (1, 2))])(dequant_swiglu_quant)  # fmt: skip


@spec("aclnnGeluQuant", "y:int8 outScaleOptional:float32",
      uncovered="roundMode dstType",
      **FLOAT_STEPS,
      source="Hendrycks, Gimpel: Gaussian Error Linear Units, 2016; op-plugin test npu_gelu_quant",
      samples=[take(self=t(5, 48), inputScaleOptional=s, inputOffsetOptional=o, approximate=a,
                    quantMode=m, roundMode="rint", dstType=2)
               for s, o, a, m in ((t(48, low=5, high=20), t(48, low=-5, high=5), "none", "static"),
                                  (t(1, low=5, high=20), None, "tanh", "static"),
                                  (None, None, "none", "dynamic"),
                                  (t(48, low=0.5), None, "tanh", "dynamic"))] + [
          # Where the two formulas differ by a step of the result.
          take(self=t(5, 48, low=-4, high=-1.9), inputScaleOptional=const([2500.0], "float32"),
               inputOffsetOptional=None, approximate=a, quantMode="static", roundMode="rint",
               dstType=2) for a in ("none", "tanh")])  # fmt: skip
def gelu_steps(
    self: Array, inputScaleOptional: Array | None, inputOffsetOptional: Array | None,
    approximate: str, quantMode: str,
) -> tuple[Array, Array | None]:  # fmt: skip
    y = gelu(self, approximate)
    if quantMode == "dynamic":
        return dynamic(y, inputScaleOptional)
    return y * inputScaleOptional + (
        0 if inputOffsetOptional is None else inputOffsetOptional
    ), None


@spec("aclnnSwigluGroupQuant", "yOut:dstType yScaleOut:float32 yOriginOut:x",
      uncovered="scaleOptional quantMode blockSize roundScale clampLimit outputOrigin",
      tolerance="composite", steps=True, specials=False, dtypes=("bfloat16",),
      source="Shazeer: GLU Variants Improve Transformer, 2020; op-plugin document "
      "npu_swiglu_group_quant", samples=[
          take(x=t(6, 16, dtype="bfloat16"), weightOptional=t(6, 1, low=0.2),
               groupIndexOptional=const(g, "int64"), scaleOptional=None, dstType=36, quantMode=3,
               blockSize=0, roundScale=False, clampLimit=0.0, dstTypeMax=most, outputOrigin=True)
          for g, most in (([2, 4], 0.0), ([5, 1], 0.0), ([3, 3], 240.0))])  # fmt: skip
def gated_groups(
    x: Array, weightOptional: Array, groupIndexOptional: Array, dstTypeMax: float
) -> tuple[Array, Array, Array]:
    """Rows of a group share the scale of their peak, which becomes the type's largest number or
    the one that is named."""
    y = swiglu(x, True) * weightOptional
    which = np.repeat(np.arange(len(groupIndexOptional)), groupIndexOptional)
    peaks = np.array([np.abs(y[which == g]).max() for g in range(len(groupIndexOptional))])
    scale = peaks / (dstTypeMax or 448)
    return y / scale[which][:, None], scale, y
