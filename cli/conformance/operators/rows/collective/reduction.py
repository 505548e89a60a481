"""Products and sums reduced over ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from .....judge.precision import Array
from ...spec import OWN_GROUP, const, f16, i8, spec, t, take
from .._functions import plus
from .._ignored import one_rank
from .exchange import FLAT, INT8, PAIRS, ROW, bias, e4m3
from .gather import HALVES

_ROW: Final[dict[str, Any]] = {
    "source": "op-plugin documents npu_mm_all_reduce_base, npu_mm_reduce_scatter_base",
    "tolerance": "gradient",
    "specials": False,
}
_SUM: Final[dict[str, Any]] = {
    "group": OWN_GROUP,
    "reduceOp": "sum",
    "commTurn": 0,
    "streamMode": 1,
    "commMode": "",
}


def _shape(pair: Mapping[str, Arg]) -> tuple[int, ...]:
    return (*pair["x1"].shape[:-1], pair["x2"].shape[-1])


spec(
    "aclnnMatmulAllReduce",
    "output:x1",
    **_ROW,
    samples=[take(**p, **_SUM, bias=b) for p in PAIRS for b in (None, bias(p))],
)(lambda x1, x2, bias: plus(x1 @ x2, bias))
spec(
    "aclnnMatmulAllReduceV2 aclnnMatmulAllReduceV3",
    "output:x1",
    **_ROW,
    samples=[
        take(**p, **_SUM, bias=b, x3=x)
        for p in PAIRS
        for b, x in ((None, None), (bias(p), None), (None, f16(*_shape(p))))
    ],
)(lambda x1, x2, bias, x3: plus(x1 @ x2, bias, x3))
spec(
    "aclnnMatmulReduceScatter aclnnMatmulReduceScatterV2",
    "output:x1",
    uncovered="x1Scale x2Scale quantScale blockSize groupSize amaxOutOptional",
    **_ROW,
    dtypes=HALVES,
    samples=[
        take(
            **p,
            **_SUM,
            bias=b,
            x1Scale=None,
            x2Scale=None,
            quantScale=None,
            blockSize=0,
            groupSize=0,
        )
        for p in FLAT
        for b in (None, bias(p))
    ],
)(lambda x1, x2, bias: plus(x1 @ x2, bias))


def _normed(y: Array, residual: Array, gamma: Array, epsilon: float) -> tuple[Any, Any]:
    total = y.reshape(residual.shape) + residual
    return total, total / np.sqrt((total**2).mean(-1, keepdims=True) + epsilon) * gamma


_NORMS: Final = [
    {
        **p,
        **_SUM,
        "bias": b,
        "residual": f16(1, *_shape(p)),
        "epsilon": 1e-5,
        "gamma": f16(p["x2"].shape[-1]),
    }
    for p in FLAT
    for b in (None, bias(p))
]


@spec(
    "aclnnMatmulAllReduceAddRmsNorm", "y:x1 normOut:x1", **_ROW, samples=[take(**n) for n in _NORMS]
)
def reduced_norm(
    x1: Array, x2: Array, bias: Array | None, residual: Array, gamma: Array, epsilon: float
) -> tuple[Array, ...]:
    return _normed(plus(x1 @ x2, bias), residual, gamma, epsilon)


spec(
    "aclnnInplaceMatmulAllReduceAddRmsNorm",
    "residual:x1 normOut:x1",
    **_ROW,
    samples=[take(**n) for n in _NORMS],
)(reduced_norm)
_SMALL: Final[dict[str, Any]] = {"x1": i8(4, 8), "x2": i8(8, 6)}
_QUANT: Final = [
    take(
        **_SMALL,
        **_SUM,
        bias=b,
        biasOptional=b,
        x3=x,
        x3Optional=x,
        dequantScale=t(6, dtype="bfloat16", low=0.01),
        **o,
    )
    for b in (None, t(6, dtype="int32", low=-9, high=9))
    for x, o in (
        (None, {}),
        (t(4, 6, dtype="bfloat16"), {}),
        (None, {"pertokenScaleOptional": t(4, low=0.5)}),
    )
] + [
    take(**_SMALL, **_SUM, bias=None, biasOptional=None, x3=None, x3Optional=None,
         dequantScale=t(1, dtype="bfloat16", low=0.01))
]  # fmt: skip
_INT8: Final[dict[str, Any]] = {**_ROW, "dtypes": ("int8",)}
_QUANT_NORMS: Final = [
    take(**_SMALL, **_SUM, bias=b, dequantScale=t(6, dtype="bfloat16", low=0.01),
         residual=t(1, 4, 6, dtype="bfloat16"), gamma=t(6, dtype="bfloat16"), epsilon=1e-5)
    for b in (None, t(6, dtype="int32", low=-9, high=9))
]  # fmt: skip


def quant_reduced_norm(
    x1: Array, x2: Array, bias: Array | None, dequantScale: Array, residual: Array, gamma: Array,
    epsilon: float,
) -> tuple[Array, Array]:  # fmt: skip
    y = plus(x1.astype(np.float64) @ x2, bias) * dequantScale
    return _normed(y, residual, gamma, epsilon)


spec("aclnnQuantMatmulAllReduceAddRmsNorm", "y:residual normOut:residual", **_INT8,
     samples=_QUANT_NORMS)(quant_reduced_norm)  # fmt: skip
spec("aclnnInplaceQuantMatmulAllReduceAddRmsNorm", "residual:residual normOut:residual", **_INT8,
     samples=_QUANT_NORMS)(quant_reduced_norm)  # fmt: skip


@spec(
    "aclnnQuantMatmulAllReduce",
    "output:bfloat16",
    **_INT8,
    samples=_QUANT[:2] + _QUANT[3:5] + _QUANT[-1:],
)
def quant_reduced(
    x1: Array, x2: Array, bias: Array | None, x3: Array | None, dequantScale: Array
) -> Array:
    y = plus(x1.astype(np.float64) @ x2, bias) * dequantScale
    return plus(y, x3)


@spec(
    "aclnnQuantMatmulAllReduceV2 aclnnQuantMatmulAllReduceV3",
    "output:bfloat16",
    uncovered="commQuantScale1Optional commQuantScale2Optional",
    **_INT8,
    samples=_QUANT,
)
def quant_reduced_v2(
    x1: Array,
    x2: Array,
    biasOptional: Array | None,
    x3Optional: Array | None,
    dequantScale: Array,
    pertokenScaleOptional: Array | None,
) -> Array:
    y = plus(x1.astype(np.float64) @ x2, biasOptional) * dequantScale
    y = y if pertokenScaleOptional is None else y * pertokenScaleOptional[:, None]
    return plus(y, x3Optional)


_WEIGHT: Final = [
    take(
        x1=f16(4, 8),
        x2=i8(8, 6),
        **_SUM,
        bias=b,
        antiquantScale=f16(6, low=0.1),
        x3=x,
        antiquantOffset=o,
        antiquantGroupSize=0,
    )
    for b, o, x in ((None, None, None), (f16(6), f16(6), None), (None, f16(6), f16(4, 6)))
]


@spec(
    "aclnnWeightQuantMatmulAllReduce aclnnWeightQuantMatmulAllReduceV2",
    "output:x1",
    uncovered="antiquantGroupSize",
    **_ROW,
    samples=_WEIGHT,
)
def weight_reduced(
    x1: Array,
    x2: Array,
    bias: Array | None,
    antiquantScale: Array,
    antiquantOffset: Array | None,
    x3: Array | None,
) -> Array:
    return plus(x1 @ (plus(x2, antiquantOffset) * antiquantScale), bias, x3)


_POWERS: Final = np.exp2(np.arange(4 * 4) % 5 - 2.0)


@spec("aclnnQuantAllReduce aclnnQuantReduceScatter", "output:float32", **ROW, samples=[
    take(x=e4m3(4, 128), scales=const(_POWERS.reshape(4, 2, 2), "float8_e8m0fnu"),
         group=OWN_GROUP, reduceOp="sum")])  # fmt: skip
def restored_sum(x: Array, scales: Array) -> Array:
    """Each power of two belongs to 32 elements of a row."""
    return x * np.repeat(scales.reshape(len(x), -1), 32, -1)


@spec("aclnnGroupedMatMulAllReduce", "y:x",
      uncovered="groupListOptional splitItem",
      **ROW, casts={"bias": {"bfloat16": "float32"}},
      samples=[
    take(x=[f16(4, 8), f16(3, 5)], weight=[f16(8, 6), f16(5, 2)], bias=b, splitItem=0, **_SUM)
    for b in ([f16(6), f16(2)], [])] + [
    take(x=[f16(2, 3)] * 66, weight=[f16(3, 2)] * 66, bias=[], splitItem=0, **_SUM)])  # fmt: skip
def reduced_members(x: list[Array], weight: list[Array], bias: list[Array]) -> list[Array]:
    products = [a @ w for a, w in zip(x, weight, strict=True)]
    return [plus(y, *bias[n : n + 1]) for n, y in enumerate(products)]


@spec("aclnnQuantMatmulAllReduceV4 aclnnQuantMatmulAllReduceV5", "output:bfloat16",
      ignored=one_rank("commQuantMode"),
      uncovered="commQuantScale1Optional commQuantScale2Optional groupSize",
      **INT8,
      samples=[
          take(x1=i8(4, 8), x2=i8(8, 6), x3Optional=x, x1ScaleOptional=s, groupSize=0,
               biasOptional=t(6, dtype="int32", low=-9, high=9) if x else None,
               x2Scale=t(6, dtype="float32", low=0.01), commQuantMode=0, **_SUM)
          for x, s in ((None, None), (t(4, 6, dtype="bfloat16"), t(4, low=0.5)))] + [
          take(x1=i8(2, 8), x2=i8(8, 6), x3Optional=None, x1ScaleOptional=t(2, low=0.5),
               groupSize=0, biasOptional=None, x2Scale=t(6, dtype="float32", low=0.01),
               commQuantMode=0, **_SUM)])  # fmt: skip
def quantised_sum(
    x1: Array, x2: Array, biasOptional: Array | None, x3Optional: Array | None,
    x1ScaleOptional: Array | None, x2Scale: Array,
) -> Array:  # fmt: skip
    y = plus(x1.astype(np.float64) @ x2, biasOptional) * x2Scale
    return plus(y if x1ScaleOptional is None else y * x1ScaleOptional[:, None], x3Optional)


_WEIGHT_NORM: Final[dict[str, Any]] = {
    "tolerance": "gradient", "specials": False,
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
     uncovered="antiquantGroupSize",
     **_WEIGHT_NORM)(weight_reduced_norm)  # fmt: skip
spec("aclnnWeightQuantMatmulAllReduceAddRmsNorm", "y:x1 normOut:x1",
     uncovered="antiquantGroupSize",
     **_WEIGHT_NORM)(weight_reduced_norm)  # fmt: skip
