"""Grouped products with what follows them, caches of decoders, and recurrent attention."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import given, spec, t, take
from .gates import swiglu
from .norms import rms_norm
from .quantisation import dynamic


def _half(*shape: int, **more: Any) -> Arg:
    return t(*shape, dtype="float16", **more)


def _brain(*shape: int, **more: Any) -> Arg:
    return t(*shape, dtype="bfloat16", **more)


def _int8(*shape: int) -> Arg:
    return t(*shape, dtype="int8", low=-8, high=8)


_GROUPED: Final[dict[str, Any]] = {"family": "grouped_matmul", "tolerance": "gradient"}


@spec("aclnnGroupedMatmulAdd aclnnGroupedMatmulAddV2", "yRef:yRef", **_GROUPED,
      dtypes=("float16", "bfloat16"), source="op-plugin test test_npu_grouped_matmul_add: each "
      "group's x^T weight, added to what is there", samples=[
          take(x=_half(12, 16), weight=_half(12, 9), groupList=given([4, 9, 12], "int64"),
               yRef=t(3, 16, 9), transposeX=True, transposeWeight=False, groupType=2,
               groupListType=0)])  # fmt: skip
def grouped_add(x: Array, weight: Array, groupList: Array, yRef: Array) -> Array:
    ends = groupList[:-1]
    parts = zip(np.split(x, ends), np.split(weight, ends), strict=True)
    return yRef + np.stack([a.T @ b for a, b in parts])


def scaled_groups(x: Array, weight: Array, sizes: Array, scale: Array, perRow: Array) -> Array:
    """int8 rows times each group's int8 weight, in the scales of columns and rows."""
    which = np.repeat(np.arange(len(sizes)), sizes)
    product = np.einsum("mk,mkn->mn", x.astype(np.float64), weight[which].astype(np.float64))
    return product * scale[which] * perRow[:, None]


@spec("aclnnGroupedMatmulSwigluQuant aclnnGroupedMatmulSwigluQuantWeightNZ",
      "output:int8 outputScale:float32", **_GROUPED, steps=True, dtypes=("float32",),
      formats={"aclnnGroupedMatmulSwigluQuantWeightNZ weight": "FRACTAL_NZ"},
      source="op-plugin test test_npu_grouped_matmul_swiglu_quant", samples=[
          take(x=_int8(12, 32), weight=_int8(3, 32, 64), weightScale=t(3, 64, low=0.01, high=0.05),
               xScale=t(12, low=0.2, high=1), groupList=given([4, 9, 12], "int64"))])  # fmt: skip
def grouped_swiglu_quant(
    x: Array, weight: Array, weightScale: Array, xScale: Array, groupList: Array
) -> Any:
    sizes = np.diff(groupList, prepend=0)
    return dynamic(swiglu(scaled_groups(x, weight, sizes, weightScale, xScale), True))


@spec("aclnnGroupedMatmulFinalizeRoutingWeightNzV2", "out:float32", **_GROUPED, dtypes=("float32",),
      formats={"x2": "FRACTAL_NZ"},
      source="op-plugin document npu_grouped_matmul_finalize_routing and its test", samples=[
          take(x1=_int8(8, 32), x2=_int8(2, 32, 64), scale=t(2, 64, low=0.01, high=0.05),
               pertokenScaleOptional=t(8, low=0.2, high=1), groupList=given([5, 3], "int64"),
               sharedInput=_brain(2, 64), logit=t(8),
               rowIndex=given([3, 0, 2, 1, 3, 1, 0, 2], "int64"), dtype=0, sharedInputWeight=0.5,
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


@spec("aclnnRecurrentGatedDeltaRule", "out:value stateRef:stateRef", family="attention",
      tolerance="gradient", dtypes=("bfloat16",), source="Yang et al.: Gated Delta Networks, 2024; "
      "op-plugin document npu_recurrent_gated_delta_rule", samples=[
          take(query=_brain(5, 2, 16), key=_brain(5, 2, 16, low=-0.3, high=0.3),
               value=_brain(5, 4, 16), beta=_brain(5, 4, low=0.1, high=1),
               stateRef=_brain(6, 4, 16, 16), actualSeqLengths=given([2, 3], "int32"),
               ssmStateIndices=given([4, 1, 5, 0, 2], "int32"), g=t(5, 4, low=-1, high=0),
               gk=gk, numAcceptedTokens=accepted, scaleValue=0.25)
          for gk, accepted in ((None, None), (None, given([2, 3], "int32")),
                               (t(5, 4, 16, low=-1, high=0), None))],
      )  # fmt: skip
def gated_delta(
    query: Array, key: Array, value: Array, beta: Array, stateRef: Array, actualSeqLengths: Array,
    ssmStateIndices: Array, g: Array, gk: Array | None, numAcceptedTokens: Array | None,
    scaleValue: float,
) -> tuple[Array, Array]:  # fmt: skip
    """S = a S + beta (v - a S k) k^T and o = scale S q; every token's state is kept in its slot.
    `gk` is a decay of its own for each channel of the keys."""
    group = value.shape[1] // key.shape[1]
    q, k = (np.repeat(x, group, 1) for x in (query * scaleValue, key))
    states, out, begin = stateRef.copy(), np.empty_like(value), 0
    for b, length in enumerate(actualSeqLengths):
        last = 0 if numAcceptedTokens is None else int(numAcceptedTokens[b]) - 1
        state = states[ssmStateIndices[begin + last]]
        for i in range(begin, begin + length):
            state = state * np.exp(g[i])[:, None, None]
            state = state if gk is None else state * np.exp(gk[i])[:, None, :]
            gap = beta[i][:, None] * (value[i] - np.einsum("nvk,nk->nv", state, k[i]))
            state = state + gap[:, :, None] * k[i][:, None, :]
            states[ssmStateIndices[i]] = state
            out[i] = np.einsum("nvk,nk->nv", state, q[i])
        begin += length
    return out, states


_RING: Final[dict[str, Any]] = {"family": "attention", "tolerance": "gradient", "source":
                                "Liu, Zaharia, Abbeel: Ring Attention with Blockwise Transformers, "
                                "2023; op-plugin test test_npu_ring_attention_update", "casts": {
                                    p + n: {"float16": "float32", "bfloat16": "float32"}
                                    for p in ("prevSoftmax", "curSoftmax") for n in ("Max", "Sum")
                                }}  # fmt: skip


def _eight(*shape: int, low: float, high: float) -> Arg:
    """Statistics: eight equal values a row."""
    drawn = np.random.default_rng(len(shape)).uniform(low, high, (*shape, 1))
    return given(np.broadcast_to(drawn, (*shape, 8)).tolist(), "float32")


def _ring(layout: str, flow: tuple[int, ...], rows: tuple[int, ...]) -> dict[str, Any]:
    return {"prevAttnOut": t(*flow), "curAttnOut": t(*flow), "inputLayoutOptional": layout,
            "prevSoftmaxMax": _eight(*rows, low=0.2, high=1.2),
            "prevSoftmaxSum": _eight(*rows, low=0.5, high=1.5),
            "curSoftmaxMax": _eight(*rows, low=0.3, high=1.3),
            "curSoftmaxSum": _eight(*rows, low=0.4, high=1.4),
            "inputSoftmaxLayoutOptional": layout}  # fmt: skip


@spec("aclnnRingAttentionUpdateV2",
      "attnOutOut:prevAttnOut softmaxMaxOut:float32 softmaxSumOut:float32", **_RING, samples=[
          take(**_ring("SBH", (4, 2, 32), (2, 2, 4))),
          take(**_ring("TND", (5, 2, 64), (5, 2)),
               actualSeqQlenOptional=given([2, 5], "int64"))])  # fmt: skip
def ring_update(
    prevAttnOut: Array, curAttnOut: Array, prevSoftmaxMax: Array, prevSoftmaxSum: Array,
    curSoftmaxMax: Array, curSoftmaxSum: Array, inputLayoutOptional: str,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Two blocks' results, each in the scale of its own maximum, become one."""
    top = np.maximum(prevSoftmaxMax, curSoftmaxMax)
    prev = prevSoftmaxSum * np.exp(prevSoftmaxMax - top)
    cur = curSoftmaxSum * np.exp(curSoftmaxMax - top)
    total, shape = prev + cur, prevAttnOut.shape

    def weighted(x: Array, part: Array) -> Array:
        share = (part / total)[..., :1]
        if inputLayoutOptional == "TND":
            return x * share
        share = share.transpose(2, 0, 1, 3)  # from [B, N, S, 1]
        return (x.reshape(*share.shape[:3], -1) * share).reshape(shape)

    return weighted(prevAttnOut, prev) + weighted(curAttnOut, cur), top, total


_CACHE: Final[dict[str, Any]] = {"family": "cache", "tolerance": "gradient", "specials": False,
                                 "dtypes": ("float16", "bfloat16")}  # fmt: skip


def rope_pairs(x: Array, cos: Array, sin: Array) -> Array:
    """Neighbours are pairs; afterwards their members lie half a row apart."""
    a, b = x[..., 0::2], x[..., 1::2]
    half = a.shape[-1]
    first = a * cos[..., :half] - b * sin[..., :half]
    return np.concatenate([first, b * cos[..., half:] + a * sin[..., half:]], -1)


def _kv(
    mode: str, b: int, s: int, cache: tuple[int, ...], index: Any, **more: Any
) -> dict[str, Any]:
    return {"kv": _half(b, 1, s, 576), "gamma": _half(512), "cos": _half(b, 1, s, 64),
            "sin": _half(b, 1, s, 64), "index": given(index, "int64"),
            "kCacheRef": _half(*cache, 64), "ckvCacheRef": _half(*cache, 512), "epsilon": 1e-5,
            "cacheModeOptional": mode, "isOutputKv": True, **more}  # fmt: skip


def _steps(*shape: int) -> Arg:
    return t(*shape, dtype="int8", low=-9, high=9)


# Caches of small integers: a factor and a shift a column, or one for all.
_SMALL: Final[dict[str, Any]] = {
    "kCacheRef": _steps(3, 16, 1, 64), "ckvCacheRef": _steps(3, 16, 1, 512),
    "kRopeScaleOptional": t(64, low=5, high=20), "cKvScaleOptional": t(512, low=5, high=20),
    "kRopeOffsetOptional": t(64), "cKvOffsetOptional": t(1, low=1),
}  # fmt: skip


def tiled(cache: Array, tile: int) -> Array:
    """[blocks x size, D] of blocks that hold D in tiles, each with `size` rows."""
    blocks, size = cache.shape[:2]
    return cache.reshape(blocks, -1, size, tile).swapaxes(1, 2).reshape(blocks * size, -1)


@spec("aclnnKvRmsNormRopeCache aclnnKvRmsNormRopeCacheV2",
      "kCacheRef:kCacheRef ckvCacheRef:ckvCacheRef kRopeOut:kv cKvOut:kv", **_CACHE, steps=True,
      source="op-plugin document npu_kv_rmsnorm_rope_cache and its test", samples=[
          take(**_kv("Norm", 2, 2, (2, 1, 6), [[3, 0], [5, 2]])),
          take(**_kv("PA", 2, 2, (3, 16, 1), [17, 3, 40, 0])),
          take(**_kv("PA", 2, 2, (3, 16, 1), [17, -1, 40, 0], **_SMALL)),
          take(**_kv("PA_NZ", 2, 2, (3, 16, 1), [17, 3, -1, 0])),
          take(**_kv("PA_BLK_BNSD", 2, 18, (5, 16, 1), [16, 64, 0, 32]))])  # fmt: skip
def kv_cache(
    kv: Array, gamma: Array, cos: Array, sin: Array, index: Array, kCacheRef: Array,
    ckvCacheRef: Array, epsilon: float, cacheModeOptional: str,
    kRopeScaleOptional: Array | None, cKvScaleOptional: Array | None,
    kRopeOffsetOptional: Array | None, cKvOffsetOptional: Array | None,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """[B, 1, S, 512 + 64]: RMS norm of the first part, rotary embedding of the second. The index
    names rows of a sample's cache (Norm), slots (PA), or where blocks of slots begin (BLK); below 0
    nothing is written. NZ keeps blocks in tiles of 32 bytes."""
    latent = rms_norm(kv[..., :512], gamma, epsilon)[0]
    rope = rope_pairs(kv[..., 512:], cos, sin)
    at, (batch, _, tokens, _) = index.reshape(-1), kv.shape
    if cacheModeOptional == "Norm":
        at = at + np.repeat(np.arange(batch), tokens) * kCacheRef.shape[2]
    elif "BLK" in cacheModeOptional:
        size, token = kCacheRef.shape[1], np.arange(tokens)
        at = (index.reshape(batch, -1)[:, token // size] // size * size + token % size).reshape(-1)
    caches = []
    for cache, rows, scale, offset in (
        (kCacheRef, rope, kRopeScaleOptional, kRopeOffsetOptional),
        (ckvCacheRef, latent, cKvScaleOptional, cKvOffsetOptional),
    ):
        flat = rows.reshape(-1, rows.shape[-1])
        if scale is not None:
            flat = np.clip(flat * scale + (0 if offset is None else offset), -128, 127)
        new = cache.astype(np.float64)
        lines = np.arange(new.size).reshape(new.shape)
        where = tiled(lines, 16) if cacheModeOptional.endswith("NZ") else lines
        where = where.reshape(-1, rows.shape[-1])
        new.reshape(-1)[where[at[at >= 0]]] = flat[at >= 0]
        caches.append(new)
    return caches[0], caches[1], rope, latent


@spec("aclnnGatherPaKvCache", "keyRef:keyRef valueRef:valueRef", **{**_CACHE, "tolerance": "exact"},
      source="Kwon et al.: PagedAttention, 2023; op-plugin test test_npu_gather_pa_kv_cache",
      samples=[
          take(keyCache=_half(5, *block), valueCache=_half(5, *block),
               blockTables=given([[3, 0, 1], [2, 4, 0]], "int32"), seqLens=given(lens, "int32"),
               keyRef=_half(13, 2, 16), valueRef=_half(13, 2, 16), seqOffsetOptional=offset,
               cacheMode=mode, isSeqLensCumsum=sums)
          for lens, sums, offset, mode, block in (
              ([6, 7], False, None, "Norm", (4, 2, 16)),
              ([0, 6, 13], True, None, "Norm", (4, 2, 16)),
              ([6, 7], False, given([4, 4], "int32"), "Norm", (4, 2, 16)),
              ([6, 7], False, None, "PA_NZ", (2, 4, 16)))])  # fmt: skip
def gather_pages(
    keyCache: Array, valueCache: Array, blockTables: Array, seqLens: Array,
    seqOffsetOptional: Array | None, cacheMode: str, isSeqLensCumsum: bool,
) -> tuple[Array, Array]:  # fmt: skip
    """Token j of a sequence lies in the block that its table names for j; what the table does not
    hold is 0. In PA_NZ blocks hold tiles [row / 16, size, 16]."""
    if cacheMode == "PA_NZ":
        keyCache, valueCache = keyCache.swapaxes(1, 2), valueCache.swapaxes(1, 2)
    size = keyCache.shape[1]
    lengths = np.diff(seqLens) if isSeqLensCumsum else seqLens
    gathered: list[list[Array]] = [[], []]
    for b, length in enumerate(lengths):
        first = 0 if seqOffsetOptional is None else int(seqOffsetOptional[b]) // size
        for j in range(length):
            page = first + j // size
            for cache, rows in zip((keyCache, valueCache), gathered, strict=True):
                inside = page < blockTables.shape[1]
                row = cache[blockTables[b, page], j % size] if inside else 0 * cache[0, 0]
                rows.append(row)
    return np.stack(gathered[0]), np.stack(gathered[1])


_QUANT: Final[dict[str, Any]] = {"family": "quantisation", "tolerance": "gradient", "steps": True,
                                 "dtypes": ("float16", "bfloat16")}  # fmt: skip


@spec("aclnnAddRmsNormQuantV2", "y1Out:int8 y2Out:int8 xOut:x1", **_QUANT, source="Zhang, "
      "Sennrich 2019, round((y + beta) / scale + zero point); op-plugin npu_add_rms_norm_quant",
      samples=[
          take(x1=_half(3, 64), x2=_half(3, 64), gamma=_half(64), scales1=_half(
               64, low=0.05, high=0.2), zeroPoints1Optional=_half(64), betaOptional=beta,
               axis=-1, epsilon=1e-6, divMode=True) for beta in (_half(64), None)])  # fmt: skip
def add_rms_norm_quant_v2(
    x1: Array, x2: Array, gamma: Array, scales1: Array, zeroPoints1Optional: Array,
    betaOptional: Array | None, epsilon: float,
) -> tuple[Array, None, Array]:  # fmt: skip
    y = rms_norm(x1 + x2, gamma, epsilon)[0]
    y = y if betaOptional is None else y + betaOptional
    return y / scales1 + zeroPoints1Optional, None, x1 + x2


@spec("aclnnAddRmsNormDynamicQuantV2",
      "y1Out:int8 y2Out:int8 xOut:x1 scale1Out:float32 scale2Out:float32", **_QUANT,
      source="op-plugin document npu_add_rms_norm_dynamic_quant", samples=[
          take(x1=_half(3, 64), x2=_half(3, 64), gamma=_half(64), smoothScale1Optional=_half(
               64, low=0.5), smoothScale2Optional=_half(64, low=0.5), betaOptional=beta,
               epsilon=1e-6) for beta in (_half(64), None)])  # fmt: skip
def add_rms_norm_dynamic_v2(
    x1: Array, x2: Array, gamma: Array, smoothScale1Optional: Array, smoothScale2Optional: Array,
    betaOptional: Array | None, epsilon: float,
) -> tuple[Array, Array, Array, Array, Array]:  # fmt: skip
    y = rms_norm(x1 + x2, gamma, epsilon)[0]
    y = y if betaOptional is None else y + betaOptional
    steps, scale = zip(*(dynamic(y, s) for s in (smoothScale1Optional, smoothScale2Optional)),
                       strict=True)  # fmt: skip
    return steps[0], steps[1], x1 + x2, scale[0], scale[1]
