"""Routing of tokens to experts and back in its later versions, quantised too, and gradients."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ....judge.precision import Array
from ..spec import given, spec, t, take
from .experts import filled, init_routing, init_routing_v2, routed
from .quantisation import dynamic

_MOVE: Final[dict[str, Any]] = {
    "family": "moe", "tolerance": "exact", "specials": False,
    "source": "op-plugin documents npu_moe_init_routing, npu_moe_init_routing_v2",
}  # fmt: skip
_STEPS: Final[dict[str, Any]] = {**_MOVE, "tolerance": "composite", "steps": True}
# What scales tokens is float32 beside any of theirs.
_SCALES: Final[dict[str, Any]] = {"casts": {
    n: dict.fromkeys(("float16", "bfloat16", "int8"), "float32")
    for n in ("scaleOptional", "offsetOptional")}}  # fmt: skip
_MAPS: Final[dict[str, Any]] = {**_MOVE, "tolerance": "gradient", "source": "Megatron-LM, permute "
                                "and unpermute of moe_utils; op-plugin tests of the operators' "
                                "names"}  # fmt: skip
_CHOSEN: Final = given([[2, 0], [1, 2], [0, 1], [2, 1], [0, 2]], "int32")
_ROWS: Final = given([[n, n + 5] for n in range(5)], "int32")


@spec("aclnnMoeInitRoutingQuant",
      "expandedXOut:int8 expandedRowIdxOut:int32 expandedExpertIdxOut:int32", **_STEPS, samples=[
          take(x=t(5, 32, low=-3, high=3), rowIdx=_ROWS, expertIdx=_CHOSEN, activeNum=5, scale=s,
               offset=o) for s, o in ((20.0, 3.0), (0.5, 0.0))])  # fmt: skip
def init_routing_quant(
    x: Array, rowIdx: Array, expertIdx: Array, activeNum: int, scale: float, offset: float
) -> tuple[Array, Array, Array]:
    rows, places, experts = init_routing(x, rowIdx, expertIdx, activeNum)
    return rows * scale + offset, places, experts


_QUANT: Final = {"scaleOptional": given([20.0], "float32"), "offsetOptional": given(
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
          take(x=t(5, 32, low=-3, high=3), expertIdx=_CHOSEN, **{**_ALL, **more})
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
    rows, places, told, before = init_routing_v2(
        x, expertIdx, expertNum, expertTokensCountOrCumsumFlag, activeNum, expertCapacity,
        dropPadMode, expertTokensBeforeCapacityFlag)  # fmt: skip
    if quantMode == 0:
        there = (sources >= 0).reshape(rows.shape[:-1])[..., None]
        return np.where(there, rows * scaleOptional + offsetOptional, 0), places, told, before, None
    smooth = None
    if scaleOptional is not None:
        smooth = scaleOptional[expertIdx.reshape(-1)[sources]].reshape(rows.shape)
    steps, scale = dynamic(rows, smooth)
    return steps, places, told, before, scale.reshape(-1)


_THIRD: Final = {"activeNum": 10, "expertCapacity": -1, "expertNum": 4, "dropPadMode": 0,
                 "expertTokensNumType": 1, "expertTokensNumFlag": True, "quantMode": -1,
                 "activeExpertRangeOptional": (0, 4), "rowIdxType": 0}  # fmt: skip
_STATIC: Final = {"quantMode": 0, "scaleOptional": given([20.0], "float32"),
                  "offsetOptional": given([3.0], "float32"), "outDtype": 2}  # fmt: skip


@spec("aclnnMoeInitRoutingV3", "expandedXOut:outDtype|x expandedRowIdxOut:int32 "
      "expertTokensCountOrCumsumOut:int64 expandedScaleOut:float32", **_STEPS, **_SCALES, samples=[
          *(take(x=t(5, 7), expertIdx=_CHOSEN, **{**_THIRD, "scaleOptional": t(5), **more})
            for more in (
                {}, {"expertTokensNumType": 0}, {"rowIdxType": 1}, {"expertTokensNumType": 2},
                {"activeExpertRangeOptional": (1, 3), "activeNum": 7}, {"activeNum": 6},
                {"dropPadMode": 1, "expertCapacity": 3})),
          *(take(x=t(5, 32, low=-3, high=3), expertIdx=_CHOSEN, **{**_THIRD, **more})
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
    told = np.cumsum(counts) if expertTokensNumType == 0 else counts
    if expertTokensNumType == 2:
        told = np.zeros((expertNum, 2), np.int64)
        some = np.flatnonzero(counts)
        told[: some.size] = np.stack([some, counts[some]], 1)
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
    return rows, sources if rowIdxType else places, told, scale


def places(indices: Array) -> Array:
    """The permuted row of each slot: slots are sorted by expert, in order among equals."""
    flat = indices.reshape(-1)
    return np.array([(flat < e).sum() + (flat[:i] == e).sum() for i, e in enumerate(flat)])


@spec("aclnnMoeTokenPermuteWithEp",
      "permuteTokensOut:tokens sortedIndicesOut:int32 permuteProbsOut:probsOptional", **_MAPS,
      samples=[take(tokens=t(5, 7), indices=_CHOSEN, probsOptional=t(5, 2), rangeOptional=r,
                    numOutTokens=n, paddedMode=False)
               for r, n in (((0, 10), 0), ((3, 8), 0), (None, 6))])  # fmt: skip
def permute_with_ep(
    tokens: Array, indices: Array, probsOptional: Array, rangeOptional: tuple[int, int] | None,
    numOutTokens: int,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Of the permuted rows, only [first, last) lie here, or the first numOutTokens."""
    first, last = rangeOptional or (0, numOutTokens)
    at, k = places(indices), indices.shape[1]
    rows, probs = np.zeros((last - first, tokens.shape[1])), np.zeros(last - first)
    for slot, row in enumerate(at):
        if first <= row < last:
            rows[row - first] = tokens[slot // k]
            probs[row - first] = probsOptional.flat[slot]
    return rows, at, probs


_AT: Final = given([3, 9, 0, 5, 1, 7, 2, 8, 4, 6], "int32")


def inside(sortedIndices: Array, span: tuple[int, int]) -> tuple[Array, Array]:
    """(slots, rows) of what lies in [first, last)."""
    slots = np.flatnonzero((sortedIndices >= span[0]) & (sortedIndices < span[1]))
    return slots, sortedIndices[slots] - span[0]


@spec("aclnnMoeTokenPermuteWithEpGrad",
      "tokenGradOut:permutedTokensOutputGrad probsGradOut:permutedProbsOutputGradOptional", **_MAPS,
      samples=[take(permutedTokensOutputGrad=t(b - a, 7), sortedIndices=_AT,
                    permutedProbsOutputGradOptional=t(b - a), numTopk=2, rangeOptional=(a, b),
                    paddedMode=False) for a, b in ((0, 10), (3, 8))])  # fmt: skip
def permute_with_ep_grad(
    permutedTokensOutputGrad: Array, sortedIndices: Array, permutedProbsOutputGradOptional: Array,
    numTopk: int, rangeOptional: tuple[int, int],
) -> tuple[Array, Array]:  # fmt: skip
    slots, rows = inside(sortedIndices, rangeOptional)
    tokens = np.zeros((sortedIndices.size // numTopk, permutedTokensOutputGrad.shape[1]))
    np.add.at(tokens, slots // numTopk, permutedTokensOutputGrad[rows])
    probs = np.zeros(sortedIndices.size)
    probs[slots] = permutedProbsOutputGradOptional[rows]
    return tokens, probs.reshape(-1, numTopk)


@spec("aclnnMoeTokenUnpermuteWithEp", "out:permutedTokens", **_MAPS, samples=[
    take(permutedTokens=t(b - a, 7), sortedIndices=_AT, probsOptional=t(5, 2), numTopk=2,
         rangeOptional=(a, b), paddedMode=False) for a, b in ((0, 10), (3, 8))])  # fmt: skip
def unpermute_with_ep(
    permutedTokens: Array, sortedIndices: Array, probsOptional: Array, numTopk: int,
    rangeOptional: tuple[int, int],
) -> Array:  # fmt: skip
    slots, rows = inside(sortedIndices, rangeOptional)
    out = np.zeros((sortedIndices.size // numTopk, permutedTokens.shape[1]))
    weight = probsOptional.reshape(-1)[slots, None]
    np.add.at(out, slots // numTopk, permutedTokens[rows] * weight)
    return out


@spec("aclnnMoeTokenUnpermuteWithEpGrad",
      "permutedTokensGradOut:permutedTokensOptional probsGradOut:probsOptional", **_MAPS, samples=[
          take(unpermutedTokensGrad=t(5, 7), sortedIndices=_AT, permutedTokensOptional=t(b - a, 7),
               probsOptional=t(5, 2), paddedMode=False, rangeOptional=(a, b), topkNum=2)
          for a, b in ((0, 10), (3, 8))])  # fmt: skip
def unpermute_with_ep_grad(
    unpermutedTokensGrad: Array, sortedIndices: Array, permutedTokensOptional: Array,
    probsOptional: Array, rangeOptional: tuple[int, int], topkNum: int,
) -> tuple[Array, Array]:  # fmt: skip
    slots, rows = inside(sortedIndices, rangeOptional)
    flow = unpermutedTokensGrad[slots // topkNum]
    tokens = np.zeros_like(permutedTokensOptional)
    tokens[rows] = flow * probsOptional.reshape(-1)[slots, None]
    probs = np.zeros(sortedIndices.size)
    probs[slots] = (flow * permutedTokensOptional[rows]).sum(-1)
    return tokens, probs.reshape(probsOptional.shape)


_MAP: Final = given([[1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1]], "bool")
# Rows of the map by expert: tokens 0 2 4, 1 2 3, 0 1 3 4; then where each lies by token.
_BY_TOKEN: Final = given([0, 6, 3, 7, 1, 4, 5, 8, 2, 9], "int32")


@spec("aclnnMoeTokenPermuteWithRoutingMapGrad", "tokensGradOut:permutedTokenOutputGrad "
      "probsGradOutOptional:permutedProbsOutputGradOptional", **_MAPS, samples=[
          take(permutedTokenOutputGrad=t(10, 7), permutedProbsOutputGradOptional=t(10),
               sortedIndices=_BY_TOKEN, routingMapOptional=_MAP, numExperts=3, tokensNum=5,
               dropAndPad=False),
          take(permutedTokenOutputGrad=t(12, 7), permutedProbsOutputGradOptional=t(12),
               sortedIndices=given([0, 2, 4, 1, 1, 2, 3, 0, 0, 1, 3, 4], "int32"),
               routingMapOptional=_MAP, numExperts=3, tokensNum=5, dropAndPad=True)])  # fmt: skip
def permute_map_grad(
    permutedTokenOutputGrad: Array, permutedProbsOutputGradOptional: Array, sortedIndices: Array,
    routingMapOptional: Array, tokensNum: int, numExperts: int, dropAndPad: bool,
) -> tuple[Array, Array]:  # fmt: skip
    """Padded: sortedIndices are the tokens of rows, as many to each expert."""
    expert, token = np.nonzero(routingMapOptional.T)
    if dropAndPad:
        token = sortedIndices
        expert = np.repeat(np.arange(numExperts), len(token) // numExperts)
    tokens = np.zeros((tokensNum, permutedTokenOutputGrad.shape[1]))
    np.add.at(tokens, token, permutedTokenOutputGrad)
    probs = np.zeros((tokensNum, numExperts))
    probs[token, expert] = permutedProbsOutputGradOptional
    return tokens, probs


# Three experts of capacity 4: the tokens that each takes, filled up by ones that it does not.
_PADDED: Final = given([0, 2, 4, 1, 1, 2, 3, 0, 0, 1, 3, 4], "int32")


@spec("aclnnMoeTokenUnpermuteWithRoutingMap", "unpermutedTokens:permutedTokens outIndex:int32 "
      "permuteTokenId:int32 permuteProbs:probsOptional", **_MAPS,
      rule={"accumulate": 64, "reason": "a token sums all rows that came from it: 200 of both "
            "signs where 1,032 rows are padded"}, samples=[
          take(permutedTokens=t(12, 7), sortedIndices=_PADDED, routingMapOptional=_MAP,
               probsOptional=t(5, 3), paddedMode=True, restoreShapeOptional=(5, 7)),
          take(permutedTokens=t(10, 7), sortedIndices=_BY_TOKEN, routingMapOptional=_MAP,
               probsOptional=t(5, 3), paddedMode=False, restoreShapeOptional=(5, 7))])  # fmt: skip
def unpermute_map(
    permutedTokens: Array, sortedIndices: Array, routingMapOptional: Array, probsOptional: Array,
    paddedMode: bool, restoreShapeOptional: tuple[int, int],
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Padded: row r belongs to expert r / capacity and to token sortedIndices[r]; else what the map
    says, token by token, lies in the rows sortedIndices."""
    if not paddedMode:
        probs = probsOptional[routingMapOptional]
        token = np.nonzero(routingMapOptional)[0]
        out = np.zeros(restoreShapeOptional)
        np.add.at(out, token, permutedTokens[sortedIndices] * probs[:, None])
        return out, sortedIndices, token, probs
    experts = np.arange(sortedIndices.size) // (sortedIndices.size // probsOptional.shape[1])
    probs = probsOptional[sortedIndices, experts]
    out = np.zeros(restoreShapeOptional)
    np.add.at(out, sortedIndices, permutedTokens * probs[:, None])
    order = np.lexsort((np.arange(sortedIndices.size), sortedIndices))
    return out, order, sortedIndices[order], probs


@spec("aclnnMoeTokenUnpermuteWithRoutingMapGrad",
      "permutedTokensGradOut:permutedTokensOptional probsGradOutOptional:probsOptional", **_MAPS,
      samples=[
          take(unpermutedTokensGrad=t(5, 7), outIndex=given(
                   np.argsort(_PADDED.values, kind="stable").tolist(), "int32"),
               permuteTokenId=given(sorted(_PADDED.values), "int32"), routingMapOptional=_MAP,
               permutedTokensOptional=t(12, 7), probsOptional=t(5, 3), dropAndPad=True,
               restoreShapeOptional=(5, 7)),
          take(unpermutedTokensGrad=t(5, 7), outIndex=_BY_TOKEN, permuteTokenId=given(
                   np.nonzero(_MAP.values)[0], "int32"), routingMapOptional=_MAP,
               permutedTokensOptional=t(10, 7), probsOptional=t(5, 3), dropAndPad=False,
               restoreShapeOptional=(5, 7))])  # fmt: skip
def unpermute_map_grad(
    unpermutedTokensGrad: Array, outIndex: Array, permuteTokenId: Array, routingMapOptional: Array,
    permutedTokensOptional: Array, probsOptional: Array, dropAndPad: bool,
) -> tuple[Array, Array]:  # fmt: skip
    experts = (
        np.nonzero(routingMapOptional)[1]
        if not dropAndPad
        else outIndex // (outIndex.size // probsOptional.shape[1])
    )
    flow = unpermutedTokensGrad[permuteTokenId]
    tokens, probs = np.zeros_like(permutedTokensOptional), np.zeros_like(probsOptional)
    tokens[outIndex] = flow * probsOptional[permuteTokenId, experts][:, None]
    probs[permuteTokenId, experts] = (flow * permutedTokensOptional[outIndex]).sum(-1)
    return tokens, probs


@spec("aclnnMoeGatingTopKBackward", "out:gradY", **{**_MAPS, "source": "derivative of DeepSeek-V3"
      "'s gate; op-plugin test test_npu_moe_gating_top_k_backward"}, dtypes=("float32",),
      sparse=True,
      samples=[
          take(xNorm=t(5, 8, low=0.1, high=0.9), gradY=t(5, 2), expertIdx=given(
              [[2, 0], [1, 7], [0, 1], [6, 1], [0, 2]], "int32"), renorm=r, normType=n,
               routedScalingFactor=f, eps=e)
          for f, e, n, r in ((1.0, 1e-20, 1, 0), (2.5, 0.5, 1, 0), (2.5, 0.5, 0, 0),
                             (2.5, 0.5, 0, 1))])  # fmt: skip
def gating_backward(
    xNorm: Array, gradY: Array, expertIdx: Array, renorm: int, normType: int,
    routedScalingFactor: float, eps: float,
) -> Array:  # fmt: skip
    """y = f s / (sum of the chosen s + eps) of s = sigmoid(x) (normType 1) or softmax(x) (0), which
    is divided with renorm alone."""
    s = np.take_along_axis(xNorm, expertIdx, -1)
    total = s.sum(-1, keepdims=True) + eps
    ds = routedScalingFactor * gradY
    if normType == 1 or renorm == 1:
        ds = ds / total - (ds * s).sum(-1, keepdims=True) / total**2
    flow = np.zeros_like(xNorm)
    np.put_along_axis(flow, expertIdx, ds, -1)
    # Softmax takes from each what all of them give it, the sigmoid what it gives itself.
    own = flow * xNorm
    return xNorm * (flow - (own if normType == 1 else own.sum(-1, keepdims=True)))


_BIAS: Final[dict[str, Any]] = {**_MAPS, "source": "derivative of adding one bias to each group's "
                                "rows"}  # fmt: skip


_GROUPS: Final = [
    take(gradY=t(12, 9), groupIdxOptional=given([4, 9, 12], "int32"), groupIdxType=0),
    take(gradY=t(3, 5, 9), groupIdxOptional=None, groupIdxType=0)]  # fmt: skip


def grouped_bias_grad(gradY: Array, groupIdxOptional: Array | None, groupIdxType: int = 0) -> Array:
    """Ends of groups, or their sizes (type 1); without them the first dimension counts groups."""
    ends = groupIdxOptional
    if ends is not None and groupIdxType == 1:
        ends = np.cumsum(ends)
    groups = gradY if ends is None else np.split(gradY, ends[:-1])
    return np.stack([g.sum(0) for g in groups])


spec("aclnnGroupedBiasAddGrad", "out:gradY", **_BIAS, samples=_GROUPS)(
    lambda gradY, groupIdxOptional: grouped_bias_grad(gradY, groupIdxOptional))  # fmt: skip
spec("aclnnGroupedBiasAddGradV2", "out:gradY", **_BIAS, samples=[
    *_GROUPS, take(gradY=t(12, 9), groupIdxOptional=given([4, 5, 3], "int32"), groupIdxType=1)])(
    grouped_bias_grad)  # fmt: skip
