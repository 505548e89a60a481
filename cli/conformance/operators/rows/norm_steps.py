"""Norms that end in small integers, blocks with a scale of their own, elements that fall out."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array, numpy_dtype
from .. import drawn
from ..spec import OWN_GROUP, given, spec, t, take
from .quantisation import dynamic

_FLOATS: Final = ("float16", "bfloat16", "float32")
_STEPS: Final[dict[str, Any]] = {"tolerance": "gradient", "steps": True, "specials": False}


def _layer_norm(x: Array, gamma: Array, beta: Array, epsilon: float) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + epsilon) * gamma + beta


def added_layer_norm(
    x1: Array, x2: Array, gamma: Array, beta: Array, biasOptional: Array | None,
    scales1Optional: Array | None, scales2Optional: Array | None,
    zeroPoints1Optional: Array | None, zeroPoints2Optional: Array | None, quantMode: str,
    epsilon: float, divMode: bool,
) -> tuple[Array | None, ...]:  # fmt: skip
    """(steps, steps, sum, norm, scale, scale); "dynamic" takes a row's scale from its peak."""
    x = x1 + x2 + (0 if biasOptional is None else biasOptional)
    y = _layer_norm(x, gamma, beta, epsilon)
    pairs: list[tuple[Array | None, Array | None]] = []
    for scale, zero, first in ((scales1Optional, zeroPoints1Optional, True),
                               (scales2Optional, zeroPoints2Optional, False)):  # fmt: skip
        if quantMode == "dynamic":
            pairs.append(dynamic(y, scale) if first or scale is not None else (None, None))
        elif scale is None:
            pairs.append((None, None))
        else:
            steps = y / scale if divMode else y * scale
            pairs.append((steps + (0 if zero is None else zero), None))
    return pairs[0][0], pairs[1][0], x, y, pairs[0][1], pairs[1][1]


def _norms() -> list[Any]:
    fine, coarse = {"low": 0.05, "high": 0.2}, {"low": 5.0, "high": 20.0}
    many: list[Any] = []
    for mode, div, one, two, zero, bias in (
        ("static", True, fine, None, False, False), ("static", False, coarse, coarse, True, True),
        ("dynamic", False, None, None, False, False),
        ("dynamic", False, {"low": 0.5}, {"low": 0.5}, False, True),
    ):  # fmt: skip

        def half(span: dict[str, float] | None) -> Arg | None:
            return None if span is None else t(32, dtype="float16", **span)

        many.append(take(
            x1=t(4, 32, dtype="float16"), x2=t(4, 32, dtype="float16", low=-1),
            gamma=t(32, dtype="float16", low=0.5), beta=t(32, dtype="float16"),
            biasOptional=t(32, dtype="float16", high=1.0) if bias else None,
            scales1Optional=half(one), scales2Optional=half(two),
            zeroPoints1Optional=t(32, dtype="float16", low=-5, high=5) if zero else None,
            zeroPoints2Optional=t(32, dtype="float16", low=-4, high=4) if zero else None,
            quantMode=mode, epsilon=1e-5, additionalOutput=True, divMode=div))  # fmt: skip
    return many


spec("aclnnAddLayerNormQuantV2",
     "y1Out:int8 y2Out:int8 xOut:x1 layernormRes:x1 outScales1Out:float32 outScales2Out:float32",
     family="norm", **_STEPS, dtypes=("float16", "bfloat16"), samples=_norms,
     source="Ba, Kiros, Hinton: Layer Normalization, 2016, of a sum; steps as in op-plugin's "
     "documents npu_quantize and npu_dynamic_quant")(added_layer_norm)  # fmt: skip


@spec("aclnnAddLayerNormQuant",
      "y1Out:int8 y2Out:int8 xOut:x1 outScales1Out:float32 outScales2Out:float32", family="norm",
      **_STEPS, dtypes=("float16", "bfloat16"), samples=_norms,
      source="as aclnnAddLayerNormQuantV2, without the norm among its results")  # fmt: skip
def added_layer_norm_first(
    x1: Array, x2: Array, gamma: Array, beta: Array, biasOptional: Array | None,
    scales1Optional: Array | None, scales2Optional: Array | None,
    zeroPoints1Optional: Array | None, zeroPoints2Optional: Array | None, quantMode: str,
    epsilon: float, divMode: bool,
) -> tuple[Array | None, ...]:  # fmt: skip
    one, two, x, _, first, second = added_layer_norm(
        x1, x2, gamma, beta, biasOptional, scales1Optional, scales2Optional, zeroPoints1Optional,
        zeroPoints2Optional, quantMode, epsilon, divMode)  # fmt: skip
    return one, two, x, first, second


@spec("aclnnQuantizedBatchNorm", "output:input", family="norm", **_STEPS, dtypes=("int8", "uint8"),
      source="torch 2.13, document of quantized BatchNorm; Ioffe, Szegedy 2015", samples=[
          take(input=t(2, 3, 4, 5, dtype="int8", low=-100, high=100), mean=t(3), var=t(3, low=0.5),
               inputScale=0.05, inputZeroPoint=3, outputScale=0.1, outputZeroPoint=7, weight=w,
               bias=b, epsilon=1e-5)
          for w, b in ((t(3, low=0.5), t(3)),)])  # fmt: skip
def quantised_batch_norm(
    input: Array, mean: Array, var: Array, inputScale: float, inputZeroPoint: int,
    outputScale: float, outputZeroPoint: int, weight: Array, bias: Array, epsilon: float,
) -> Array:  # fmt: skip
    def channels(v: Array) -> Array:
        return v[None, :, None, None]

    x = (input.astype(np.float64) - inputZeroPoint) * inputScale
    y = channels(weight) * (x - channels(mean)) / np.sqrt(channels(var) + epsilon) + channels(bias)
    return y / outputScale + outputZeroPoint


_LARGEST: Final = {2: 127.0, 35: 57344.0, 36: 448.0}


@spec("aclnnDynamicBlockQuant aclnnDynamicBlockQuantV2", "yOut:dstType scaleOut:float32",
      family="quantisation", **_STEPS, dtypes=("float16", "bfloat16"),
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


_WEIGHT_NORM: Final[dict[str, Any]] = {
    "family": "collective", "tolerance": "gradient", "specials": False,
    "source": "op-plugin documents npu_mm_all_reduce_base and npu_weight_quant_batchmatmul; Zhang, "
    "Sennrich 2019",
    "samples": [
        take(x1=t(4, 8, dtype="float16"), x2=t(8, 6, dtype="int8", low=-8, high=8), bias=b,
             antiquantScale=t(6, dtype="float16", low=0.1), antiquantOffset=o,
             residual=t(1, 4, 6, dtype="float16"), gamma=t(6, dtype="float16"), epsilon=e,
             group=OWN_GROUP, reduceOp="sum", commTurn=0, streamMode=1, antiquantGroupSize=0)
        for b, o, e in ((None, None, 1e-5), (t(6, dtype="float16"), t(6, dtype="float16"), 0.3))],
}  # fmt: skip


def weight_reduced_norm(
    x1: Array, x2: Array, bias: Array | None, antiquantScale: Array, antiquantOffset: Array | None,
    residual: Array, gamma: Array, epsilon: float,
) -> tuple[Array, Array]:  # fmt: skip
    weight = (x2 + (0 if antiquantOffset is None else antiquantOffset)) * antiquantScale
    y = (x1 @ weight + (0 if bias is None else bias)).reshape(residual.shape) + residual
    return y, y / np.sqrt(np.square(y).mean(-1, keepdims=True) + epsilon) * gamma


spec("aclnnInplaceWeightQuantMatmulAllReduceAddRmsNorm", "residual:x1 normOut:x1",
     **_WEIGHT_NORM)(weight_reduced_norm)  # fmt: skip
spec("aclnnWeightQuantMatmulAllReduceAddRmsNorm", "y:x1 normOut:x1",
     **_WEIGHT_NORM)(weight_reduced_norm)  # fmt: skip


def dropped(result: Array, arguments: Any) -> tuple[str, Any, Any]:
    """1 where an element stayed and was scaled by 1 / (1 - p), 0 where it fell out; without
    training all stay as they are."""
    kind = numpy_dtype(result.dtype.name)
    keep = 1 - arguments["p"] if arguments.get("train", True) else 1.0
    stayed = (arguments["input"].astype(np.float64) / keep).astype(kind)
    near = np.isclose(result.astype(np.float64), stayed.astype(np.float64), 1e-2)
    return "bernoulli", np.asarray(keep), np.where(near, 1.0, result.astype(np.float64))


spec("aclnnDropout", "out:input maskOut:uint8", family="random", tolerance="random",
     draws=dropped, source="torch 2.13, document of F.dropout", samples=[
         take(input=t(65, 128, low=0.5), p=p, train=n, seed=7, offset=0)
         for p, n in ((0.5, True), (0.1, True), (0.5, False))])(
    lambda input: (np.zeros_like(input), np.zeros(input.size // 8)))  # fmt: skip
spec("aclnnDropoutV3", "out:input maskOut:uint8", family="random", tolerance="random",
     draws=dropped, source="torch 2.13, document of F.dropout", samples=[
         take(input=t(65, 128, low=0.5), p=p, seed=7, offset=0) for p in (0.5, 0.1)])(
    lambda input: (np.zeros_like(input), np.zeros(input.size // 8)))  # fmt: skip
spec("aclnnDropoutGenMaskV2Tensor", "out:uint8", family="random", tolerance="random",
     draws=drawn.kept, source="torch 2.13, document of F.dropout: what stays", samples=[
         take(shape=(65, 128), prob=p, seedTensor=given([7], "int64"),
              offsetTensor=given([0], "int64"), offset=0, probDataType=0) for p in (0.5, 0.1)])(
    lambda shape: np.zeros(int(np.prod(shape)) // 8))  # fmt: skip
