"""Caches of keys and values, and steps of decoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import const, f16, i8, spec, t, take, unspecified
from ._ignored import follows, one_value, requested
from .norm.rms import rms_norm

_CACHE: Final[dict[str, Any]] = {"tolerance": "gradient", "specials": False,
                                 "dtypes": ("float16", "bfloat16")}  # fmt: skip


def rope_pairs(x: Array, cos: Array, sin: Array) -> Array:
    """Neighbours are pairs; afterwards their members lie half a row apart."""
    a, b = x[..., 0::2], x[..., 1::2]
    half = a.shape[-1]
    first = a * cos[..., :half] - b * sin[..., :half]
    return np.concatenate([first, b * cos[..., half:] + a * sin[..., half:]], -1)


def _norm_rope_cache(
    mode: str, b: int, s: int, cache: tuple[int, ...], index: Any, **more: Any
) -> dict[str, Any]:
    return {"kv": f16(b, 1, s, 576), "gamma": f16(512), "cos": f16(b, 1, s, 64),
            "sin": f16(b, 1, s, 64), "index": const(index, "int64"),
            "kCacheRef": f16(*cache, 64), "ckvCacheRef": f16(*cache, 512), "epsilon": 1e-5,
            "cacheModeOptional": mode, "isOutputKv": True, **more}  # fmt: skip


def _steps(*shape: int) -> Arg:
    return t(*shape, dtype="int8", low=-9, high=9)


# Caches of small integers: a factor and a shift a column, or one for all.
_INT8_ROWS: Final[dict[str, Any]] = {
    "kCacheRef": _steps(3, 16, 1, 64), "ckvCacheRef": _steps(3, 16, 1, 512),
    "kRopeScaleOptional": t(64, low=5, high=20), "cKvScaleOptional": t(512, low=5, high=20),
    "kRopeOffsetOptional": t(64), "cKvOffsetOptional": t(1, low=1),
}  # fmt: skip


def tiled(cache: Array, tile: int) -> Array:
    """[blocks x size, D] of blocks that hold D in tiles, each with `size` rows."""
    blocks, size = cache.shape[:2]
    return cache.reshape(blocks, -1, size, tile).swapaxes(1, 2).reshape(blocks * size, -1)


@spec("aclnnKvRmsNormRopeCache aclnnKvRmsNormRopeCacheV2",
      "kCacheRef:kCacheRef ckvCacheRef:ckvCacheRef kRopeOut:kv cKvOut:kv",
      ignored=requested("isOutputKv"),
      uncovered="vOptional",
      **_CACHE, steps=True,
      source="op-plugin document npu_kv_rmsnorm_rope_cache and its test", samples=[
          take(**_norm_rope_cache("Norm", 2, 2, (2, 1, 6), [[3, 0], [5, 2]])),
          take(**_norm_rope_cache("PA", 2, 2, (3, 16, 1), [17, 3, 40, 0])),
          take(**_norm_rope_cache("PA", 2, 2, (3, 16, 1), [17, -1, 40, 0], **_INT8_ROWS)),
          take(**_norm_rope_cache("PA_NZ", 2, 2, (3, 16, 1), [17, 3, -1, 0])),
          take(**_norm_rope_cache("PA_BLK_BNSD", 2, 18, (5, 16, 1), [16, 64, 0, 32]))])  # fmt: skip
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
          take(keyCache=f16(5, *block), valueCache=f16(5, *block),
               blockTables=const([[3, 0, 1], [2, 4, 0]], "int32"), seqLens=const(lens, "int32"),
               keyRef=f16(13, 2, 16), valueRef=f16(13, 2, 16), seqOffsetOptional=offset,
               cacheMode=mode, isSeqLensCumsum=sums)
          for lens, sums, offset, mode, block in (
              ([6, 7], False, None, "Norm", (4, 2, 16)),
              ([0, 6, 13], True, None, "Norm", (4, 2, 16)),
              ([6, 7], False, const([4, 4], "int32"), "Norm", (4, 2, 16)),
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


def _dequant_cache(shape: tuple[int, int], cache: str, **more: Any) -> dict[str, Any]:
    batch, rows = shape
    n = batch * rows
    return {
        "x": f16(batch, rows, 2 * 8 + 2 * 8),
        "cos": f16(batch, rows, 1, 8),
        "sin": f16(batch, rows, 1, 8),
        "kCacheRef": t(batch, 6, 1, 8, dtype="int8", low=-9, high=9),
        "vCacheRef": t(batch, 6, 1, 8, dtype="int8", low=-9, high=9),
        "sizeSplits": (16, 8, 8),
        "indices": const(
            np.arange(batch) if cache == "contiguous" else np.arange(n)[::-1], "int32"
        ),
        "scaleK": t(1, 8, low=9, high=30),
        "scaleV": t(1, 8, low=9, high=30),
        "kvOutput": True,
        "quantModeOptional": "static",
        "layoutOptional": "BSND",
        "cacheModeOptional": cache,
        **more,
    }


def _halves(x: Array, cos: Array, sin: Array) -> Array:
    half = x.shape[-1] // 2
    other = np.concatenate([-x[..., half:], x[..., :half]], -1)
    return x * cos + other * sin


@spec(
    "aclnnDequantRopeQuantKvcache",
    "qOut:float16 kOut:float16 vOut:float16 kCacheRef:int8 vCacheRef:int8",
    ignored=requested("kvOutput"),
    uncovered="weightScaleOptional activationScaleOptional biasOptional quantModeOptional "
    "layoutOptional",
    constant="sizeSplits",
    tolerance="composite",
    steps=True,
    slack=0.08,  # of 127 steps, with a turned key that may be rounded to half before
    specials=False,
    dtypes=("float16",),
    source="operator document of aclnnDequantRopeQuantKvcache; op-plugin test "
    "npu_rope_quant_kvcache, where scales multiply",
    samples=[
        take(**_dequant_cache((2, 3), "contiguous")),
        take(**_dequant_cache((2, 2), "page")),
        take(
            **_dequant_cache((2, 1), "contiguous", offsetKOptional=t(1, 8), offsetVOptional=t(1, 8))
        ),
    ],
)
def rope_quant_cache(
    x: Array,
    cos: Array,
    sin: Array,
    kCacheRef: Array,
    vCacheRef: Array,
    indices: Array,
    scaleK: Array,
    scaleV: Array,
    offsetKOptional: Array | None,
    offsetVOptional: Array | None,
    sizeSplits: Sequence[int],
    cacheModeOptional: str,
) -> tuple[Array, ...]:
    q, k, v = (p.reshape(*x.shape[:2], -1, 8) for p in np.split(x, np.cumsum(sizeSplits)[:2], -1))
    q, k = _halves(q, cos, sin), _halves(k, cos, sin)
    caches = []
    for cache, rows, scale, shift in (
        (kCacheRef, k, scaleK, offsetKOptional),
        (vCacheRef, v, scaleV, offsetVOptional),
    ):
        steps = rows * scale + (0 if shift is None else shift)
        new = cache.astype(np.float64)
        if cacheModeOptional == "page":
            new.reshape(-1, *new.shape[2:])[indices] = steps.reshape(-1, *new.shape[2:])
        else:
            for b, at in enumerate(indices):
                new[b, at : at + rows.shape[1]] = steps[b]
        caches.append(new)
    return q, k, v, *caches


def _qkv(
    d: int, size: int, index: Sequence[int], heads: tuple[int, int, int] = (2, 1, 1), **more: Any
) -> dict[str, Any]:
    rows, all_heads = len(index), sum(heads)
    return {
        "qkv": f16(rows, all_heads * d),
        "qGamma": f16(d),
        "kGamma": f16(d),
        "cos": f16(rows, d),
        "sin": f16(rows, d),
        "index": const(index, "int64"),
        "qOut": f16(rows, heads[0] * d),
        "kCache": f16(2, heads[1] * d // 16, size, 16),
        "vCache": f16(2, heads[2] * d // 16, size, 16),
        "qkvSize": (1, rows, all_heads, d),
        "headNums": heads,
        "cacheModeOptional": "PA_NZ",
        **more,
    }


# Caches of small integers, in tiles of 32: what is kept is divided, and shifted.
_INT8_TILES: Final[dict[str, Any]] = {
    "kCache": t(2, 1, 4, 32, dtype="int8", low=-9, high=9),
    "vCache": t(2, 1, 4, 32, dtype="int8", low=-9, high=9),
    "kScaleOptional": t(32, low=0.05, high=0.2), "vScaleOptional": t(32, low=0.05, high=0.2),
    "kOffsetOptional": t(32), "vOffsetOptional": t(32, low=1),
}  # fmt: skip


@spec("aclnnQkvRmsNormRopeCache", "qOut:qkv kCache:kCache vCache:vCache qOutBeforeQuant:qkv "
      "kOutBeforeQuant:qkv vOutBeforeQuant:qkv",
      ignored=one_value("cacheModeOptional"),
      tolerance="gradient",
      specials=False, steps=True, dtypes=("float16",),
      source="op-plugin test test_npu_qkv_rms_norm_rope_cache: norms, halves that turn, caches in "
      "tiles of 32 bytes", samples=[
          take(**_qkv(32, 4, (5, -1, 2)), epsilon=1e-5),
          take(**_qkv(32, 4, (0, 7, 3, 1)), epsilon=0.5),
          take(**_qkv(32, 4, (5, -1, 2), (3, 2, 2)), epsilon=1e-5),
          take(**_qkv(32, 4, (5, -1, 2), **_INT8_TILES), epsilon=1e-5)])  # fmt: skip
def qkv_cache(
    qkv: Array, qGamma: Array, kGamma: Array, cos: Array, sin: Array, index: Array, kCache: Array,
    vCache: Array, qkvSize: Sequence[int], headNums: Sequence[int], epsilon: float,
    kScaleOptional: Array | None, vScaleOptional: Array | None, kOffsetOptional: Array | None,
    vOffsetOptional: Array | None,
) -> tuple[Array, ...]:  # fmt: skip
    d, (queries, keys, _) = qkvSize[3], headNums
    rows = qkv.reshape(len(qkv), -1, d)

    def rotate(x: Array) -> Array:
        other = np.concatenate([-x[..., d // 2 :], x[..., : d // 2]], -1)
        return x * cos[:, None] + other * sin[:, None]

    def flat(x: Array) -> Array:
        return x.reshape(len(x), -1)

    q = flat(rotate(rms_norm(rows[:, :queries], qGamma, epsilon)[0]))
    k = flat(rotate(rms_norm(rows[:, queries : queries + keys], kGamma, epsilon)[0]))
    v, caches = flat(rows[:, queries + keys :]), []
    for cache, new, scale, offset in ((kCache, k, kScaleOptional, kOffsetOptional),
                                      (vCache, v, vScaleOptional, vOffsetOptional)):  # fmt: skip
        pages, size = cache.astype(np.float64), cache.shape[2]
        moved = 0 if offset is None else offset
        stored = new if scale is None else np.clip(new / scale + moved, -128, 127)
        for row, at in zip(stored, index, strict=True):
            if at >= 0:
                pages[at // size, :, at % size] = row.reshape(-1, cache.shape[3])
        caches.append(pages)
    return q, *caches, q, k, v


def _advance(requests: int, drafts: int) -> dict[str, Any]:
    each = 1 + drafts
    count = np.arange(requests * each)
    tokens = np.full((requests, each), -1)
    for r in range(requests):
        tokens[r, : r % each + 1] = 20 + 3 * r + np.arange(r % each + 1)
    return {
        "inputTokens": const(count, "int64"), "sampledTokenIds": const(tokens, "int64"),
        "inputPositions": const(count % 5 + 2, "int64"), "seqLens": const(count, "int64"),
        "slotMapping": const(count, "int64"), "numSeqs": requests, "numQueries": requests,
        "blockTables": const(np.arange(requests * 6).reshape(requests, 6) * 7 % 31, "int64"),
        "specToken": const(50 + np.arange(requests * drafts).reshape(requests, drafts), "int64"),
        "acceptedNum": const(np.arange(requests) % each, "int64"),
    }  # fmt: skip


@spec("aclnnAdvanceStepV2", "inputTokens:inputTokens inputPositions:inputPositions seqLens:seqLens "
      "slotMapping:slotMapping",
      ignored=follows("numSeqs numQueries"),
      tolerance="exact",
      source="op-plugin document npu_advance_step_flashattn, speculative case, and the golden of "
      "its test", samples=[
          take(**_advance(r, d), blockSize=b) for r, d, b in ((3, 2, 4), (5, 1, 8))])  # fmt: skip
def advance_drafts(
    inputTokens: Array, sampledTokenIds: Array, inputPositions: Array, seqLens: Array,
    slotMapping: Array, blockTables: Array, specToken: Array, acceptedNum: Array, blockSize: int,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """A request goes on by what was accepted and one; its last valid token leads, drafts follow."""
    requests, drafts = specToken.shape
    valid = np.array([row[row >= 0][-1] for row in sampledTokenIds])
    tokens = np.column_stack([valid, specToken])
    at = inputPositions.reshape(requests, 1 + drafts) + acceptedNum[:, None] + 1
    block = np.take_along_axis(blockTables, at // blockSize, 1)
    slot = block * blockSize + at % blockSize
    return tokens.ravel(), at.ravel(), at.ravel() + 1, slot.ravel()


_SLOTS: Final = {"slotMapping": const([7, -1, 11, 4, 5], "int32")}


def _paged(cache: Array, rows: Array, slots: Array, mode: str) -> Array:
    """Rows go to slots, none to one below 0. PA_NZ keeps a block as tiles [row / 16, size, 16]."""
    pages = cache.swapaxes(1, 2) if mode == "PA_NZ" else cache
    blocks, size = pages.shape[:2]
    flat = pages.reshape(blocks * size, -1).copy()
    flat[slots[slots >= 0]] = rows.reshape(len(rows), -1)[slots >= 0]
    placed = flat.reshape(pages.shape)
    return placed.swapaxes(1, 2) if mode == "PA_NZ" else placed


@spec("aclnnScatterPaKvCache", "keyCacheRef:keyCacheRef valueCacheRef:valueCacheRef",
      uncovered="compressLensOptional compressSeqOffsetOptional seqLensOptional "
                "scatterModeOptional stridesOptional offsetsOptional",
      tolerance="exact", specials=False,
      source="Kwon et al.: PagedAttention, 2023; vLLM, reshape_and_cache; op-plugin test "
      "npu_scatter_pa_kv_cache", samples=[
          take(key=f16(5, 2, 16), value=f16(5, 2, 16), keyCacheRef=f16(*cache),
               valueCacheRef=f16(*cache), **_SLOTS, cacheModeOptional=mode,
               scatterModeOptional="None")
          for mode, cache in (("Norm", (3, 4, 2, 16)), ("PA_NZ", (3, 2, 4, 16)))])  # fmt: skip
def scatter_pa_kv(
    key: Array, value: Array, keyCacheRef: Array, valueCacheRef: Array, slotMapping: Array,
    cacheModeOptional: str,
) -> tuple[Array, ...]:  # fmt: skip
    return (_paged(keyCacheRef, key, slotMapping, cacheModeOptional),
            _paged(valueCacheRef, value, slotMapping, cacheModeOptional))  # fmt: skip


@spec("aclnnScatterPaCache", "keyCacheRef:keyCacheRef",
      uncovered="compressLensOptional compressSeqOffsetOptional seqLensOptional",
      tolerance="exact",
      specials=False, source="Kwon et al.: PagedAttention, 2023; vLLM, reshape_and_cache", samples=[
          take(key=f16(5, 2, 16), keyCacheRef=f16(*cache), cacheMode=mode, **_SLOTS)
          for mode, cache in (("Norm", (3, 4, 2, 16)), ("PA_NZ", (3, 2, 4, 16)))])  # fmt: skip
def scatter_pa(key: Array, keyCacheRef: Array, slotMapping: Array, cacheMode: str) -> Array:
    return _paged(keyCacheRef, key, slotMapping, cacheMode)


@spec("aclnnInplaceQuantScatter", "selfRef:selfRef",
      ignored=one_value("axis reduction"),
      uncovered="quantZeroPoints quantAxis",
      tolerance="gradient",
      steps=True, dtypes=("int8",), source="op-plugin document npu_quant_scatter and its test",
      samples=[
          take(selfRef=i8(2, 9, 32), indices=const([5, 0], "int32"),
               updates=t(2, 3, 32, dtype="bfloat16"), quantScales=t(
                   1, 1, 32, dtype="bfloat16", low=0.05, high=0.2), quantZeroPoints=None, axis=-2,
               quantAxis=-1, reduction=1)])  # fmt: skip
def quant_scatter(selfRef: Array, indices: Array, updates: Array, quantScales: Array) -> Array:
    """Batch b's rows, divided by their scales, lie from indices[b] on."""
    out = selfRef.astype(np.float64)
    for b, row in enumerate(indices):
        out[b, row : row + updates.shape[1]] = updates[b] / quantScales[0]
    return out


@spec("aclnnInplaceQuantScatterV2", "selfRef:selfRef",
      ignored=one_value("axis reduction"),
      uncovered="quantZeroPoints quantAxis roundMode",
      tolerance="gradient",
      steps=True, dtypes=("int8",), source="op-plugin document npu_quant_scatter and its test",
      samples=[
          take(selfRef=t(2, 9, 32, dtype="int8", low=-8, high=8), indices=const([5, 0], "int32"),
               updates=t(2, 3, 32, dtype="bfloat16"), quantScales=t(
                   1, 1, 32, dtype="bfloat16", low=0.05, high=0.2), quantZeroPoints=None, axis=-2,
               quantAxis=-1, reduction=1, roundMode="rint")])  # fmt: skip
def scattered_steps(selfRef: Array, indices: Array, updates: Array, quantScales: Array) -> Array:
    """Batch b's rows, divided by their scales, lie from indices[b] on."""
    out = selfRef.astype(np.float64)
    for b, row in enumerate(indices):
        out[b, row : row + updates.shape[1]] = updates[b] / quantScales[0]
    return out


unspecified("aclnnAdvanceStep",
            "moves vLLM's block tables on; op-plugin's document and the golden of its test read "
            "the table without its rows' offset, vLLM with it", "op-plugin document "
            "npu_advance_step_flashattn and its test; vLLM, advance_step")  # fmt: skip
