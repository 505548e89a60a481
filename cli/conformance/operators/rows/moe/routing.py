"""Rows expanded and sorted by expert."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .....judge.precision import Array
from ...spec import const, spec, t, take, unspecified
from .._ignored import requested
from .._quantizers import dynamic
from .gating import _ROUTED

_MOVED: Final[dict[str, Any]] = {
    "tolerance": "exact", "specials": False,
    "source": "op-plugin documents npu_moe_init_routing, npu_moe_finalize_routing; Megatron-LM, "
    "permute and unpermute of moe_utils",
}  # fmt: skip
SUM: Final[dict[str, Any]] = {**_MOVED, "tolerance": "gradient"}
TABLE: Final = [[2, 0], [1, 2], [0, 1], [2, 1], [0, 2]]


def _order(expert: Array) -> Array:
    """Slots sorted by expert, in order among equals; column k of the table comes after k - 1."""
    return np.argsort(expert, kind="stable")


@spec("aclnnMoeInitRouting", "expandedXOut:x expandedRowIdxOut:int32 expandedExpertIdxOut:int32",
      constant="activeNum",
      **_MOVED, samples=[
          take(x=t(5, 7), rowIdx=const([[n, n + 5] for n in range(5)], "int32"),
               expertIdx=const(TABLE, "int32"), activeNum=5)])  # fmt: skip
def init_routing(
    x: Array, rowIdx: Array, expertIdx: Array, activeNum: int
) -> tuple[Array, Array, Array]:
    flat, rows = expertIdx.reshape(-1), rowIdx.reshape(-1)
    order = _order(flat)
    source = rows[order]
    places = np.empty(flat.size, np.int64)
    places[source] = np.arange(flat.size)
    return x[source % len(x)], places, flat[order]


def routed(
    expertIdx: Array, experts: int, active: int = 0, capacity: int = 0, padded: bool = False,
    span: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """(slot that fills each row, or -1; row of each slot, or -1; tokens of each expert).

    Rows go by expert, in order among equals; of those only the first `active` count, if not 0.
    Padded, each expert has `capacity` rows, and what is over is dropped. Experts outside `span`
    lie elsewhere.
    """
    flat = expertIdx.reshape(-1)
    first, last = span or (0, experts)
    local_rows = [e for e in _order(flat) if first <= flat[e] < last]
    counts = np.bincount(flat, minlength=last)[first:last]
    rows = np.full(flat.size, -1)
    if not padded:
        rows[local_rows] = np.arange(len(local_rows))
        return np.asarray(local_rows[: active or None]), rows, counts
    sources = np.full(experts * capacity, -1)
    fill_counts = np.zeros(experts, np.int64)
    for e in local_rows:
        place, fill_counts[flat[e]] = fill_counts[flat[e]], fill_counts[flat[e]] + 1
        if place < capacity:
            rows[e] = flat[e] * capacity + place
            sources[rows[e]] = e
    return sources, rows, counts


def filled(x: Array, sources: Array, k: int) -> Array:
    """The token of each row's slot; 0 where none fills it."""
    return np.where((sources >= 0)[:, None], x[np.maximum(sources, 0) // k], 0)


@spec("aclnnMoeInitRoutingV2", "expandedXOut:x expandedRowIdxOut:int32 "
      "expertTokensCountOrCumsumOutOptional:int32 expertTokensBeforeCapacityOutOptional:int32",
      **_MOVED, samples=[
          take(x=t(5, 7), expertIdx=const(TABLE, "int32"), activeNumOptional=a,
               expertCapacityOptional=c, expertNumOptional=n, dropPadModeOptional=d,
               expertTokensCountOrCumsumFlagOptional=f,
               expertTokensBeforeCapacityFlagOptional=before)
          for a, c, n, d, f, before in (
              (0, 0, 3, 0, 1, False), (0, 0, 3, 0, 2, False), (6, 0, 3, 0, 1, False),
              (0, 3, 3, 1, 0, True), (0, 2, 4, 1, 0, True))])  # fmt: skip
def init_routing_v2(
    x: Array, expertIdx: Array, expertNumOptional: int, expertTokensCountOrCumsumFlagOptional: int,
    activeNumOptional: int = 0, expertCapacityOptional: int = 0, dropPadModeOptional: int = 0,
    expertTokensBeforeCapacityFlagOptional: bool = False,
) -> tuple[Array, Array, Array | None, Array | None]:  # fmt: skip
    """dropPadMode 1: [experts, capacity] rows; what was there before that is told where asked."""
    padded = dropPadModeOptional == 1
    sources, rows, counts = routed(expertIdx, expertNumOptional, activeNumOptional,
                                   expertCapacityOptional, padded)  # fmt: skip
    x = filled(x, sources, expertIdx.shape[1])
    if padded:
        x = x.reshape(expertNumOptional, expertCapacityOptional, -1)
    flag = expertTokensCountOrCumsumFlagOptional
    expert_counts = None if flag == 0 else np.cumsum(counts) if flag == 1 else counts
    before = counts if padded and expertTokensBeforeCapacityFlagOptional else None
    return x, rows, expert_counts, before


@spec("aclnnMoeInitRoutingV2Grad", "out:gradExpandedX", **SUM, samples=[
    take(gradExpandedX=t(10, 7), expandedRowIdx=const([3, 9, 0, 5, 1, 7, 2, 8, 4, 6], "int32"),
         topK=2, dropPadMode=0, activeNum=0),
    take(gradExpandedX=t(10, 7), expandedRowIdx=const([3, 9, 0, 5, 1, 7, 2, 8, 4, 6], "int32"),
         topK=2, dropPadMode=0, activeNum=6),
    take(gradExpandedX=t(3, 3, 7), expandedRowIdx=const([6, 0, 3, 7, 1, 4, 8, 5, 2, -1], "int32"),
         topK=2, dropPadMode=1, activeNum=0)])  # fmt: skip
def init_routing_grad(
    gradExpandedX: Array, expandedRowIdx: Array, topK: int, dropPadMode: int, activeNum: int
) -> Array:
    """What was dropped, or lay behind the active rows, gives nothing."""
    rows = gradExpandedX.reshape(-1, gradExpandedX.shape[-1])
    end = activeNum if activeNum and dropPadMode == 0 else len(rows)
    there = (expandedRowIdx >= 0) & (expandedRowIdx < end)
    flow = np.where(there[:, None], rows[np.maximum(expandedRowIdx, 0)], 0)
    return flow.reshape(-1, topK, rows.shape[-1]).sum(1)


@spec("aclnnMoeComputeExpertTokens", "out:sortedExperts", **_MOVED, samples=[
    take(sortedExperts=const([0, 0, 1, 3, 3, 3, 5], "int32"), numExperts=n)
    for n in (6, 8)])  # fmt: skip
def compute_expert_tokens(sortedExperts: Array, numExperts: int) -> Array:
    return np.searchsorted(sortedExperts, np.arange(numExperts), "right")


_STEPS: Final[dict[str, Any]] = {**_ROUTED, "tolerance": "composite", "steps": True}
# What scales tokens is float32 beside any of theirs.
_SCALES: Final[dict[str, Any]] = {"casts": {
    n: dict.fromkeys(("float16", "bfloat16", "int8"), "float32")
    for n in ("scaleOptional", "offsetOptional")}}  # fmt: skip
CHOSEN: Final = const([[2, 0], [1, 2], [0, 1], [2, 1], [0, 2]], "int32")
_ROWS: Final = const([[n, n + 5] for n in range(5)], "int32")


@spec("aclnnMoeInitRoutingQuant",
      "expandedXOut:int8 expandedRowIdxOut:int32 expandedExpertIdxOut:int32",
      constant="activeNum",
      **_STEPS, samples=[
          take(x=t(5, 32, low=-3, high=3), rowIdx=_ROWS, expertIdx=CHOSEN, activeNum=5, scale=s,
               offset=o) for s, o in ((20.0, 3.0), (0.5, 0.0))])  # fmt: skip
def init_routing_quant(
    x: Array, rowIdx: Array, expertIdx: Array, activeNum: int, scale: float, offset: float
) -> tuple[Array, Array, Array]:
    rows, places, experts = init_routing(x, rowIdx, expertIdx, activeNum)
    return rows * scale + offset, places, experts


_QUANT: Final = {"scaleOptional": const([20.0], "float32"), "offsetOptional": const(
    [3.0], "float32"), "quantMode": 0}  # fmt: skip
_ALL: Final = {"activeNum": 0, "expertCapacity": 0, "expertNum": 3, "dropPadMode": 0,
               "expertTokensCountOrCumsumFlag": 1, "expertTokensBeforeCapacityFlag": False,
               "quantMode": 1}  # fmt: skip
_CUT: Final = {"dropPadMode": 1, "expertCapacity": 3, "expertTokensCountOrCumsumFlag": 0,
               "expertTokensBeforeCapacityFlag": True}  # fmt: skip


@spec("aclnnMoeInitRoutingQuantV2", "expandedXOut:int8 expandedRowIdxOut:int32 "
      "expertTokensCountOrCumsumOutOptional:int32 expertTokensBeforeCapacityOutOptional:int32 "
      "dynamicQuantScaleOutOptional:float32", **_STEPS,
      **_SCALES, samples=[
          take(x=t(5, 32, low=-3, high=3), expertIdx=CHOSEN, **{**_ALL, **more})
          for more in (_QUANT, {"expertTokensCountOrCumsumFlag": 2},
                       {"scaleOptional": t(3, 32, low=0.5, high=2)}, {"activeNum": 6},
                       {**_QUANT, **_CUT}, {"scaleOptional": t(3, 32, low=0.5, high=2), **_CUT})],
      )  # fmt: skip
def init_routing_quant_v2(
    x: Array, expertIdx: Array, scaleOptional: Any, offsetOptional: Any, expertNum: int,
    expertTokensCountOrCumsumFlag: int, quantMode: int, activeNum: int, expertCapacity: int,
    dropPadMode: int, expertTokensBeforeCapacityFlag: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """quantMode 0: one scale and offset; 1: each row by its largest magnitude, smoothed by its
    expert's factors."""
    padded = dropPadMode == 1
    sources, _, _ = routed(expertIdx, expertNum, activeNum, expertCapacity, padded)
    rows, places, expert_counts, before = init_routing_v2(
        x, expertIdx, expertNum, expertTokensCountOrCumsumFlag, activeNum, expertCapacity,
        dropPadMode, expertTokensBeforeCapacityFlag)  # fmt: skip
    if quantMode == 0:
        there = (sources >= 0).reshape(rows.shape[:-1])[..., None]
        return (
            np.where(there, rows * scaleOptional + offsetOptional, 0),
            places,
            expert_counts,
            before,
            None,
        )
    smooth = None
    if scaleOptional is not None:
        smooth = scaleOptional[expertIdx.reshape(-1)[sources]].reshape(rows.shape)
    steps, scale = dynamic(rows, smooth)
    return steps, places, expert_counts, before, scale.reshape(-1)


_THIRD: Final = {"activeNum": 10, "expertCapacity": -1, "expertNum": 4, "dropPadMode": 0,
                 "expertTokensNumType": 1, "expertTokensNumFlag": True, "quantMode": -1,
                 "activeExpertRangeOptional": (0, 4), "rowIdxType": 0}  # fmt: skip
_STATIC: Final = {"quantMode": 0, "scaleOptional": const([20.0], "float32"),
                  "offsetOptional": const([3.0], "float32"), "outDtype": 2}  # fmt: skip


@spec("aclnnMoeInitRoutingV3", "expandedXOut:outDtype|x expandedRowIdxOut:int32 "
      "expertTokensCountOrCumsumOut:int64 expandedScaleOut:float32",
      extra="outDtype", ignored=requested("expertTokensNumFlag"),
      **_STEPS, **_SCALES, samples=[
          *(take(x=t(5, 7), expertIdx=CHOSEN, **{**_THIRD, "scaleOptional": t(5), **more})
            for more in (
                {}, {"expertTokensNumType": 0}, {"rowIdxType": 1}, {"expertTokensNumType": 2},
                {"activeExpertRangeOptional": (1, 3), "activeNum": 7}, {"activeNum": 6},
                {"dropPadMode": 1, "expertCapacity": 3})),
          *(take(x=t(5, 32, low=-3, high=3), expertIdx=CHOSEN, **{**_THIRD, **more})
            for more in (
                _STATIC, {"quantMode": 1, "outDtype": 2},
                {"quantMode": 1, "outDtype": 2, "scaleOptional": t(4, 32, low=0.5, high=2)}))],
      )  # fmt: skip
def init_routing_v3(
    x: Array, expertIdx: Array, scaleOptional: Array | None, offsetOptional: Array | None,
    activeNum: int, expertCapacity: int, expertNum: int, dropPadMode: int,
    expertTokensNumType: int, quantMode: int, activeExpertRangeOptional: tuple[int, int],
    rowIdxType: int,
) -> tuple[Array, Array, Array, Array | None]:  # fmt: skip
    """expertTokensNumType 0: running sums, 1: counts, 2: pairs of an expert that has tokens and its
    count. rowIdxType 1: the slot that each row comes from, 0: the row that each slot goes to.
    quantMode -1: scales of tokens go with them, 0: one scale and offset, 1: by rows' largest."""
    k, padded = expertIdx.shape[1], dropPadMode == 1
    sources, places, counts = routed(expertIdx, expertNum, activeNum, expertCapacity, padded,
                                     activeExpertRangeOptional)  # fmt: skip
    expert_counts = np.cumsum(counts) if expertTokensNumType == 0 else counts
    if expertTokensNumType == 2:
        expert_counts = np.zeros((expertNum, 2), np.int64)
        some = np.flatnonzero(counts)
        expert_counts[: some.size] = np.stack([some, counts[some]], 1)
    rows = filled(x, sources, k)
    scale: Array | None = None
    if quantMode == -1:
        assert scaleOptional is not None
        scale = np.where(sources >= 0, scaleOptional[np.maximum(sources, 0) // k], 0)
    elif quantMode == 0:
        rows = rows * scaleOptional + offsetOptional
    else:
        smooth = None if scaleOptional is None else scaleOptional[expertIdx.reshape(-1)[sources]]
        rows, scale = dynamic(rows, smooth)
    if padded:
        rows = rows.reshape(expertNum, expertCapacity, -1)
    return rows, sources if rowIdxType else places, expert_counts, scale


unspecified("aclnnMoeUpdateExpert", "maps experts to replicas by a table; how ties of load are "
            "broken is not published", "op-plugin document npu_moe_update_expert")  # fmt: skip
