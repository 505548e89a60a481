"""Grouped products of integers, and what is fused behind them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from .....judge.precision import Array
from ...placing import TILES
from ...spec import bf16, const, i8, spec, t, take
from .._defaults import GRADIENT
from .._functions import swiglu
from .._ignored import one_value, reserved
from .._quantizers import dynamic
from .grouped import GROUPED, scaled_groups

_ROUTED: Final[dict[str, Any]] = {
    "pertokenScaleOptional": t(8, low=0.2, high=1), "dtype": 0,
    "rowIndexOptional": const([3, 0, 2, 1, 3, 1, 0, 2], "int64"),
    "transposeX": False, "transposeW": False, "transposeX1": False, "transposeX2": False,
}  # fmt: skip


def _words(*shape: int) -> Arg:
    """Scales as the low halves of 64-bit words: the bits of float32."""
    draws = t(*shape, low=0.01, high=0.05).array().astype(np.float32)
    return const(draws.view(np.uint32).astype(np.int64).tolist(), "int64")


def _finalize(first: str, second: str) -> list[Any]:
    return [take(**{first: i8(8, 16), second: t(2, 16, 32, dtype="int4", low=-8, high=6)},
                 scaleOptional=_words(2, 1, 32), biasOptional=t(2, 32) if b else None,
                 logitOptional=t(8) if b else None,
                 groupListOptional=const([5, 3] if kind else [5, 8], "int64"),
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


@spec("aclnnGroupedMatmulFinalizeRouting", "y:float32",
      ignored=one_value("dtype transposeX transposeW"),
      **GROUPED, source=_FOUR,
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
      ignored=reserved("antiquantScaleOptional antiquantOffsetOptional")
      | one_value("dtype transposeX1 transposeX2"),
      uncovered="offsetOptional",
      **GROUPED, source=_FOUR, dtypes=("int8",), samples=_finalize("x1", "x2"))  # fmt: skip
def finalize_next(
    x1: Array, x2: Array, scaleOptional: Array, biasOptional: Array | None,
    pertokenScaleOptional: Array, groupListOptional: Array, sharedInputOptional: Array | None,
    logitOptional: Array | None, rowIndexOptional: Array, sharedInputWeight: float,
    sharedInputOffset: int, groupListType: int,
) -> Array:  # fmt: skip
    return _combined(x1, x2, scaleOptional, biasOptional, pertokenScaleOptional, groupListOptional,
                     sharedInputOptional, logitOptional, rowIndexOptional, sharedInputWeight,
                     sharedInputOffset, groupListType)  # fmt: skip


@spec("aclnnGroupedMatmulFinalizeRoutingWeightNz", "out:float32",
      ignored=one_value("dtype transposeX1 transposeX2"),
      **GROUPED, dtypes=("int8",),
      source="op-plugin document npu_grouped_matmul_finalize_routing", formats={"x2": TILES},
      samples=[
          take(x1=i8(8, 16), x2=i8(2, 16, 32), scale=_words(2, 1, 32), bias=t(2, 32),
               logit=t(8), groupList=const([5, 3] if kind else [5, 8], "int64"),
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


@spec("aclnnGroupedMatmulSwigluQuant aclnnGroupedMatmulSwigluQuantWeightNZ",
      "output:int8 outputScale:float32",
      uncovered="bias offset outputOffset",
      **GRADIENT, steps=True, dtypes=("float32",),
      formats={"aclnnGroupedMatmulSwigluQuantWeightNZ weight": "FRACTAL_NZ"},
      source="op-plugin test test_npu_grouped_matmul_swiglu_quant", samples=[
          take(x=i8(12, 32), weight=i8(3, 32, 64), weightScale=t(3, 64, low=0.01, high=0.05),
               xScale=t(12, low=0.2, high=1), groupList=const([4, 9, 12], "int64"))])  # fmt: skip
def grouped_swiglu_quant(
    x: Array, weight: Array, weightScale: Array, xScale: Array, groupList: Array
) -> Any:
    sizes = np.diff(groupList, prepend=0)
    return dynamic(swiglu(scaled_groups(x, weight, sizes, weightScale, xScale), True))


@spec("aclnnGroupedMatmulFinalizeRoutingWeightNzV2", "out:float32",
      ignored=reserved("bias antiquantScaleOptional antiquantOffsetOptional")
      | one_value("dtype transposeX1 transposeX2"),
      uncovered="offsetOptional groupListType",
      **GRADIENT, dtypes=("float32",),
      formats={"x2": "FRACTAL_NZ"},
      source="op-plugin document npu_grouped_matmul_finalize_routing and its test", samples=[
          take(x1=i8(8, 32), x2=i8(2, 32, 64), scale=t(2, 64, low=0.01, high=0.05),
               pertokenScaleOptional=t(8, low=0.2, high=1), groupList=const([5, 3], "int64"),
               sharedInput=bf16(2, 64), logit=t(8),
               rowIndex=const([3, 0, 2, 1, 3, 1, 0, 2], "int64"), dtype=0, sharedInputWeight=0.5,
               sharedInputOffset=at, transposeX1=False, transposeX2=False, groupListType=1)
          for at in (1, 0)])  # fmt: skip
def finalize_product(
    x1: Array, x2: Array, scale: Array, pertokenScaleOptional: Array, groupList: Array,
    sharedInput: Array, logit: Array, rowIndex: Array, sharedInputWeight: float,
    sharedInputOffset: int,
) -> Array:  # fmt: skip
    """Rows times their logits are summed at the tokens that they belong to; the shared expert's
    rows are added from an offset on."""
    rows = scaled_groups(x1, x2, groupList, scale, pertokenScaleOptional)
    out = np.zeros((rowIndex.max() + 1, rows.shape[1]))
    np.add.at(out, rowIndex, rows * logit[:, None])
    out[sharedInputOffset : sharedInputOffset + len(sharedInput)] += sharedInputWeight * sharedInput
    return out


@spec("aclnnGroupedMatmulSwigluQuantV2 aclnnGroupedMatmulSwigluQuantWeightNzV2",
      "output:int8 outputScale:float32",
      uncovered="weightAssistMatrix bias smoothScale dequantMode dequantDtype quantMode",
      **GRADIENT, steps=True, dtypes=("float32",),
      formats={"aclnnGroupedMatmulSwigluQuantWeightNzV2 weight": "FRACTAL_NZ"},
      source="op-plugin document npu_grouped_matmul_swiglu_quant_v2", samples=[
          take(x=i8(12, 32), weight=[i8(3, 32, 64)], weightScale=[t(3, 64, low=0.01,
               high=0.05)], xScale=t(12, low=0.2, high=1), groupList=const(g, "int64"),
               dequantMode=0, dequantDtype=0, quantMode=0, groupListType=kind)
          for kind, g in ((0, [4, 9, 12]), (1, [4, 5, 3]))])  # fmt: skip
def grouped_swiglu_quant_v2(
    x: Array, weight: list[Array], weightScale: list[Array], xScale: Array, groupList: Array,
    groupListType: int,
) -> Any:  # fmt: skip
    """groupListType 0: ends of groups, 1: their sizes."""
    sizes = groupList if groupListType else np.diff(groupList, prepend=0)
    return dynamic(swiglu(scaled_groups(x, weight[0], sizes, weightScale[0], xScale), True))


@spec("aclnnQuantGroupedMatmulDequant aclnnQuantGroupedMatmulDequantWeightNZ", "out:x",
      ignored=reserved("biasOptional xOffsetOptional")
      | one_value("transposeWeight"),
      uncovered="xScaleOptional smoothScaleOptional xQuantMode",
      **GRADIENT,
      formats={"aclnnQuantGroupedMatmulDequantWeightNZ weight": "FRACTAL_NZ"},
      dtypes=("float16",), source="op-plugin test test_quant_grouped_matmul_dequant: rows by "
      "their largest magnitude", samples=[
          take(x=t(12, 32, dtype="float16"), weight=i8(3, 16, 32), weightScale=t(
              3, 16, low=0.01, high=0.1), groupList=const([4, 9, 12], "int64"),
               xQuantMode="pertoken", transposeWeight=True)])  # fmt: skip
def grouped_dequant(x: Array, weight: Array, weightScale: Array, groupList: Array) -> Array:
    steps, scale = dynamic(x)
    sizes = np.diff(groupList, prepend=0)
    return scaled_groups(np.rint(steps), weight.swapaxes(1, 2), sizes, weightScale, scale)
