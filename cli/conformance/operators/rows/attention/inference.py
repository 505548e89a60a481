"""Attention of inference: prompts, and one query at a time over caches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from .....judge.precision import Array
from ...spec import const, spec, t, take
from .._ignored import int8_query, reserved
from .flash import back, causal, heads, shaped

_PAGES: Final = ("Vaswani et al.: Attention Is All You Need, 2017; op-plugin documents "
                 "npu_prompt_flash_attention, npu_incre_flash_attention and "
                 "npu_fused_infer_attention_score")  # fmt: skip
ROW: Final[dict[str, Any]] = {"source": _PAGES, "tolerance": "gradient", "extra": "outDtype",
                              "dtypes": ("float16", "bfloat16"),
                              "formats": dict.fromkeys(("query", "key", "value", "attentionOut"),
                                                       "ND")}  # fmt: skip
_NO_SCALES: Final[tuple[tuple[int, Any, Any], ...]] = ((0, None, None),) * 2


def _pages(blocks: Array, table: Array, kv: int, length: int, line: int) -> Array:
    """[N, length, D] of blocks [count, size, N D], as a sequence's line of the table names them."""
    rows = blocks[table[line]].reshape(-1, kv, blocks.shape[-1] // kv)
    return rows[:length].swapaxes(0, 1)


def _sequences(x: Array, layout: str, n: int, ends: Sequence[int] | None) -> list[Array]:
    """[N, S, D] of every sequence; packed ones end where `ends` says."""
    if layout == "TND":
        assert ends is not None
        return [part.swapaxes(0, 1) for part in np.split(x, list(ends)[:-1])]
    return list(heads(x, layout, n))


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
    if mask.ndim == 2 and sq == 1:  # a row of it for each sequence
        mask = mask[:, None, None]
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
            n = prefix[0].shape[2] if prefix[2] is None else prefix[2][0]
            k, v = (np.concatenate([p[0, :, :n], x], 1)
                    for p, x in zip(prefix[:2], (k, v), strict=True))  # fmt: skip
        if rope[0] is not None and rope[1] is not None:
            q = np.concatenate([q, heads(rope[0], layout, numHeads)[b]], -1)
            k = np.concatenate([k, heads(rope[1], layout, kv)[b]], -1)
        k, v = (np.repeat(x, numHeads // kv, 0) for x in (k, v))
        score = q @ k.swapaxes(-1, -2) * _factor(deq1) * scaleValue
        if slope > 1 and shift is not None:
            far = np.abs(begins[0] + np.arange(nq)[:, None] - begins[1] - np.arange(k.shape[1]))
            score = score - shift.reshape(-1)[:, None, None] * (far**0.5 if slope == 3 else far)
        elif shift is not None:
            score = score + shift[min(b, len(shift) - 1), :, fq : fq + nq, fk : fk + k.shape[1]]
        hide = _hidden(sparse, nq, k.shape[1], before, after, mask, b, (fq, fk))
        score = np.where(hide, -np.inf, score)
        top = score.max(-1, keepdims=True)
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
        log[:, fq : fq + nq] = top + np.log(total)
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


def prompt_inputs(
    layout: str, b: int, n: int, kv: int, s: int, d: int, masked: bool
) -> dict[str, Any]:
    half: dict[str, Any] = {"dtype": "float16"}
    inputs: dict[str, Any] = {
        "query": t(*shaped(layout, b, n, s, d), **half),
        "key": t(*shaped(layout, b, kv, s, d), **half),
        "value": t(*shaped(layout, b, kv, s, d), **half, high=3.0),
        "numHeads": n,
        "scaleValue": d**-0.5,
        "preTokens": 65536,
        "nextTokens": 65536,
        "inputLayout": layout,
        "numKeyValueHeads": 0 if kv == n else kv,
        "sparseMode": 0,
        "innerPrecise": 0,
    }
    if masked:
        inputs["attenMask"] = causal(s, s)
    return inputs


PROMPTS: Final = (("BSH", 2, 2, 2, 16, 16, False), ("BNSD", 1, 4, 2, 32, 16, True),
                  ("BSND", 1, 2, 2, 16, 32, True), ("BNSD", 1, 2, 2, 128, 64, False))  # fmt: skip
_SHIFTED: Final = take(**prompt_inputs("BNSD", 1, 2, 2, 16, 16, False),
                       pseShift=t(1, 2, 16, 16, dtype="float16"))  # fmt: skip
NEAR: Final = {"preTokens": 3, "nextTokens": 2}
SPARSE_MASK: Final = const((np.arange(256).reshape(16, 16) % 7 == 3).tolist(), "bool")
_FIRST: Final = [*(take(**prompt_inputs(*p)) for p in PROMPTS), _SHIFTED]
_BAND: Final = take(**{**prompt_inputs("BNSD", 2, 2, 2, 16, 16, False), **NEAR,
                       "attenMask": SPARSE_MASK})  # fmt: skip


def one(value: float, dtype: str = "float32") -> Any:
    return const([value], dtype)


_HALF, INT8 = 1, 2  # aclDataType


def integers(names: str, **more: Any) -> dict[str, Any]:
    """int8 operands with the scales that `names` gives: of scores, weights, results, steps."""
    first, second, third, fourth, fifth = names.split()
    eight: dict[str, Any] = {"dtype": "int8", "low": -8, "high": 8}
    inputs = prompt_inputs("BNSD", 1, 2, 2, 16, 32, False)
    steps = {} if "outDtype" not in more else {
        fourth: t(1, 2, 1, 32, low=3, high=9), fifth: t(1, 2, 1, 32, low=-9, high=9)}  # fmt: skip
    return {**inputs, **{n: t(1, 2, 16, 32, **eight) for n in ("query", "key", "value")},
            first: one(2.0**-6), second: one(127.0),
            third: const([0x3B800000], "uint64"), **steps,
            "outDtype": _HALF, **more}  # fmt: skip


SCALES: Final = "deqScale1 quantScale1 deqScale2 quantScale2 quantOffset2"
STEPPED: Final = {"quantScale2": t(1, 2, 1, 16, low=3, high=9),
                  "quantOffset2": t(1, 2, 1, 16, low=-9, high=9), "outDtype": INT8}  # fmt: skip
WIDE_MASK: Final = {"attenMask": Arg((2048, 2048), "bool",
                                     values=np.triu(np.ones((2048, 2048), bool), 1))}  # fmt: skip
spec("aclnnPromptFlashAttention", "attentionOut:query", **ROW, samples=[
    *_FIRST, _BAND,
    take(**prompt_inputs("BSH", 2, 2, 2, 16, 16, False), actualSeqLengths=(11, 16))])(
    lambda query, key, value, numHeads, scaleValue, inputLayout, numKeyValueHeads, attenMask,
    pseShift, actualSeqLengths, preTokens, nextTokens:
    prompt(query, key, value, numHeads, scaleValue, inputLayout, numKeyValueHeads, attenMask,
           pseShift, actualSeqLengths, None, preTokens, nextTokens))  # fmt: skip
spec("aclnnPromptFlashAttentionV2 aclnnPromptFlashAttentionV3", "attentionOut:outDtype|query",
     **ROW, steps=True, samples=[
         *_FIRST, take(**prompt_inputs("BSH", 2, 2, 2, 16, 16, False), actualSeqLengthsKv=(9, 14)),
         _BAND, take(**prompt_inputs("BSH", 2, 2, 2, 16, 16, False), actualSeqLengths=(11, 16),
              actualSeqLengthsKv=(9, 14)),
         *(take(**{**prompt_inputs("BNSD", 1, 2, 1, 16, 16, False), **NEAR, **WIDE_MASK,
                   "sparseMode": m}) for m in (2, 3, 4)),
         take(**{**integers(SCALES), "deqScale1": const([0x3C800000], "uint64")}),
         take(**integers(SCALES, outDtype=INT8)),
         take(**{**prompt_inputs("BNSD", 1, 2, 2, 16, 16, False), **STEPPED})])(
    prompt)  # fmt: skip


def listed(inputs: dict[str, Any], one: bool, dtype: str = "float16") -> dict[str, Any]:
    """key and value as lists; a query of one token for incremental decoding."""
    listed = {**inputs, "key": [inputs["key"]], "value": [inputs["value"]]}
    if one:
        shape = list(inputs["query"].shape)
        shape[{"BSH": 1, "BNSD": 2, "BSND": 1}[inputs["inputLayout"]]] = 1
        listed["query"] = t(*shape, dtype=dtype, low=-8, high=8) if dtype == "int8" else t(
            *shape, dtype=dtype)  # fmt: skip
    return {k: v for k, v in listed.items() if k not in ("attenMask",)}


def cached(**more: Any) -> dict[str, Any]:
    """Two sequences of 9 and 14 keys in caches of 16, one token each."""
    return {**listed(prompt_inputs("BSH", 2, 4, 2, 16, 16, False), True), "blockSize": 0, **more}


def bytes(*shape: int) -> Any:
    return [t(*shape, dtype="int8", low=-8, high=8)]


_HIDDEN: Final = const((np.arange(32).reshape(2, 1, 1, 16) % 5 == 3).tolist(), "bool")
_CHANNELS: Final = t(2, 32, dtype="float16", low=0.05, high=0.3)
# Caches by channel: with and without offsets.
WHOLE: Final[tuple[dict[str, Any], ...]] = tuple(
    {"key": bytes(2, 16, 32), "value": bytes(2, 16, 32), "scale": _CHANNELS, "offset": offset}
    for offset in (t(2, 32, dtype="float16", high=3), None)
)
# Blocks of 4 rows, in an order that is not theirs.
TABLE: Final = const([[5, 0, 7, -1], [2, 6, 1, 4]], "int32")
PAGED: Final[dict[str, Any]] = {
    "key": [t(8, 16, 32, dtype="float16")], "value": [t(8, 16, 32, dtype="float16", high=3)],
    "blockSize": 16,
}  # fmt: skip


def both(mode: int, scale: Array | None, offset: Array | None) -> list[tuple[int, Any, Any]]:
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
                 anti=both(0, antiquantScale, antiquantOffset), table=blocktable,
                 steps=(None, None, None, quantScale2, quantOffset2),
                 padding=(None, kvPaddingSize))[0]  # fmt: skip


_TOKENS: Final = [
    *(take(**{**listed(prompt_inputs(*p), True), "blockSize": 0}) for p in PROMPTS),
    take(**cached(actualSeqLengths=(9, 14))),
    take(**cached(actualSeqLengths=(16, 11), attenMask=_HIDDEN)),
]
_TOKEN_STEPS: Final = [
    take(**cached(actualSeqLengths=(9, 14), outDtype=INT8, quantScale2=s, quantOffset2=o))
    for s, o in ((one(8.0), one(-3.0)),
                 (t(1, 4, 1, 16, low=3, high=9), t(1, 4, 1, 16, low=-9, high=9)))]  # fmt: skip
_INTEGERS: Final = [
    take(
        **cached(
            actualSeqLengths=(9, 14),
            key=w["key"],
            value=w["value"],
            antiquantScale=w["scale"],
            antiquantOffset=w["offset"],
        )
    )
    for w in WHOLE
]
_BLOCKS: Final = [take(**{**cached(), **PAGED}, blocktable=TABLE, actualSeqLengths=(37, 64))]
_LATE: Final = [take(**cached(actualSeqLengths=(9, 14), kvPaddingSize=one(2, "int64")))]
_THIRD: Final = _TOKENS + _INTEGERS + _BLOCKS + _TOKEN_STEPS
for _version, _samples in (
    ("", _TOKENS), ("V2", _TOKENS + _TOKEN_STEPS), ("V3", _THIRD), ("V4", _THIRD + _LATE),
):  # fmt: skip
    spec(f"aclnnIncreFlashAttention{_version}", "attentionOut:outDtype|query", **ROW, steps=True,
         ignored=reserved("pseShift") | (
             int8_query("dequantScale1 quantScale1 dequantScale2") if _version else {}),
         samples=_samples)(incremental)  # fmt: skip
