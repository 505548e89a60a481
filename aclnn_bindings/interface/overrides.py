"""Owns facts that headers do not state, each with its reason and source; refuses guesses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from .signature import Direction


class DirectionRow(NamedTuple):
    """Parameters of some operators whose direction types, names and comments do not show."""

    ops: tuple[str, ...]
    directions: Mapping[str, Direction]
    reason: str
    source: str


_IN, _OUT, _INOUT = Direction.IN, Direction.OUT, Direction.INOUT

DIRECTION_ROWS: Final = (
    DirectionRow(
        ("aclnnBatchNorm", "aclnnBatchNormGatherStatsWithCounts"),
        {"runningMean": _INOUT, "runningVar": _INOUT},
        "running statistics are read and updated in place; the header only drops const",
        "aclnnBatchNorm and aclnnBatchNormGatherStatsWithCounts documents",
    ),
    DirectionRow(
        ("aclnnBatchNormElemt",),
        {"mean": _IN, "invstd": _IN},
        "inputs that the header declares without const",
        "aclnnBatchNormElemt document",
    ),
    DirectionRow(
        ("aclnnBatchNormElemtBackward",),
        {"counter": _IN},
        "an input that the header declares without const",
        "aclnnBatchNormElemtBackward document",
    ),
    DirectionRow(
        ("aclnnGroupedMatmulFinalizeRouting",),
        {"w": _IN},
        "the weight is an input that the header declares without const",
        "aclnnGroupedMatmulFinalizeRouting document",
    ),
    DirectionRow(
        ("aclnnGroupedMatmulFinalizeRoutingV2", "aclnnGroupedMatmulFinalizeRoutingV3"),
        {"x2": _IN},
        "the weight is an input that the header declares without const",
        "aclnnGroupedMatmulFinalizeRoutingV2 and V3 documents",
    ),
    DirectionRow(
        ("aclnnInplaceAtan2",),
        {"other": _IN},
        "only self is written; the header drops const from both",
        "aclnnAtan2&aclnnInplaceAtan2 document",
    ),
    DirectionRow(
        ("aclnnNLLLoss2dBackward",),
        {"totalWeight": _IN},
        "an input that the header declares without const",
        "aclnnNLLLoss2dBackward document",
    ),
    DirectionRow(
        ("aclnnAdvanceStep",),
        {"inputTokens": _INOUT, "inputPositions": _INOUT, "seqLens": _INOUT,
         "slotMapping": _INOUT, "blockTables": _IN},
        "updates const tensors in place, with inputs behind them",
        "aclnnAdvanceStep document",
    ),
    DirectionRow(
        ("aclnnAdvanceStepV2",),
        {"inputTokens": _INOUT, "inputPositions": _INOUT, "seqLens": _INOUT,
         "slotMapping": _INOUT, "acceptedNum": _IN},
        "updates const tensors in place, with inputs behind them",
        "aclnnAdvanceStepV2 document",
    ),
    DirectionRow(
        ("aclnnForeachNonFiniteCheckAndUnscale",),
        {"scaledGrads": _INOUT, "foundInf": _INOUT, "invScale": _IN},
        "updates const tensors in place, with an input behind them",
        "aclnnForeachNonFiniteCheckAndUnscale document",
    ),
    DirectionRow(
        ("aclnnInplaceMatmulAllReduceAddRmsNorm", "aclnnInplaceQuantMatmulAllReduceAddRmsNorm"),
        {"x1": _IN, "residual": _INOUT},
        "the residual is written in place, not the first tensor",
        "aclnnInplaceMatmulAllReduceAddRmsNorm documents",
    ),
    DirectionRow(
        ("aclnnModulateBackward",),
        {"grad_input": _OUT, "grad_scale": _OUT, "grad_shift": _OUT},
        "gradients are outputs declared const, before any attribute",
        "aclnnModulateBackward document",
    ),
    DirectionRow(
        ("aclnnMaskedCausalConv1dBackward",),
        {"gradXOut": _OUT, "gradWeightOut": _OUT},
        "gradients are outputs declared const",
        "aclnnMaskedCausalConv1dBackward document",
    ),
    DirectionRow(
        ("aclnnQuantizedBatchNorm",),
        {"weight": _IN, "bias": _IN},
        "inputs that the header declares without const",
        "aclnnQuantizedBatchNorm document",
    ),
    DirectionRow(
        ("aclnnSyncBatchNormGatherStats",),
        {"mean": _IN, "variance": _IN},
        "inputs that the header declares without const",
        "aclnnSyncBatchNormGatherStats document",
    ),
    DirectionRow(
        ("aclnnScatterPaKvCacheWithKScale",),
        {"keyScale": _IN},
        "an input that the header declares without const",
        "aclnnScatterPaKvCacheWithKScale document",
    ),
    DirectionRow(
        ("aclnnSoftmaxCrossEntropyWithLogits",),
        {"labels": _IN},
        "an input that the header declares without const",
        "aclnnSoftmaxCrossEntropyWithLogits document",
    ),
    DirectionRow(
        ("aclnnQkvRmsNormRopeCache",),
        {"qOutBeforeQuant": _OUT, "kOutBeforeQuant": _OUT, "vOutBeforeQuant": _OUT},
        "outputs that the header declares const beside non-const caches",
        "aclnnQkvRmsNormRopeCache document",
    ),
)  # fmt: skip

# Operator → parameter → direction.
DIRECTIONS: Final[Mapping[str, Mapping[str, Direction]]] = {
    op: row.directions for row in DIRECTION_ROWS for op in row.ops
}
