"""Tokens permuted into the order of experts, and back."""

from __future__ import annotations

from typing import Final

import numpy as np

from .....judge.precision import Array
from ...spec import const, spec, t, take
from .._ignored import follows, one_value
from .gating import MAPS
from .routing import _MOVED, CHOSEN, SUM, TABLE


def places(indices: Array) -> Array:
    """The permuted row of each slot: slots are sorted by expert, in order among equals."""
    flat = indices.reshape(-1)
    return np.array([(flat < e).sum() + (flat[:i] == e).sum() for i, e in enumerate(flat)])


@spec("aclnnMoeTokenPermuteWithEp",
      "permuteTokensOut:tokens sortedIndicesOut:int32 permuteProbsOut:probsOptional",
      ignored=one_value("paddedMode"),
      **MAPS,
      samples=[take(tokens=t(5, 7), indices=CHOSEN, probsOptional=t(5, 2), rangeOptional=r,
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


_AT: Final = const([3, 9, 0, 5, 1, 7, 2, 8, 4, 6], "int32")


def inside(sortedIndices: Array, span: tuple[int, int]) -> tuple[Array, Array]:
    """(slots, rows) of what lies in [first, last)."""
    slots = np.flatnonzero((sortedIndices >= span[0]) & (sortedIndices < span[1]))
    return slots, sortedIndices[slots] - span[0]


@spec("aclnnMoeTokenPermuteWithEpGrad",
      "tokenGradOut:permutedTokensOutputGrad probsGradOut:permutedProbsOutputGradOptional",
      ignored=one_value("paddedMode"),
      **MAPS,
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


@spec("aclnnMoeTokenUnpermuteWithEp", "out:permutedTokens",
      ignored=one_value("paddedMode restoreShapeOptional"),
      **MAPS, samples=[
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
      "permutedTokensGradOut:permutedTokensOptional probsGradOut:probsOptional",
      ignored=one_value("paddedMode restoreShapeOptional"),
      constant="topkNum",
      **MAPS, samples=[
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


_MAP: Final = const([[1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1]], "bool")
# Rows of the map by expert: tokens 0 2 4, 1 2 3, 0 1 3 4; then where each lies by token.
_BY_TOKEN: Final = const([0, 6, 3, 7, 1, 4, 5, 8, 2, 9], "int32")


@spec("aclnnMoeTokenPermuteWithRoutingMapGrad", "tokensGradOut:permutedTokenOutputGrad "
      "probsGradOutOptional:permutedProbsOutputGradOptional",
      constant="tokensNum numExperts",
      **MAPS, samples=[
          take(permutedTokenOutputGrad=t(10, 7), permutedProbsOutputGradOptional=t(10),
               sortedIndices=_BY_TOKEN, routingMapOptional=_MAP, numExperts=3, tokensNum=5,
               dropAndPad=False),
          take(permutedTokenOutputGrad=t(12, 7), permutedProbsOutputGradOptional=t(12),
               sortedIndices=const([0, 2, 4, 1, 1, 2, 3, 0, 0, 1, 3, 4], "int32"),
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
_PADDED: Final = const([0, 2, 4, 1, 1, 2, 3, 0, 0, 1, 3, 4], "int32")


@spec("aclnnMoeTokenUnpermuteWithRoutingMap", "unpermutedTokens:permutedTokens outIndex:int32 "
      "permuteTokenId:int32 permuteProbs:probsOptional",
      constant="restoreShapeOptional",
      **MAPS,
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
      "permutedTokensGradOut:permutedTokensOptional probsGradOutOptional:probsOptional",
      ignored=follows("restoreShapeOptional"),
      **MAPS,
      samples=[
          take(unpermutedTokensGrad=t(5, 7), outIndex=const(
                   np.argsort(_PADDED.values, kind="stable").tolist(), "int32"),
               permuteTokenId=const(sorted(_PADDED.values), "int32"), routingMapOptional=_MAP,
               permutedTokensOptional=t(12, 7), probsOptional=t(5, 3), dropAndPad=True,
               restoreShapeOptional=(5, 7)),
          take(unpermutedTokensGrad=t(5, 7), outIndex=_BY_TOKEN, permuteTokenId=const(
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


_PERMUTED: Final = const([3, 9, 0, 5, 1, 7, 2, 8, 4, 6], "int32")


@spec("aclnnMoeTokenPermute", "permuteTokensOut:tokens sortedIndicesOut:int32",
      ignored=one_value("paddedMode"),
      **_MOVED, samples=[
    take(tokens=t(5, 7), indices=const(TABLE, "int64"), numOutTokens=0, paddedMode=False),
    take(tokens=t(5, 7), indices=const([2, 0, 1, 0, 2], "int64"), numOutTokens=0,
         paddedMode=False),
    *(take(tokens=t(5, 7), indices=const(TABLE, "int64"), numOutTokens=n, paddedMode=False)
      for n in (6, -3))])  # fmt: skip
def token_permute(tokens: Array, indices: Array, numOutTokens: int) -> tuple[Array, Array]:
    """numOutTokens: how many rows are kept (0: all), or how many of the last are not, below 0."""
    flat = indices.reshape(-1)
    order = np.argsort(flat, kind="stable")
    topk = flat.size // len(tokens)
    head = order[: numOutTokens or None]
    return tokens[head // topk], np.argsort(order, kind="stable")


@spec("aclnnMoeTokenPermuteGrad", "out:permutedOutputGrad",
      ignored=one_value("paddedMode"),
      **SUM, samples=[
    take(permutedOutputGrad=t(10, 7), sortedIndices=_PERMUTED, numTopk=2, paddedMode=False)],
    )  # fmt: skip
def token_permute_grad(permutedOutputGrad: Array, sortedIndices: Array, numTopk: int) -> Array:
    picked = permutedOutputGrad[sortedIndices]
    return picked.reshape(-1, numTopk, picked.shape[-1]).sum(1)


@spec("aclnnMoeTokenUnpermute", "out:permutedTokens",
      ignored=one_value("paddedMode restoreShapeOptional"),
      **SUM, samples=[
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
      "permutedTokensGradOut:unpermutedTokensGrad probsGradOut:probsOptional",
      ignored=one_value("paddedMode restoreShapeOptional"),
      **SUM, samples=[
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


@spec("aclnnMoeTokenPermuteWithRoutingMap",
      "permuteTokensOut:tokens permuteProbsOutOptional:probsOptional sortedIndicesOut:int32",
      tolerance="exact", specials=False,
      source="Megatron-LM, permute with a routing map of moe_utils", samples=[
          take(tokens=t(5, 7), routingMap=const([[1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 1, 1],
               [1, 0, 1]], "bool"), probsOptional=t(5, 3), numOutTokens=n, dropAndPad=pad)
          for n, pad in ((10, False), (12, True), (6, True))] + [
          take(tokens=t(5, 7), routingMap=const(np.arange(5 * 66).reshape(5, 66) % 3 == 0, "bool"),
               probsOptional=t(5, 66), numOutTokens=132, dropAndPad=True)])  # fmt: skip
def permute_map(
    tokens: Array, routingMap: Array, probsOptional: Array, numOutTokens: int, dropAndPad: bool
) -> tuple[Array, Array, Array]:
    """Padded: each expert has as many rows, of its own tokens first and then of others."""
    if dropAndPad:
        capacity = numOutTokens // routingMap.shape[1]
        token = np.argsort(~routingMap.T, 1, kind="stable")[:, :capacity]
        probs = np.take_along_axis(probsOptional.T, token, 1).reshape(-1)
        return tokens[token.reshape(-1)], probs, token.reshape(-1)
    expert, token = np.nonzero(routingMap.T)
    order = np.argsort(token, kind="stable")
    return tokens[token], probsOptional[token, expert], order
