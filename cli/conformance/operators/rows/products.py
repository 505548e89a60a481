"""Quantised products of groups and with norms, samples of feature maps, statistics of devices."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ....judge.precision import Array
from ..spec import given, spec, t, take
from .caches import scaled_groups
from .gates import swiglu
from .quantisation import dynamic, quant_matmul


def _int8(*shape: int) -> Any:
    return t(*shape, dtype="int8", low=-8, high=8)


_GROUPED: Final[dict[str, Any]] = {"family": "grouped_matmul", "tolerance": "gradient"}


@spec("aclnnGroupedMatmulSwigluQuantV2 aclnnGroupedMatmulSwigluQuantWeightNzV2",
      "output:int8 outputScale:float32", **_GROUPED, steps=True, dtypes=("float32",),
      formats={"aclnnGroupedMatmulSwigluQuantWeightNzV2 weight": "FRACTAL_NZ"},
      source="op-plugin document npu_grouped_matmul_swiglu_quant_v2", samples=[
          take(x=_int8(12, 32), weight=[_int8(3, 32, 64)], weightScale=[t(3, 64, low=0.01,
               high=0.05)], xScale=t(12, low=0.2, high=1), groupList=given(g, "int64"),
               dequantMode=0, dequantDtype=0, quantMode=0, groupListType=kind)
          for kind, g in ((0, [4, 9, 12]), (1, [4, 5, 3]))])  # fmt: skip
def grouped_swiglu_quant_v2(
    x: Array, weight: list[Array], weightScale: list[Array], xScale: Array, groupList: Array,
    groupListType: int,
) -> Any:  # fmt: skip
    """groupListType 0: ends of groups, 1: their sizes."""
    sizes = groupList if groupListType else np.diff(groupList, prepend=0)
    return dynamic(swiglu(scaled_groups(x, weight[0], sizes, weightScale[0], xScale), True))


@spec("aclnnQuantGroupedMatmulDequant aclnnQuantGroupedMatmulDequantWeightNZ", "out:x", **_GROUPED,
      formats={"aclnnQuantGroupedMatmulDequantWeightNZ weight": "FRACTAL_NZ"},
      dtypes=("float16",), source="op-plugin test test_quant_grouped_matmul_dequant: rows by "
      "their largest magnitude", samples=[
          take(x=t(12, 32, dtype="float16"), weight=_int8(3, 16, 32), weightScale=t(
              3, 16, low=0.01, high=0.1), groupList=given([4, 9, 12], "int64"),
               xQuantMode="pertoken", transposeWeight=True)])  # fmt: skip
def grouped_dequant(x: Array, weight: Array, weightScale: Array, groupList: Array) -> Array:
    steps, scale = dynamic(x)
    sizes = np.diff(groupList, prepend=0)
    return scaled_groups(np.rint(steps), weight.swapaxes(1, 2), sizes, weightScale, scale)


@spec("aclnnQuantMatmulReduceSumWeightNz", "out:bfloat16", family="quant_matmul", dtypes=("int8",),
      tolerance="gradient", source="op-plugin document npu_quant_matmul_reduce_sum", samples=[
          take(x1=_int8(3, 5, 32), x2=_int8(3, 32, 16), x1Scale=t(3, 5, low=0.5, high=2),
               x2Scale=t(16, dtype="bfloat16", low=0.01, high=0.05), transposeX1=False,
               transposeX2=False, groupSize=-1, dims=(0,), keepDims=False)])  # fmt: skip
def product_summed(x1: Array, x2: Array, x1Scale: Array, x2Scale: Array) -> Array:
    product = x1.astype(np.float64) @ x2.astype(np.float64)
    return (product * x2Scale * x1Scale[..., None]).sum(0)


@spec("aclnnQuantMatmulV2", "out:float16", family="quant_matmul", dtypes=("int8",),
      tolerance="gradient", source="op-plugin document npu_quant_matmul: packed scale", samples=[
          take(x1=_int8(5, 32), x2=_int8(16, 32) if adj else _int8(32, 16),
               bias=t(16, dtype="int32", low=-50, high=50),
               deqScale=given([0x3C23C000 + (n << 13) for n in range(16)], "uint64"),
               adjX1=False, adjX2=adj) for adj in (False, True)])  # fmt: skip
def quant_matmul_v2(x1: Array, x2: Array, bias: Array, deqScale: Array, adjX2: bool) -> Any:
    """The low 32 bits of a scale are a float32's."""
    real = deqScale.astype(np.uint32).view(np.float32).astype(np.float64)
    return quant_matmul(x1, x2, bias, False, adjX2, real)


@spec("aclnnSyncBatchNormGatherStats",
      "batchMean:float32 batchInvstd:float32 mean:mean variance:variance", family="norm",
      tolerance="gradient", dtypes=("float32",), source="Ioffe, Szegedy: Batch Normalization, "
      "2015, from sums of several devices; torch's SyncBatchNorm", samples=[
          take(totalSum=t(2, 3), totalSquareSum=t(2, 3, low=9, high=20),
               sampleCount=given([5, 7], "int32"), mean=t(3), variance=t(3, low=0.5), momentum=0.3,
               eps=1e-3)])  # fmt: skip
def gathered_sums(
    totalSum: Array, totalSquareSum: Array, sampleCount: Array, mean: Array, variance: Array,
    momentum: float, eps: float,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    n = sampleCount.sum()
    whole = totalSum.sum(0) / n
    var = totalSquareSum.sum(0) / n - whole**2
    return (whole, 1 / np.sqrt(var + eps), (1 - momentum) * mean + momentum * whole,
            (1 - momentum) * variance + momentum * var * n / (n - 1))  # fmt: skip


def at(image: Array, y: float, x: float) -> Any:
    """[C] of [C, H, W] between four pixels; what lies outside is 0."""
    low_y, low_x = int(np.floor(y)), int(np.floor(x))
    total: Any = 0.0
    for i in (low_y, low_y + 1):
        for j in (low_x, low_x + 1):
            if 0 <= i < image.shape[1] and 0 <= j < image.shape[2]:
                total = total + image[:, i, j] * (1 - abs(y - i)) * (1 - abs(x - j))
    return total


_LEVELS: Final = ((4, 6), (2, 3))


@spec("aclnnMultiScaleDeformableAttnFunction", "output:value", family="attention",
      tolerance="gradient", dtypes=("float32",), source="Zhu et al.: Deformable DETR, 2021, "
      "equation 3", samples=[
          take(value=t(2, 30, 2, 8), spatialShape=given(_LEVELS, "int32"), levelStartIndex=given(
              [0, 24], "int32"), location=t(2, 5, 2, 2, 4, 2, low=-0.1, high=1.1),
               attnWeight=t(2, 5, 2, 2, 4, low=0, high=0.3))])  # fmt: skip
def deformable(
    value: Array, spatialShape: Array, levelStartIndex: Array, location: Array, attnWeight: Array
) -> Array:
    """Locations are shares of an image's width and height; pixels lie at half a step."""
    batch, queries, heads, _, points, _ = location.shape
    out = np.zeros((batch, queries, heads, value.shape[-1]))
    for b, q, n, level, p in np.ndindex(batch, queries, heads, len(spatialShape), points):
        (h, w), start = spatialShape[level], levelStartIndex[level]
        image = value[b, start : start + h * w, n].T.reshape(-1, h, w)
        x, y = location[b, q, n, level, p]
        out[b, q, n] += attnWeight[b, q, n, level, p] * at(image, y * h - 0.5, x * w - 0.5)
    return out.reshape(batch, queries, -1)


@spec("aclnnInplaceQuantScatter", "selfRef:selfRef", family="cache", tolerance="gradient",
      steps=True, dtypes=("int8",), source="op-plugin document npu_quant_scatter and its test",
      samples=[
          take(selfRef=_int8(2, 9, 32), indices=given([5, 0], "int32"),
               updates=t(2, 3, 32, dtype="bfloat16"), quantScales=t(
                   1, 1, 32, dtype="bfloat16", low=0.05, high=0.2), quantZeroPoints=None, axis=-2,
               quantAxis=-1, reduction=1)])  # fmt: skip
def quant_scatter(selfRef: Array, indices: Array, updates: Array, quantScales: Array) -> Array:
    """Batch b's rows, divided by their scales, lie from indices[b] on."""
    out = selfRef.astype(np.float64)
    for b, row in enumerate(indices):
        out[b, row : row + updates.shape[1]] = updates[b] / quantScales[0]
    return out
