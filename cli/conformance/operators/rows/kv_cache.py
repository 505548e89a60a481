"""Caches of keys and values, and steps of decoding."""

from __future__ import annotations

from ....spec import *
from ....spec.sizes import Role
from ._words import *
from .norm.rms import rms_norm

_PAGED: Final = "Kwon et al.: PagedAttention, 2023; vLLM, reshape_and_cache"
# P blocks of Z slots each.
_BLOCKS: Final = sizes(P=pages(5, 1, 9), Z=page(16, 1, 128))
_SMALL: Final = sizes(P=pages(5, 9, 2), Z=page(16, 32))
# Elements of a tile of 32 bytes.
_TILE: Final = "32 if dtype({0}) in ('int8', 'uint8') else 8 if dtype({0}) in ('float32', 'int32')"
_REQUESTED: Final = only(True, "asks for results, all of which are compared")


def rope_pairs(x: Array, cos: Array, sin: Array) -> Array:
    """Neighbours are pairs; afterwards their members lie half a row apart."""
    a, b = x[..., 0::2], x[..., 1::2]
    half = a.shape[-1]
    first = a * cos[..., :half] - b * sin[..., :half]
    return np.concatenate([first, b * cos[..., half:] + a * sin[..., half:]], -1)


def tiled(cache: Array, tile: int) -> Array:
    """[blocks x size, D] of blocks that hold D in tiles, each with `size` rows."""
    blocks, size = cache.shape[:2]
    return cache.reshape(blocks, -1, size, tile).swapaxes(1, 2).reshape(blocks * size, -1)


def _rows_of_samples(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """Rows of each sample's own cache, none twice."""
    rows = [rng.permutation(draw["L"])[: draw["S"]] for _ in range(draw["B"])]
    return np.sort(rows) if pattern == "in_order" else np.array(rows)


def _first_slots(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """Where the blocks of each sample begin."""
    at = rng.permutation(draw["P"])[: draw["B"] * -(-draw["S"] // draw["Z"])]
    return (np.sort(at) if pattern == "in_order" else at) * draw["Z"]


_SLOTS: Final = slots("B*S", into="P*Z", hole=-1)
_FIRST: Final = content(_first_slots, "shuffled in_order", shape="B*ceil(S,Z)")


def _latent_params(version: int) -> dict[str, Domain]:
    modes = ("PA", "PA_BNSD", "PA_NZ", "PA_BLK_BNSD", "PA_BLK_NZ")

    def cache(width: int) -> Domain:
        blocks = tensor(f"P Z 1 {width}", "kv", -9, 9)
        rows = tensor(f"B 1 L {width}", "kv", -9, 9)
        return inout(by("cacheModeOptional", {"Norm": rows, **dict.fromkeys(modes, blocks)}))

    def factors(width: int, of: str) -> Domain:
        return optional(tensor(f"{width}", "f32", 5, 20), iff=f"dtype({of}) == 'int8'")

    def shifts(width: int, scale: str) -> Domain:
        return optional(forms(each=tensor(f"{width}", "f32"), all=tensor("1", "f32", 1, 2)),
                        only=f"given({scale})")  # fmt: skip

    return {
        "kv": tensor("B 1 S 576", "f16 bf16"), "gamma": tensor("512", "kv"),
        "cos": tensor("B 1 S 64", "kv"), "sin": tensor("B 1 S 64", "kv"),
        "index": by("cacheModeOptional", {
            "Norm": content(_rows_of_samples, "shuffled in_order", shape="B S", reads=("L",)),
            **dict.fromkeys(modes[:3], _SLOTS), **dict.fromkeys(modes[3:], _FIRST)}),
        "kCacheRef": cache(64), "ckvCacheRef": cache(512),
        "kRopeScaleOptional": factors(64, "kCacheRef"),
        "cKvScaleOptional": factors(512, "ckvCacheRef"),
        "kRopeOffsetOptional": shifts(64, "kRopeScaleOptional"),
        "cKvOffsetOptional": shifts(512, "cKvScaleOptional"),
        **({"vOptional": null("of other splits, which no public document states")}
           if version > 1 else {}),
        "epsilon": number(1e-5, 0.25), "cacheModeOptional": choice("Norm", *modes),
        "isOutputKv": _REQUESTED, "kRopeOut": out("kv"), "cKvOut": out("kv"),
    }  # fmt: skip


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
    nz = cacheModeOptional.endswith("NZ")
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
        where = tiled(lines, 32 if cache.dtype.kind == "i" else 16) if nz else lines
        where = where.reshape(-1, rows.shape[-1])
        new.reshape(-1)[where[at[at >= 0]]] = flat[at >= 0]
        caches.append(new)
    return caches[0], caches[1], rope, latent


for _version in (1, 2):
    spec(f"aclnnKvRmsNormRopeCache{'V2' if _version > 1 else ''}", Rule(
             "gradient", "op-plugin document npu_kv_rmsnorm_rope_cache and its test",
             steps=True, specials=False),
         _SMALL, sizes(B=batch(2, 1, 3), S=seq(3, 1, 18, 40), L=row(6, 1, 50)),
         require("S <= L", "B*ceil(S, Z) <= P or 'BLK' not in cacheModeOptional",
                 refuses=None),
         both("S > Z and 'BLK' in cacheModeOptional",
              "dtype(kCacheRef) == 'int8' and 'NZ' in cacheModeOptional"),
         dtypes("""kv   kCacheRef ckvCacheRef
                   f16  f16       f16
                   f16  i8        i8
                   f16  f16       i8
                   bf16 bf16      bf16
                   bf16 i8        i8"""),
         **_latent_params(_version))(kv_cache)  # fmt: skip


def _offsets(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """Tokens of whole blocks that each sequence leaves out."""
    skip = rng.integers(0, 3, draw["B"]) if pattern == "blocks" else np.zeros(draw["B"], int)
    return skip * draw["Z"]


_DATA: Final = "f16 bf16 f32 i8 u8 i16 i32"


def _pages(mode: str, width: str, like: str, tile: str = "W") -> Domain:
    """A cache in blocks: rows of heads, or tiles of 32 bytes."""
    return by(mode, {"Norm": tensor(f"P Z N {width}", like),
                     "PA_NZ": tensor(f"P N*{width}//{tile} Z {tile}", like)})  # fmt: skip


@spec("aclnnGatherPaKvCache", Rule(
          "exact", "Kwon et al.: PagedAttention, 2023; op-plugin test "
          "test_npu_gather_pa_kv_cache"),
      sizes(P=pages(5, 1, 9), Z=page(4, 1, 16, 128), B=batch(2, 1, 3, 5),
            T=tokens(13, 1, 40, 130), M=group(3, 1, 12), N=heads(2, 1, 3),
            D=head_dim(32, 64, 128), V=head_dim(32, 64),
            W=_TILE.format("keyRef") + " else 16"),
      both("largest(blockTables) == P - 1", "given(seqOffsetOptional) and isSeqLensCumsum"),
      keyCache=_pages("cacheMode", "D", _DATA), valueCache=_pages("cacheMode", "V", "keyCache"),
      blockTables=forms(i32=index("B M", into="P", dtype="i32"), i64=index("B M", into="P")),
      seqLens=by("isSeqLensCumsum", {
          False: parts("B", of="T", dtype="blockTables"),
          True: parts("B", of="T", form="starts", dtype="blockTables")}),
      keyRef=inout(tensor("T N D", "keyCache")), valueRef=inout(tensor("T N V", "keyCache")),
      seqOffsetOptional=optional(content(_offsets, "blocks none", "blockTables", shape="B",
                                         reads=("Z",))),
      cacheMode=choice("Norm", "PA_NZ"), isSeqLensCumsum=choice(False, True))  # fmt: skip
def gather_pages(
    keyCache: Array, valueCache: Array, blockTables: Array, seqLens: Array, keyRef: Array,
    valueRef: Array, seqOffsetOptional: Array | None, cacheMode: str, isSeqLensCumsum: bool,
) -> tuple[Array, Array]:  # fmt: skip
    """Token j of a sequence lies in the block that its table names for j; what the table does not
    hold is 0. In PA_NZ blocks hold tiles [row / 16, size, 16]."""
    if cacheMode == "PA_NZ":
        keyCache, valueCache = keyCache.swapaxes(1, 2), valueCache.swapaxes(1, 2)
    size, (_, per) = keyCache.shape[1], blockTables.shape
    lengths = np.diff(seqLens) if isSeqLensCumsum else seqLens
    owner = np.repeat(np.arange(len(lengths)), lengths)
    token = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    first = 0 if seqOffsetOptional is None else seqOffsetOptional[owner] // size
    page = first + token // size
    inside = page < per
    block = blockTables[owner, np.where(inside, page, 0)]

    def rows(cache: Array, like: Array) -> Array:
        return np.where(inside[:, None], cache[block, token % size].reshape(len(owner), -1),
                        0).reshape(like.shape)  # fmt: skip

    return rows(keyCache, keyRef), rows(valueCache, valueRef)


def _halves(x: Array, cos: Array, sin: Array) -> Array:
    half = x.shape[-1] // 2
    other = np.concatenate([-x[..., half:], x[..., :half]], -1)
    return x * cos + other * sin


def _starts(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """Where each sample's rows begin."""
    room = draw["L"] - draw["S"]
    at = {"first": 0, "last": room}.get(pattern)
    return rng.integers(0, room + 1, draw["B"]) if at is None else np.full(draw["B"], at)


_STARTS: Final = content(_starts, "random first last", "i32", shape="B", reads=("L", "S"))


@spec("aclnnDequantRopeQuantKvcache", Rule(
          "composite", "operator document of aclnnDequantRopeQuantKvcache; op-plugin test "
          "npu_rope_quant_kvcache, where scales multiply", steps=True,
          slack=0.08,  # of 127 steps, with a turned key that may be rounded to half before
          specials=False),
      sizes(B=batch(2, 1, 3), S=seq(3, 1, 17), L=row(6, 17, 40), A=heads(2, 1, 4),
            N=heads(1, 2), D=head_dim(8, 16, 64, 128)),
      require("S <= L", refuses=None),
      both("N > 1 and cacheModeOptional == 'page'", "dtype(x) == 'int32' and B*S > 1"),
      dtypes("""x   cos weightScaleOptional activationScaleOptional biasOptional
                f16 f16 -                   -                       -
                i32 f16 f32                 f32|-                   i32|f32|f16|-"""),
      x=by("x.dtype", {"f16": tensor("B S (A+2*N)*D", ""),
                       "i32": tensor("B S (A+2*N)*D", "", -2000, 2000)}),
      cos=tensor("B S 1 D"), sin=tensor("B S 1 D", "cos"),
      kCacheRef=inout(tensor("B L N D", "i8", -9, 9)),
      vCacheRef=inout(tensor("B L N D", "i8", -9, 9)),
      indices=by("cacheModeOptional", {
          "contiguous": _STARTS, "page": slots("B*S", into="B*L", dtype="i32")}),
      scaleK=tensor("N D", "f32", 9, 30), scaleV=tensor("N D", "f32", 9, 30),
      offsetKOptional=optional(tensor("N D", "f32")),
      offsetVOptional=optional(tensor("N D", "f32")),
      weightScaleOptional=tensor("(A+2*N)*D", "", 2e-4, 1e-3),
      activationScaleOptional=tensor("B*S", "", 0.5, 2),
      biasOptional=by("biasOptional.dtype", {
          "i32": tensor("(A+2*N)*D", "", -900, 900),
          **dict.fromkeys(("f32", "f16"), tensor("(A+2*N)*D", ""))}),
      sizeSplits=equals("(A*D, N*D, N*D)"),
      quantModeOptional=only("static", "documents: static alone"),
      layoutOptional=only("BSND", "documents: BSND alone"), kvOutput=_REQUESTED,
      cacheModeOptional=choice("contiguous", "page"), qOut=out("cos"), kOut=out("cos"),
      vOut=out("cos"))  # fmt: skip
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
    weightScaleOptional: Array | None,
    activationScaleOptional: Array | None,
    biasOptional: Array | None,
    sizeSplits: Sequence[int],
    cacheModeOptional: str,
) -> tuple[Array, ...]:
    """Integers are scaled first; a bias of integers counts products, one of floats results."""
    if weightScaleOptional is not None:
        whole = biasOptional is not None and biasOptional.dtype.kind == "i"
        x = (x + biasOptional if whole else x) * weightScaleOptional
        if activationScaleOptional is not None:
            x = x * activationScaleOptional.reshape(*x.shape[:2], 1)
        x = x if biasOptional is None or whole else x + biasOptional
    parts, depth = np.split(x, np.cumsum(sizeSplits)[:2], -1), kCacheRef.shape[-1]
    q, k, v = (p.reshape(*x.shape[:2], -1, depth) for p in parts)
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
    return *caches, q, k, v


def _int8(width: str) -> Domain:
    return inout(tensor(f"P {width}*D//32 Z 32", "i8", -9, 9))


_DIVIDED: Final = "of a cache of integers"
_SHIFT: Final = {"K": optional(tensor("K D", "f32")), "V": optional(tensor("V D", "f32"))}


@spec("aclnnQkvRmsNormRopeCache", Rule(
          "gradient", "op-plugin test test_npu_qkv_rms_norm_rope_cache: norms, halves that "
          "turn, caches in tiles of 32 bytes", steps=True, specials=False),
      sizes(P=pages(2, 5), Z=page(4, 16, 128), B=batch(1, 2), S=seq(3, 1, 17), A=heads(2, 1, 3),
            K=heads(1, 2), V=heads(1, 2), D=head_dim(32, 64, 128), T="B*S", N="A + K + V"),
      overload("floats"),
      overload("integers", kCache=_int8("K"), vCache=_int8("V"),
               kScaleOptional=tensor("K D", "f32", 0.05, 0.2),
               vScaleOptional=tensor("V D", "f32", 0.05, 0.2),
               kOffsetOptional=_SHIFT["K"], vOffsetOptional=_SHIFT["V"]),
      both("given(kScaleOptional) and K > 1", "K != V"),
      qkv=tensor("T N*D", "f16 bf16"), qGamma=tensor("D", "qkv"), kGamma=tensor("D", "qkv"),
      cos=tensor("T D", "qkv"), sin=tensor("T D", "qkv"),
      index=slots("T", into="P*Z", hole=-1), qOut=out("qkv"),
      kCache=inout(tensor("P K*D//16 Z 16", "qkv")),
      vCache=inout(tensor("P V*D//16 Z 16", "qkv")),
      kScaleOptional=null(_DIVIDED), vScaleOptional=null(_DIVIDED),
      kOffsetOptional=null(_DIVIDED), vOffsetOptional=null(_DIVIDED),
      qkvSize=equals("(B, S, N, D)"), headNums=equals("(A, K, V)"),
      epsilon=number(1e-5, 0.5), cacheModeOptional=only("PA_NZ", "documents: PA_NZ alone"),
      qOutBeforeQuant=out("qkv"), kOutBeforeQuant=out("qkv"),
      vOutBeforeQuant=out("qkv"))  # fmt: skip
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
        moved = 0 if offset is None else offset.reshape(-1)
        stored = new if scale is None else np.clip(new / scale.reshape(-1) + moved, -128, 127)
        for line, at in zip(stored, index, strict=True):
            if at >= 0:
                pages[at // size, :, at % size] = line.reshape(-1, cache.shape[3])
        caches.append(pages)
    return q, *caches, q, k, v


def _samples(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """Tokens of each request, -1 behind the last valid one."""
    each = draw["X"] + 1
    valid = {"all": each, "one": 1}.get(pattern)
    lengths = rng.integers(1, each + 1, draw["R"]) if valid is None else np.full(draw["R"], valid)
    tokens = rng.integers(1, 1000, (draw["R"], each))
    return np.where(np.arange(each) < lengths[:, None], tokens, -1)


def _positions(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """Positions that stay within the table of blocks after the largest step."""
    last = draw["M"] * draw["Z"] - draw["X"] - 2
    count = draw["R"] * (draw["X"] + 1)
    if pattern == "edges":
        return np.resize([0, last, max(draw["Z"] - 1, 0)], count).clip(0, last)
    return rng.integers(0, last + 1, count)


def _accepted(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    most = draw["X"]
    return {"none": np.zeros(draw["R"], int), "all": np.full(draw["R"], most)}.get(
        pattern, rng.integers(0, most + 1, draw["R"]))  # fmt: skip


_COUNTERS: Final = index("R*(X+1)", into="1000", patterns="random repeated")


@spec("aclnnAdvanceStepV2", Rule(
          "exact", "op-plugin document npu_advance_step_flashattn, speculative case, and the "
          "golden of its test"),
      sizes(R=batch(3, 1, 5, 33), X=group(2, 1, 4), M=group(6, 3, 17), Z=page(4, 8, 16, 128)),
      require("M*Z >= X + 2", refuses=None),
      inputTokens=inout(_COUNTERS),
      sampledTokenIds=content(_samples, "mixed all one", shape="R X+1"),
      inputPositions=inout(content(_positions, "random edges", shape="R*(X+1)",
                                     reads=("M", "Z"))),
      seqLens=inout(_COUNTERS), slotMapping=inout(_COUNTERS),
      blockTables=index("R M", into="997"), specToken=index("R X", into="1000"),
      acceptedNum=content(_accepted, "mixed none all", shape="R", reads=("X",)),
      numSeqs=equals("R"), numQueries=equals("R"), blockSize=equals("Z"))  # fmt: skip
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


def _paged(cache: Array, rows: Array, slots: Array, mode: str) -> Array:
    """Rows go to slots, none to one below 0. PA_NZ keeps a block as tiles [row / 16, size, 16]."""
    pages = cache.swapaxes(1, 2) if mode == "PA_NZ" else cache
    blocks, size = pages.shape[:2]
    flat = pages.reshape(blocks * size, -1).copy()
    flat[slots[slots >= 0]] = rows.reshape(len(rows), -1)[slots >= 0]
    placed = flat.reshape(pages.shape)
    return placed.swapaxes(1, 2) if mode == "PA_NZ" else placed


_UNSTATED: Final = null("of compressed caches, which no public document states")
_PLACES: Final = forms(i32=slots("T", into="P*Z", dtype="i32", hole=-1),
                       i64=slots("T", into="P*Z", hole=-1))  # fmt: skip
_SCATTERED: Final = sizes(T=tokens(5, 1, 17, 130), N=heads(2, 1, 3), D=head_dim(32, 64, 96),
                          W=_TILE.format("key") + " else 16")  # fmt: skip


@spec("aclnnScatterPaKvCache", Rule(
          "exact", f"{_PAGED}; op-plugin test npu_scatter_pa_kv_cache"),
      _BLOCKS, _SCATTERED, sizes(V=head_dim(32, 64)), both("T > P*Z", "V != D"),
      key=tensor("T N D", _DATA), keyCacheRef=inout(_pages("cacheModeOptional", "D", "key")),
      slotMapping=_PLACES, value=tensor("T N V", "key"),
      valueCacheRef=inout(_pages("cacheModeOptional", "V", "key")),
      compressLensOptional=_UNSTATED, compressSeqOffsetOptional=_UNSTATED,
      seqLensOptional=_UNSTATED, cacheModeOptional=choice("Norm", "PA_NZ"),
      scatterModeOptional=only("None", "the other modes are of compressed caches"),
      stridesOptional=null("of rows apart, which no public document states"),
      offsetsOptional=null("of rows apart, which no public document states"))  # fmt: skip
def scatter_pa_kv(
    key: Array, value: Array, keyCacheRef: Array, valueCacheRef: Array, slotMapping: Array,
    cacheModeOptional: str,
) -> tuple[Array, ...]:  # fmt: skip
    return (_paged(keyCacheRef, key, slotMapping, cacheModeOptional),
            _paged(valueCacheRef, value, slotMapping, cacheModeOptional))  # fmt: skip


@spec("aclnnScatterPaCache", Rule("exact", _PAGED), _BLOCKS, _SCATTERED, both("T > P*Z"),
      key=tensor("T N D", _DATA), keyCacheRef=inout(_pages("cacheMode", "D", "key")),
      slotMapping=_PLACES, compressLensOptional=_UNSTATED, compressSeqOffsetOptional=_UNSTATED,
      seqLensOptional=_UNSTATED, cacheMode=choice("Norm", "PA_NZ"))  # fmt: skip
def scatter_pa(key: Array, keyCacheRef: Array, slotMapping: Array, cacheMode: str) -> Array:
    return _paged(keyCacheRef, key, slotMapping, cacheMode)


_QUANTIZED: Final = Rule("gradient", "op-plugin document npu_quant_scatter and its test",
                         steps=True)  # fmt: skip
_SHORT: Final[dict[str, Role | str]] = {"B": batch(2, 1, 3), "L": row(9, 1, 40), "S": seq(3, 1, 17),
                 "D": head_dim(32, 64, 128)}  # fmt: skip
_FITS: Final = require("S <= L", refuses=None)
_STEP_TYPES: Final = dtypes("""selfRef updates quantScales quantZeroPoints
                               i8      bf16    bf16        bf16|-
                               i8      f16     f32         i32|-""")
_BEGIN: Final = forms(i32=_STARTS, i64=content(_starts, "random first last", "i64", shape="B",
                                               reads=("L", "S")))  # fmt: skip


def _quant_params(rank: str, axis: Domain) -> dict[str, Domain]:
    return {
        "selfRef": inout(tensor(f"B {rank}L D", "i8", -8, 8)), "indices": _BEGIN,
        "updates": tensor(f"B {rank}S D", "bf16"),
        "quantScales": tensor("1 1 D", "bf16", 0.05, 0.2),
        "quantZeroPoints": tensor("1 1 D", "bf16", -9, 9), "axis": axis,
        "quantAxis": only(-1, "documents: the last alone"),
        "reduction": only(1, "documents: update alone"),
    }  # fmt: skip


def quant_scatter(
    selfRef: Array, indices: Array, updates: Array, quantScales: Array,
    quantZeroPoints: Array | None,
) -> Array:  # fmt: skip
    """Batch b's rows, divided by their scales and moved, lie from indices[b] on; pairs of indices
    name the batch too."""
    out, shift = selfRef.astype(np.float64), 0 if quantZeroPoints is None else quantZeroPoints[0, 0]
    steps = np.clip(updates / quantScales[0, 0] + shift, -128, 127)
    pairs = indices if indices.ndim == 2 else np.stack([np.arange(len(indices)), indices], 1)
    for (b, first), rows in zip(pairs, steps, strict=True):
        out[b, ..., first : first + rows.shape[-2], :] = rows
    return out


def _pairs(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """Batches in any order, and where their rows begin."""
    return np.stack([rng.permutation(draw["B"]), _starts(rng, pattern, draw)], 1)


spec("aclnnInplaceQuantScatter", _QUANTIZED, sizes(**_SHORT), _FITS, _STEP_TYPES,
     **_quant_params("", number(-2, 1)))(quant_scatter)  # fmt: skip
_DEEPER: Final = _quant_params("N ", number(-2))
spec("aclnnInplaceQuantScatterV2", _QUANTIZED, sizes(N=heads(2, 3), **_SHORT), _FITS,
     _STEP_TYPES, overload("rows"),
     overload("heads", selfRef=_DEEPER["selfRef"], updates=_DEEPER["updates"],
              axis=number(-2, 2)),
     overload("pairs", indices=content(_pairs, "random first last", "i32", shape="B 2",
                                       reads=("L", "S"))),
     **_quant_params("", number(-2, 1)),
     roundMode=only("rint", "documents: rint alone for eight-bit integers")
     )(quant_scatter)  # fmt: skip


def _same_tables(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    blocks = rng.permutation(997)[: draw["M"]] if pattern == "shuffled" else np.arange(draw["M"])
    return np.broadcast_to(blocks, (draw["R"], draw["M"])).copy()


def _lengths(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """How long sequences are before the step, which their tables have room for."""
    size, room = draw["Z"], draw["M"] * draw["Z"]
    if pattern == "edges":
        return np.resize([size - 1, size, room - 1, 0, 1], draw["R"]) % room
    return rng.integers(0, room, draw["R"])


# op-plugin's document and the golden of its test read the table without its rows' offset, vLLM with
# it: all rows are alike here. That test sets no more than one row of padding.
@spec("aclnnAdvanceStep", Rule("exact", "op-plugin test test_npu_advance_step_flashattn; vLLM, "
                               "advance_step"),
      sizes(Q=batch(3, 1, 5, 33), X=group(1, 0), R="Q + X", M=group(6, 3, 17),
            Z=page(4, 8, 16, 128)), both("X > 0"),
      inputTokens=inout(index("R", into="1000")), sampledTokenIds=index("Q 1", into="1000"),
      inputPositions=inout(index("R", into="1000")),
      seqLens=inout(content(_lengths, "random edges", shape="R", reads=("M", "Z"))),
      slotMapping=inout(index("R", into="1000")),
      blockTables=content(_same_tables, "shuffled in_order", shape="R M",
                          alike="public sources differ on whose row of the table is read"),
      numSeqs=equals("R"), numQueries=equals("Q"), blockSize=equals("Z"))  # fmt: skip
def advance(
    inputTokens: Array, sampledTokenIds: Array, inputPositions: Array, seqLens: Array,
    slotMapping: Array, blockTables: Array, numQueries: int, blockSize: int,
) -> tuple[Array, ...]:  # fmt: skip
    """A sequence takes its sampled token, whose position is the length before; what pads has token
    and position 0 and no slot."""
    tokens, positions = np.zeros_like(inputTokens), np.zeros_like(inputPositions)
    slots, lengths = np.full_like(slotMapping, -1), seqLens.copy()
    at = seqLens[:numQueries]
    tokens[:numQueries], positions[:numQueries] = sampledTokenIds[:, 0], at
    lengths[:numQueries] += 1
    slots[:numQueries] = blockTables[0, at // blockSize] * blockSize + at % blockSize
    return tokens, positions, lengths, slots
