"""Attention over packed sequences of several lengths, and its gradients."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from .....spec import *
from .....spec import causal as causal_mask, heads as heads_
from .._saved import arguments, known, saved
from .._words import *
from .flash import LARGEST, attend, starts_of, unseen, unseen_rows


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
            slopes = np.asarray(options["slopes"]).reshape(-1, heads)
            bias = -slopes[b % len(slopes), :, None, None] * far
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
    kvStartIdxOptional: tuple[int, ...] | None = None, sinkOptional: Array | None = None,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Lengths are running sums."""
    qs = sequences(joined(query, queryRope), actualSeqQLenOptional)
    ks, vs = (sequences(x, actualSeqKvLenOptional) for x in (joined(key, keyRope), value))
    options_ = _sequence_options(actualSeqQLenOptional, actualSeqKvLenOptional, query.shape[1],
                 slopes=realShiftOptional, kept=dropMaskOptional, prefixOptional=prefixOptional,
                 pseType=pseType, sparseMode=sparseMode, preTokens=preTokens,
                 nextTokens=nextTokens, keepProb=keepProb, mask=attenMaskOptional,
                 begins=_begins(qStartIdxOptional, kvStartIdxOptional))  # fmt: skip
    parts_ = [
        attend(q, k, v, scaleValue, sink=sinkOptional, **o)
        for q, k, v, o in zip(qs, ks, vs, options_, strict=True)
    ]
    same = softmaxOutLayout == "same_as_input"
    return (statistics([p[2] for p in parts_], same), statistics([p[3] for p in parts_], same),
            np.zeros((0,)), packed([p[0] for p in parts_]))  # fmt: skip


_RULE: Final = Rule("gradient", "Vaswani et al.: Attention Is All You Need, 2017; Dao et al.: "
                    "FlashAttention, 2022; op-plugin documents npu_fusion_attention and _v3",
                    values="normal opposed positive", nearest=unseen_rows)  # fmt: skip
_SIZES: Final = sizes(B=heads_(2, 1, 3), K=heads_(1, 2, 3), G=group(2, 1, 4), N="K*G",
                      Sq=seq(6, 1, 17), Sk=seq(8, 1, 17, 33), D=head_dim(16, 64, 128))  # fmt: skip
_ROTARY: Final = sizes(R=head_dim(8, 64))
_SIDES: Final = both("Sq > Sk", "K > 1", "sparseMode == 3 and Sq > Sk", "preTokens < 0")
_BAND: Final = require("preTokens + nextTokens >= 0")
_DTYPES: Final = "f16 bf16 f32"
_ENDS: Final = "even ragged empty_first empty_middle empty_last one_has_all ones"
_ALL: Final = 65536
_PLAIN_MODES: Final = (0, 1, 2, 3, 6)


def _shared_mask(rng: np.random.Generator, pattern: str, draw: Any) -> Array:
    """One mask for all sequences, of the longest one's size."""
    shape = tuple(int(np.diff(draw[f"actualSeq{s}LenOptional"].values(), prepend=0).max())
                  for s in ("Q", "Kv"))  # fmt: skip
    if pattern == "causal":
        return np.triu(np.ones(shape, bool), 1)
    hidden = rng.random(shape) < 0.4
    hidden[:, :1] = False
    if pattern == "whole_row":
        hidden[:1] = True
    return hidden


def _masks() -> Domain:
    mask = content(_shared_mask, "random causal whole_row", "bool", reads=(
        "actualSeqQLenOptional", "actualSeqKvLenOptional"))  # fmt: skip
    return by("sparseMode", {0: optional(mask), 1: mask,
                             **dict.fromkeys((2, 3, 4, 6), causal_mask("2048 2048"))})  # fmt: skip


def _banded(band: Domain) -> Domain:
    return by("sparseMode", {**dict.fromkeys(_PLAIN_MODES, number(_ALL)), 4: band})


_NO_SHIFT: Final = null("how it lies beside packed sequences is not stated")


def _shifts(version: int, make: Any, dtype: str) -> Domain:
    """Slopes of heads, of each sequence where there are several."""
    if version in (1, 4):
        return _NO_SHIFT
    slopes = forms(heads=make("N", dtype, 0.02, 0.3), samples=make("B N", dtype, 0.02, 0.3))
    return by("pseType", {0: _NO_SHIFT, 1: _NO_SHIFT, 2: slopes, 3: slopes})


def _middle(version: int) -> dict[str, Domain]:
    """From the prefix on to the type of the shift."""
    starts = {n: starts_of("positions count for pseType 2 and 3")
              for n in ("qStartIdxOptional", "kvStartIdxOptional")}  # fmt: skip
    return {
        "prefixOptional": optional(index("B", into="Sk + 1", patterns="random edges"),
                                   iff="sparseMode == 6"),
        "actualSeqQLenOptional": parts("B", of="B*Sq", form="ends", patterns=_ENDS),
        "actualSeqKvLenOptional": parts("B", of="B*Sk", form="ends", patterns=_ENDS),
        **(starts if version not in (1, 4) else {}),
        "scaleValue": number("D**-0.5", "0.5*D**-0.5", 0.0), "keepProb": number(1.0, 0.8),
        "preTokens": _banded(number(_ALL, 3, 0, -2)),
        "nextTokens": _banded(number(_ALL, 0, 2, 3)), "headNum": equals("N"),
        "inputLayout": only("TND", "documents allow one value"),
        "innerPrecise": ignored("chooses between algorithms of one result", choice(0, 1)),
        "sparseMode": choice(0, 1, 2, 3, 4, 6),
        **({"pseType": choice(1, 0, 2, 3)} if version not in (1, 4) else {}),
    }  # fmt: skip


def _of_heads(
    version: int, make: Any, key: str, own: str, like: str, rotary: str = ""
) -> dict[str, Domain]:  # fmt: skip
    """Queries, keys and values, with rotary parts beside them from the third version on, of some
    dtypes in some versions."""
    parts_ = {"query": make("B*Sq N D", own),
              "queryRope": optional(make("B*Sq N R", like), only=rotary), key: make(
                  "B*Sk K D", like), f"{key}Rope": optional(
                  make("B*Sk K R", like), iff="given(queryRope)"),
              "value": make("B*Sk K D", like)}  # fmt: skip
    return {n: d for n, d in parts_.items() if version in (3, 5) or not n.endswith("Rope")}


_BF16: Final = "dtype(query) == 'bfloat16'"
_BITS: Final = optional(bits("N*B*Sq*B*Sk", "keepProb"), iff="keepProb < 1")
_PADDING: Final = null("reserved: documents ask for null")
_LAYOUTS: Final = choice("", "same_as_input")


def _score_params(version: int) -> dict[str, Domain]:
    return {
        **_of_heads(version, tensor, "key", _DTYPES, "query", _BF16 if version == 5 else ""),
        "realShiftOptional": _shifts(version, tensor, "f32"), "dropMaskOptional": _BITS,
        "paddingMaskOptional": _PADDING, "attenMaskOptional": _masks(),
        **({"sinkOptional": optional(tensor("N", "f32", -1, 3))} if version == 5 else {}),
        **_middle(version), **({"softmaxOutLayout": _LAYOUTS} if version > 3 else {}),
        "softmaxMaxOut": out("f32"), "softmaxSumOut": out("f32"), "softmaxOutOut": out("query"),
        "attentionOutOut": out("query"),
    }  # fmt: skip


for _version in (1, 2, 3, 4, 5):
    spec(f"aclnnFlashAttentionVarLenScore{f'V{_version}' if _version > 1 else ''}", _RULE,
         _SIZES, *((_ROTARY,) if _version in (3, 5) else ()), _SIDES, _BAND,
         **_score_params(_version))(var_len)  # fmt: skip


def _one(
    q: Array, k: Array, v: Array, dy: Array, scale: float, sink: Array | None,
    options_: Mapping[str, Any],
) -> tuple[Array, ...]:  # fmt: skip
    group = q.shape[1] // k.shape[1]
    _, p, top, total = attend(q, k, v, scale, sink=sink, **options_)
    share = options_["share"]
    kk, vv = np.repeat(k, group, 1), np.repeat(v, group, 1)
    dp = share * (dy @ vv.swapaxes(-1, -2))
    along = (dp * p).sum(-1, keepdims=True)
    ds = scale * p * (dp - along)

    def fold(x: Array) -> Array:
        return x.reshape(1, k.shape[1], group, *x.shape[2:]).sum(2)

    dsink = np.zeros(q.shape[1])
    if sink is not None:
        dsink = -(np.exp(sink[:, None, None] - top) / total * along).sum((0, 2, 3))
    return ds @ kk, fold(ds.swapaxes(-1, -2) @ q), fold((p * share).swapaxes(-1, -2) @ dy), dsink


def var_len_grad(
    query: Array, keyIn: Array, value: Array, dy: Array, scaleValue: float,
    actualSeqQLenOptional: tuple[int, ...], actualSeqKvLenOptional: tuple[int, ...],
    queryRope: Array | None = None, keyInRope: Array | None = None,
    pseShiftOptional: Array | None = None, dropMaskOptional: Array | None = None,
    prefixOptional: tuple[int, ...] | None = None, pseType: int = 1, sparseMode: int = 0,
    preTokens: int = 65536, nextTokens: int = 65536, keepProb: float = 1.0,
    attenMaskOptional: Array | None = None, qStartIdxOptional: tuple[int, ...] | None = None,
    kvStartIdxOptional: tuple[int, ...] | None = None, sinkInOptional: Array | None = None,
    _version: int = 1,
) -> tuple[Array | None, ...]:  # fmt: skip
    """dV = P^T dO; dP = dO V^T; dS = P (dP - rowsum(dP P)); dQ = s dS K; dK = s dS^T Q."""
    qs = sequences(joined(query, queryRope), actualSeqQLenOptional)
    flows = sequences(dy, actualSeqQLenOptional)
    ks, vs = (sequences(x, actualSeqKvLenOptional) for x in (joined(keyIn, keyInRope), value))
    options_ = _sequence_options(actualSeqQLenOptional, actualSeqKvLenOptional, query.shape[1],
                 slopes=pseShiftOptional, kept=dropMaskOptional, prefixOptional=prefixOptional,
                 pseType=pseType, sparseMode=sparseMode, preTokens=preTokens,
                 nextTokens=nextTokens, keepProb=keepProb, mask=attenMaskOptional,
                 begins=_begins(qStartIdxOptional, kvStartIdxOptional))  # fmt: skip
    grads = [_one(q, k, v, up, scaleValue, sinkInOptional, o)
             for q, k, v, up, o in zip(qs, ks, vs, flows, options_, strict=True)]  # fmt: skip
    dq, dk, dv = (packed([g[n] for g in grads]) for n in range(3))
    if _version not in (3, 5):
        return dq, dk, dv, None
    d, dsink = query.shape[-1], None if sinkInOptional is None else sum(g[3] for g in grads)
    rotary = (None, None) if queryRope is None else (dq[..., d:], dk[..., d:])
    whole = (dq[..., :d], rotary[0], dk[..., :d], rotary[1], dv, None)
    return (*whole, np.asarray(dsink) if dsink is not None else None) if _version == 5 else whole


def _forward(get: Callable[[str], Any]) -> tuple[Array, ...]:
    """(largest, sum, result); of rows that see nothing those statistics that make weights 0."""
    top, total, _, whole = var_len(**arguments(
        var_len, get, key="keyIn", keyRope="keyInRope", realShiftOptional="pseShiftOptional",
        sinkOptional="sinkInOptional", softmaxOutLayout="softmaxInLayout"))  # fmt: skip
    empty = np.isneginf(top)
    top, total = np.where(empty, -LARGEST, top), np.where(empty, LARGEST, total)
    return top.reshape(total.shape), total, whole


_SAVED: Final = "query keyIn value attenMaskOptional dropMaskOptional"


def _narrow(shape: str, dtype: str, low: float = -1.0, high: float = 1.0) -> Domain:
    """Scores of which no weight comes near 1, where gradients cancel."""
    return known(shape, dtype, low, high, "random")


def _grad_params(version: int) -> dict[str, Domain]:
    layout: dict[str, Domain] = {"softmaxInLayout": _LAYOUTS}
    results = ("dqOut", "dqRopeOut", "dkOut", "dkRopeOut", "dvOut", "dpseOut")
    stats = {n: by("softmaxInLayout", {
        "": saved(_forward, at, "B*Sq N 8", "f32", _SAVED),
        "same_as_input": saved(_forward, at, "B*Sq N 8", "f32", _SAVED)})
        if version > 3 else saved(_forward, at, "B*Sq N 8", "f32", _SAVED)
        for at, n in enumerate(("softmaxMaxOptional", "softmaxSumOptional"))}  # fmt: skip
    return {
        **_of_heads(version, _narrow, "keyIn", "dy", "dy", _BF16),
        "dy": tensor("B*Sq N D", _DTYPES),
        "pseShiftOptional": _shifts(version, _narrow, "dy" if version == 5 else "f32"),
        "dropMaskOptional": _BITS,
        "paddingMaskOptional": _PADDING, "attenMaskOptional": _masks(), **stats,
        "softmaxInOptional": _PADDING,
        "attentionInOptional": saved(_forward, 2, "B*Sq N D", "dy", _SAVED),
        **({"sinkInOptional": optional(_narrow("N", "f32", -1, 3))} if version == 5 else {}),
        **_middle(version), **(layout if version == 5 else {}),
        **{n: out("query") for n in results if version in (3, 5) or "Rope" not in n},
        **({"dsinkOut": out("f32")} if version == 5 else {}), **(layout if version == 4 else {}),
    }  # fmt: skip


_BACK: Final = replace(_RULE, numbers={
    "norm": 16.0, "reason": "the forward output comes rounded to 16 bit, and its error enters "
    "every row"}, values="normal opposed", nearest=None)  # fmt: skip
for _version in (1, 2, 3, 4, 5):
    spec(f"aclnnFlashAttentionUnpaddingScoreGrad{f'V{_version}' if _version > 1 else ''}", _BACK,
         _SIZES, *((_ROTARY,) if _version in (3, 5) else ()), _SIDES, _BAND,
         **_grad_params(_version))(partial(var_len_grad, _version=_version))  # fmt: skip
