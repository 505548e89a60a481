"""Attention over keys that lists select, and the lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from .....judge.precision import Array
from ...spec import const, f16, spec, take
from .._ignored import follows, one_value, requested

_ROW: Final[dict[str, Any]] = {
    "tolerance": "gradient",
    "specials": False,
    "dtypes": ("float16", "bfloat16"),
}
_FAR: Final = 2**31 - 1
_EIGHT: Final = 8  # softmax statistics are kept eight times side by side


def weighed(scores: Array, values: Array, seen: Array) -> tuple[Array, Array, Array]:
    """(result [N, Q, D], largest and sum [N, Q]) of scores over what is seen, both [N, Q, K]."""
    hidden = np.where(seen, scores, -np.inf)
    top = hidden.max(-1)
    weights = np.exp(hidden - top[..., None])
    total = weights.sum(-1)
    return weights @ values / total[..., None], top, total


def heads(x: Array, count: int) -> Array:
    """[T, M, D] → [N, T, D]: every head of keys serves a group of `count` / M heads."""
    return np.repeat(np.moveaxis(x, 1, 0), count // x.shape[1], 0)


def blocks_seen(selection: Array, keys: int, size: int) -> Array:
    """[M, Q, K] from lists [Q, M, n] of blocks of `size` keys; -1 is none."""
    queries, groups, _ = selection.shape
    seen = np.zeros((groups, queries, keys), bool)
    for q in range(queries):
        for m in range(groups):
            for block in selection[q, m]:
                if block >= 0:
                    seen[m, q, block * size : (block + 1) * size] = True
    return seen


_LISTS: Final = [[[[0, 2, -1]], [[1, 0, -1]], [[2, 1, -1]], [[2, 0, 1]]]]


def _latent(
    q: tuple[int, ...], k: tuple[int, ...], lists: Any, layout: str, **more: Any
) -> dict[str, Any]:
    return {"query": f16(*q, 2, 16), "key": f16(*k, 1, 16), "value": f16(*k, 1, 16),
            "sparseIndices": const(lists, "int32"), "queryRopeOptional": f16(*q, 2, 8),
            "keyRopeOptional": f16(*k, 1, 8), "scaleValue": 0.4, "sparseBlockSizeOptional": 2,
            "layoutQueryOptional": layout, "layoutKvOptional": layout, "sparseMode": 0,
            "preTokens": _FAR, "nextTokens": _FAR, "attentionMode": 2, "returnSoftmaxLse": True,
            **more}  # fmt: skip


_TWO: Final = [_LISTS[0], [[[0, 1, -1]], [[2, 0, -1]], [[0, -1, -1]], [[1, 0, 2]]]]
_ENDS: Final[dict[str, Any]] = {"actualSeqLengthsQueryOptional": const([2, 5], "int32"),
                                "actualSeqLengthsKvOptional": const([5, 11], "int32")}  # fmt: skip


def _parts(x: Array, ends: Array | None, packed: bool, lengths: bool) -> list[Array]:
    """Sequences: of TND up to the next end, of BSND up to a length where `lengths` count."""
    if packed:
        assert ends is not None
        return np.split(x, ends[:-1])
    return [one if ends is None or not lengths else one[: ends[b]] for b, one in enumerate(x)]


@spec("aclnnSparseFlashAttention aclnnSparseFlashAttentionV2",
      "attentionOut:query softmaxMax:float32 softmaxSum:float32",
      ignored=requested("returnSoftmaxLse"),
      uncovered="blockTableOptional preTokens nextTokens attentionMode sinksOptional",
      **_ROW,
      source="DeepSeek-V3.2-Exp: Boosting Long-Context Efficiency with DeepSeek Sparse Attention, "
      "2025; op-plugin test npu_sparse_flash_attention", samples=[
          take(**_latent((1, 4), (1, 6), _LISTS, "BSND")),
          take(**_latent((2, 4), (2, 6), _TWO, "BSND", sparseMode=3)),
          take(**_latent((2, 4), (2, 6), _TWO, "BSND",
                         actualSeqLengthsKvOptional=const([6, 5], "int32"))),
          take(**_latent((5,), (11,), [*_TWO[0], [[1, 0, 2]]], "TND", **_ENDS)),
          take(**_latent((5,), (11,), [*_TWO[0], [[1, 0, 2]]], "TND", **_ENDS, sparseMode=3)),
      ])  # fmt: skip
def sparse_flash(
    query: Array, key: Array, value: Array, sparseIndices: Array, queryRopeOptional: Array,
    keyRopeOptional: Array, scaleValue: float, sparseBlockSizeOptional: int,
    actualSeqLengthsQueryOptional: Array | None, actualSeqLengthsKvOptional: Array | None,
    layoutQueryOptional: str, layoutKvOptional: str, sparseMode: int,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """One head of latent keys, its rotary part beside it, attended where the lists say; in mode 3
    no further than the triangle of the lower right."""
    packed = layoutQueryOptional == "TND"
    n = query.shape[-2]
    qs = np.concatenate([query, queryRopeOptional], -1)
    ks = np.concatenate([key, keyRopeOptional], -1)
    out, top, total = [], [], []
    for q, lists, k, v in zip(
        *(_parts(x, actualSeqLengthsQueryOptional, packed, False) for x in (qs, sparseIndices)),
        *(_parts(x, actualSeqLengthsKvOptional, layoutKvOptional == "TND", True)
          for x in (ks, value)), strict=True,
    ):  # fmt: skip
        seen = blocks_seen(lists, len(k), sparseBlockSizeOptional)
        if sparseMode == 3:
            seen = seen & np.tri(len(q), len(k), len(k) - len(q), dtype=bool)
        scores = heads(q, n) @ heads(k, n).swapaxes(1, 2) * scaleValue
        y, most, sums = weighed(scores, heads(v, n), seen)
        out.append(np.moveaxis(y, 0, 1))
        top.append(most.T)
        total.append(sums.T)
    if packed:
        return np.concatenate(out), np.concatenate(top)[None], np.concatenate(total)[None]
    return np.stack(out), np.stack(top)[:, None], np.stack(total)[:, None]


@spec("aclnnNsaSelectedAttention",
      "softmaxMaxOut:float32 softmaxSumOut:float32 attentionOut:query",
      ignored=one_value("inputLayout")
      | follows("headNum selectedBlockCount"),
      uncovered="attenMaskOptional sparseMode",
      **_ROW,
      source="Yuan et al.: Native Sparse Attention, 2025, equation 12; op-plugin document "
      "npu_nsa_select_attention", samples=[
          take(query=f16(5, 2, 16), key=f16(12, 1, 16), value=f16(12, 1, 8),
               topkIndices=const([[[0, 1]], [[1, -1]], [[0, 2]], [[2, 1]], [[0, -1]]], "int32"),
               actualSeqQLenOptional=(2, 5), actualSeqKvLenOptional=(4, 12), scaleValue=0.3,
               headNum=2, inputLayout="TND", sparseMode=0, selectedBlockSize=2,
               selectedBlockCount=2),
          take(query=f16(5, 4, 16), key=f16(12, 2, 16), value=f16(12, 2, 8),
               topkIndices=const([[[0, 1], [1, -1]], [[1, -1], [0, -1]], [[0, 2], [1, 3]],
                                  [[2, 1], [0, -1]], [[0, -1], [3, 2]]], "int32"),
               actualSeqQLenOptional=(2, 5), actualSeqKvLenOptional=(4, 12), scaleValue=0.3,
               headNum=4, inputLayout="TND", sparseMode=0, selectedBlockSize=2,
               selectedBlockCount=2)])  # fmt: skip
def selected(
    query: Array, key: Array, value: Array, topkIndices: Array,
    actualSeqQLenOptional: Sequence[int], actualSeqKvLenOptional: Sequence[int],
    scaleValue: float, selectedBlockSize: int,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Packed sequences; every query sees the blocks of its own sequence that its list names."""
    parts: list[tuple[Array, Array, Array]] = []
    n, begins = query.shape[1], (0, 0)
    for ends in zip(actualSeqQLenOptional, actualSeqKvLenOptional, strict=True):
        rows, cols = slice(begins[0], ends[0]), slice(begins[1], ends[1])
        k, v = key[cols], value[cols]
        seen = np.repeat(blocks_seen(topkIndices[rows], len(k), selectedBlockSize),
                         n // key.shape[1], 0)  # fmt: skip
        scores = heads(query[rows], n) @ heads(k, n).swapaxes(1, 2) * scaleValue
        parts.append(weighed(scores, heads(v, n), seen))
        begins = ends
    out, top, total = (np.concatenate(part, 1) for part in zip(*parts, strict=True))
    wide = [np.repeat(x.T[..., None], _EIGHT, -1) for x in (top, total)]
    return wide[0], wide[1], np.moveaxis(out, 0, 1)


def _mask() -> Arg:
    return const([[[[1, 0], [1, 1]], [[0, 1], [1, 0]], [[1, 1], [1, 1]], [[1, 0], [0, 1]]]], "int8")


@spec("aclnnBlockSparseAttention aclnnBlockSparseAttentionV2",
      "attentionOut:query softmaxLseOptional:float32",
      uncovered="attenMaskOptional actualSeqLengthsOptional actualSeqLengthsKvOptional "
                "blockTableOptional qInputLayout kvInputLayout numKeyValueHeads maskType "
                "blockSize preTokens nextTokens softmaxLseFlag qDequantScaleOptional "
                "kDequantScaleOptional vDequantScaleOptional",
      **_ROW,
      source="op-plugin test npu_block_sparse_attention: blocks that the mask leaves out weigh "
      "nothing", samples=[
          take(query=f16(1, 4, 6, 16), key=f16(1, 2, 8, 16), value=f16(1, 2, 8, 16),
               blockSparseMaskOptional=_mask(), blockShapeOptional=(4, 4), qInputLayout="BNSD",
               kvInputLayout="BNSD", numKeyValueHeads=2, maskType=0, scaleValue=0.4,
               innerPrecise=0, blockSize=0, preTokens=0, nextTokens=0, softmaxLseFlag=1)],
      )  # fmt: skip
def block_sparse(
    query: Array, key: Array, value: Array, blockSparseMaskOptional: Array,
    blockShapeOptional: Sequence[int], scaleValue: float,
) -> tuple[Array, Array]:  # fmt: skip
    group, (high, wide) = query.shape[1] // key.shape[1], blockShapeOptional
    k, v = np.repeat(key, group, 1), np.repeat(value, group, 1)
    open_ = np.kron(blockSparseMaskOptional, np.ones((high, wide)))
    seen = open_[..., : query.shape[2], : key.shape[2]] > 0
    parts = [weighed(q @ x.swapaxes(1, 2) * scaleValue, y, s)
             for q, x, y, s in zip(query, k, v, seen, strict=True)]  # fmt: skip
    out, top, total = (np.stack(part) for part in zip(*parts, strict=True))
    return out, (top + np.log(total))[..., None]


@spec("aclnnLightningIndexer", "sparseIndicesOut:int32 sparseValuesOut:query",
      ignored=requested("returnValues"),
      uncovered="actualSeqLengthsQueryOptional actualSeqLengthsKeyOptional blockTableOptional "
                "layoutQueryOptional layoutKeyOptional sparseMode preTokens nextTokens",
      **_ROW,
      source="DeepSeek-V3.2-Exp, 2025, equation 1; op-plugin document npu_lightning_indexer",
      samples=[
          take(query=f16(2, 3, 4, 16), key=f16(2, 6, 1, 16), weights=f16(2, 3, 4, low=0.1),
               layoutQueryOptional="BSND", layoutKeyOptional="BSND", sparseCount=count,
               sparseMode=0, preTokens=_FAR, nextTokens=_FAR, returnValues=True)
          for count in (6, 2)])  # fmt: skip
def indexer(query: Array, key: Array, weights: Array, sparseCount: int) -> tuple[Array, Array]:
    """A key's worth is the weighed sum over heads of what a ReLU leaves of its products."""
    worth = np.zeros((*query.shape[:2], key.shape[1]))
    for n in range(query.shape[2]):
        product = np.einsum("bqd,bkd->bqk", query[:, :, n], key[:, :, 0])
        worth += weights[:, :, n, None] * np.clip(product, 0, None)
    order = np.argsort(-worth, -1, kind="stable")[..., :sparseCount]
    return order[:, :, None], np.take_along_axis(worth, order, -1)[:, :, None]


@spec("aclnnFusedFloydAttention",
      "softmaxMaxOut:float32 softmaxSumOut:float32 attentionOutOut:query",
      uncovered="attenMaskOptional",
      **_ROW,
      source="op-plugin document npu_fused_floyd_attention: keys and values are sums over two of "
      "three axes", samples=[
          take(query=f16(1, 2, 3, 4, 16), key1=f16(1, 2, 3, 5, 16), value1=f16(1, 2, 3, 5, 16),
               key2=f16(1, 2, 5, 4, 16), value2=f16(1, 2, 5, 4, 16), scaleValueOptional=0.25)],
      )  # fmt: skip
def floyd(
    query: Array, key1: Array, value1: Array, key2: Array, value2: Array, scaleValueOptional: float
) -> tuple[Array, Array, Array]:
    """From i to j over every k: scores q[i, j] . (k1[i, k] + k2[k, j]), values alike."""
    scores = (np.einsum("bhijc,bhikc->bhijk", query, key1)
              + np.einsum("bhijc,bhkjc->bhijk", query, key2)) * scaleValueOptional  # fmt: skip
    top = scores.max(-1)
    weights = np.exp(scores - top[..., None])
    total = weights.sum(-1)
    p = weights / total[..., None]
    out = np.einsum("bhijk,bhikc->bhijc", p, value1) + np.einsum("bhijk,bhkjc->bhijc", p, value2)
    wide = [np.repeat(x[..., None], _EIGHT, -1) for x in (top, total)]
    return wide[0], wide[1], out
