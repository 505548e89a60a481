"""Attention of inference: prompts, one token after another over caches, and both in one operator.

Caches may be shorter than their rows, lie in blocks that a table names, or hold 8-bit integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import given, spec, t, take
from .attention import back, causal, heads, shaped

_PAGES: Final = ("Vaswani et al.: Attention Is All You Need, 2017; op-plugin documents "
                 "npu_prompt_flash_attention, npu_incre_flash_attention and "
                 "npu_fused_infer_attention_score")  # fmt: skip
_ROW: Final[dict[str, Any]] = {"family": "attention", "source": _PAGES, "tolerance": "gradient",
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
    own = whole[min(b, len(whole) - 1)]
    i, j = first
    own = own[:, i : i + sq] if own.shape[1] > 1 else own
    own = own[..., j : j + sk]
    return own | ((far < -before) | (far > after)) if sparse == 0 and sq > 1 else own


def _factor(word: Array | None) -> float:
    """A scale as it is, or in the low half of a 64-bit word."""
    if word is None:
        return 1.0
    if word.dtype.kind in "iu":
        return float(word.astype(np.uint32).view(np.float32)[0])
    return float(word.reshape(-1)[0])


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
    packed, told = layout == "TND", None if lengths is None else list(lengths)
    outs, logs = [], []
    for b, whole in enumerate(queries):
        caches = []
        for at, x in enumerate(np.concatenate(x) if isinstance(x, list) else x
                               for x in (key, value)):  # fmt: skip
            if table is not None:
                assert told is not None
                one = _pages(x, table, kv, told[b], b)
            else:
                one = _sequences(x, layout, kv, told)[b]
            caches.append(_restored(one, *anti[at], b))
        k, v = caches
        nk = k.shape[1] if told is None or packed else told[b]
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


def _by_channel(scale: Array, y: Array) -> Array:
    """One for all of [N, S, D], or one for each channel of each head."""
    return scale if scale.size == 1 else scale.reshape(y.shape[0], 1, y.shape[2])


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


def _prompt(layout: str, b: int, n: int, kv: int, s: int, d: int, masked: bool) -> dict[str, Any]:
    half: dict[str, Any] = {"dtype": "float16"}
    inputs: dict[str, Any] = {
        "query": t(*shaped(layout, b, n, s, d), **half),
        "key": t(*shaped(layout, b, kv, s, d), **half),
        "value": t(*shaped(layout, b, kv, s, d), **half, high=3.0),
        "numHeads": n, "scaleValue": d**-0.5, "preTokens": 65536, "nextTokens": 65536,
        "inputLayout": layout, "numKeyValueHeads": 0 if kv == n else kv, "sparseMode": 0,
        "innerPrecise": 0,
    }  # fmt: skip
    if masked:
        inputs["attenMask"] = causal(s, s)
    return inputs


_PROMPTS: Final = (("BSH", 2, 2, 2, 16, 16, False), ("BNSD", 1, 4, 2, 32, 16, True),
                   ("BSND", 1, 2, 2, 16, 32, True), ("BNSD", 1, 2, 2, 128, 64, False))  # fmt: skip
_SHIFTED: Final = take(**_prompt("BNSD", 1, 2, 2, 16, 16, False),
                       pseShift=t(1, 2, 16, 16, dtype="float16"))  # fmt: skip
_NEAR: Final = {"preTokens": 3, "nextTokens": 2}
_SPARSE_MASK: Final = given((np.arange(256).reshape(16, 16) % 7 == 3).tolist(), "bool")
_FIRST: Final = [*(take(**_prompt(*p)) for p in _PROMPTS), _SHIFTED]
_BAND: Final = take(**{**_prompt("BNSD", 2, 2, 2, 16, 16, False), **_NEAR,
                       "attenMask": _SPARSE_MASK})  # fmt: skip


def _one(value: float, dtype: str = "float32") -> Any:
    return given([value], dtype)


def _integers(names: str, **more: Any) -> dict[str, Any]:
    """int8 operands with the scales that `names` gives: of scores, weights, results, steps."""
    first, second, third, fourth, fifth = names.split()
    eight: dict[str, Any] = {"dtype": "int8", "low": -8, "high": 8}
    inputs = _prompt("BNSD", 1, 2, 2, 16, 32, False)
    steps = {} if "outDtype" not in more else {
        fourth: t(1, 2, 1, 32, low=3, high=9), fifth: t(1, 2, 1, 32, low=-9, high=9)}  # fmt: skip
    return {**inputs, **{n: t(1, 2, 16, 32, **eight) for n in ("query", "key", "value")},
            first: _one(2.0**-6), second: _one(127.0),
            third: given([0x3B800000], "uint64"), **steps,
            "outDtype": _HALF, **more}  # fmt: skip


_HALF, _INT8 = 1, 2  # aclDataType
_SCALES: Final = "deqScale1 quantScale1 deqScale2 quantScale2 quantOffset2"
_STEPPED: Final = {"quantScale2": t(1, 2, 1, 16, low=3, high=9),
                   "quantOffset2": t(1, 2, 1, 16, low=-9, high=9), "outDtype": _INT8}  # fmt: skip
_WIDE_MASK: Final = {"attenMask": Arg((2048, 2048), "bool",
                                      values=np.triu(np.ones((2048, 2048), bool), 1))}  # fmt: skip
spec("aclnnPromptFlashAttention", "attentionOut:query", **_ROW, samples=[
    *_FIRST, _BAND,
    take(**_prompt("BSH", 2, 2, 2, 16, 16, False), actualSeqLengths=(11, 16))])(
    lambda query, key, value, numHeads, scaleValue, inputLayout, numKeyValueHeads, attenMask,
    pseShift, actualSeqLengths, preTokens, nextTokens:
    prompt(query, key, value, numHeads, scaleValue, inputLayout, numKeyValueHeads, attenMask,
           pseShift, actualSeqLengths, None, preTokens, nextTokens))  # fmt: skip
spec("aclnnPromptFlashAttentionV2 aclnnPromptFlashAttentionV3", "attentionOut:outDtype|query",
     **_ROW, steps=True, samples=[
         *_FIRST, take(**_prompt("BSH", 2, 2, 2, 16, 16, False), actualSeqLengthsKv=(9, 14)),
         _BAND, take(**_prompt("BSH", 2, 2, 2, 16, 16, False), actualSeqLengths=(11, 16),
              actualSeqLengthsKv=(9, 14)),
         *(take(**{**_prompt("BNSD", 1, 2, 1, 16, 16, False), **_NEAR, **_WIDE_MASK,
                   "sparseMode": m}) for m in (2, 3, 4)),
         take(**{**_integers(_SCALES), "deqScale1": given([0x3C800000], "uint64")}),
         take(**_integers(_SCALES, outDtype=_INT8)),
         take(**{**_prompt("BNSD", 1, 2, 2, 16, 16, False), **_STEPPED})])(
    prompt)  # fmt: skip


def _listed(inputs: dict[str, Any], one: bool, dtype: str = "float16") -> dict[str, Any]:
    """key and value as lists; a query of one token for incremental decoding."""
    listed = {**inputs, "key": [inputs["key"]], "value": [inputs["value"]]}
    if one:
        shape = list(inputs["query"].shape)
        shape[{"BSH": 1, "BNSD": 2, "BSND": 1}[inputs["inputLayout"]]] = 1
        listed["query"] = t(*shape, dtype=dtype, low=-8, high=8) if dtype == "int8" else t(
            *shape, dtype=dtype)  # fmt: skip
    return {k: v for k, v in listed.items() if k not in ("attenMask",)}


def _cached(**more: Any) -> dict[str, Any]:
    """Two sequences of 9 and 14 keys in caches of 16, one token each."""
    return {**_listed(_prompt("BSH", 2, 4, 2, 16, 16, False), True), "blockSize": 0, **more}


def _bytes(*shape: int) -> Any:
    return [t(*shape, dtype="int8", low=-8, high=8)]


_HIDDEN: Final = given((np.arange(32).reshape(2, 1, 1, 16) % 5 == 3).tolist(), "bool")
_CHANNELS: Final = t(2, 32, dtype="float16", low=0.05, high=0.3)
# Caches by channel: with and without offsets.
_WHOLE: Final[tuple[dict[str, Any], ...]] = tuple(
    {"key": _bytes(2, 16, 32), "value": _bytes(2, 16, 32), "scale": _CHANNELS, "offset": offset}
    for offset in (t(2, 32, dtype="float16", high=3), None)
)
# Blocks of 4 rows, in an order that is not theirs.
_TABLE: Final = given([[5, 0, 7, -1], [2, 6, 1, 4]], "int32")
_PAGED: Final[dict[str, Any]] = {
    "key": [t(8, 16, 32, dtype="float16")], "value": [t(8, 16, 32, dtype="float16", high=3)],
    "blockSize": 16,
}  # fmt: skip


def _both(mode: int, scale: Array | None, offset: Array | None) -> list[tuple[int, Any, Any]]:
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
                 anti=_both(0, antiquantScale, antiquantOffset), table=blocktable,
                 steps=(None, None, None, quantScale2, quantOffset2),
                 padding=(None, kvPaddingSize))[0]  # fmt: skip


_TOKENS: Final = [
    *(take(**{**_listed(_prompt(*p), True), "blockSize": 0}) for p in _PROMPTS),
    take(**_cached(actualSeqLengths=(9, 14))),
    take(**_cached(actualSeqLengths=(16, 11), attenMask=_HIDDEN)),
]
_TOKEN_STEPS: Final = [
    take(**_cached(actualSeqLengths=(9, 14), outDtype=_INT8, quantScale2=s, quantOffset2=o))
    for s, o in ((_one(8.0), _one(-3.0)),
                 (t(1, 4, 1, 16, low=3, high=9), t(1, 4, 1, 16, low=-9, high=9)))]  # fmt: skip
_INTEGERS: Final = [
    take(
        **_cached(
            actualSeqLengths=(9, 14),
            key=w["key"],
            value=w["value"],
            antiquantScale=w["scale"],
            antiquantOffset=w["offset"],
        )
    )
    for w in _WHOLE
]
_BLOCKS: Final = [take(**{**_cached(), **_PAGED}, blocktable=_TABLE, actualSeqLengths=(37, 64))]
_LATE: Final = [take(**_cached(actualSeqLengths=(9, 14), kvPaddingSize=_one(2, "int64")))]
_THIRD: Final = _TOKENS + _INTEGERS + _BLOCKS + _TOKEN_STEPS
for _version, _samples in (
    ("", _TOKENS), ("V2", _TOKENS + _TOKEN_STEPS), ("V3", _THIRD), ("V4", _THIRD + _LATE),
):  # fmt: skip
    spec(f"aclnnIncreFlashAttention{_version}", "attentionOut:outDtype|query", **_ROW, steps=True,
         samples=_samples)(incremental)  # fmt: skip


def fused(
    query: Array, key: list[Array], value: list[Array], numHeads: int, scaleValue: float,
    inputLayout: str, numKeyValueHeads: int, pseShiftOptional: Array | None = None,
    attenMaskOptional: Array | None = None,
    actualSeqLengthsOptional: tuple[int, ...] | None = None,
    actualSeqLengthsKvOptional: tuple[int, ...] | None = None,
    deqScale1Optional: Array | None = None, quantScale1Optional: Array | None = None,
    deqScale2Optional: Array | None = None, quantScale2Optional: Array | None = None,
    quantOffset2Optional: Array | None = None,
    antiquantScaleOptional: Array | None = None, antiquantOffsetOptional: Array | None = None,
    antiquantMode: int = 0, blockTableOptional: Array | None = None,
    queryPaddingSizeOptional: Array | None = None, kvPaddingSizeOptional: Array | None = None,
    keyAntiquantScaleOptional: Array | None = None, keyAntiquantOffsetOptional: Array | None = None,
    valueAntiquantScaleOptional: Array | None = None,
    valueAntiquantOffsetOptional: Array | None = None, keyAntiquantMode: int = 0,
    valueAntiquantMode: int = 0, keySharedPrefixOptional: Array | None = None,
    valueSharedPrefixOptional: Array | None = None,
    actualSharedPrefixLenOptional: tuple[int, ...] | None = None,
    queryRopeOptional: Array | None = None, keyRopeOptional: Array | None = None,
    learnableSinkOptional: Array | None = None, pseType: int = 0,
    qStartIdxOptional: tuple[int, ...] | None = None,
    kvStartIdxOptional: tuple[int, ...] | None = None, preTokens: int = 65536,
    nextTokens: int = 65536, sparseMode: int = 0, softmaxLseFlag: bool = False,
) -> tuple[Array, Array]:  # fmt: skip
    anti = _both(antiquantMode, antiquantScaleOptional, antiquantOffsetOptional)
    if keyAntiquantScaleOptional is not None:
        anti = [(keyAntiquantMode, keyAntiquantScaleOptional, keyAntiquantOffsetOptional),
                (valueAntiquantMode, valueAntiquantScaleOptional,
                 valueAntiquantOffsetOptional)]  # fmt: skip
    out, log = infer(
        query, key, value, numHeads, scaleValue, inputLayout, numKeyValueHeads,
        mask=attenMaskOptional, shift=pseShiftOptional, lengths=actualSeqLengthsKvOptional,
        ends=actualSeqLengthsOptional, anti=anti, table=blockTableOptional, sparse=sparseMode,
        before=preTokens, after=nextTokens, steps=(
            deqScale1Optional, quantScale1Optional, deqScale2Optional, quantScale2Optional,
            quantOffset2Optional), padding=(queryPaddingSizeOptional, kvPaddingSizeOptional),
        prefix=(keySharedPrefixOptional, valueSharedPrefixOptional, actualSharedPrefixLenOptional),
        rope=(queryRopeOptional, keyRopeOptional), sink=learnableSinkOptional, slope=pseType,
        begins=((qStartIdxOptional or (0,))[0], (kvStartIdxOptional or (0,))[0]))  # fmt: skip
    return out, log if softmaxLseFlag else np.zeros((0,))


_FUSED: Final = {"blockSize": 0, "antiquantMode": 0, "softmaxLseFlag": False, "keyAntiquantMode": 0,
                 "valueAntiquantMode": 0, "queryQuantMode": 0, "pseType": 0}  # fmt: skip


def _whole(*form: Any, **more: Any) -> Any:
    return take(**{**_listed(_prompt(*form), False), **_FUSED, **more})


_PLAIN: Final = [
    *(_whole(*p) for p in _PROMPTS),
    *(take(**{**_listed(_prompt(*p), True), **_FUSED}) for p in _PROMPTS[:3]),
]
_LENGTHS: Final = {"actualSeqLengthsKvOptional": (9, 14)}
_FOUR: Final = ("BNSD", 2, 2, 1, 16, 16, False)
_MASKED: Final = {"attenMaskOptional": _SPARSE_MASK}
_BY_TOKEN: Final = {"key": _bytes(2, 16, 32), "value": _bytes(2, 16, 32)}
_FUSED_SCALES: Final = " ".join(f"{n}Optional" for n in _SCALES.split())


def _tokenwise(dtype: str) -> Any:
    """One scale and offset a token."""
    return take(**{
        **_cached(), **_FUSED, **_LENGTHS, **_BY_TOKEN, "antiquantMode": 1,
        "antiquantScaleOptional": t(2, 2, 16, dtype=dtype, low=0.05, high=0.3),
        "antiquantOffsetOptional": t(2, 2, 16, dtype=dtype, high=3)})  # fmt: skip


_TOKENWISE: Final = _tokenwise("float32")
_RICH: Final = [
    _whole("BNSD", 1, 4, 2, 32, 16, False, softmaxLseFlag=True, attenMaskOptional=causal(32, 32)),
    take(**{**_cached(), **_FUSED, **_LENGTHS, "softmaxLseFlag": True}),
    *(take(**{**_cached(), **_FUSED, **_LENGTHS, "key": w["key"], "value": w["value"],
              "antiquantScaleOptional": w["scale"], "antiquantOffsetOptional": w["offset"]})
      for w in _WHOLE),
    take(**{**_cached(), **_FUSED, **_PAGED, "blockTableOptional": _TABLE,
            "actualSeqLengthsKvOptional": (37, 64)}),
    _whole(*_FOUR, pseShiftOptional=t(2, 2, 16, 16, dtype="float16")),
    _whole(*_FOUR, **_NEAR, **_MASKED),
    *(_whole(*_FOUR, **_NEAR, attenMaskOptional=_WIDE_MASK["attenMask"], sparseMode=m)
      for m in (2, 3, 4)),
    _whole(*_FOUR, actualSeqLengthsOptional=(11, 16), **_LENGTHS),
    _whole(*_FOUR, actualSeqLengthsOptional=(11, 13), **_LENGTHS,
           queryPaddingSizeOptional=_one(1, "int64"), kvPaddingSizeOptional=_one(2, "int64")),
    _whole("BNSD", 2, 2, 2, 16, 16, False, inputLayout="BNSD_BSND"),
    _TOKENWISE,
    take(**{**_listed(_integers(_FUSED_SCALES), False, "int8"), **_FUSED}),
    take(**{**_listed(_integers(_FUSED_SCALES, outDtype=_INT8), False, "int8"), **_FUSED}),
    _whole("BNSD", 1, 2, 2, 16, 16, False, quantScale2Optional=_STEPPED["quantScale2"],
           quantOffset2Optional=_STEPPED["quantOffset2"], outDtype=_INT8),
]  # fmt: skip
# The later versions: parameters of keys and values apart, a prefix that all sequences share.
_APART: Final = [
    take(**{**_cached(), **_FUSED, **_LENGTHS, **_BY_TOKEN, "keyAntiquantMode": m[0],
            "valueAntiquantMode": m[1], **{
                f"{n}Antiquant{p}Optional": t(2, 16, low=0.05, high=0.3) if m[at] else t(
                    32, dtype="float16", low=0.05, high=0.3)
                for at, n in enumerate(("key", "value")) for p in ("Scale", "Offset")}})
    for m in ((0, 0), (1, 1), (0, 1))]  # fmt: skip
_PREFIXED: Final = [
    _whole("BNSD", 2, 4, 2, 16, 16, False, keySharedPrefixOptional=t(1, 2, 9, 16, dtype="float16"),
           valueSharedPrefixOptional=t(1, 2, 9, 16, dtype="float16"),
           actualSharedPrefixLenOptional=n) for n in (None, (5,))]  # fmt: skip
_THREE: Final = {
    "query": t(12, 4, 16, dtype="float16"), "key": [t(17, 2, 16, dtype="float16")],
    "value": [t(17, 2, 16, dtype="float16")], "inputLayout": "TND",
    "actualSeqLengthsOptional": (5, 12), "actualSeqLengthsKvOptional": (8, 17),
}  # fmt: skip
_TURNED: Final = [_whole(
    "BNSD", 1, 2, 1, 3, 512, False, queryRopeOptional=t(1, 2, 3, 64, dtype="float16"),
    keyRopeOptional=t(1, 1, 3, 64, dtype="float16"))]  # fmt: skip
_SINK: Final = [_whole(*_FOUR, learnableSinkOptional=t(2, dtype="float16", low=-1, high=3))]
_SLOPED: Final = [
    *(_whole(*_FOUR, pseShiftOptional=t(2, dtype="float16", low=0.1, high=0.5), pseType=p,
             qStartIdxOptional=(3,), kvStartIdxOptional=(1,)) for p in (2, 3))]  # fmt: skip
_SECOND: Final = [*_PLAIN, *_RICH, *_APART, *_PREFIXED]
_THIRD_ON: Final = [*_SECOND, _whole("BNSD", 2, 4, 2, 16, 16, False, **_THREE), *_TURNED]
# The fourth version takes scales of keys and values together in the query's dtype alone.
_FOURTH: Final = [*(s for s in _THIRD_ON if s is not _TOKENWISE), *_SINK, _tokenwise("float16")]
_FIRST_NAMES: Final = """pseShift attenMask actualSeqLengths actualSeqLengthsKv deqScale1
quantScale1 deqScale2 quantScale2 quantOffset2 antiquantScale antiquantOffset blockTable
queryPaddingSize kvPaddingSize"""
_SAME: Final = {n: f"{n}Optional" for n in _FIRST_NAMES.split()}
# Masks of each sequence; those of one query a sequence have two dims.
_EACH: Final = np.random.default_rng(5).random((2, 1, 16, 16)) < 0.4
_MASKS: Final = [
    _whole(*_FOUR, softmaxLseFlag=True, attenMaskOptional=given(_EACH, "bool")),
    take(**{**_cached(), **_FUSED, "attenMaskOptional": given(_EACH[:, 0, 3], "bool")}),
    _whole("BNSD", 2, 2, 2, 16, 16, False, inputLayout="BNSD_NBSD"),
    # A tensor of keys for each sequence.
    _whole(
        "BNSD",
        2,
        2,
        2,
        16,
        16,
        False,
        key=[t(1, 2, 16, 16, dtype="float16")] * 2,
        value=[t(1, 2, 16, 16, dtype="float16", high=3.0)] * 2,
    ),
    take(
        **{
            **_cached(),
            **_FUSED,
            **_LENGTHS,
            **_BY_TOKEN,
            "antiquantScaleOptional": t(2, 1, dtype="float16", low=0.05, high=0.3),
            "antiquantOffsetOptional": t(2, 1, dtype="float16", high=3),
        }
    ),
]
for _version, _samples in (("", [*_PLAIN, *_RICH]), ("V2", _SECOND), ("V3", _THIRD_ON),
                           ("V4", _FOURTH), ("V5", [*_FOURTH, *_SLOPED])):  # fmt: skip
    spec(f"aclnnFusedInferAttentionScore{_version}",
         "attentionOut:outDtype|query softmaxLse:float32", **_ROW, steps=True, renamed=_SAME,
         samples=[*_samples, *_MASKS])(fused)  # fmt: skip
