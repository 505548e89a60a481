"""Attention over keys that lists select, and the lists."""

from __future__ import annotations

from .....spec import *
from .....spec import heads as heads_
from .._words import *

FAR: Final = only(2**31 - 1, "documents allow one value")
EIGHT: Final = 8  # softmax statistics are kept eight times side by side
_HALVES: Final = "f16 bf16"


def nothing_seen(values: Sequence[Array], got: Sequence[Array]) -> list[Array]:
    """Documents do not state the statistics of rows that see nothing: -inf and 0 here, where
    kernels leave the least and the largest number."""
    largest = np.finfo(np.float32).max
    empty = [np.isneginf(v) if np.asarray(v).dtype.kind == "f" else np.False_ for v in values]
    odd = any(np.any(e) for e in empty)
    return [np.where((np.abs(g) >= largest) & (np.isneginf(v) | (v == 0)), g, v) if odd else v
            for v, g in zip(values, got, strict=True)]  # fmt: skip


RULE: Final = Rule("gradient", "DeepSeek-V3.2-Exp: Boosting Long-Context Efficiency with DeepSeek "
                   "Sparse Attention, 2025; op-plugin test npu_sparse_flash_attention",
                   specials=False, values="normal integer", nearest=nothing_seen)  # fmt: skip


def weighed(
    scores: Array, values: Array, seen: Array, sink: Array | None = None
) -> tuple[Array, Array, Array]:
    """(result [N, Q, D], largest and sum [N, Q]) of scores over what is seen, both [N, Q, K].

    `sink` [N]: one score more of each row, without a value. A row that sees nothing gives zeros.
    """
    extra = np.full(len(scores), -np.inf) if sink is None else sink
    beside = np.broadcast_to(extra[:, None, None], (*scores.shape[:2], 1))
    every = np.concatenate([np.where(seen, scores, -np.inf), beside], -1)
    top = every.max(-1)
    weights = np.exp(every - np.where(np.isneginf(top), 0, top)[..., None])
    total = weights.sum(-1)
    return weights[..., :-1] @ values / np.where(total == 0, 1, total)[..., None], top, total


def by_heads(x: Array, count: int) -> Array:
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


def split(x: Array, ends: Any, packed: bool, cut: bool = False) -> list[Array]:
    """Sequences: of TND up to the next end, of BSND up to a length where it is to be `cut`."""
    if packed:
        return np.split(x[: ends[-1]], ends[:-1])
    return [one if ends is None or not cut else one[: ends[b]] for b, one in enumerate(x)]


def sequences(s: str, n: str, d: str, layout: str, make: Any, dtype: str) -> Domain:
    """Rows of sequences in the layout that another parameter names; `make(shape, dtype)`."""
    return by(layout, {"BSND": make(f"B {s} {n} {d}", dtype), "BNSD": make(f"B {n} {s} {d}", dtype),
                       "TND": make(f"B*{s} {n} {d}", dtype)})  # fmt: skip


def lists_of(layout: str, query_ends: str, key_ends: str, size: str, dtype: str = "i32") -> Domain:
    """For each query and head of keys the blocks that it sees, -1 for none: in any order, with
    gaps, all, few, the last one that is not whole, none at all for one query."""

    def make(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
        packed = not layout or draw[layout] == "TND"
        ends = draw[key_ends]
        keys = np.full(draw["B"], draw["Sk"]) if ends is None else ends.values()
        keys = np.diff(keys, prepend=0) if packed else keys
        rows = np.diff(draw[query_ends].values(), prepend=0) if packed else [draw["Sq"]] * draw["B"]
        every = [_list(rng, pattern, -(-int(k) // draw[size]), draw["L"])
                 for k, count in zip(keys, rows, strict=True)
                 for _ in range(int(count) * draw["K"])]  # fmt: skip
        lists = np.array(every).reshape(-1, draw["K"], draw["L"])
        if pattern == "unseeing":
            lists[len(lists) // 2] = -1
        return lists if packed else lists.reshape(draw["B"], draw["Sq"], *lists.shape[1:])

    patterns = "full few gaps last unseeing"
    if not layout:
        return content(make, patterns, dtype, shape="B*Sq K L", reads=(query_ends, key_ends, size))
    return by(layout, {
        "BSND": content(make, patterns, dtype, shape="B Sq K L", reads=(key_ends, size)),
        "TND": content(make, patterns, dtype, shape="B*Sq K L",
                       reads=(query_ends, key_ends, size))})  # fmt: skip


def _list(rng: np.random.Generator, pattern: str, blocks: int, length: int) -> Array:
    order = rng.permutation(blocks)
    if pattern == "last" and blocks:
        order = np.r_[blocks - 1, order[order != blocks - 1]]
    many = min(blocks, length)
    line = np.r_[order[:many], np.full(length - many, -1)]
    if pattern == "few" and many:
        line[rng.integers(1, many + 1) :] = -1
    if pattern == "gaps" and many > 1:
        line[rng.integers(0, many - 1)] = -1
    return line


def tokens_of(layout: str, s: str, dtype: str, patterns: str, cut: str = "") -> Domain:
    """Where sequences of TND end; of BSND how many rows count, or nothing."""

    def lengths(rng: np.random.Generator, _pattern: str, draw: Draw) -> Array:
        return rng.integers(1, draw[s] + 1, draw["B"])

    some = optional(content(lengths, "ragged", dtype, shape="B", reads=(s,)))
    packed = parts("B", of=f"B*{s}", form="ends", dtype=dtype, patterns=patterns)
    if not layout:
        return packed
    padded = some if cut else null("rows of queries that do not count have no stated result")
    return by(layout, {"BSND": padded, "BNSD": padded, "TND": packed})


_QUERY_ENDS: Final = "even ragged empty_first empty_middle empty_last one_has_all ones"
_KEY_ENDS: Final = "even ragged ones empty_last"
LISTED: Final = sizes(B=heads_(2, 1, 3), Sq=seq(4, 1, 9), Sk=seq(11, 1, 6, 33),
                       L=heads_(3, 1, 9))  # fmt: skip
LATENT: Final = sizes(K=heads_(1), N=heads_(2, 1, 3, 8), D=head_dim(16, 64, 512),
                       R=head_dim(8, 64))  # fmt: skip


def latent(make: Any, dtype: str, layout: str, lists: str, size: str) -> dict[str, Domain]:
    """Queries, latent keys and values, lists of blocks of keys."""
    queries, keys = "actualSeqLengthsQueryOptional", "actualSeqLengthsKvOptional"
    return {
        "query": sequences("Sq", "N", "D", layout, make, dtype or _HALVES),
        **dict.fromkeys(("key", "value"), sequences("Sk", "K", "D", layout, make,
                                                    dtype or "query")),
        lists: lists_of(layout, queries, keys, size),
    }  # fmt: skip


def rotary_parts(make: Any, dtype: str, layout: str) -> dict[str, Domain]:
    return {
        "actualSeqLengthsQueryOptional": tokens_of(layout, "Sq", "i32", _QUERY_ENDS),
        "actualSeqLengthsKvOptional": tokens_of(layout, "Sk", "i32", _KEY_ENDS, "cut"),
        "queryRopeOptional": sequences("Sq", "N", "R", layout, make, dtype),
        "keyRopeOptional": sequences("Sk", "K", "R", layout, make, dtype),
    }  # fmt: skip


def _latent_params(version: int) -> dict[str, Domain]:
    layout = "layoutQueryOptional"
    return {
        **latent(tensor, "", layout, "sparseIndices", "sparseBlockSizeOptional"),
        "blockTableOptional": null("of caches in blocks, which the simulator does not take"),
        **rotary_parts(tensor, "query", layout),
        **({"sinksOptional": optional(tensor("N", "f32", -1, 3))} if version > 1 else {}),
        "scaleValue": number(0.4, "D**-0.5", 1.0), "sparseBlockSizeOptional": integer(2, 1, 4, 16),
        "layoutQueryOptional": choice("BSND", "TND"), "layoutKvOptional": equals(layout),
        "sparseMode": choice(0, 3), "preTokens": FAR, "nextTokens": FAR,
        "attentionMode": only(2, "documents allow one value"), "returnSoftmaxLse": flag(True),
        "attentionOut": out("query"), "softmaxMax": out("f32"), "softmaxSum": out("f32"),
    }  # fmt: skip


SIDES: Final = both("Sq > Sk", "sparseMode == 3 and Sq > Sk")


@spec("aclnnSparseFlashAttention", RULE, LISTED, LATENT, SIDES, **_latent_params(1))
@spec("aclnnSparseFlashAttentionV2", RULE, LISTED, LATENT, SIDES,
      both("given(sinksOptional) and sparseMode == 3"), **_latent_params(2))  # fmt: skip
def sparse_flash(
    query: Array, key: Array, value: Array, sparseIndices: Array, queryRopeOptional: Array,
    keyRopeOptional: Array, scaleValue: float, sparseBlockSizeOptional: int,
    actualSeqLengthsQueryOptional: Array | None, actualSeqLengthsKvOptional: Array | None,
    layoutQueryOptional: str, sparseMode: int, returnSoftmaxLse: bool = True,
    sinksOptional: Array | None = None,
) -> tuple[Array, Array | None, Array | None]:  # fmt: skip
    """One head of latent keys, its rotary part beside it, attended where the lists say; in mode 3
    no further than the triangle of the lower right."""
    packed = layoutQueryOptional == "TND"
    n = query.shape[-2]
    qs = np.concatenate([query, queryRopeOptional], -1)
    ks = np.concatenate([key, keyRopeOptional], -1)
    results = []
    for q, lists, k, v in zip(
        *(split(x, actualSeqLengthsQueryOptional, packed) for x in (qs, sparseIndices)),
        *(split(x, actualSeqLengthsKvOptional, packed, True) for x in (ks, value)), strict=True,
    ):  # fmt: skip
        seen = blocks_seen(lists, len(k), sparseBlockSizeOptional)
        if sparseMode == 3:
            seen = seen & np.tri(len(q), len(k), len(k) - len(q), dtype=bool)
        scores = by_heads(q, n) @ by_heads(k, n).swapaxes(1, 2) * scaleValue
        y, top, total = weighed(scores, by_heads(v, n), seen, sinksOptional)
        results.append((np.moveaxis(y, 0, 1), top.T, total.T))
    parts_ = list(zip(*results, strict=True))
    whole, *stats = (np.concatenate(p) if packed else np.stack(p) for p in parts_)
    if not returnSoftmaxLse:
        return whole, None, None
    top, total = (s[None] if packed else s[:, None] for s in stats)
    return whole, top, total


_SELECTED: Final = replace(RULE, source="Yuan et al.: Native Sparse Attention, 2025, equation 12; "
                           "op-plugin document npu_nsa_select_attention")  # fmt: skip
GROUPED: Final = sizes(K=heads_(1, 2, 3), G=group(2, 1, 4), N="K*G", D=head_dim(16, 64, 192),
                        V=head_dim(8, 128))  # fmt: skip


def _shared_mask(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """One mask for all sequences, of the longest one's size."""
    shape = tuple(int(np.diff(draw[f"actualSeq{s}LenOptional"].values(), prepend=0).max())
                  for s in ("Q", "Kv"))  # fmt: skip
    hidden = rng.random(shape) < 0.3 if pattern == "random" else np.triu(np.ones(shape, bool), 1)
    hidden[:, :1] &= pattern != "random"
    return hidden


def selection(make: Any, dtype: str) -> dict[str, Domain]:
    """Packed queries, keys and values, and the blocks of keys that each query's list names."""
    return {
        "query": make("B*Sq N D", dtype or _HALVES),
        "key": make("B*Sk K D", dtype or "query"), "value": make("B*Sk K V", dtype or "query"),
        "topkIndices": lists_of("", "actualSeqQLenOptional", "actualSeqKvLenOptional",
                                "selectedBlockSize"),
        "attenMaskOptional": optional(content(_shared_mask, "random causal", "bool", reads=(
            "actualSeqQLenOptional", "actualSeqKvLenOptional"))),
        "actualSeqQLenOptional": tokens_of("", "Sq", "i64", _QUERY_ENDS),
        "actualSeqKvLenOptional": tokens_of("", "Sk", "i64", _KEY_ENDS),
        "scaleValue": number(0.3, "D**-0.5", 1.0), "headNum": equals("N"),
        "inputLayout": only("TND", "documents allow one value"),
        "sparseMode": only(0, "the mask says what is hidden"),
        "selectedBlockSize": integer(2, 1, 4, 16), "selectedBlockCount": equals("L"),
    }  # fmt: skip


@spec("aclnnNsaSelectedAttention", _SELECTED, LISTED, GROUPED, both("Sq > Sk", "K > 1"),
      **selection(tensor, ""), softmaxMaxOut=out("f32"), softmaxSumOut=out("f32"),
      attentionOut=out("query"))  # fmt: skip
def selected(
    query: Array, key: Array, value: Array, topkIndices: Array,
    actualSeqQLenOptional: Sequence[int], actualSeqKvLenOptional: Sequence[int],
    scaleValue: float, selectedBlockSize: int, attenMaskOptional: Array | None = None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Packed sequences; every query sees the blocks of its own sequence that its list names."""
    n, results = query.shape[1], []
    for q, lists, k, v in zip(
        *(split(x, actualSeqQLenOptional, True) for x in (query, topkIndices)),
        *(split(x, actualSeqKvLenOptional, True) for x in (key, value)), strict=True,
    ):  # fmt: skip
        seen = listed(lists, len(k), selectedBlockSize, n, attenMaskOptional)
        scores = by_heads(q, n) @ by_heads(k, n).swapaxes(1, 2) * scaleValue
        results.append(weighed(scores, by_heads(v, n), seen))
    whole, top, total = (np.concatenate(part, 1) for part in zip(*results, strict=True))
    wide = [np.repeat(x.T[..., None], EIGHT, -1) for x in (top, total)]
    return wide[0], wide[1], np.moveaxis(whole, 0, 1)


def listed(lists: Array, keys: int, size: int, count: int, hidden: Array | None) -> Array:
    """[N, Q, K]: what lists name and a mask does not hide."""
    seen = np.repeat(blocks_seen(lists, keys, size), count // lists.shape[1], 0)
    return seen if hidden is None else seen & ~hidden[: len(lists), :keys].astype(bool)


_BLOCKS: Final = replace(RULE, source="op-plugin test npu_block_sparse_attention: blocks that the "
                         "mask leaves out weigh nothing")  # fmt: skip
BLOCK_SIZES: Final = sizes(B=heads_(2, 1, 3), Sq=seq(6, 1, 17), Sk=seq(8, 1, 5, 33),
                            K=heads_(2, 1, 3), G=group(2, 1, 3), N="K*G",
                            D=head_dim(16, 64, 128), X="B*Sq if qInputLayout == 'TND' else Sq",
                            Y="B*Sk if qInputLayout == 'TND' else Sk")  # fmt: skip
_OPEN_BLOCKS: Final = "B N ceil(X,blockShapeOptional[0]) ceil(Y,blockShapeOptional[1])"


def blocks(make: Any, dtype: str) -> dict[str, Domain]:
    """Queries, keys, values, and which blocks of scores are open."""
    return {
        "query": sequences("Sq", "N", "D", "qInputLayout", make, dtype or _HALVES),
        **dict.fromkeys(("key", "value"), sequences("Sk", "K", "D", "qInputLayout", make,
                                                    dtype or "query")),
        "blockSparseMaskOptional": mask(_OPEN_BLOCKS, "i8", "random all causal whole_row last"),
        "attenMaskOptional": null("of a maskType, which the simulator does not take"),
        "blockShapeOptional": array((4, 4), (2, 8), (3, 1), (128, 128)),
        "actualSeqLengthsOptional": tokens_of("qInputLayout", "Sq", "i64", _QUERY_ENDS),
        "actualSeqLengthsKvOptional": tokens_of("qInputLayout", "Sk", "i64", _KEY_ENDS, "cut"),
    }  # fmt: skip


LAYOUTS: Final[dict[str, Domain]] = {
    "qInputLayout": choice("BNSD", "TND"), "kvInputLayout": equals("qInputLayout"),
    "numKeyValueHeads": equals("K"), "maskType": only(0, "documents allow one value"),
    "scaleValue": number(0.4, "D**-0.5", 1.0),
}  # fmt: skip
UNBANDED: Final[dict[str, Domain]] = dict.fromkeys(("preTokens", "nextTokens"), only(
    0, "of a maskType, which the simulator does not take"))  # fmt: skip


def _block_params(version: int) -> dict[str, Domain]:
    return {
        **blocks(tensor, ""),
        "blockTableOptional": null("of caches in blocks, which the simulator does not take"),
        **(dict.fromkeys(("qDequantScaleOptional", "kDequantScaleOptional",
                          "vDequantScaleOptional"), null("of eight bits, which have no formula"))
           if version > 1 else {}),
        **LAYOUTS, "innerPrecise": ignored("chooses between algorithms of one result",
                                           choice(0, 1)),
        "blockSize": only(0, "of caches in blocks"), **UNBANDED, "softmaxLseFlag": choice(1, 0),
        "attentionOut": out("query"), "softmaxLseOptional": out("f32"),
    }  # fmt: skip


@spec("aclnnBlockSparseAttention", _BLOCKS, BLOCK_SIZES, both("Sq > Sk", "G > 1"),
      **_block_params(1))  # fmt: skip
@spec("aclnnBlockSparseAttentionV2", _BLOCKS, BLOCK_SIZES, both("Sq > Sk", "G > 1"),
      **_block_params(2))  # fmt: skip
def block_sparse(
    query: Array, key: Array, value: Array, blockSparseMaskOptional: Array,
    blockShapeOptional: Sequence[int], actualSeqLengthsOptional: Sequence[int] | None,
    actualSeqLengthsKvOptional: Sequence[int] | None, qInputLayout: str, scaleValue: float,
    softmaxLseFlag: int = 1,
) -> tuple[Array, Array | None]:  # fmt: skip
    """Blocks of scores that the mask leaves out weigh nothing."""
    packed, results = qInputLayout == "TND", []
    for q, k, v, seen in open_sequences(
        query, key, value, blockSparseMaskOptional, blockShapeOptional, actualSeqLengthsOptional,
        actualSeqLengthsKvOptional, packed,
    ):  # fmt: skip
        y, top, total = weighed(q @ k.swapaxes(1, 2) * scaleValue, v, seen)
        lse = (top + np.log(np.where(total == 0, 1, total)))[..., None]
        results.append([np.moveaxis(x, 0, 1) for x in (y, lse)] if packed else [y, lse])
    whole, lse = (np.concatenate(p) if packed else np.stack(p)
                  for p in zip(*results, strict=True))  # fmt: skip
    return whole, lse if softmaxLseFlag else None


def open_sequences(
    query: Array, key: Array, value: Array, open_: Array, block: Sequence[int],
    query_ends: Sequence[int] | None, key_ends: Sequence[int] | None, packed: bool,
) -> list[tuple[Array, Array, Array, Array]]:  # fmt: skip
    """(q, k, v [N, T, D], what is seen [N, Q, K]) of every sequence; of BNSD no key is cut off, but
    those behind its length are not seen."""
    axis = 1 if packed else 0
    qs, ks, vs = (split(x, e, packed) for x, e in (
        (query, query_ends), (key, key_ends), (value, key_ends)))  # fmt: skip
    sequences_ = []
    for b, (q, k, v) in enumerate(zip(qs, ks, vs, strict=True)):
        q, k, v = (np.moveaxis(x, axis, 0) for x in (q, k, v))
        k, v = (np.repeat(x, len(q) // len(x), 0) for x in (k, v))
        seen = np.kron(open_[b], np.ones(tuple(block)))[:, : q.shape[1], : k.shape[1]] > 0
        if not packed and key_ends is not None:
            seen = seen & (np.arange(k.shape[1]) < key_ends[b])
        sequences_.append((q, k, v, seen))
    return sequences_


def _fewer(values: Sequence[Array], got: Sequence[Array]) -> list[Array]:
    """What stands beside an index of -1 is not stated."""
    indices, *worth = values
    return [indices, *(np.where(indices < 0, g, w) for w, g in zip(worth, got[1:], strict=True))]


_INDEXER: Final = Rule("gradient", "DeepSeek-V3.2-Exp, 2025, equation 1; op-plugin document "
                       "npu_lightning_indexer", specials=False, values="normal integer",
                       nearest=_fewer)  # fmt: skip
_INDEXED: Final = sizes(B=heads_(2, 1, 3), Sq=seq(3, 1, 9), Sk=seq(7, 1, 5, 33, 130), K=heads_(1),
                        N=heads_(4, 1, 3), D=head_dim(16, 128))  # fmt: skip
_LAYOUT: Final = "layoutQueryOptional"


@spec("aclnnLightningIndexer", _INDEXER, _INDEXED, both("Sq > Sk", "sparseCount > Sk"),
      query=sequences("Sq", "N", "D", _LAYOUT, tensor, _HALVES),
      key=sequences("Sk", "K", "D", _LAYOUT, tensor, "query"),
      weights=by(_LAYOUT, {"BSND": tensor("B Sq N", "query"), "TND": tensor("B*Sq N", "query")}),
      actualSeqLengthsQueryOptional=tokens_of(_LAYOUT, "Sq", "i32", _QUERY_ENDS),
      actualSeqLengthsKeyOptional=tokens_of(_LAYOUT, "Sk", "i32", _KEY_ENDS, "cut"),
      blockTableOptional=null("of caches in blocks, which the simulator does not take"),
      layoutQueryOptional=choice("BSND", "TND"), layoutKeyOptional=equals(_LAYOUT),
      sparseCount=integer(2, 1, 6, 16), sparseMode=choice(0, 3), preTokens=FAR,
      nextTokens=FAR, returnValues=flag(True), sparseIndicesOut=out("i32"),
      sparseValuesOut=out("query"))  # fmt: skip
def indexer(
    query: Array, key: Array, weights: Array, actualSeqLengthsQueryOptional: Array | None,
    actualSeqLengthsKeyOptional: Array | None, layoutQueryOptional: str, sparseCount: int,
    sparseMode: int, returnValues: bool,
) -> tuple[Array, Array | None]:  # fmt: skip
    """A key's worth is the weighed sum over heads of what a ReLU leaves of its products; -1 where
    fewer keys are seen."""
    packed, parts = layoutQueryOptional == "TND", []
    for q, w, k in zip(
        *(split(x, actualSeqLengthsQueryOptional, packed) for x in (query, weights)),
        split(key, actualSeqLengthsKeyOptional, packed, True), strict=True,
    ):  # fmt: skip
        products = np.clip(np.einsum("qnd,kd->qkn", q, k[:, 0]), 0, None)
        worth = (products * w[:, None]).sum(-1)
        seen = np.ones(worth.shape, bool)
        if sparseMode == 3:
            seen = np.tri(len(q), len(k), len(k) - len(q), dtype=bool)
        order = np.argsort(np.where(seen, -worth, np.inf), -1, kind="stable")[:, :sparseCount]
        first = np.take_along_axis(worth, order, -1)
        there = np.take_along_axis(seen, order, -1)
        room = ((0, 0), (0, sparseCount - order.shape[1]))
        parts.append([np.pad(np.where(there, x, fill), room, constant_values=fill)[:, None]
                      for x, fill in ((order, -1), (first, 0))])  # fmt: skip
    indices, values = (np.concatenate(p) if packed else np.stack(p)
                       for p in zip(*parts, strict=True))  # fmt: skip
    return indices, values if returnValues else None


_FLOYD: Final = Rule("gradient", "op-plugin document npu_fused_floyd_attention: keys and values "
                     "are sums over two of three axes", specials=False)  # fmt: skip
FLOYD_SIZES: Final = sizes(B=heads_(1, 2, 3), H=heads_(2, 1, 3), I=seq(3, 1, 9), J=seq(5, 1, 17),
                           K=seq(4, 1, 9), D=head_dim(16, 32, 64))  # fmt: skip


def floyd_inputs(make: Any, dtype: str) -> dict[str, Domain]:
    return {"query": make("B H I K D", dtype or _HALVES),
            **{n: make(f"B H {s} D", dtype or "query") for n, s in (
                ("key1", "I J"), ("value1", "I J"), ("key2", "J K"), ("value2", "J K"))},
            }  # fmt: skip


NO_MASK: Final = null("which of its ones hide is not stated")


@spec("aclnnFusedFloydAttention", _FLOYD, FLOYD_SIZES, both("I > J", "K > J"),
      **floyd_inputs(tensor, ""), attenMaskOptional=NO_MASK,
      scaleValueOptional=number(0.25, 1.0, 0.0), softmaxMaxOut=out("f32"),
      softmaxSumOut=out("f32"), attentionOutOut=out("query"))  # fmt: skip
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
    wide = [np.repeat(x[..., None], EIGHT, -1) for x in (top, total)]
    return wide[0], wide[1], out
