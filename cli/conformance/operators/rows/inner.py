"""Products whose weights lie in the inner format or are four bits wide; casts between formats."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..placing import TILES
from ..spec import given, spec, t, take
from .caches import scaled_groups


def _int8(*shape: int) -> Arg:
    return t(*shape, dtype="int8", low=-8, high=8)


def _small(*shape: int) -> Arg:
    """Whole numbers, whose products are exact."""
    return given((np.arange(np.prod(shape)) * 7 % 11 - 5).reshape(shape), "float8_e4m3fn")


@spec("aclnnNpuFormatCast", "dstTensor:srcTensor", family="copy", tolerance="exact",
      formats={"dstTensor": TILES}, dtypes=("float16", "bfloat16", "int8"),
      source="op-plugin documents npu_format_cast and npu_grouped_matmul: FRACTAL_NZ is "
      "[n / n0, k / 16, 16, n0], a tile's row has 32 bytes", samples=[
          take(srcTensor=t(20, 33, dtype="float16")), take(srcTensor=t(2, 16, 40, dtype="float16")),
          take(srcTensor=_int8(33, 40))])  # fmt: skip
def in_inner_format(srcTensor: Array) -> Array:
    """Element (r, c) lies in row r of column c / n0 of tiles, at c modulo n0."""
    wide = 32 if srcTensor.dtype.kind == "i" else 16
    *batch, rows, columns = srcTensor.shape
    high, across = -(-rows // 16) * 16, -(-columns // wide)
    flat = np.zeros((*batch, across, high, wide), srcTensor.dtype)
    for c in range(columns):
        flat[..., c // wide, :rows, c % wide] = srcTensor[..., c]
    return flat.reshape(*batch, across, high // 16, 16, wide)


_GROUPED: Final[dict[str, Any]] = {"family": "grouped_matmul", "tolerance": "gradient",
                                   "specials": False}  # fmt: skip


@spec("aclnnGroupedMatmulWeightNz", "out:bfloat16", **_GROUPED, dtypes=("int8",),
      formats={"weight": TILES}, source="op-plugin document npu_grouped_matmul: int8 rows, a scale "
      "for each expert's column and for each row", samples=[
          take(x=[_int8(12, 32)], weight=[_int8(3, 32, 64)], biasOptional=b,
               scaleOptional=[t(3, 64, dtype="bfloat16", low=0.01, high=0.05)],
               perTokenScaleOptional=[t(12, low=0.2, high=1)], groupListOptional=given(g, "int64"),
               splitItem=3, groupType=0, groupListType=kind, actType=0, quantGroupSize=0)
          for kind, g in ((0, [4, 9, 12]), (1, [4, 5, 3]))
          for b in (None, [t(3, 64, dtype="int32", low=-50, high=50)])])  # fmt: skip
def grouped_weight(
    x: list[Array], weight: list[Array], biasOptional: list[Array] | None,
    scaleOptional: list[Array], perTokenScaleOptional: list[Array], groupListOptional: Array,
    groupListType: int,
) -> list[Array]:  # fmt: skip
    """groupListType 0: ends of groups, 1: their sizes."""
    sizes = groupListOptional if groupListType else np.diff(groupListOptional, prepend=0)
    args = sizes, scaleOptional[0], perTokenScaleOptional[0]
    y = scaled_groups(x[0], weight[0], *args)
    if biasOptional is not None:
        each = np.repeat(biasOptional[0] * scaleOptional[0], sizes, 0)
        y = y + each * perTokenScaleOptional[0][:, None]
    return [y]


_ROUTED: Final[dict[str, Any]] = {
    "pertokenScaleOptional": t(8, low=0.2, high=1), "dtype": 0,
    "rowIndexOptional": given([3, 0, 2, 1, 3, 1, 0, 2], "int64"),
    "transposeX": False, "transposeW": False, "transposeX1": False, "transposeX2": False,
}  # fmt: skip


def _words(*shape: int) -> Arg:
    """Scales as the low halves of 64-bit words: the bits of float32."""
    drawn = t(*shape, low=0.01, high=0.05).array().astype(np.float32)
    return given(drawn.view(np.uint32).astype(np.int64).tolist(), "int64")


def _finalize(first: str, second: str) -> list[Any]:
    return [take(**{first: _int8(8, 16), second: t(2, 16, 32, dtype="int4", low=-8, high=6)},
                 scaleOptional=_words(2, 1, 32), biasOptional=t(2, 32) if b else None,
                 logitOptional=t(8) if b else None,
                 groupListOptional=given([5, 3] if kind else [5, 8], "int64"),
                 sharedInputOptional=t(2, 32, dtype="bfloat16") if b else None,
                 groupListType=kind, sharedInputOffset=at, sharedInputWeight=at + 0.5,
                 **_ROUTED)
            for b, kind, at in ((True, 1, 1), (False, 0, 0), (True, 1, 0))]  # fmt: skip


_FOUR: Final = "op-plugin document npu_grouped_matmul_finalize_routing, four-bit weights"


def _combined(
    x: Array, w: Array, scale: Array, bias: Array | None, token: Array, groups: Array,
    shared: Array | None, logit: Array | None, index: Array, weight: float, offset: int, kind: int,
) -> Array:  # fmt: skip
    sizes = groups if kind else np.diff(groups, prepend=0)
    real = scale.astype(np.uint32).view(np.float32).astype(np.float64).reshape(len(sizes), -1)
    y = scaled_groups(x, w, sizes, real, token)
    if bias is not None:
        y = y + np.repeat(bias, sizes, 0) * token[:, None]
    y = y if logit is None else y * logit[:, None]
    out = np.zeros((index.max() + 1, y.shape[1]))
    np.add.at(out, index, y)
    if shared is not None:
        out[offset : offset + len(shared)] += weight * shared
    return out


@spec("aclnnGroupedMatmulFinalizeRouting", "y:float32", **_GROUPED, source=_FOUR,
      dtypes=("int8",), samples=_finalize("x", "w"))  # fmt: skip
def finalize_first(
    x: Array, w: Array, scaleOptional: Array, biasOptional: Array | None,
    pertokenScaleOptional: Array, groupListOptional: Array, sharedInputOptional: Array | None,
    logitOptional: Array | None, rowIndexOptional: Array, sharedInputWeight: float,
    sharedInputOffset: int, groupListType: int,
) -> Array:  # fmt: skip
    return _combined(x, w, scaleOptional, biasOptional, pertokenScaleOptional, groupListOptional,
                     sharedInputOptional, logitOptional, rowIndexOptional, sharedInputWeight,
                     sharedInputOffset, groupListType)  # fmt: skip


@spec("aclnnGroupedMatmulFinalizeRoutingV2 aclnnGroupedMatmulFinalizeRoutingV3", "out:float32",
      **_GROUPED, source=_FOUR, dtypes=("int8",), samples=_finalize("x1", "x2"))  # fmt: skip
def finalize_next(
    x1: Array, x2: Array, scaleOptional: Array, biasOptional: Array | None,
    pertokenScaleOptional: Array, groupListOptional: Array, sharedInputOptional: Array | None,
    logitOptional: Array | None, rowIndexOptional: Array, sharedInputWeight: float,
    sharedInputOffset: int, groupListType: int,
) -> Array:  # fmt: skip
    return _combined(x1, x2, scaleOptional, biasOptional, pertokenScaleOptional, groupListOptional,
                     sharedInputOptional, logitOptional, rowIndexOptional, sharedInputWeight,
                     sharedInputOffset, groupListType)  # fmt: skip


@spec("aclnnGroupedMatmulFinalizeRoutingWeightNz", "out:float32", **_GROUPED, dtypes=("int8",),
      source="op-plugin document npu_grouped_matmul_finalize_routing", formats={"x2": TILES},
      samples=[
          take(x1=_int8(8, 16), x2=_int8(2, 16, 32), scale=_words(2, 1, 32), bias=t(2, 32),
               logit=t(8), groupList=given([5, 3] if kind else [5, 8], "int64"),
               rowIndex=_ROUTED["rowIndexOptional"], sharedInput=t(2, 32, dtype="bfloat16"),
               groupListType=kind, sharedInputOffset=kind, sharedInputWeight=kind + 0.5, **_ROUTED)
          for kind in (0, 1)],
      )  # fmt: skip
def finalize_inner(
    x1: Array, x2: Array, scale: Array, bias: Array, pertokenScaleOptional: Array,
    groupList: Array, sharedInput: Array, logit: Array, rowIndex: Array, sharedInputWeight: float,
    sharedInputOffset: int, groupListType: int,
) -> Array:  # fmt: skip
    return _combined(x1, x2, scale, bias, pertokenScaleOptional, groupList, sharedInput, logit,
                     rowIndex, sharedInputWeight, sharedInputOffset, groupListType)  # fmt: skip


@spec("aclnnTransposeQuantBatchMatMul", "out:float16",
      family="quant_matmul", tolerance="gradient", specials=False,
      source="op-plugin document npu_transpose_quant_batchmatmul", samples=[
          take(x1=_small(5, 2, 8), x2=_small(2, 8, 16), x1Scale=t(5, low=0.1),
               x2Scale=t(16, low=0.1), dtype=1, groupSize=0, permX1=(1, 0, 2),
               permX2=(0, 1, 2), permY=(1, 0, 2), batchSplitFactor=1)])  # fmt: skip
def turned_product(x1: Array, x2: Array, x1Scale: Array, x2Scale: Array) -> Array:
    y = np.einsum("mbk,bkn->mbn", x1.astype(np.float64), x2.astype(np.float64))
    return y * x1Scale[:, None, None] * x2Scale


@spec("aclnnQuantBatchMatmulInplaceAdd", "yRef:yRef", family="quant_matmul", tolerance="gradient",
      specials=False, source="op-plugin document npu_add_quant_matmul_", samples=[
          take(x1=_small(40, 5), x2=_small(40, 7), x1ScaleOptional=s, x2Scale=t(7, low=0.1),
               yRef=t(5, 7), transposeX1=True, transposeX2=False, groupSize=0)
          for s in (t(1, low=0.5), None)])  # fmt: skip
def added_product(
    x1: Array, x2: Array, x1ScaleOptional: Array | None, x2Scale: Array, yRef: Array
) -> Array:
    y = x1.astype(np.float64).T @ x2.astype(np.float64) * x2Scale
    return yRef + (y if x1ScaleOptional is None else y * x1ScaleOptional)
