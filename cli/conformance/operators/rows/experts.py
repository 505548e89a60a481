"""Mixtures of experts: gating, routing there and back, permutation of tokens."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ....judge.precision import Array
from ..spec import given, spec, t, take

_GATE: Final[dict[str, Any]] = {
    "family": "moe", "tolerance": "composite", "specials": False,
    "source": "Shazeer et al.: Outrageously Large Neural Networks, 2017; op-plugin documents "
    "npu_moe_gating_top_k_softmax, npu_moe_gating_top_k",
}  # fmt: skip
_MOVE: Final[dict[str, Any]] = {
    "family": "moe", "tolerance": "exact", "specials": False,
    "source": "op-plugin documents npu_moe_init_routing, npu_moe_finalize_routing; Megatron-LM, "
    "permute and unpermute of moe_utils",
}  # fmt: skip
_SUM: Final[dict[str, Any]] = {**_MOVE, "tolerance": "gradient"}


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _best(x: Array, k: int) -> Array:
    return np.argsort(-x, -1, kind="stable")[..., :k]


def _finished(index: Array, finished: Array | None, experts: int) -> Array:
    """Rows that are finished have expert `experts`, which does not exist."""
    return index if finished is None else np.where(finished[:, None], experts, index)


_LOGITS: Final = [take(x=t(5, 8, low=-3, high=3), k=2), take(x=t(3, 65, low=-3, high=3), k=4)]
_ENDED: Final = take(x=t(4, 8, low=-3, high=3), k=2,
                     finishedOptional=given([False, True, False, True], "bool"))  # fmt: skip


@spec("aclnnMoeGatingTopKSoftmax", "yOut:x expertIdxOut:int32 rowIdxOut:int32",
      samples=[*_LOGITS, _ENDED], **_GATE)  # fmt: skip
def gating_softmax(x: Array, finishedOptional: Array | None, k: int) -> tuple[Array, Array, Array]:
    p = _softmax(x)
    at = _best(p, k)
    rows = np.arange(k)[None] * len(x) + np.arange(len(x))[:, None]
    return np.take_along_axis(p, at, -1), _finished(at, finishedOptional, x.shape[-1]), rows


@spec("aclnnMoeGatingTopKSoftmaxV2", "yOut:x expertIdxOut:int32 softmaxResultOutOptional:float32",
      **_GATE, samples=[take(**s.kwargs, renorm=r, outputSoftmaxResultFlag=f)
                        for s in _LOGITS for r, f in ((0, False), (1, False), (0, True))]
      + [take(**_ENDED.kwargs, renorm=r, outputSoftmaxResultFlag=False) for r in (0, 1)],
      )  # fmt: skip
def gating_softmax_v2(
    x: Array, finishedOptional: Array | None, k: int, renorm: int, outputSoftmaxResultFlag: bool
) -> tuple[Array, Array, Array | None]:
    """renorm 1: softmax over the chosen logits only."""
    at = _best(x, k)
    p = _softmax(x)
    y = _softmax(np.take_along_axis(x, at, -1)) if renorm else np.take_along_axis(p, at, -1)
    at = _finished(at, finishedOptional, x.shape[-1])
    return y, at, p if outputSoftmaxResultFlag else None


_GROUPS: Final[dict[str, Any]] = {"groupSelectMode": 0, "renorm": 0, "outFlag": False,
                                  "routedScalingFactor": 1.0, "eps": 1e-20}  # fmt: skip


@spec("aclnnMoeGatingTopK aclnnMoeGatingTopKV2",
      "yOut:x expertIdxOut:int32 outOut:float32", **_GATE, samples=[
    take(x=t(5, 16, low=-3, high=3), biasOptional=b, k=4, kGroup=kg, groupCount=gc, normType=n,
         **{**_GROUPS, "outFlag": True, "routedScalingFactor": f, "groupSelectMode": m, "eps": e,
            "renorm": r})
    for b, kg, gc, n, f, m, e, r in (
        (None, 1, 1, 0, 1.0, 0, 1e-20, 0), (t(16), 1, 1, 1, 2.5, 0, 1e-20, 0),
        (t(16), 2, 4, 1, 1.0, 1, 1e-20, 0), (None, 1, 1, 1, 1.0, 0, 0.5, 0),
        (None, 1, 1, 0, 2.5, 0, 0.5, 1))])  # fmt: skip
def gating_top_k(
    x: Array,
    biasOptional: Array | None,
    k: int,
    kGroup: int,
    groupCount: int,
    groupSelectMode: int,
    renorm: int,
    normType: int,
    routedScalingFactor: float,
    eps: float,
) -> tuple[Array, Array, Array]:
    """DeepSeek-V3's gate: bias steers the choice, the weight is the score itself."""
    score = _softmax(x) if normType == 0 else 1 / (1 + np.exp(-x))
    steer = score if biasOptional is None else score + biasOptional
    if groupCount > 1:
        parts = steer.reshape(len(x), groupCount, -1)
        worth = np.sort(parts, -1)[..., -2:].sum(-1) if groupSelectMode else parts.max(-1)
        keep = np.zeros((len(x), groupCount), bool)
        np.put_along_axis(keep, _best(worth, kGroup), True, -1)
        steer = np.where(np.repeat(keep, parts.shape[-1], -1), steer, -np.inf)
    at = _best(steer, k)
    y = np.take_along_axis(score, at, -1)
    if normType == 1 or renorm == 1:
        y = y / (y.sum(-1, keepdims=True) + eps)
    return y * routedScalingFactor, at, score


_TABLE: Final = [[2, 0], [1, 2], [0, 1], [2, 1], [0, 2]]


def _order(expert: Array) -> Array:
    """Slots sorted by expert, in order among equals; column k of the table comes after k - 1."""
    return np.argsort(expert, kind="stable")


@spec("aclnnMoeInitRouting", "expandedXOut:x expandedRowIdxOut:int32 expandedExpertIdxOut:int32",
      **_MOVE, samples=[
          take(x=t(5, 7), rowIdx=given([[n, n + 5] for n in range(5)], "int32"),
               expertIdx=given(_TABLE, "int32"), activeNum=5)])  # fmt: skip
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
    own = [e for e in _order(flat) if first <= flat[e] < last]
    counts = np.bincount(flat, minlength=last)[first:last]
    rows = np.full(flat.size, -1)
    if not padded:
        rows[own] = np.arange(len(own))
        return np.asarray(own[: active or None]), rows, counts
    sources = np.full(experts * capacity, -1)
    taken = np.zeros(experts, np.int64)
    for e in own:
        place, taken[flat[e]] = taken[flat[e]], taken[flat[e]] + 1
        if place < capacity:
            rows[e] = flat[e] * capacity + place
            sources[rows[e]] = e
    return sources, rows, counts


def filled(x: Array, sources: Array, k: int) -> Array:
    """The token of each row's slot; 0 where none fills it."""
    return np.where((sources >= 0)[:, None], x[np.maximum(sources, 0) // k], 0)


@spec("aclnnMoeInitRoutingV2", "expandedXOut:x expandedRowIdxOut:int32 "
      "expertTokensCountOrCumsumOutOptional:int32 expertTokensBeforeCapacityOutOptional:int32",
      **_MOVE, samples=[
          take(x=t(5, 7), expertIdx=given(_TABLE, "int32"), activeNumOptional=a,
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
    told = None if flag == 0 else np.cumsum(counts) if flag == 1 else counts
    before = counts if padded and expertTokensBeforeCapacityFlagOptional else None
    return x, rows, told, before


@spec("aclnnMoeInitRoutingV2Grad", "out:gradExpandedX", **_SUM, samples=[
    take(gradExpandedX=t(10, 7), expandedRowIdx=given([3, 9, 0, 5, 1, 7, 2, 8, 4, 6], "int32"),
         topK=2, dropPadMode=0, activeNum=0),
    take(gradExpandedX=t(10, 7), expandedRowIdx=given([3, 9, 0, 5, 1, 7, 2, 8, 4, 6], "int32"),
         topK=2, dropPadMode=0, activeNum=6),
    take(gradExpandedX=t(3, 3, 7), expandedRowIdx=given([6, 0, 3, 7, 1, 4, 8, 5, 2, -1], "int32"),
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


@spec("aclnnMoeComputeExpertTokens", "out:sortedExperts", **_MOVE, samples=[
    take(sortedExperts=given([0, 0, 1, 3, 3, 3, 5], "int32"), numExperts=n)
    for n in (6, 8)])  # fmt: skip
def compute_expert_tokens(sortedExperts: Array, numExperts: int) -> Array:
    return np.searchsorted(sortedExperts, np.arange(numExperts), "right")


@spec("aclnnMoeFinalizeRouting", "out:expandedX", **_SUM, samples=[
    take(expandedX=t(10, 7), x1=t(5, 7), x2Optional=x2, bias=t(3, 7), scales=t(5, 2),
         expandedRowIdx=given([3, 9, 0, 5, 1, 7, 2, 8, 4, 6], "int32"),
         expandedExpertIdx=given(_TABLE, "int32")) for x2 in (None, t(5, 7))])  # fmt: skip
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


_PERMUTED: Final = given([3, 9, 0, 5, 1, 7, 2, 8, 4, 6], "int32")


@spec("aclnnMoeTokenPermute", "permuteTokensOut:tokens sortedIndicesOut:int32", **_MOVE, samples=[
    take(tokens=t(5, 7), indices=given(_TABLE, "int64"), numOutTokens=0, paddedMode=False),
    take(tokens=t(5, 7), indices=given([2, 0, 1, 0, 2], "int64"), numOutTokens=0,
         paddedMode=False),
    *(take(tokens=t(5, 7), indices=given(_TABLE, "int64"), numOutTokens=n, paddedMode=False)
      for n in (6, -3))])  # fmt: skip
def token_permute(tokens: Array, indices: Array, numOutTokens: int) -> tuple[Array, Array]:
    """numOutTokens: how many rows are kept (0: all), or how many of the last are not, below 0."""
    flat = indices.reshape(-1)
    order = np.argsort(flat, kind="stable")
    topk = flat.size // len(tokens)
    kept = order[: numOutTokens or None]
    return tokens[kept // topk], np.argsort(order, kind="stable")


@spec("aclnnMoeTokenPermuteGrad", "out:permutedOutputGrad", **_SUM, samples=[
    take(permutedOutputGrad=t(10, 7), sortedIndices=_PERMUTED, numTopk=2, paddedMode=False)],
    )  # fmt: skip
def token_permute_grad(permutedOutputGrad: Array, sortedIndices: Array, numTopk: int) -> Array:
    picked = permutedOutputGrad[sortedIndices]
    return picked.reshape(-1, numTopk, picked.shape[-1]).sum(1)


@spec("aclnnMoeTokenUnpermute", "out:permutedTokens", **_SUM, samples=[
    take(permutedTokens=t(10, 7), sortedIndices=_PERMUTED, probsOptional=p, paddedMode=False)
    for p in (t(5, 2), None)])  # fmt: skip
def token_unpermute(
    permutedTokens: Array, sortedIndices: Array, probsOptional: Array | None
) -> Array:
    picked = permutedTokens[sortedIndices]
    if probsOptional is None:
        return picked
    shape = (*probsOptional.shape, picked.shape[-1])
    return (picked.reshape(shape) * probsOptional[..., None]).sum(1)


@spec("aclnnMoeTokenUnpermuteGrad",
      "permutedTokensGradOut:unpermutedTokensGrad probsGradOut:probsOptional", **_SUM, samples=[
          take(permuteTokensOptional=t(10, 7), unpermutedTokensGrad=t(5, 7),
               sortedIndices=_PERMUTED, probsOptional=t(5, 2), paddedMode=False)])  # fmt: skip
def token_unpermute_grad(
    permuteTokensOptional: Array,
    unpermutedTokensGrad: Array,
    sortedIndices: Array,
    probsOptional: Array,
) -> tuple[Array, Array]:
    topk = probsOptional.shape[1]
    flow = np.repeat(unpermutedTokensGrad, topk, 0)
    result = np.zeros_like(permuteTokensOptional)
    result[sortedIndices] = flow * probsOptional.reshape(-1, 1)
    dp = (permuteTokensOptional[sortedIndices] * flow).sum(-1)
    return result, dp.reshape(probsOptional.shape)


@spec("aclnnApplyTopKTopP", "out:logits", family="moe", tolerance="exact", specials=False,
      sparse=True, source="Holtzman et al.: The Curious Case of Neural Text Degeneration, 2020; "
      "vLLM, apply_top_k_top_p", samples=[
          take(logits=t(3, 33, low=-4, high=4), p=p, k=k) for p, k in (
              (given([1.0] * 3, "float32"), given([5, 33, 1], "int32")),
              (given([0.7, 1.0, 0.3], "float32"), given([33] * 3, "int32")),
              (given([0.7, 0.95, 0.3], "float32"), given([20, 33, 5], "int32")))])  # fmt: skip
def top_k_top_p(logits: Array, p: Array, k: Array) -> Array:
    kept = logits.copy()
    for row in range(len(kept)):
        cut = np.sort(kept[row])[-int(k[row])]
        kept[row][kept[row] < cut] = -np.inf
        order = np.argsort(kept[row], kind="stable")
        share = np.cumsum(_softmax(kept[row])[order])
        drop = share <= 1 - p[row]
        drop[-1] = False
        kept[row][order[drop]] = -np.inf
    return kept
