"""Gradients of attention over selected keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from .....judge.precision import Array
from ...spec import const, spec, t, take
from .._ignored import follows, one_value, saved
from .sparse import block_sparse, blocks_seen, floyd, heads, selected, sparse_flash, weighed

_ROW: Final[dict[str, Any]] = {
    "tolerance": "gradient", "specials": False, "dtypes": ("float16",),
    "rule": {"norm": 16.0, "reason": "the forward output comes rounded to 16 bit, and its error "
             "enters every row"}}  # fmt: skip
_FAR: Final = 2**31 - 1
Three = tuple[Array, Array, Array]


def _half(*shape: int) -> Array:
    """Numbers that float16 holds, for samples that carry what the forward gave for them."""
    return t(*shape).array().astype(np.float16).astype(np.float64)


def _arg(values: Any, dtype: str = "float16") -> Arg:
    return const(np.asarray(values).tolist(), dtype)


def back(q: Array, k: Array, v: Array, seen: Array, dy: Array, scale: float) -> Three:
    """Of heads [N, T, D]: dV = P^T dO; dS = P (dO V^T - its mean under P); dQ = s dS K."""
    scores = q @ k.swapaxes(1, 2) * scale
    _, top, total = weighed(scores, v, seen)
    p = np.where(seen, np.exp(scores - top[..., None]), 0) / total[..., None]
    dp = dy @ v.swapaxes(1, 2)
    ds = scale * p * (dp - (dp * p).sum(-1, keepdims=True))
    return ds @ k, ds.swapaxes(1, 2) @ q, p.swapaxes(1, 2) @ dy


def folded(x: Array, groups: int) -> Array:
    """[T, M, D] from heads [N, T, D]: what all heads of a group give to the head that serves it."""
    return np.moveaxis(x.reshape(groups, -1, *x.shape[1:]).sum(1), 0, 1)


_NSA: Final[dict[str, Any]] = {
    "topkIndices": const([[[0, 1]], [[1, -1]], [[0, 2]], [[2, 1]], [[0, -1]]], "int32"),
    "actualSeqQLenOptional": (2, 5), "actualSeqKvLenOptional": (4, 12), "scaleValue": 0.3,
    "selectedBlockSize": 2, "selectedBlockCount": 2, "headNum": 2, "inputLayout": "TND",
    "sparseMode": 0}  # fmt: skip


def _nsa() -> list[Any]:
    q, k, v = _half(5, 2, 16), _half(12, 1, 16), _half(12, 1, 8)
    lists = np.array(_NSA["topkIndices"].values)
    top, total, out = selected(q, k, v, lists, (2, 5), (4, 12), 0.3, 2)
    return [take(query=_arg(q), key=_arg(k), value=_arg(v), attentionOut=_arg(out),
                 attentionOutGrad=t(*out.shape, dtype="float16"), softmaxMax=_arg(top, "float32"),
                 softmaxSum=_arg(total, "float32"), **_NSA)]  # fmt: skip


@spec("aclnnNsaSelectedAttentionGrad", "dqOut:query dkOut:key dvOut:value",
      ignored=one_value("inputLayout")
      | saved("attentionOut softmaxMax softmaxSum")
      | follows("headNum selectedBlockCount"),
      uncovered="attenMaskOptional sparseMode",
      constant="actualSeqQLenOptional actualSeqKvLenOptional scaleValue selectedBlockSize",
      **_ROW, samples=_nsa,
      source="Yuan et al.: Native Sparse Attention, 2025, derivative of equation 12")  # fmt: skip
def selected_back(
    query: Array, key: Array, value: Array, attentionOutGrad: Array, topkIndices: Array,
    actualSeqQLenOptional: Sequence[int], actualSeqKvLenOptional: Sequence[int],
    scaleValue: float, selectedBlockSize: int,
) -> Three:  # fmt: skip
    n, m, begins = query.shape[1], key.shape[1], (0, 0)
    parts: list[Three] = []
    for ends in zip(actualSeqQLenOptional, actualSeqKvLenOptional, strict=True):
        rows, cols = slice(begins[0], ends[0]), slice(begins[1], ends[1])
        seen = np.repeat(blocks_seen(topkIndices[rows], ends[1] - begins[1], selectedBlockSize),
                         n // m, 0)  # fmt: skip
        q, k, v, dy = (heads(x, n) for x in (query[rows], key[cols], value[cols],
                                             attentionOutGrad[rows]))  # fmt: skip
        dq, dk, dv = back(q, k, v, seen, dy, scaleValue)
        parts.append((np.moveaxis(dq, 0, 1), folded(dk, m), folded(dv, m)))
        begins = ends
    dq, dk, dv = (np.concatenate(part) for part in zip(*parts, strict=True))
    return dq, dk, dv


_LISTS: Final = [[[[0, 2, -1]], [[1, 0, -1]], [[2, 1, -1]], [[2, 0, 1]]]]


def _sparse() -> list[Any]:
    q, k, v, qr, kr = (_half(*s) for s in (
        (1, 4, 2, 16), (1, 6, 1, 16), (1, 6, 1, 16), (1, 4, 2, 8), (1, 6, 1, 8)))  # fmt: skip
    out, top, total = sparse_flash(
        q, k, v, np.array(_LISTS), qr, kr, 0.4, 2, None, None, "BSND", "BSND", 0
    )
    return [take(query=_arg(q), key=_arg(k), value=_arg(v), sparseIndices=const(_LISTS, "int32"),
                 dOut=t(*out.shape, dtype="float16"), out=_arg(out),
                 softmaxMax=_arg(top, "float32"), softmaxSum=_arg(total, "float32"),
                 queryRopeOptional=_arg(qr), keyRopeOptional=_arg(kr), scaleValue=0.4,
                 sparseBlockSize=2, layoutOptional="BSND", sparseMode=0, preTokens=_FAR,
                 nextTokens=_FAR, deterministic=False)]  # fmt: skip


@spec("aclnnSparseFlashAttentionGrad",
      "dQueryOut:query dKeyOut:key dValueOut:value dQueryRopeOutOptional:query "
      "dKeyRopeOutOptional:key",
      ignored=saved("out softmaxMax softmaxSum"),
      uncovered="actualSeqLengthsQueryOptional actualSeqLengthsKvOptional layoutOptional "
                "sparseMode preTokens nextTokens",
      constant="scaleValue sparseBlockSize",
      **_ROW, samples=_sparse,
      source="DeepSeek-V3.2-Exp, 2025: derivative of attention to listed keys")  # fmt: skip
def sparse_back(
    query: Array, key: Array, value: Array, sparseIndices: Array, dOut: Array,
    queryRopeOptional: Array, keyRopeOptional: Array, scaleValue: float, sparseBlockSize: int,
) -> tuple[Array, ...]:  # fmt: skip
    n, m, width = query.shape[2], key.shape[2], query.shape[-1]
    parts = []
    for b in range(len(query)):
        q = heads(np.concatenate([query[b], queryRopeOptional[b]], -1), n)
        k = heads(np.concatenate([key[b], keyRopeOptional[b]], -1), n)
        seen = np.repeat(blocks_seen(sparseIndices[b], key.shape[1], sparseBlockSize), n // m, 0)
        dq, dk, dv = back(q, k, heads(value[b], n), seen, heads(dOut[b], n), scaleValue)
        parts.append((np.moveaxis(dq, 0, 1), folded(dk, m), folded(dv, m)))
    dq, dk, dv = (np.stack(part) for part in zip(*parts, strict=True))
    return dq[..., :width], dk[..., :width], dv, dq[..., width:], dk[..., width:]


_OPEN: Final = [[[[1, 0], [1, 1]], [[0, 1], [1, 0]], [[1, 1], [1, 1]], [[1, 0], [0, 1]]]]


def _blocks() -> list[Any]:
    q, k, v = _half(1, 4, 6, 16), _half(1, 2, 8, 16), _half(1, 2, 8, 16)
    out, lse = block_sparse(q, k, v, np.array(_OPEN), (4, 4), 0.4)
    return [take(dout=t(*out.shape, dtype="float16"), query=_arg(q), key=_arg(k), value=_arg(v),
                 attentionOut=_arg(out), softmaxLse=_arg(lse, "float32"),
                 blockSparseMaskOptional=const(_OPEN, "int8"), blockShapeOptional=(4, 4),
                 qInputLayout="BNSD", kvInputLayout="BNSD", numKeyValueHeads=2, maskType=0,
                 scaleValue=0.4, preTokens=0, nextTokens=0)]  # fmt: skip


@spec("aclnnBlockSparseAttentionGrad", "dq:query dk:key dv:value",
      ignored=saved("attentionOut softmaxLse"),
      uncovered="attenMaskOptional actualSeqLengthsOptional actualSeqLengthsKvOptional "
                "qInputLayout kvInputLayout numKeyValueHeads maskType preTokens nextTokens",
      constant="blockShapeOptional scaleValue",
      **_ROW, samples=_blocks,
      source="op-plugin test npu_block_sparse_attention: derivative of attention whose mask leaves "
      "blocks out")  # fmt: skip
def block_back(
    dout: Array, query: Array, key: Array, value: Array, blockSparseMaskOptional: Array,
    blockShapeOptional: Sequence[int], scaleValue: float,
) -> Three:  # fmt: skip
    group, size = query.shape[1] // key.shape[1], tuple(blockShapeOptional)
    open_ = np.kron(blockSparseMaskOptional, np.ones(size))
    seen = open_[..., : query.shape[2], : key.shape[2]] > 0
    parts = [back(q, np.repeat(k, group, 0), np.repeat(v, group, 0), s, dy, scaleValue)
             for q, k, v, s, dy in zip(query, key, value, seen, dout, strict=True)]  # fmt: skip
    dq, dk, dv = (np.stack(part) for part in zip(*parts, strict=True))

    def summed(x: Array) -> Array:
        return x.reshape(len(x), key.shape[1], group, *x.shape[2:]).sum(2)

    return dq, summed(dk), summed(dv)


def _floyd() -> list[Any]:
    q, k1, v1, k2, v2 = (_half(*s) for s in (
        (1, 2, 3, 4, 16), (1, 2, 3, 5, 16), (1, 2, 3, 5, 16), (1, 2, 5, 4, 16),
        (1, 2, 5, 4, 16)))  # fmt: skip
    top, total, out = floyd(q, k1, v1, k2, v2, 0.25)
    return [take(query=_arg(q), key1=_arg(k1), value1=_arg(v1), key2=_arg(k2), value2=_arg(v2),
                 dy=t(*out.shape, dtype="float16"), softmaxMax=_arg(top, "float32"),
                 softmaxSum=_arg(total, "float32"), attentionIn=_arg(out),
                 scaleValue=0.25)]  # fmt: skip


@spec("aclnnFusedFloydAttentionGrad",
      "dqOut:query dk1Out:query dv1Out:query dk2Out:query dv2Out:query",
      ignored=saved("softmaxMax softmaxSum attentionIn"),
      uncovered="attenMaskOptional",
      constant="scaleValue",
      **_ROW, samples=_floyd,
      source="op-plugin document npu_fused_floyd_attention: derivative of attention over pairs of "
      "axes")  # fmt: skip
def floyd_back(
    query: Array, key1: Array, value1: Array, key2: Array, value2: Array, dy: Array,
    scaleValue: float,
) -> tuple[Array, ...]:  # fmt: skip
    def dots(x: Array, first: Array, second: Array) -> Array:
        return (np.einsum("bhijc,bhikc->bhijk", x, first)
                + np.einsum("bhijc,bhkjc->bhijk", x, second))  # fmt: skip

    scores = dots(query, key1, key2) * scaleValue
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    dp = dots(dy, value1, value2)
    ds = scaleValue * p * (dp - (dp * p).sum(-1, keepdims=True))
    dq = np.einsum("bhijk,bhikc->bhijc", ds, key1) + np.einsum("bhijk,bhkjc->bhijc", ds, key2)

    def by(weights: Array, x: Array) -> tuple[Array, Array]:
        return (np.einsum("bhijk,bhijc->bhikc", weights, x),
                np.einsum("bhijk,bhijc->bhkjc", weights, x))  # fmt: skip

    (dk1, dk2), (dv1, dv2) = by(ds, query), by(p, dy)
    return dq, dk1, dv1, dk2, dv2
