"""Quantisation, its inverse, and products of quantised matrices.

Results in int8 are judged before they are rounded: a step is right where it is the nearest one.
dstType 2 is int8 (aclDataType).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import given, spec, t, take

_PAGES: Final = "op-plugin documents npu_quantize, npu_dynamic_quant, npu_anti_quant; equal logic"
_Q: Final[dict[str, Any]] = {"family": "quantisation", "source": _PAGES, "tolerance": "composite",
                             "steps": True}  # fmt: skip
_HALVES: Final = ("float16", "bfloat16")
_INT8: Final = 2


def _h(*shape: int, **more: Any) -> Arg:
    return t(*shape, dtype="float16", **more)


def _int8(*shape: int, low: int = -8, high: int = 8) -> Arg:
    return t(*shape, dtype="int8", low=low, high=high)


def dynamic(
    x: Array, smooth: Array | None = None, most: int = 127, axis: int | None = -1
) -> tuple[Array, Array]:
    """(steps, scale): a row's largest magnitude becomes `most`; a row of zeros divides by 1.

    `axis` None: of the whole tensor.
    """
    y = x if smooth is None else x * smooth
    scale = np.abs(y).max(axis, keepdims=True) / most
    return y / np.where(scale == 0, 1.0, scale), _dropped(scale, axis)


def _dropped(scale: Array, axis: int | None) -> Array:
    return scale.reshape(-1) if axis is None else scale.squeeze(axis)


_DYNAMIC: Final = [take(x=_h(4, 32)), take(x=_h(2, 3, 64), smoothScalesOptional=_h(64)),
                   take(x=_h(5, 1024)), take(x=_h(3, 2056))]  # fmt: skip
spec("aclnnDynamicQuant", "yOut:int8 scaleOut:float32", samples=_DYNAMIC, dtypes=_HALVES, **_Q)(
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
_FOUR: Final = 29
_GROUP_FACTORS: Final = {"x": _h(7, 32), "smoothScalesOptional": _h(3, 32, low=0.5),
                         "groupIndexOptional": given([2, 5, 7], "int32")}  # fmt: skip
spec("aclnnDynamicQuantV2", "yOut:dstType scaleOut:float32 offsetOut:float32", **_Q,
     dtypes=_HALVES, samples=[*(take(**s.kwargs, dstType=_INT8) for s in _DYNAMIC),
                              take(**_DYNAMIC[1].kwargs, dstType=_FOUR),
                              take(**_GROUP_FACTORS, dstType=_INT8)])(
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
     "yOut:dstType scaleOut:float32 offsetOut:float32", **_Q, dtypes=_HALVES, samples=[
         *(take(**s.kwargs, dstType=_INT8, isSymmetrical=y, quantMode="pertoken", dstTypeMax=0.0)
           for s in _DYNAMIC for y in (True, False)),
         *(take(**k, dstType=d, isSymmetrical=y, quantMode=m, dstTypeMax=0.0)
           for y in (True, False)
           for k, d, m in ((_DYNAMIC[1].kwargs, _FOUR, "pertoken"),
                           (_GROUP_FACTORS, _INT8, "pertoken"),
                           (_DYNAMIC[1].kwargs, _INT8, "pertensor"))),
         take(**_DYNAMIC[1].kwargs, dstType=_INT8, isSymmetrical=True, quantMode="perchannel",
              dstTypeMax=0.0)])(_either)  # fmt: skip


_STEPPED: Final = [
    take(x=_h(4, 32, low=-9, high=9), scale=_h(n, low=2, high=9), offset=o, sqrtMode=s,
         roundMode=m, dstType=_INT8)
    for n, o, s, m in ((32, _h(32), False, "round"), (1, None, False, "round"),
                       (32, None, True, "round"), (32, _h(32), False, "floor"),
                       (32, _h(32), False, "ceil"), (32, _h(32), False, "trunc"))]  # fmt: skip


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


_TIES: Final = take(x=given((np.arange(-16, 16) / 4).tolist(), "float16"),
                    scale=given([2.0], "float16"), offset=given([1.0], "float16"), sqrtMode=False,
                    roundMode="round", dstType=_INT8)  # fmt: skip
_ASCEND: Final[dict[str, Any]] = {**_Q, "dtypes": (*_HALVES, "float32")}
_QUARTERS: Final = take(x=_h(4, 32, low=-3, high=3), scale=_h(32, low=1, high=3), offset=None,
                       sqrtMode=False, roundMode="round", dstType=_FOUR)  # fmt: skip
spec("aclnnAscendQuant", "y:dstType", **_ASCEND, samples=[*_STEPPED, _TIES, _QUARTERS])(
    lambda x, scale, offset, sqrtMode, roundMode: ascend_quant(x, scale, offset, sqrtMode,
                                                               roundMode))  # fmt: skip
spec("aclnnAscendQuantV3", "y:dstType", **_ASCEND, samples=[
    *(take(**s.kwargs, axis=-1) for s in (*_STEPPED, _TIES, _QUARTERS)),
    take(x=_h(3, 4, 32, low=-9, high=9), scale=_h(4, low=2, high=9), offset=_h(4),
         sqrtMode=False, roundMode="round", dstType=_INT8, axis=-2)])(ascend_quant)  # fmt: skip
_ROUND: Final = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}


@spec("aclnnAscendAntiQuant", "y:dstType", **{**_Q, "steps": False}, samples=[
    take(x=_int8(4, 32, low=-128, high=127), scale=t(n, low=0.1, high=1), offset=o, dstType=d,
         sqrtMode=s) for n, o, s, d in ((32, t(32), False, 1), (1, t(1), False, 1),
                                        (32, None, True, 1), (32, t(32), False, 27))],
    dtypes=("float32",))  # fmt: skip
def anti_quant(x: Array, scale: Array, offset: Array | None, sqrtMode: bool) -> Array:
    return (x + (0 if offset is None else offset)) * (scale * scale if sqrtMode else scale)


@spec("aclnnQuantize", "out:dtype", **_Q, dtypes=("float32",), samples=[
    take(x=t(4, 32, low=-9, high=9), scales=t(n, low=0.1, high=1), zeroPoints=z, dtype=d, axis=a)
    for n, z, a, d in ((1, given([3], "int8"), 1, _INT8), (32, _int8(32), 1, _INT8),
                       (4, _int8(4), 0, _INT8), (32, t(32, dtype="uint8", high=90), 1, 4),
                       (32, t(32, dtype="int32", low=-900, high=900), 1, 3))],
    )  # fmt: skip
def quantize(x: Array, scales: Array, zeroPoints: Array | None, axis: int) -> Array:
    shape = [1] * x.ndim
    if scales.size > 1:
        shape[axis] = scales.size
    zero = 0 if zeroPoints is None else zeroPoints.reshape(shape)
    return x / scales.reshape(shape) + zero


@spec("aclnnDequantBias", "out:outputDtype", **{**_Q, "steps": False}, samples=[
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


@spec("aclnnGroupQuant", "y:dstType", **_Q, dtypes=("float32",), samples=[
    take(x=t(7, 16, low=-n, high=n), scale=t(3, 16, low=2, high=9),
         groupIndex=given([2, 5, 7], "int32"), offsetOptional=o, dstType=d)
    for n, o, d in ((9, None, _INT8), (9, given([2.0], "float32"), _INT8),
                    (1, None, _FOUR))])  # fmt: skip
def group_quant(x: Array, scale: Array, groupIndex: Array, offsetOptional: Array | None) -> Array:
    which = np.searchsorted(groupIndex, np.arange(len(x)), "right")
    return x * scale[which] + (0 if offsetOptional is None else offsetOptional)


def _fake(x: Array, scale: Array, zero: Array, low: int, high: int) -> tuple[Array, Array]:
    steps = np.rint(x / scale) + zero
    inside = (steps >= low) & (steps <= high)
    return (np.clip(steps, low, high) - zero) * scale, inside


# Dividing by a scale and multiplying by its inverse part at ties: powers of two are exact either
# way, and these values lie far from the ties of the scales that are none.
_OFF_TIES: Final = given([[0.5, 1.7, -3.3, 8.9, -0.04], [2.2, -6.1, 0.9, -1.3, 4.9],
                          [-7.7, 5.0, 3.1, -2.5, 0.33]], "float32")  # fmt: skip
_TORCH: Final = "torch 2.13, fake_quantize_per_tensor_affine and _per_channel_affine"


@spec("aclnnFakeQuantPerTensorAffineCachemask", "out:self mask:bool", family="quantisation",
      source=_TORCH, tolerance="composite", dtypes=("float32",), samples=[
          take(self=t(4, 33, low=-9, high=9), scale=given([0.125], "float32"),
               zeroPoint=given([3], "int32"), fakeQuantEnabled=on, quantMin=-32, quantMax=31)
          for on in (1.0, 0.0)] + [
          take(self=_OFF_TIES, scale=given([0.13], "float32"), zeroPoint=given([3], "int32"),
               fakeQuantEnabled=1.0, quantMin=-32, quantMax=31),
          take(self=given([[0.5, 1.5, 2.5, -0.5, -1.5, 40.0, -40.0]], "float32"),
               scale=given([1.0], "float32"), zeroPoint=given([3], "int32"), fakeQuantEnabled=1.0,
               quantMin=-32, quantMax=31)],
      )  # fmt: skip
def fake_quant_tensor(
    self: Array, scale: Array, zeroPoint: Array, fakeQuantEnabled: float, quantMin: int,
    quantMax: int,
) -> tuple[Array, Array]:  # fmt: skip
    if not fakeQuantEnabled:
        return self, np.ones(self.shape, bool)
    return _fake(self, scale, zeroPoint, quantMin, quantMax)


@spec("aclnnFakeQuantPerChannelAffineCachemask", "out:self mask:bool", family="quantisation",
      source=_TORCH, tolerance="composite", dtypes=("float32",), samples=[
          take(self=t(4, 33, low=-9, high=9), scale=given([0.125, 0.25, 0.5, 0.0625], "float32"),
               zeroPoint=given([3, 0, -1, 2], "int32"), axis=0, quantMin=-32, quantMax=31),
          take(self=_OFF_TIES, scale=given([0.13, 0.17, 0.3], "float32"),
               zeroPoint=given([3, 0, -1], "int32"), axis=0, quantMin=-32, quantMax=31)],
      )  # fmt: skip
def fake_quant_channel(
    self: Array, scale: Array, zeroPoint: Array, axis: int, quantMin: int, quantMax: int
) -> tuple[Array, Array]:  # fmt: skip
    shape = [1] * self.ndim
    shape[axis] = scale.size
    return _fake(self, scale.reshape(shape), zeroPoint.reshape(shape), quantMin, quantMax)


_MATMUL: Final[dict[str, Any]] = {
    "family": "quant_matmul", "tolerance": "composite", "steps": True,
    "source": "op-plugin documents npu_quant_matmul, npu_weight_quant_batchmatmul",
}  # fmt: skip


def _product(x1: Array, x2: Array, left: bool, right: bool) -> Array:
    a = x1.astype(np.float64).swapaxes(-1, -2) if left else x1.astype(np.float64)
    b = x2.astype(np.float64).swapaxes(-1, -2) if right else x2.astype(np.float64)
    return a @ b


def _matmul(out: str, **more: Any) -> list[Any]:
    """int8 products with a scale for each column, plain and transposed weight."""
    products = []
    for trans in (False, True):
        weight = _int8(9, 33) if trans else _int8(33, 9)
        for bias in (None, t(9, dtype="int32", low=-50, high=50)):
            products.append(take(x1=_int8(5, 33), x2=weight, bias=bias, transposeX1=False,
                              transposeX2=trans, **more))  # fmt: skip
    return products


def quant_matmul(
    x1: Array,
    x2: Array,
    bias: Array | None,
    transposeX1: bool,
    transposeX2: bool,
    scale: Array | float = 1.0,
    offset: Array | None = None,
    pertokenScaleOptional: Array | None = None,
) -> Array:
    """A bias of integers counts products, one of floats results."""
    acc = _product(x1, x2, transposeX1, transposeX2)
    whole = bias is not None and bias.dtype.kind == "i"
    y = (acc + bias if whole else acc) * scale
    y = y if pertokenScaleOptional is None else y * pertokenScaleOptional[:, None]
    y = y if bias is None or whole else y + bias
    return y if offset is None else y + offset


_SCALE: Final = t(9, low=0.005, high=0.02)
# Scales whose product with sums of integers no float rounds, and what is added to steps of int8.
_EVEN: Final = given([2.0 ** -(3 + n % 3) for n in range(9)], "float32")
_STEPS_ADDED: Final = given([3.0 * n - 11 for n in range(9)], "float32")
_STEPPED_OUT: Final[dict[str, Any]] = {
    "x1": _int8(5, 33), "x2": _int8(33, 9), "bias": t(9, dtype="int32", low=-50, high=50),
    "transposeX1": False, "transposeX2": False, "outDtype": _INT8,
}  # fmt: skip
spec("aclnnQuantMatmulV4", "out:outDtype|float16", **{**_MATMUL, "dtypes": ("float32",)},
     samples=[*_matmul("float16", scale=_SCALE, pertokenScaleOptional=t(5, low=0.5, high=2)),
              take(x1=_int8(130, 33), x2=_int8(33, 130), bias=None, transposeX1=False,
                   transposeX2=False, scale=t(130, low=0.005, high=0.02),
                   pertokenScaleOptional=t(130, low=0.5, high=2)),
              take(x1=_int8(5, 33), x2=_int8(33, 9), bias=t(9), transposeX1=False,
                   transposeX2=False, scale=_SCALE, pertokenScaleOptional=t(5, low=0.5, high=2)),
              take(x1=_int8(33, 5), x2=_int8(33, 9), bias=None, transposeX1=True,
                   transposeX2=False, scale=_SCALE, pertokenScaleOptional=None),
              take(x1=_int8(2, 5, 33), x2=_int8(2, 33, 9), bias=t(2, 1, 9, dtype="int32", low=-50,
                   high=50), transposeX1=False, transposeX2=False, scale=_SCALE,
                   pertokenScaleOptional=None),
              take(**_STEPPED_OUT, scale=_EVEN, offset=_STEPS_ADDED, pertokenScaleOptional=None)])(
    quant_matmul)  # fmt: skip


@spec("aclnnQuantMatmulV5 aclnnQuantMatmulWeightNz", "out:outDtype|float16",
      **{**_MATMUL, "dtypes": ("float32",), "source": "operator document aclnnQuantMatmulV5"},
      formats={"aclnnQuantMatmulWeightNz x2": "FRACTAL_NZ"},
      samples=[
          *(take(**s.kwargs, x1Scale=t(5, low=0.5, high=2), x2Scale=_SCALE, groupSize=0)
            for s in _matmul("float16")),
          take(**_STEPPED_OUT, x1Scale=None, x2Scale=_EVEN, x2Offset=_STEPS_ADDED, groupSize=0),
          take(**{**_STEPPED_OUT, "bias": t(9), "outDtype": 27}, x1Scale=None, x2Scale=_SCALE,
               groupSize=0)])  # fmt: skip
def quant_matmul_v5(
    x1: Array,
    x2: Array,
    x1Scale: Array | None,
    x2Scale: Array,
    bias: Array | None,
    transposeX1: bool,
    transposeX2: bool,
    x2Offset: Array | None = None,
) -> Array:
    """Without a scale for each row an offset is added to steps of int8."""
    return quant_matmul(x1, x2, bias, transposeX1, transposeX2, x2Scale, x2Offset, x1Scale)


_WEIGHTS: Final[list[Any]] = [
    take(x=_h(5, 64), weight=_int8(64, 32), antiquantScale=_h(*n, low=0.01, high=0.1),
         antiquantOffsetOptional=o, biasOptional=b, antiquantGroupSize=g, innerPrecise=0)
    for n, o, b, g in (((32,), None, None, 0), ((32,), _h(32), _h(32), 0),
                       ((2, 32), _h(2, 32), None, 32), ((1,), None, None, 0))]  # fmt: skip
# To steps of int8, which the operator with tiles of weights does not make.
_STEPPED_WEIGHTS: Final[list[Any]] = [
    take(x=given((np.arange(320).reshape(5, 64) * 7 % 9 / 4 - 1).tolist(), "float16"),
         weight=_int8(64, 32), antiquantScale=given([0.25] * 32, "float16"),
         antiquantOffsetOptional=None, biasOptional=None, antiquantGroupSize=0, innerPrecise=0,
         outDtype=_INT8, quantScaleOptional=given(
             [0x3D800000 + (n % 3 << 23) for n in range(32)], "uint64"),
         quantOffsetOptional=shift)
    for shift in (None, given([n - 9.0 for n in range(32)], "float32"))]  # fmt: skip
_WEIGHTED: Final[dict[str, Any]] = {**_MATMUL, "dtypes": ("float16",), "tolerance": "gradient"}


@spec("aclnnWeightQuantBatchMatmulV2 aclnnWeightQuantBatchMatmulV3", "y:outDtype|x", **_WEIGHTED,
      samples=[*_WEIGHTS, *_STEPPED_WEIGHTS])  # fmt: skip
def weight_quant(
    x: Array,
    weight: Array,
    antiquantScale: Array,
    antiquantOffsetOptional: Array | None,
    biasOptional: Array | None,
    antiquantGroupSize: int,
    quantScaleOptional: Array | None = None,
    quantOffsetOptional: Array | None = None,
) -> Array:
    """Steps of int8 where a scale of the result comes along, packed in the low 32 bits."""
    scale, offset = antiquantScale, antiquantOffsetOptional
    if antiquantGroupSize:
        scale = np.repeat(scale, antiquantGroupSize, 0)
        offset = None if offset is None else np.repeat(offset, antiquantGroupSize, 0)
    w = (weight + (0 if offset is None else offset)) * scale
    y = x @ w
    y = y if biasOptional is None else y + biasOptional
    if quantScaleOptional is not None:
        y = y * quantScaleOptional.astype(np.uint32).view(np.float32)
    return y if quantOffsetOptional is None else y + quantOffsetOptional


@spec("aclnnWeightQuantBatchMatmulNz", "y:x", formats={"weight": "FRACTAL_NZ"}, **_WEIGHTED,
      samples=_WEIGHTS)  # fmt: skip
def weight_quant_tiles(
    x: Array, weight: Array, antiquantScale: Array, antiquantOffsetOptional: Array | None,
    biasOptional: Array | None, antiquantGroupSize: int,
) -> Array:  # fmt: skip
    return weight_quant(x, weight, antiquantScale, antiquantOffsetOptional, biasOptional,
                        antiquantGroupSize)  # fmt: skip


@spec("aclnnTransQuantParamV2 aclnnTransQuantParamV3", "out:uint64",
      family="quantisation", tolerance="exact",
      source="op-plugin document npu_trans_quant_param: float32 bits with the low 13 cleared",
      samples=[take(scale=t(9, low=0.01, high=2), roundMode=0),
               take(scale=t(5, low=0.01, high=2), roundMode=0,
                    offset=given([200.0, -200.0, -1.0, 300.0, -300.0], "float32"))],
      dtypes=("float32",),
      specials=False,
      )  # fmt: skip
def trans_quant_param(scale: Array, offset: Array | None = None) -> Array:
    """The offset, rounded and held in [-256, 255], in 9 bits from bit 37."""
    bits = scale.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
    word = bits.astype(np.uint64) | np.uint64(1 << 46)
    if offset is None:
        return word
    nine = np.clip(np.rint(offset), -256, 255).astype(np.int64) & 0x1FF
    return word | nine.astype(np.uint64) << np.uint64(37)
