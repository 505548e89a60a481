"""Attention over packed sequences of several lengths, and its gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from .....judge.precision import Array, numpy_dtype
from ...spec import const, spec, t, take
from .._ignored import follows, one_value, reserved, saved
from .flash import attend, unseen

_PAPER: Final = ("Vaswani et al.: Attention Is All You Need, 2017; Dao et al.: FlashAttention, "
                 "2022; op-plugin documents npu_fusion_attention and _v3")  # fmt: skip
_ROW: Final[dict[str, Any]] = {"source": _PAPER, "tolerance": "gradient"}
_Q, _KV = (5, 12), (6, 15)  # ends of two sequences: 5 and 7 queries, 6 and 9 keys
_USUAL: Final[dict[str, Any]] = {"keepProb": 1.0, "preTokens": 65536, "nextTokens": 65536,
                                 "innerPrecise": 0, "sparseMode": 0, "pseType": 1,
                                 "scaleValue": 0.25, "inputLayout": "TND"}  # fmt: skip


def sequences(x: Array, ends: tuple[int, ...]) -> list[Array]:
    """[1, N, S, D] of each sequence of [T, N, D]."""
    return [part.transpose(1, 0, 2)[None] for part in np.split(x, ends[:-1])]


def packed(parts: list[Array]) -> Array:
    """[T, N, D] of sequences [1, N, S, D]."""
    return np.concatenate([p[0].transpose(1, 0, 2) for p in parts])


def statistics(parts: list[Array], like_input: bool) -> Array:
    """Eight equal values a row. Heads are outermost in memory, unless softmaxOutLayout says
    "same_as_input"."""
    whole = np.concatenate([p[0] for p in parts], 1)
    n, s, _ = whole.shape
    eight = np.broadcast_to(whole, (n, s, 8))
    return eight.transpose(1, 0, 2) if like_input else eight.reshape(s, n, 8)


def joined(x: Array, rope: Array | None) -> Array:
    """A head's plain part, then the part that carries the rotary embedding."""
    return x if rope is None else np.concatenate([x, rope], -1)


def _options(
    bounds: list[tuple[int, int]], heads: int, options: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """What `attend` is told for each sequence: what is hidden, added to scores and dropped.

    sparseMode 6 adds `prefix` columns to the triangle of the lower right; pseType 2 and 3 take
    slopes (Press et al.: ALiBi, 2022) times distances or their roots, of positions that begin at
    `begins`; bits of what is kept follow each other, sequence after sequence.
    """
    per_sequence: list[dict[str, Any]] = []
    at = 0
    for b, (sq, sk) in enumerate(bounds):
        sparse = options["sparseMode"]
        prefix = options["prefixOptional"][b : b + 1] if sparse == 6 else None
        hidden = unseen(sparse, sq, sk, options["preTokens"], options["nextTokens"], prefix)
        if sparse < 2 and options["mask"] is not None:
            hidden = options["mask"][:sq, :sk].astype(bool)
        bias, share = None, 1.0
        if options["slopes"] is not None:
            first, second = options["begins"]
            far = np.abs(first + np.arange(sq)[:, None] - second - np.arange(sk)).astype(float)
            far = np.sqrt(far) if options["pseType"] == 3 else far
            bias = -np.asarray(options["slopes"]).reshape(-1)[:heads, None, None] * far
        if options["kept"] is not None:
            bits = np.unpackbits(np.asarray(options["kept"], np.uint8), bitorder="little")
            count = heads * sq * sk
            share = bits[at : at + count].reshape(1, heads, sq, sk) / options["keepProb"]
            at += count
        per_sequence.append({"hidden": hidden, "bias": bias, "share": share, "add_first": False})
    return per_sequence


def _sequence_options(
    q_ends: tuple[int, ...], kv_ends: tuple[int, ...], heads: int, **options: Any
) -> list[dict[str, Any]]:
    lengths = [np.diff((0, *ends)).tolist() for ends in (q_ends, kv_ends)]
    return _options(list(zip(*lengths, strict=True)), heads, options)


def _begins(*starts: tuple[int, ...] | None) -> list[int]:
    return [(start or (0,))[0] for start in starts]


def var_len(
    query: Array, key: Array, value: Array, scaleValue: float,
    actualSeqQLenOptional: tuple[int, ...], actualSeqKvLenOptional: tuple[int, ...],
    queryRope: Array | None = None, keyRope: Array | None = None, softmaxOutLayout: str = "",
    realShiftOptional: Array | None = None, dropMaskOptional: Array | None = None,
    prefixOptional: tuple[int, ...] | None = None, pseType: int = 1, sparseMode: int = 0,
    preTokens: int = 65536, nextTokens: int = 65536, keepProb: float = 1.0,
    attenMaskOptional: Array | None = None, qStartIdxOptional: tuple[int, ...] | None = None,
    kvStartIdxOptional: tuple[int, ...] | None = None,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Lengths are running sums."""
    qs = sequences(joined(query, queryRope), actualSeqQLenOptional)
    ks, vs = (sequences(x, actualSeqKvLenOptional) for x in (joined(key, keyRope), value))
    options_ = _sequence_options(actualSeqQLenOptional, actualSeqKvLenOptional, query.shape[1],
                 slopes=realShiftOptional, kept=dropMaskOptional, prefixOptional=prefixOptional,
                 pseType=pseType, sparseMode=sparseMode, preTokens=preTokens,
                 nextTokens=nextTokens, keepProb=keepProb, mask=attenMaskOptional,
                 begins=_begins(qStartIdxOptional, kvStartIdxOptional))  # fmt: skip
    parts = [
        attend(q, k, v, scaleValue, **o) for q, k, v, o in zip(qs, ks, vs, options_, strict=True)
    ]
    same = softmaxOutLayout == "same_as_input"
    return (statistics([p[2] for p in parts], same), statistics([p[3] for p in parts], same),
            np.zeros((0,)), packed([p[0] for p in parts]))  # fmt: skip


def _sample(
    n: int, kv: int, d: int = 16, rope: int = 0, dtype: str = "float16", **more: Any
) -> dict[str, Any]:
    def tensor(*shape: int, high: float = 2.0) -> Any:
        return t(*shape, dtype=dtype, high=high)

    inputs: dict[str, Any] = {
        "query": tensor(12, n, d), "key": tensor(15, kv, d), "value": tensor(15, kv, d, high=3.0),
        "headNum": n, "actualSeqQLenOptional": _Q, "actualSeqKvLenOptional": _KV, **_USUAL, **more,
    }  # fmt: skip
    if rope:
        inputs |= {"queryRope": tensor(12, n, rope), "keyRope": tensor(15, kv, rope)}
    return inputs


_OUTS: Final = (
    "softmaxMaxOut:float32 softmaxSumOut:float32 softmaxOutOut:query attentionOutOut:query"
)
# The mask that sparse modes compress to: 2,048 squared, whatever the lengths.
_PRESSED: Final = Arg((2048, 2048), "bool", values=np.triu(np.ones((2048, 2048), bool), 1))
# A bit for each score of two sequences with two heads: 2 (5 6 + 7 9) of them.
_BITS: Final = const([0xB7, 0x5E, 0xFD, 0x3B, 0xEE, 0x97, 0xDA, 0x7F] * 3, "uint8")
_RARE: Final[tuple[dict[str, Any], ...]] = (
    {"sparseMode": 2, "attenMaskOptional": _PRESSED},
    {"sparseMode": 3, "attenMaskOptional": _PRESSED},
    {"sparseMode": 4, "preTokens": 2, "nextTokens": 1, "attenMaskOptional": _PRESSED},
    {"sparseMode": 6, "prefixOptional": (4, 7), "attenMaskOptional": _PRESSED},
    {"keepProb": 0.8, "dropMaskOptional": _BITS},
)
_SLOPES: Final[tuple[dict[str, Any], ...]] = tuple(
    {"pseType": p, "realShiftOptional": const([0.5, 0.125], "float32")} for p in (2, 3)
)
_SEEN: Final = const((np.arange(63).reshape(7, 9) % 5 == 3).tolist(), "bool")
_MASK: Final[dict[str, Any]] = {"attenMaskOptional": _SEEN}
_LATE: Final = {**_SLOPES[0], "qStartIdxOptional": (3,), "kvStartIdxOptional": (1,)}
spec("aclnnFlashAttentionVarLenScore", _OUTS,
     ignored=reserved("paddingMaskOptional")
     | one_value("inputLayout")
     | follows("headNum"),
     constant="realShiftOptional",
     **_ROW, samples=[
    take(**_sample(n, kv, **more)) for n, kv, more in (
        (2, 2, {}), (4, 2, {}), *((2, 1, more) for more in (*_RARE, _MASK)))])(var_len)  # fmt: skip
spec("aclnnFlashAttentionVarLenScoreV2", _OUTS,
     ignored=reserved("paddingMaskOptional")
     | one_value("inputLayout")
     | follows("headNum"),
     **_ROW, samples=[
    take(**_sample(n, kv, **more)) for n, kv, more in (
        (2, 2, {}), (4, 2, {}), *((2, 1, more) for more in (*_RARE, *_SLOPES, _MASK, _LATE)))])(
    var_len)  # fmt: skip
spec("aclnnFlashAttentionVarLenScoreV3", _OUTS,
     ignored=reserved("paddingMaskOptional")
     | one_value("inputLayout")
     | follows("headNum"),
     constant="dropMaskOptional prefixOptional preTokens nextTokens keepProb",
     **_ROW, samples=[
    take(**_sample(2, 2, 128, 64)), take(**_sample(4, 2)), take(**_sample(2, 1, **_MASK)),
    take(**_sample(2, 1, **_LATE))])(var_len)  # fmt: skip
_ROTARY: Final[dict[str, Any]] = {"d": 128, "rope": 64, "dtype": "bfloat16"}
_FOURTH: Final = {
    "ignored": reserved("paddingMaskOptional") | one_value("inputLayout") | follows("headNum"),
    "constant": "realShiftOptional dropMaskOptional prefixOptional preTokens nextTokens keepProb",
}
_FIFTH: Final = {"uncovered": "paddingMaskOptional sinkOptional headNum inputLayout"}
for _version, _more, _gaps in (
    ("V4", (), _FOURTH), ("V5", (_LATE, *_RARE, _ROTARY), _FIFTH),
):  # fmt: skip
    spec(f"aclnnFlashAttentionVarLenScore{_version}", _OUTS, **_ROW, **_gaps, samples=[
        *(take(**_sample(n, kv, softmaxOutLayout=layout))
          for n, kv, layout in ((2, 2, ""), (4, 2, "same_as_input"))),
        *(replace(take(**_sample(2, 1, **more), softmaxOutLayout=""),
                  dtypes=("bfloat16",) if "rope" in more else ())
          for more in (_MASK, *_more))])(var_len)  # fmt: skip


def _one(
    q: Array, k: Array, v: Array, dy: Array, scale: float, options_: Mapping[str, Any]
) -> tuple[Array, Array, Array]:
    group = q.shape[1] // k.shape[1]
    p, share = attend(q, k, v, scale, **options_)[1], options_["share"]
    kk, vv = np.repeat(k, group, 1), np.repeat(v, group, 1)
    dp = share * (dy @ vv.swapaxes(-1, -2))
    ds = scale * p * (dp - (dp * p).sum(-1, keepdims=True))

    def fold(x: Array) -> Array:
        return x.reshape(1, k.shape[1], group, *x.shape[2:]).sum(2)

    return ds @ kk, fold(ds.swapaxes(-1, -2) @ q), fold((p * share).swapaxes(-1, -2) @ dy)


def var_len_grad(
    query: Array, keyIn: Array, value: Array, dy: Array, scaleValue: float,
    actualSeqQLenOptional: tuple[int, ...], actualSeqKvLenOptional: tuple[int, ...],
    queryRope: Array | None = None, keyInRope: Array | None = None,
    pseShiftOptional: Array | None = None, dropMaskOptional: Array | None = None,
    prefixOptional: tuple[int, ...] | None = None, pseType: int = 1, sparseMode: int = 0,
    preTokens: int = 65536, nextTokens: int = 65536, keepProb: float = 1.0,
    attenMaskOptional: Array | None = None, qStartIdxOptional: tuple[int, ...] | None = None,
    kvStartIdxOptional: tuple[int, ...] | None = None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """dV = P^T dO; dP = dO V^T; dS = P (dP - rowsum(dP P)); dQ = s dS K; dK = s dS^T Q."""
    qs = sequences(joined(query, queryRope), actualSeqQLenOptional)
    flows = sequences(dy, actualSeqQLenOptional)
    ks, vs = (sequences(x, actualSeqKvLenOptional) for x in (joined(keyIn, keyInRope), value))
    options_ = _sequence_options(actualSeqQLenOptional, actualSeqKvLenOptional, query.shape[1],
                 slopes=pseShiftOptional, kept=dropMaskOptional, prefixOptional=prefixOptional,
                 pseType=pseType, sparseMode=sparseMode, preTokens=preTokens,
                 nextTokens=nextTokens, keepProb=keepProb, mask=attenMaskOptional,
                 begins=_begins(qStartIdxOptional, kvStartIdxOptional))  # fmt: skip
    grads = [_one(q, k, v, up, scaleValue, o)
             for q, k, v, up, o in zip(qs, ks, vs, flows, options_, strict=True)]  # fmt: skip
    dq, dk, dv = (packed(list(parts)) for parts in zip(*grads, strict=True))
    return dq, dk, dv


def var_len_grad_rope(
    query: Array, keyIn: Array, value: Array, dy: Array, scaleValue: float,
    actualSeqQLenOptional: tuple[int, ...], actualSeqKvLenOptional: tuple[int, ...],
    queryRope: Array | None = None, keyInRope: Array | None = None,
) -> tuple[Array | None, ...]:  # fmt: skip
    dq, dk, dv = var_len_grad(query, keyIn, value, dy, scaleValue, actualSeqQLenOptional,
                              actualSeqKvLenOptional, queryRope, keyInRope)  # fmt: skip
    d = query.shape[-1]
    if queryRope is None:
        return dq, None, dk, None, dv
    return dq[..., :d], dq[..., d:], dk[..., :d], dk[..., d:], dv


_HALVED: Final = ("query", "key", "value", "queryRope", "keyRope")
_MODES: Final = ("realShiftOptional", "dropMaskOptional", "prefixOptional", "pseType",
                 "sparseMode", "preTokens", "nextTokens", "keepProb", "qStartIdxOptional",
                 "kvStartIdxOptional", "attenMaskOptional")  # fmt: skip


def _backward(sample: dict[str, Any], layout: str = "", dtype: str = "float16") -> dict[str, Any]:
    """The forward's inputs and its statistics, as the backward operator takes them."""
    names, kind = {"key": "keyIn", "keyRope": "keyInRope"}, numpy_dtype(dtype)
    names |= {"realShiftOptional": "pseShiftOptional"}
    inputs = {names.get(k, k): v for k, v in sample.items()}
    draws = {k: v.array() for k, v in sample.items() if k in _HALVED and v is not None}
    half = {k: v.astype(kind).astype(np.float64) for k, v in draws.items()}
    modes = {k: v for k, v in sample.items() if k in _MODES}
    modes |= {k: modes[k].array() for k in (*_MODES[:2], _MODES[-1]) if k in modes}
    top, total, _, out = var_len(
        half["query"], half["key"], half["value"], sample["scaleValue"], _Q, _KV,
        half.get("queryRope"), half.get("keyRope"), layout, **modes,
    )  # fmt: skip
    fixed = {names.get(k, k): const(v.tolist(), dtype) for k, v in half.items()}
    return {**inputs, **fixed, "dy": t(*out.shape, dtype=dtype), "softmaxInLayout": layout,
            "softmaxMaxOptional": const(top.tolist(), "float32"),
            "softmaxSumOptional": const(total.tolist(), "float32"),
            "attentionInOptional": const(out.tolist(), dtype)}  # fmt: skip


_GRAD: Final[dict[str, Any]] = {
    **_ROW, "dtypes": ("float16",), "rule": {"norm": 16.0, "reason":
    "the forward output comes rounded to 16 bit, and its error enters every row"}}  # fmt: skip
_BACK: Final = "aclnnFlashAttentionUnpaddingScoreGrad"
_DOUTS: Final = "dqOut:query dkOut:keyIn dvOut:value"
_ROPED: Final = "dqOut:query dqRopeOut:query dkOut:keyIn dkRopeOut:keyIn dvOut:value"
_SAVED: Final = (
    reserved("paddingMaskOptional softmaxInOptional dpseOut")
    | saved("softmaxMaxOptional softmaxSumOptional attentionInOptional")
    | follows("headNum")
)
_LENGTHS: Final = "scaleValue actualSeqQLenOptional actualSeqKvLenOptional"
spec(_BACK, _DOUTS, ignored=_SAVED | one_value("inputLayout"),
     constant=f"{_LENGTHS} pseShiftOptional", **_GRAD, samples=lambda: [
    take(**_backward(_sample(n, kv, **more))) for n, kv, more in (
        (2, 2, {}), (4, 2, {}), *((2, 1, more) for more in (*_RARE, _MASK)))])(
    var_len_grad)  # fmt: skip
spec(
    f"{_BACK}V2",
    _DOUTS,
    ignored=_SAVED | one_value("inputLayout"),
    constant=_LENGTHS,
    **_GRAD,
    samples=lambda: [
        take(**_backward(_sample(n, kv, **more)))
        for n, kv, more in (
            (2, 2, {}),
            (4, 2, {}),
            *((2, 1, more) for more in (*_RARE, *_SLOPES, _MASK, _LATE)),
        )
    ],
)(var_len_grad)
spec(f"{_BACK}V4", _DOUTS, ignored=_SAVED, uncovered="inputLayout softmaxInLayout",
     constant=f"{_LENGTHS} pseShiftOptional dropMaskOptional prefixOptional sparseMode preTokens "
     "nextTokens keepProb", **_GRAD, samples=lambda: [
    take(**_backward(_sample(n, kv, **more), layout))
    for n, kv, layout, more in ((2, 2, "", {}), (4, 2, "same_as_input", {}), (2, 1, "", _MASK))])(
    var_len_grad)  # fmt: skip
spec(f"{_BACK}V3 {_BACK}V5", _ROPED,
     ignored=_SAVED | reserved("pseShiftOptional") | one_value("inputLayout pseType"),
     uncovered="dropMaskOptional attenMaskOptional prefixOptional qStartIdxOptional "
     "kvStartIdxOptional keepProb preTokens nextTokens sparseMode sinkInOptional softmaxInLayout "
     "dsinkOut", constant=_LENGTHS, **{**_GRAD, "dtypes": ("bfloat16",)}, samples=lambda: [
    take(**_backward(_sample(n, kv, d, rope, "bfloat16"), dtype="bfloat16"))
    for n, kv, d, rope in ((4, 2, 16, 0), (2, 2, 128, 64))])(var_len_grad_rope)  # fmt: skip
