"""Products with weights of integers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .....judge.precision import Array
from ...spec import const, f16, i8, spec, t, take
from .._ignored import reserved
from .._quantizers import INT8, packed_scales

MATMUL: Final[dict[str, Any]] = {
    "tolerance": "composite", "steps": True,
    "source": "op-plugin documents npu_quant_matmul, npu_weight_quant_batchmatmul",
}  # fmt: skip
_WEIGHTS: Final[list[Any]] = [
    take(x=f16(5, 64), weight=i8(64, 32), antiquantScale=f16(*n, low=0.01, high=0.1),
         antiquantOffsetOptional=o, biasOptional=b, antiquantGroupSize=g, innerPrecise=0)
    for n, o, b, g in (((32,), None, None, 0), ((32,), f16(32), f16(32), 0),
                       ((2, 32), f16(2, 32), None, 32), ((1,), None, None, 0))]  # fmt: skip
# To steps of int8, which the operator with tiles of weights does not make.
_STEPPED_WEIGHTS: Final[list[Any]] = [
    take(x=const((np.arange(320).reshape(5, 64) * 7 % 9 / 4 - 1).tolist(), "float16"),
         weight=i8(64, 32), antiquantScale=const([0.25] * 32, "float16"),
         antiquantOffsetOptional=None, biasOptional=None, antiquantGroupSize=0, innerPrecise=0,
         outDtype=INT8, quantScaleOptional=const(
             [0x3D800000 + (n % 3 << 23) for n in range(32)], "uint64"),
         quantOffsetOptional=shift)
    for shift in (None, const([n - 9.0 for n in range(32)], "float32"))]  # fmt: skip
_WEIGHTED: Final[dict[str, Any]] = {**MATMUL, "dtypes": ("float16",), "tolerance": "gradient"}


@spec(
    "aclnnWeightQuantBatchMatmulV2 aclnnWeightQuantBatchMatmulV3",
    "y:outDtype|x",
    extra="outDtype",
    **_WEIGHTED,
    samples=[*_WEIGHTS, *_STEPPED_WEIGHTS],
)
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


@spec("aclnnWeightQuantBatchMatmulNz", "y:x",
      ignored=reserved("quantScaleOptional quantOffsetOptional"),
      formats={"weight": "FRACTAL_NZ"}, **_WEIGHTED,
      samples=_WEIGHTS)  # fmt: skip
def weight_quant_tiles(
    x: Array, weight: Array, antiquantScale: Array, antiquantOffsetOptional: Array | None,
    biasOptional: Array | None, antiquantGroupSize: int,
) -> Array:  # fmt: skip
    return weight_quant(x, weight, antiquantScale, antiquantOffsetOptional, biasOptional,
                        antiquantGroupSize)  # fmt: skip


@spec(
    "aclnnWeightQuantBatchMatmul",
    "out:float16",
    uncovered="diagonalMatrix deqOffset deqScale",
    tolerance="gradient",
    dtypes=("float16",),
    source="operator document of aclnnWeightQuantBatchMatmul",
    samples=[
        take(
            x1=f16(*((8, 4) if a else (4, 8))),
            x2=i8(*((6, 8) if b else (8, 6))),
            diagonalMatrix=const(np.eye(32), "int8"),
            deqOffset=t(1, 6, dtype="int32", low=0, high=1),
            deqScale=packed_scales(np.ones((1, 6))),
            addOffset=f16(1, 6),
            mulScale=f16(1, 6, low=0.1),
            bias=c,
            transposeX1=a,
            transposeX2=b,
            antiquantScale=0.5,
            antiquantOffset=2.0,
        )
        for a, b, c in ((False, False, None), (True, False, t(6)), (False, True, t(6)))
    ],
)
def first_weight(
    x1: Array,
    x2: Array,
    addOffset: Array,
    mulScale: Array,
    bias: Array | None,
    transposeX1: bool,
    transposeX2: bool,
    antiquantScale: float,
    antiquantOffset: float,
) -> Array:
    w = (((x2.T if transposeX2 else x2) + antiquantOffset) * antiquantScale + addOffset) * mulScale
    y = (x1.T if transposeX1 else x1) @ w
    return y if bias is None else y + bias
