"""Attention of inference: prompts, and one query at a time over caches."""

from __future__ import annotations

from .....spec import *
from .....spec import causal as causal_mask, heads as heads_
from .....spec.domains import evaluate
from .._words import *
from .flash import back, by_heads

_PAGES: Final = ("Vaswani et al.: Attention Is All You Need, 2017; op-plugin documents "
                 "npu_prompt_flash_attention, npu_incre_flash_attention and "
                 "npu_fused_infer_attention_score")  # fmt: skip
_FORMATS: Final = dict.fromkeys(("query", "key", "value", "attentionOut"), "ND")
_NO_SCALES: Final[tuple[tuple[int, Any, Any], ...]] = ((0, None, None),) * 2


def _pages(blocks: Array, table: Array, kv: int, length: int, line: int) -> Array:
    """[N, length, D] of blocks [count, size, N D] or [count, N, size, D], as a sequence's line of
    the table names them."""
    if blocks.ndim == 4:
        blocks = blocks.swapaxes(1, 2)
    rows = blocks[table[line]].reshape(-1, kv, blocks[0, 0].size // kv)
    return rows[:length].swapaxes(0, 1)


def _sequences(x: Array, layout: str, n: int, ends: Sequence[int] | None) -> list[Array]:
    """[N, S, D] of every sequence; packed ones end where `ends` says."""
    if layout == "TND":
        assert ends is not None
        return [part.swapaxes(0, 1) for part in np.split(x, list(ends)[:-1])]
    return list(by_heads(x, layout, n))


def _restored(x: Array, mode: int, scale: Array | None, offset: Array | None, at: int) -> Array:
    """(x + offset) scale of a sequence's [N, S, D]: mode 0 by channels of heads, 1 by tokens."""
    if scale is None:
        return x

    def spread(p: Array) -> Array:
        if p.size == 1:
            return p
        if mode == 1:
            return p.reshape(-1, p.shape[-1])[
                min(at, p.size // p.shape[-1] - 1), : x.shape[1], None
            ]
        return p.reshape(x.shape[0], 1, x.shape[2])

    return (x + (0 if offset is None else spread(offset))) * spread(scale)


def _hidden(
    sparse: int, sq: int, sk: int, before: int, after: int, mask: Array | None, b: int,
    first: tuple[int, int],
) -> Array:  # fmt: skip
    """[N or 1, sq, sk] of what a query does not see; the mask begins at `first` in both."""
    far = np.arange(sk)[None] - np.arange(sq)[:, None]
    if sparse in (2, 3, 4):
        far = far - (0 if sparse == 2 else sk - sq)
        return ((far < -before) | (far > after) if sparse == 4 else far > 0)[None]
    if mask is None:
        return np.zeros((1, sq, sk), bool)
    if mask.ndim == 3:
        mask = mask[:, None]
    whole = mask.astype(bool).reshape((1,) * (4 - mask.ndim) + mask.shape)
    row = whole[min(b, len(whole) - 1)]
    i, j = first
    row = row[:, i : i + sq] if row.shape[1] > 1 else row
    row = row[..., j : j + sk]
    return row | ((far < -before) | (far > after)) if sparse == 0 and sq > 1 else row


def _factor(word: Array | None) -> float:
    """A scale as it is, or in the low half of a 64-bit word."""
    if word is None:
        return 1.0
    if word.dtype.kind in "iu":
        return float(word.astype(np.uint32).view(np.float32)[0])
    return float(word.reshape(-1)[0])


def _by_channel(scale: Array, y: Array) -> Array:
    """One for all of [N, S, D], or one for each channel of each head."""
    return scale if scale.size == 1 else scale.reshape(y.shape[0], 1, y.shape[2])


def infer(
    query: Array, key: Array | list[Array], value: Array | list[Array], numHeads: int,
    scaleValue: float, inputLayout: str, numKeyValueHeads: int, *, mask: Array | None = None,
    shift: Array | None = None, lengths: Sequence[int] | None = None,
    ends: Sequence[int] | None = None, anti: Sequence[tuple[int, Any, Any]] = _NO_SCALES,
    table: Array | None = None, sparse: int = 0, before: int = 65536, after: int = 65536,
    steps: Sequence[Array | None] = (None,) * 5, padding: Sequence[Array | None] = (None, None),
    prefix: Sequence[Any] = (None, None, None), rope: Sequence[Array | None] = (None, None),
    sink: Array | None = None, slope: int = 0, begins: tuple[int, int] = (0, 0),
) -> tuple[Array, Array]:  # fmt: skip
    """(out, log of the sum of exponentials), a sequence at a time.

    `lengths` of keys and `ends` of queries say what counts of a sequence, at its beginning or, with
    `padding`, before so many rows at its end; `anti`, of key and value, is (mode, scale, offset).
    `steps` are what scores are multiplied by, what weights are before they are rounded, results,
    and what quantises results. `slope` 2 or 3: the shift is a slope of each head times the
    distance, or its root, of positions that begin at `begins`.
    """
    kv, (layout, _, other) = numKeyValueHeads or numHeads, inputLayout.partition("_")
    deq1, quant1, deq2, quant2, offset2 = steps
    queries = _sequences(query, layout, numHeads, ends)
    packed, lengths_ = layout == "TND", None if lengths is None else list(lengths)
    outs, logs = [], []
    for b, whole in enumerate(queries):
        caches = []
        for at, x in enumerate(np.concatenate(x) if isinstance(x, list) else x
                               for x in (key, value)):  # fmt: skip
            if table is not None:
                assert lengths_ is not None
                one = _pages(x, table, kv, lengths_[b], b)
            else:
                one = _sequences(x, layout, kv, lengths_)[b]
            caches.append(_restored(one, *anti[at], b))
        k, v = caches
        nk = k.shape[1] if lengths_ is None or packed else lengths_[b]
        nq = whole.shape[1] if ends is None or packed else list(ends)[b]
        fq, fk = (0 if pad is None else rows - n - int(pad[0]) for pad, rows, n in zip(
            padding, (whole.shape[1], k.shape[1]), (nq, nk), strict=True))  # fmt: skip
        q, k, v = (x.astype(np.float64) for x in (
            whole[:, fq : fq + nq], k[:, fk : fk + nk], v[:, fk : fk + nk]))  # fmt: skip
        if prefix[0] is not None:
            n = None if prefix[2] is None else prefix[2][0]
            k, v = (np.concatenate([by_heads(p, layout, kv)[0][:, :n], x], 1)
                    for p, x in zip(prefix[:2], (k, v), strict=True))  # fmt: skip
        if rope[0] is not None and rope[1] is not None:
            q = np.concatenate([q, by_heads(rope[0], layout, numHeads)[b][:, fq : fq + nq]], -1)
            k = np.concatenate([k, by_heads(rope[1], layout, kv)[b][:, fk : fk + nk]], -1)
        k, v = (np.repeat(x, numHeads // kv, 0) for x in (k, v))
        score = q @ k.swapaxes(-1, -2) * _factor(deq1) * scaleValue
        if slope > 1 and shift is not None:
            far = np.abs(begins[0] + np.arange(nq)[:, None] - begins[1] - np.arange(k.shape[1]))
            score = score - shift.reshape(-1)[:, None, None] * (far**0.5 if slope == 3 else far)
        elif shift is not None:
            score = score + shift[min(b, len(shift) - 1), :, fq : fq + nq, fk : fk + k.shape[1]]
        local_mask = mask
        if mask is not None and mask.ndim == 2 and whole.shape[1] == 1 and not packed:
            local_mask = mask[:, None, None]  # a row of it for each sequence
        hide = _hidden(sparse, nq, k.shape[1], before, after, local_mask, b, (fq, fk))
        score = np.where(hide, -np.inf, score)
        top = score.max(-1, keepdims=True, initial=-np.inf)
        top = top if sink is None else np.maximum(top, sink[:, None, None])
        e = np.exp(score - np.where(np.isneginf(top), 0.0, top))
        total = e.sum(-1, keepdims=True)
        total = total if sink is None else total + np.exp(sink[:, None, None] - top)
        weight = e if quant1 is None else np.rint(e * _factor(quant1))
        y = weight @ v * _factor(deq2) / np.where(total == 0, 1.0, total)
        if quant2 is not None:
            y = y * _by_channel(quant2, y)
            y = y if offset2 is None else y + _by_channel(offset2, y)
        out = np.zeros((numHeads, whole.shape[1], v.shape[-1]))
        out[:, fq : fq + nq] = y
        outs.append(out)
        log = np.full((numHeads, whole.shape[1], 1), np.inf)
        log[:, fq : fq + nq] = np.where(
            total == 0, np.inf, top + np.log(np.where(total == 0, 1, total)))  # fmt: skip
        logs.append(log)
    if packed:
        flat = [np.concatenate([o.swapaxes(0, 1) for o in x]) for x in (outs, logs)]
        return flat[0], flat[1]
    return back(np.stack(outs), other or layout), np.stack(logs)


def prompt(
    query: Array, key: Array, value: Array, numHeads: int, scaleValue: float, inputLayout: str,
    numKeyValueHeads: int, attenMask: Array | None = None, pseShift: Array | None = None,
    actualSeqLengths: tuple[int, ...] | None = None,
    actualSeqLengthsKv: tuple[int, ...] | None = None, preTokens: int = 65536,
    nextTokens: int = 65536, sparseMode: int = 0, deqScale1: Array | None = None,
    quantScale1: Array | None = None, deqScale2: Array | None = None,
    quantScale2: Array | None = None, quantOffset2: Array | None = None,
) -> Array:  # fmt: skip
    return infer(query, key, value, numHeads, scaleValue, inputLayout, numKeyValueHeads,
                 mask=attenMask, shift=pseShift, lengths=actualSeqLengthsKv, ends=actualSeqLengths,
                 sparse=sparseMode, before=preTokens, after=nextTokens, steps=(
                     deqScale1, quantScale1, deqScale2, quantScale2, quantOffset2))[0]  # fmt: skip


def apart(mode: int, scale: Array | None, offset: Array | None) -> list[tuple[int, Any, Any]]:
    """(mode, scale, offset) of key and of value, whose parameters lie one after another."""
    return [(mode, None if scale is None else scale[at], None if offset is None else offset[at])
            for at in (0, 1)]  # fmt: skip


def incremental(
    query: Array, key: list[Array], value: list[Array], numHeads: int, scaleValue: float,
    inputLayout: str, numKeyValueHeads: int, attenMask: Array | None = None,
    actualSeqLengths: tuple[int, ...] | None = None,
    quantScale2: Array | None = None, quantOffset2: Array | None = None,
    antiquantScale: Array | None = None, antiquantOffset: Array | None = None,
    blocktable: Array | None = None, kvPaddingSize: Array | None = None, blockSize: int = 0,
) -> Array:  # fmt: skip
    """The lengths are those of keys."""
    return infer(query, key, value, numHeads, scaleValue, inputLayout, numKeyValueHeads,
                 mask=attenMask, lengths=actualSeqLengths,
                 anti=apart(0, antiquantScale, antiquantOffset), table=blocktable,
                 steps=(None, None, None, quantScale2, quantOffset2),
                 padding=(None, kvPaddingSize))[0]  # fmt: skip


RULE: Final = Rule("gradient", _PAGES, {
    "accumulate": 32, "reason": "the sum of exponentials is stated in float32, and carries the "
    "rounding of scores: sums of up to 128 terms of both signs, scaled"},
    steps=True, formats=_FORMATS)  # fmt: skip
# K heads of keys, each for G of queries.
SIZES: Final = sizes(B=batch(2, 1, 3), K=heads_(2, 1, 3), G=group(1, 2, 4), N="K*G",
                      Sk=seq(9, 1, 17, 130, 257), D=head_dim(16, 32, 64, 128))  # fmt: skip
_HALF_FLOATS: Final = "f16 bf16"
ALL_TOKENS: Final = 65536


def lengths_of(most: str) -> Domain:
    """How many rows of each sequence count."""

    def make(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
        n, many = int(evaluate(most, draw)), draw["B"]
        patterns = {"full": np.full(many, n), "ones": np.ones(many, np.int64)}
        return patterns.get(pattern, rng.integers(1, n + 1, many))

    return content(make, "ragged full ones", shape="B", reads=(most,))


def sequences_of(s: str, n: str, dtype: str, d: str = "D", b: str = "B") -> Domain:
    """A tensor of heads in the layout that inputLayout names."""
    first = tensor(f"{b} {n} {s} {d}", dtype)
    return by("inputLayout", {
        "BSH": tensor(f"{b} {s} {n}*{d}", dtype), "BSND": tensor(f"{b} {s} {n} {d}", dtype),
        **dict.fromkeys(("BNSD", "BNSD_BSND", "BNSD_NBSD"), first)})  # fmt: skip


def word(value: float) -> Domain:
    """The bits of a float in the low half of a word."""
    bits = int(np.float32(value).view(np.uint32))
    return content(lambda *_: np.array([bits], np.uint64), "one", "u64", shape="1")


def of_integers(domain: Domain) -> Domain:
    return optional(domain, iff="dtype(query) == 'int8'")


def masks_by(sparse: str, keys: str = "Sk") -> Domain:
    """The masks that a sparse mode takes: of scores, or of what lies above any diagonal."""
    dense = forms(rank2=mask(f"Sq {keys}"), rank3=mask(f"B Sq {keys}"),
                  rank4=mask(f"B 1 Sq {keys}"))  # fmt: skip
    whole = dict.fromkeys((2, 3, 4), causal_mask("2048 2048"))
    return by(sparse, {0: optional(dense), 1: dense, **whole})


_DENSE_MASKS: Final = forms(rank2=mask("Sq Sk"), rank3=mask("B Sq Sk"), rank4=mask("B 1 Sq Sk"))
RESULT_SCALE: Final = forms(one=scalar_tensor("f32", 8.0), each=tensor("1 N 1 D", "f32", 3, 9))
RESULT_OFFSET: Final = forms(one=scalar_tensor("f32", -3.0), each=tensor("1 N 1 D", "f32", -9, 9))
_RESULT_OFFSET: Final = optional(RESULT_OFFSET, only="given(quantScale2)")
_SAME_SIZE: Final = require("not given(quantOffset2) or size(quantScale2) == size(quantOffset2)")
KV_HEADS: Final = number("K", "K*(G > 1)")


def _prompt_params(version: int) -> dict[str, Domain]:
    """The domains of a version's parameters, in the order of its header."""
    dtype = _HALF_FLOATS if version < 2 else "f16 bf16 i8"
    masks: Domain = optional(_DENSE_MASKS)
    before = number(ALL_TOKENS, 3, 0)
    after = number(ALL_TOKENS, 2, 0)
    if version > 1:
        masks = masks_by("sparseMode")
    steps: dict[str, Domain] = {
        "actualSeqLengthsKv": optional(lengths_of("Sk")),
        "deqScale1": of_integers(forms(f32=scalar_tensor("f32", 2.0**-6, 0.25), u64=word(0.25))),
        "quantScale1": of_integers(scalar_tensor("f32", 127.0, 64.0)),
        "deqScale2": of_integers(forms(usual=word(2.0**-6), small=word(2.0**-8))),
        "quantScale2": RESULT_SCALE, "quantOffset2": _RESULT_OFFSET,
    }  # fmt: skip
    layouts = ("BSH", "BNSD", "BSND", *(("BNSD_BSND",) if version > 1 else ()))
    return {
        "query": sequences_of("Sq", "N", dtype), "key": sequences_of("Sk", "K", "query"),
        "value": sequences_of("Sk", "K", "query"),
        "pseShift": optional(forms(each=tensor("B N Sq Sk", "query"),
                                   all=tensor("1 N Sq Sk", "query")),
                             only="dtype(query) != 'int8'"),
        "attenMask": masks, "actualSeqLengths": optional(lengths_of("Sq")),
        **(steps if version > 1 else {}),
        "numHeads": equals("N"), "scaleValue": number("D**-0.5", 1.0, 0.0),
        "preTokens": before, "nextTokens": after, "inputLayout": choice(*layouts),
        "numKeyValueHeads": KV_HEADS,
        **({"sparseMode": choice(0, 1, 2, 3, 4)} if version > 1 else {}),
        **({"innerPrecise": ignored("chooses between algorithms of one result", choice(0, 1))}
           if version > 2 else {}),
        "attentionOut": out("query"),
    }  # fmt: skip


QUERIES: Final = sizes(Sq=seq(6, 1, 17, 130))
SIDES: Final = both("Sq > Sk", "G > 1")
_PROMPT_TYPES: Final = dtypes("""query key  value quantScale2 attentionOut
                                 f16   f16  f16   -           f16
                                 bf16  bf16 bf16  -           bf16
                                 f16   f16  f16   f32         i8
                                 i8    i8   i8    -           f16
                                 i8    i8   i8    f32         i8""")
spec("aclnnPromptFlashAttention", RULE, SIZES, QUERIES, SIDES, **_prompt_params(1))(
    lambda query, key, value, numHeads, scaleValue, inputLayout, numKeyValueHeads, attenMask,
    pseShift, actualSeqLengths, preTokens, nextTokens:
    prompt(query, key, value, numHeads, scaleValue, inputLayout, numKeyValueHeads, attenMask,
           pseShift, actualSeqLengths, None, preTokens, nextTokens))  # fmt: skip
for _version in (2, 3):
    spec(f"aclnnPromptFlashAttentionV{_version}", RULE, SIZES, QUERIES, SIDES,
         _PROMPT_TYPES, _SAME_SIZE,
         # Whether rows that do not count are moved too is not stated.
         require("not given(quantOffset2) or not given(actualSeqLengths)", refuses=None),
         both("sparseMode == 4 and Sq > Sk", "sparseMode == 3 and Sq < Sk",
              "given(quantScale2) and given(quantOffset2)"),
         **_prompt_params(_version))(prompt)  # fmt: skip


def caches(dtype: str) -> Domain:
    """Keys or values: a list of one tensor, or of one for each sequence."""

    def listed(one: str, each: str) -> Domain:
        return forms(one=tensors("1", one, dtype), each=tensors("B", each, dtype))

    first = listed("B K Sk D", "1 K Sk D")
    return by("inputLayout", {
        "BSH": listed("B Sk K*D", "1 Sk K*D"), "BSND": listed("B Sk K D", "1 Sk K D"),
        **dict.fromkeys(("BNSD", "BNSD_BSND", "BNSD_NBSD"), first)})  # fmt: skip


def room(size: str, lengths: str) -> Domain:
    """Rows behind the last that counts: as many as the longest sequence leaves, or fewer."""

    def make(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
        counts = draw[lengths]
        left = draw[size] - int(np.max(counts.values())) if counts is not None else 0
        return np.array([left if pattern == "most" else int(rng.integers(0, left + 1))])

    return content(make, "most some", "i64", shape="1", reads=(lengths, size))


_INT8_QUERY: Final = null("of an int8 query, which no document lists")
_UNLISTED: Final[dict[str, Domain]] = dict.fromkeys(
    ("dequantScale1", "quantScale1", "dequantScale2"), _INT8_QUERY)  # fmt: skip
_BY_PAGES: Final[dict[str, Domain]] = {
    **dict.fromkeys(("key", "value"), tensors("1", "P Z K*D", "query")),
    "actualSeqLengths": lengths_of("M*Z"), "attenMask": optional(mask("B 1 1 M*Z")),
    "blocktable": index("B M", into="P", dtype="i32"), "blockSize": equals("Z"),
    "inputLayout": choice("BSH"),
}  # fmt: skip


def _token_params(version: int) -> dict[str, Domain]:
    """The domains of a version's parameters, in the order of its header."""
    steps = _UNLISTED | {"quantScale2": RESULT_SCALE, "quantOffset2": _RESULT_OFFSET}
    integers: dict[str, Domain] = {
        "antiquantScale": tensor("2 K*D", "query", 0.05, 0.3),
        "antiquantOffset": optional(tensor("2 K*D", "query"), only="given(antiquantScale)"),
        "blocktable": null("of caches in blocks"),
    }  # fmt: skip
    late: dict[str, Domain] = {"kvPaddingSize": optional(
        room("Sk", "actualSeqLengths"),
        only="given(actualSeqLengths) and not given(blocktable)")}  # fmt: skip
    return {
        "query": sequences_of("1", "N", _HALF_FLOATS), "key": caches("query"),
        "value": caches("query"), "pseShift": null("reserved: documents ask for null"),
        "attenMask": optional(forms(rank2=mask("B Sk"), rank4=mask("B 1 1 Sk"))),
        "actualSeqLengths": optional(lengths_of("Sk")),
        **(steps if version > 1 else {}), **(integers if version > 2 else {}),
        **(late if version > 3 else {}),
        "numHeads": equals("N"), "scaleValue": number("D**-0.5", 1.0, 0.0),
        "inputLayout": choice("BSH", "BNSD", "BSND"), "numKeyValueHeads": KV_HEADS,
        **({"blockSize": only(0, "of caches in blocks"),
            "innerPrecise": ignored("chooses between algorithms of one result", choice(0, 1))}
           if version > 2 else {}),
        "attentionOut": out("query"),
    }  # fmt: skip


_SECOND_TYPES: Final = dtypes("""query quantScale2 attentionOut
                                 f16   -           f16
                                 bf16  -           bf16
                                 f16   f32         i8""")
_THIRD_TYPES: Final = dtypes("""query key  value antiquantScale quantScale2 attentionOut
                                f16   f16  f16   -              -           f16
                                bf16  bf16 bf16  -              -           bf16
                                f16   f16  f16   -              f32         i8
                                f16   i8   i8    f16            -           f16
                                bf16  i8   i8    bf16           -           bf16
                                f16   i8   i8    f16            f32         i8""")
_DENSE: Final = require("len(key) == len(value)")
spec("aclnnIncreFlashAttention", RULE, SIZES, _DENSE, both("G > 1"),
     **_token_params(1))(incremental)  # fmt: skip
spec("aclnnIncreFlashAttentionV2", RULE, SIZES, _DENSE, _SECOND_TYPES, _SAME_SIZE,
     both("G > 1"), **_token_params(2))(incremental)  # fmt: skip
for _version in (3, 4):
    spec(f"aclnnIncreFlashAttentionV{_version}", RULE, SIZES,
         sizes(P=pages(5, 2, 9), Z=page(16, 128), M=group(2, 1, 4)), _DENSE, _THIRD_TYPES,
         _SAME_SIZE,
         both("given(blocktable) and given(antiquantScale)", "given(blocktable) and G > 1",
              "given(antiquantScale) and given(antiquantOffset)"),
         overload("whole"), overload("paged", **_BY_PAGES),
         **_token_params(_version))(incremental)  # fmt: skip
