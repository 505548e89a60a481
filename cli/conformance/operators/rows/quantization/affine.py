"""Quantization with given scales and offsets, and back."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .....judge.precision import Array
from ...spec import const, f16, i8, spec, t, take
from .._quantizers import INT8
from .dynamic import FOUR, HALVES, Q

_STEPPED: Final = [
    take(x=f16(4, 32, low=-9, high=9), scale=f16(n, low=2, high=9), offset=o, sqrtMode=s,
         roundMode=m, dstType=INT8)
    for n, o, s, m in ((32, f16(32), False, "round"), (1, None, False, "round"),
                       (32, None, True, "round"), (32, f16(32), False, "floor"),
                       (32, f16(32), False, "ceil"), (32, f16(32), False, "trunc"))]  # fmt: skip
_ROUND: Final = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}


def ascend_quant(
    x: Array,
    scale: Array,
    offset: Array | None,
    sqrtMode: bool,
    roundMode: str,
    axis: int = -1,
) -> Array:
    """Scale and offset lie along the last dimension, or the one before by `axis`."""
    shape = [1] * x.ndim
    shape[axis] = -1
    scale = scale.reshape(shape)
    steps = x * (scale * scale if sqrtMode else scale)
    steps = steps if offset is None else steps + offset.reshape(shape)
    return steps if roundMode == "round" else _ROUND[roundMode](steps)


_TIES: Final = take(x=const((np.arange(-16, 16) / 4).tolist(), "float16"),
                    scale=const([2.0], "float16"), offset=const([1.0], "float16"), sqrtMode=False,
                    roundMode="round", dstType=INT8)  # fmt: skip
_ASCEND: Final[dict[str, Any]] = {**Q, "dtypes": (*HALVES, "float32")}
_QUARTERS: Final = take(x=f16(4, 32, low=-3, high=3), scale=f16(32, low=1, high=3), offset=None,
                       sqrtMode=False, roundMode="round", dstType=FOUR)  # fmt: skip
spec("aclnnAscendQuant", "y:dstType", **_ASCEND, samples=[*_STEPPED, _TIES, _QUARTERS])(
    lambda x, scale, offset, sqrtMode, roundMode: ascend_quant(x, scale, offset, sqrtMode,
                                                               roundMode))  # fmt: skip
spec("aclnnAscendQuantV3", "y:dstType", **_ASCEND, samples=[
    *(take(**s.kwargs, axis=-1) for s in (*_STEPPED, _TIES, _QUARTERS)),
    take(x=f16(3, 4, 32, low=-9, high=9), scale=f16(4, low=2, high=9), offset=f16(4),
         sqrtMode=False, roundMode="round", dstType=INT8, axis=-2)])(ascend_quant)  # fmt: skip


@spec("aclnnAscendAntiQuant", "y:dstType", **{**Q, "steps": False}, samples=[
    take(x=i8(4, 32, low=-128, high=127), scale=t(n, low=0.1, high=1), offset=o, dstType=d,
         sqrtMode=s) for n, o, s, d in ((32, t(32), False, 1), (1, t(1), False, 1),
                                        (32, None, True, 1), (32, t(32), False, 27))],
    dtypes=("float32",))  # fmt: skip
def anti_quant(x: Array, scale: Array, offset: Array | None, sqrtMode: bool) -> Array:
    return (x + (0 if offset is None else offset)) * (scale * scale if sqrtMode else scale)


@spec("aclnnQuantize", "out:dtype", **Q, dtypes=("float32",), samples=[
    take(x=t(4, 32, low=-9, high=9), scales=t(n, low=0.1, high=1), zeroPoints=z, dtype=d, axis=a)
    for n, z, a, d in ((1, const([3], "int8"), 1, INT8), (32, i8(32), 1, INT8),
                       (4, i8(4), 0, INT8), (32, t(32, dtype="uint8", high=90), 1, 4),
                       (32, t(32, dtype="int32", low=-900, high=900), 1, 3))],
    )  # fmt: skip
def quantize(x: Array, scales: Array, zeroPoints: Array | None, axis: int) -> Array:
    shape = [1] * x.ndim
    if scales.size > 1:
        shape[axis] = scales.size
    zero = 0 if zeroPoints is None else zeroPoints.reshape(shape)
    return x / scales.reshape(shape) + zero


@spec("aclnnDequantBias", "out:outputDtype", **{**Q, "steps": False}, samples=[
    *(take(x=t(5, 16, dtype="int32", low=-900, high=900), weightScale=t(16, low=0.001, high=0.01),
         activateScaleOptional=a, biasOptional=b, outputDtype=1)
    for a, b in ((None, None), (t(5, low=0.5), None), (t(5, low=0.5), t(16)),
                 (t(5, low=0.5), t(16, dtype="int32", low=-900, high=900)))),
    take(x=t(5, 16, dtype="int32", low=-900, high=900), weightScale=t(
        16, dtype="bfloat16", low=0.001, high=0.01), activateScaleOptional=None, biasOptional=None,
        outputDtype=27)],
    dtypes=("float32",))  # fmt: skip
def dequant_bias(
    x: Array, weightScale: Array, activateScaleOptional: Array | None, biasOptional: Array | None
) -> Array:  # fmt: skip
    # A bias of integers counts products, one of floats results.
    whole = biasOptional is not None and biasOptional.dtype.kind == "i"
    y = (x + biasOptional if whole else x) * weightScale
    y = y if activateScaleOptional is None else y * activateScaleOptional[:, None]
    return y if biasOptional is None or whole else y + biasOptional


@spec("aclnnGroupQuant", "y:dstType", **Q, dtypes=("float32",), samples=[
    take(x=t(7, 16, low=-n, high=n), scale=t(3, 16, low=2, high=9),
         groupIndex=const([2, 5, 7], "int32"), offsetOptional=o, dstType=d)
    for n, o, d in ((9, None, INT8), (9, const([2.0], "float32"), INT8),
                    (1, None, FOUR))])  # fmt: skip
def group_quant(x: Array, scale: Array, groupIndex: Array, offsetOptional: Array | None) -> Array:
    which = np.searchsorted(groupIndex, np.arange(len(x)), "right")
    return x * scale[which] + (0 if offsetOptional is None else offsetOptional)


def _fake(x: Array, scale: Array, zero: Array, low: int, high: int) -> tuple[Array, Array]:
    steps = np.rint(x / scale) + zero
    inside = (steps >= low) & (steps <= high)
    return (np.clip(steps, low, high) - zero) * scale, inside


# Dividing by a scale and multiplying by its inverse part at ties: powers of two are exact either
# way, and these values lie far from the ties of the scales that are none.
_OFF_TIES: Final = const([[0.5, 1.7, -3.3, 8.9, -0.04], [2.2, -6.1, 0.9, -1.3, 4.9],
                          [-7.7, 5.0, 3.1, -2.5, 0.33]], "float32")  # fmt: skip
_TORCH: Final = "torch 2.13, fake_quantize_per_tensor_affine and _per_channel_affine"


@spec("aclnnFakeQuantPerTensorAffineCachemask", "out:self mask:bool",
      source=_TORCH, tolerance="composite", dtypes=("float32",), samples=[
          take(self=t(4, 33, low=-9, high=9), scale=const([0.125], "float32"),
               zeroPoint=const([3], "int32"), fakeQuantEnabled=on, quantMin=-32, quantMax=31)
          for on in (1.0, 0.0)] + [
          take(self=_OFF_TIES, scale=const([0.13], "float32"), zeroPoint=const([3], "int32"),
               fakeQuantEnabled=1.0, quantMin=-32, quantMax=31),
          take(self=const([[0.5, 1.5, 2.5, -0.5, -1.5, 40.0, -40.0]], "float32"),
               scale=const([1.0], "float32"), zeroPoint=const([3], "int32"), fakeQuantEnabled=1.0,
               quantMin=-32, quantMax=31)],
      )  # fmt: skip
def fake_quant_tensor(
    self: Array, scale: Array, zeroPoint: Array, fakeQuantEnabled: float, quantMin: int,
    quantMax: int,
) -> tuple[Array, Array]:  # fmt: skip
    if not fakeQuantEnabled:
        return self, np.ones(self.shape, bool)
    return _fake(self, scale, zeroPoint, quantMin, quantMax)


@spec("aclnnFakeQuantPerChannelAffineCachemask", "out:self mask:bool",
      source=_TORCH, tolerance="composite", dtypes=("float32",), samples=[
          take(self=t(4, 33, low=-9, high=9), scale=const([0.125, 0.25, 0.5, 0.0625], "float32"),
               zeroPoint=const([3, 0, -1, 2], "int32"), axis=0, quantMin=-32, quantMax=31),
          take(self=_OFF_TIES, scale=const([0.13, 0.17, 0.3], "float32"),
               zeroPoint=const([3, 0, -1], "int32"), axis=0, quantMin=-32, quantMax=31)],
      )  # fmt: skip
def fake_quant_channel(
    self: Array, scale: Array, zeroPoint: Array, axis: int, quantMin: int, quantMax: int
) -> tuple[Array, Array]:  # fmt: skip
    shape = [1] * self.ndim
    shape[axis] = scale.size
    return _fake(self, scale.reshape(shape), zeroPoint.reshape(shape), quantMin, quantMax)
