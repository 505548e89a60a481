"""Rows of experts gathered and summed by token."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .....judge.precision import Array
from ...spec import const, spec, t, take
from .._defaults import FINITE_GRADIENT
from .._ignored import follows
from .routing import SUM, TABLE

# Four tokens with two experts each: experts 3 to 5 give nothing, the token, and a mixture.
_CHOICE: Final = np.array([[0, 3], [4, 1], [5, 2], [1, 0]], np.int32)
_ROUTED: Final[dict[str, Any]] = {
    "expandedX": t(8, 5),
    "expandedRowIdx": const(np.random.default_rng(1).permutation(8), "int32"),
    "scalesOptional": t(4, 2),
    "expertIdxOptional": const(_CHOICE, "int32"),
    "xOptional": t(4, 5),
    "a1Optional": t(1, 5),
    "a2Optional": t(1, 5),
    "vOptional": t(1, 5),
    "dropPadMode": 0,
    "zeroExpertRange": (3, 4),
    "copyExpertRange": (4, 5),
    "constantExpertRange": (5, 6),
    "k": 2,
}


@spec("aclnnMoeFinalizeRoutingV3 aclnnMoeFinalizeRoutingV4", "out:expandedX",
      ignored=follows("k"),
      constant="x2Optional",
      tolerance="gradient", specials=False, source="op-plugin documents npu_moe_finalize_routing, "
      "npu_moe_distribute_combine_v2", samples=[
          take(**_ROUTED), take(**_ROUTED, x1Optional=t(4, 5), biasOptional=t(6, 5)),
          take(**{**_ROUTED, "dropPadMode": 2, "zeroExpertRange": (2, 3),
                  "copyExpertRange": (3, 4), "constantExpertRange": (4, 6), "a1Optional": t(2, 5),
                  "a2Optional": t(2, 5), "vOptional": t(2, 5)}),
          take(**{**_ROUTED, "expandedX": t(2, 3, 5), "dropPadMode": 3, "expandedRowIdx": const(
              [0, -1, -1, 3, 1, -1, 4, -1], "int32")}, biasOptional=t(6, 5))])  # fmt: skip
def finalised(
    expandedX: Array,
    expandedRowIdx: Array,
    x1Optional: Array | None,
    x2Optional: Array | None,
    biasOptional: Array | None,
    scalesOptional: Array,
    expertIdxOptional: Array,
    xOptional: Array,
    a1Optional: Array,
    a2Optional: Array,
    vOptional: Array,
    dropPadMode: int,
    zeroExpertRange: tuple[int, int],
    copyExpertRange: tuple[int, int],
    constantExpertRange: tuple[int, int],
) -> Array:
    """Rows lie by columns of the table (modes 0, 1) or by lines (2, 3), those dropped are 0.
    Experts of three ranges give nothing, the token, or a1 x + a2 v of their own constants."""
    tokens, k = scalesOptional.shape
    at = expandedRowIdx.reshape(k, tokens).T if dropPadMode < 2 else expandedRowIdx.reshape(-1, k)
    flat = expandedX.reshape(-1, expandedX.shape[-1])
    rows = np.where((at >= 0)[..., None], flat[np.maximum(at, 0)], 0)
    if biasOptional is not None:
        rows = rows + biasOptional[expertIdxOptional]

    def of(span: tuple[int, int]) -> Array:
        return ((expertIdxOptional >= span[0]) & (expertIdxOptional < span[1]))[..., None]

    token = np.broadcast_to(xOptional[:, None], rows.shape)
    constant_expert = np.clip(expertIdxOptional - constantExpertRange[0], 0, len(a1Optional) - 1)
    mixed = a1Optional[constant_expert] * token + (a2Optional * vOptional)[constant_expert]
    rows = np.select([of(zeroExpertRange), of(copyExpertRange), of(constantExpertRange)],
                     [0 * rows, token, mixed], rows)  # fmt: skip
    out = (rows * scalesOptional[..., None]).sum(1)
    return out + sum(x for x in (x1Optional, x2Optional) if x is not None)


@spec("aclnnMoeFinalizeRoutingV2Grad", "gradExpandedXOut:gradY gradScalesOut:scalesOptional",
      dtypes=("float16", "bfloat16", "float32"), **FINITE_GRADIENT,
      source="op-plugin document npu_moe_finalize_routing, differentiated", samples=[
          take(gradY=t(5, 64), expandedRowIdx=const([3, 0, 4, 1, 2], "int32"),
               expandedXOptional=t(5, 64), scalesOptional=t(5, 1),
               expertIdxOptional=const([[2], [1], [0], [2], [1]], "int32"),
               biasOptional=bias, dropPadMode=0, activeNum=0, expertNum=3, expertCapacity=0)
          for bias in (None, t(3, 64))] + [
          take(gradY=t(5, 64), expandedRowIdx=const([4, 0, -1, 5, 2], "int32"),
               expandedXOptional=t(2, 3, 64), scalesOptional=t(5, 1),
               expertIdxOptional=const([[1], [0], [0], [1], [0]], "int32"),
               biasOptional=None, dropPadMode=1, activeNum=0, expertNum=2, expertCapacity=3),
          take(gradY=t(5, 64), expandedRowIdx=const([3, 0, 4, 1, 2], "int32"),
               expandedXOptional=t(3, 64), scalesOptional=t(5, 1),
               expertIdxOptional=const([[2], [1], [0], [2], [1]], "int32"),
               biasOptional=None, dropPadMode=0, activeNum=3, expertNum=3,
               expertCapacity=0)])  # fmt: skip
def finalize_gradients(
    gradY: Array, expandedRowIdx: Array, expandedXOptional: Array, scalesOptional: Array,
    expertIdxOptional: Array, biasOptional: Array | None, dropPadMode: int, activeNum: int,
    expertNum: int, expertCapacity: int,
) -> tuple[Array, Array]:  # fmt: skip
    """One expert a token: in which order the slots of several lie is not published. Only the first
    activeNum rows (0: all), or those of every expert's capacity (dropPadMode 1), are there."""
    padded = (expertNum, expertCapacity) if dropPadMode else (activeNum or len(gradY),)
    rows = np.zeros((int(np.prod(padded)), gradY.shape[1]))
    slots = np.where(expandedRowIdx < len(rows), expandedRowIdx, -1)
    there = slots >= 0
    rows[slots[there]] = (scalesOptional * gradY)[there]
    outs = np.where(there[:, None], expandedXOptional.reshape(rows.shape)[slots], 0)
    if biasOptional is not None:
        outs = outs + biasOptional[expertIdxOptional[:, 0]]
    return rows.reshape(*padded, -1), np.einsum("th,th->t", gradY, outs)[:, None]


@spec("aclnnMoeFinalizeRoutingV2", "out:expandedX", tolerance="gradient",
      source="op-plugin document npu_moe_finalize_routing", samples=[
          take(expandedX=t(3, 3, 7) if m % 2 else t(10, 7), expandedRowIdx=const(
              [6, 0, 3, 7, 1, 4, 8, 5, 2, -1] if m % 2 else [3, 9, 0, 5, 1, 7, 2, 8, 4, 6],
              "int32"), x1Optional=t(5, 7), x2Optional=x2, biasOptional=t(3, 7),
               scalesOptional=t(5, 2), expertIdxOptional=const(
                   [[2, 0], [1, 2], [0, 1], [2, 1], [0, 2]], "int32"), dropPadMode=m)
          for m, x2 in ((0, None), (0, t(5, 7)), (1, None), (2, None), (3, None))])  # fmt: skip
def finalize_v2(
    expandedX: Array,
    expandedRowIdx: Array,
    x1Optional: Array,
    x2Optional: Array | None,
    biasOptional: Array,
    scalesOptional: Array,
    expertIdxOptional: Array,
    dropPadMode: int,
) -> Array:
    """Rows of tokens lie by columns of the table (modes 0, 1) or by lines (2, 3); those dropped
    (1, 3) are 0."""
    tokens, width = scalesOptional.shape
    rows = expandedX.reshape(-1, expandedX.shape[-1])
    table = expandedRowIdx.reshape(width, tokens).T if dropPadMode < 2 else (
        expandedRowIdx.reshape(tokens, width))  # fmt: skip
    gathered = np.where((table >= 0)[..., None], rows[np.maximum(table, 0)], 0)
    y = (scalesOptional[..., None] * (gathered + biasOptional[expertIdxOptional])).sum(1)
    return x1Optional + y + (0 if x2Optional is None else x2Optional)


@spec("aclnnMoeFinalizeRouting", "out:expandedX", **SUM, samples=[
    take(expandedX=t(10, 7), x1=t(5, 7), x2Optional=x2, bias=t(3, 7), scales=t(5, 2),
         expandedRowIdx=const([3, 9, 0, 5, 1, 7, 2, 8, 4, 6], "int32"),
         expandedExpertIdx=const(TABLE, "int32")) for x2 in (None, t(5, 7))])  # fmt: skip
def finalize_routing(
    expandedX: Array,
    x1: Array,
    x2Optional: Array | None,
    bias: Array,
    scales: Array,
    expandedRowIdx: Array,
    expandedExpertIdx: Array,
) -> Array:
    """The slot of token t and its k-th expert is expandedRowIdx[k * tokens + t]."""
    tokens = len(x1)
    result = x1 + (0 if x2Optional is None else x2Optional)
    for k in range(scales.shape[1]):
        slot = expandedRowIdx[k * tokens : (k + 1) * tokens]
        result = result + scales[:, k : k + 1] * (expandedX[slot] + bias[expandedExpertIdx[:, k]])
    return result
