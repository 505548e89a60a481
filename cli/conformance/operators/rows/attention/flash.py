"""Attention over whole sequences: FlashAttentionScore and its gradients."""

from __future__ import annotations

from functools import partial

from .....spec import *
from .....spec import causal as causal_mask, heads as heads_
from .._saved import arguments, known, saved
from .._words import *

_PAPER: Final = ("Vaswani et al.: Attention Is All You Need, 2017; Dao et al.: FlashAttention, "
                 "2022; op-plugin document npu_fusion_attention")  # fmt: skip
_FORMATS: Final = dict.fromkeys(("query", "key", "keyIn", "value", "dy", "attentionOutOut", "dqOut",
                                 "dkOut", "dvOut"), "ND")  # fmt: skip
LARGEST: Final = float(np.finfo(np.float32).max)


def by_heads(x: Array, layout: str, n: int) -> Array:
    """[B, N, S, D] of a tensor in a layout; `n` heads where the last dimension holds them."""
    if layout == "BNSD":
        return x
    if layout == "BSND":
        return x.transpose(0, 2, 1, 3)
    if layout == "BSH":
        b, s, h = x.shape
        return x.reshape(b, s, n, h // n).transpose(0, 2, 1, 3)
    s, b, h = x.shape  # SBH
    return x.reshape(s, b, n, h // n).transpose(1, 2, 0, 3)


def back(x: Array, layout: str) -> Array:
    """The layout of [B, N, S, D]."""
    b, n, s, d = x.shape
    if layout == "BNSD":
        return x
    if layout == "NBSD":
        return x.swapaxes(0, 1)
    if layout == "BSND":
        return x.transpose(0, 2, 1, 3)
    if layout == "BSH":
        return x.transpose(0, 2, 1, 3).reshape(b, s, n * d)
    return x.transpose(2, 0, 1, 3).reshape(s, b, n * d)


def _kv_heads(key: Array, query: Array, layout: str, n: int) -> int:
    if layout in ("BNSD", "BSND"):
        return int(key.shape[1 if layout == "BNSD" else 2])
    return n * int(key.shape[-1]) // int(query.shape[-1])


def attend(
    q: Array,
    k: Array,
    v: Array,
    scale: float,
    bias: Array | None = None,
    mask: Array | None = None,
    add_first: bool = True,
    hidden: Array | None = None,
    share: Array | float = 1.0,
    sink: Array | None = None,
) -> tuple[Array, Array, Array, Array]:
    """(out, weights, row maxima, row sums) of [B, N, S, D]; kv heads repeat to query heads.

    A row that sees nothing gives zeros. `hidden` [Sq, Sk] hides like `mask`; `share` is 0 where a
    weight is dropped, else 1 / kept; `sink` [N] is one score more of each row, without a value.
    """
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    score = q @ k.swapaxes(-1, -2)
    if bias is None:
        score = score * scale
    else:
        score = (score + bias) * scale if add_first else score * scale + bias
    if mask is not None:
        score = np.where(mask.astype(bool), -np.inf, score)
    if hidden is not None:
        score = np.where(hidden, -np.inf, score)
    top = score.max(-1, keepdims=True, initial=-np.inf)
    more = None if sink is None else sink[:, None, None]
    top = top if more is None else np.maximum(top, more)
    e = np.exp(score - np.where(np.isneginf(top), 0.0, top))
    total = e.sum(-1, keepdims=True) + (0 if more is None else np.exp(more - top))
    weights = e / np.where(total == 0, 1.0, total)
    return (weights * share) @ v, weights, top, total


def unseen(
    sparse: int, sq: int, sk: int, before: int, after: int, prefix: Sequence[int] | None = None
) -> Array | None:
    """What sparseMode hides of [Sq, Sk]: 2 causal from the upper left, 3 from the lower right, 4 a
    band about the diagonal of the lower right, 6 as 3, but no column of a sample's `prefix` (then
    [B, 1, Sq, Sk]; op-plugin document npu_fusion_attention)."""
    if sparse not in (2, 3, 4, 6):
        return None
    far = np.arange(sk)[None] - np.arange(sq)[:, None] - (0 if sparse == 2 else sk - sq)
    if sparse == 6:
        assert prefix is not None
        return np.stack([(far > 0) & (np.arange(sk) >= n) for n in prefix])[:, None]
    return far > 0 if sparse < 4 else (far < -before) | (far > after)


def biased(
    shift: Array | None, kind: int, heads: int, sizes: tuple[int, int],
    starts: tuple[Sequence[int] | None, Sequence[int] | None],
) -> Array | None:  # fmt: skip
    """What is added to scores, by pseType: what is given, or from 2 on, by slopes of heads, how far
    positions are apart (3: its root), negated (Press et al.: ALiBi, 2022)."""
    if shift is None or kind < 2:
        return shift
    first, second = (0 if not s else s[0] for s in starts)
    far = np.abs(np.subtract.outer(np.arange(sizes[0]) + first, np.arange(sizes[1]) + second))
    return -shift.reshape(-1, heads, 1, 1) * (np.sqrt(far) if kind == 3 else far)


def dropped(mask: Array | None, kept: float, shape: tuple[int, ...]) -> Array | float:
    """What each weight is multiplied by: one bit an element says what stays."""
    if mask is None:
        return 1.0
    bits = np.unpackbits(np.asarray(mask, np.uint8).reshape(-1), bitorder="little")
    return bits[: int(np.prod(shape))].reshape(shape) / kept


def flash(
    query: Array,
    key: Array,
    value: Array,
    scaleValue: float,
    headNum: int,
    inputLayout: str,
    realShiftOptional: Array | None = None,
    attenMaskOptional: Array | None = None,
    pseType: int = 1,
    sparseMode: int = 0,
    preTokens: int = 65536,
    nextTokens: int = 65536,
    keepProb: float = 1.0,
    dropMaskOptional: Array | None = None,
    prefixOptional: Sequence[int] | None = None,
    sinkOptional: Array | None = None,
    qStartIdxOptional: Sequence[int] | None = None,
    kvStartIdxOptional: Sequence[int] | None = None,
) -> tuple[Array, Array, Array, Array]:
    kv = _kv_heads(key, query, inputLayout, headNum)
    q = by_heads(query, inputLayout, headNum)
    k, v = by_heads(key, inputLayout, kv), by_heads(value, inputLayout, kv)
    sizes = (q.shape[2], k.shape[2])
    hidden = unseen(sparseMode, *sizes, preTokens, nextTokens, prefixOptional)
    share = dropped(dropMaskOptional, keepProb, (*q.shape[:3], k.shape[2]))
    starts = (qStartIdxOptional, kvStartIdxOptional)
    shift = biased(realShiftOptional, pseType, headNum, sizes, starts)
    out, _, top, total = attend(q, k, v, scaleValue, shift, attenMaskOptional if hidden is None
                                else None, pseType == 1, hidden, share, sinkOptional)  # fmt: skip
    eight = (*top.shape[:3], 8)
    return (np.broadcast_to(top, eight), np.broadcast_to(total, eight), np.zeros((0,)),
            back(out, inputLayout))  # fmt: skip


def unseen_rows(values: Sequence[Array], got: Sequence[Array]) -> list[Array]:
    """Of rows that see nothing documents state neither maximum nor sum: kernels leave the least
    and the largest number, or -inf and 0, where they began."""
    top, total, *others = values
    least = np.isneginf(top) & (got[0] == -LARGEST) & (got[1] == LARGEST)
    return [np.where(least, got[0], top), np.where(least, got[1], total), *others]


_FLASH: Final = Rule("gradient", _PAPER, numbers="scores", formats=_FORMATS, cost="4*B*N*Sq*Sk*D",
                     values="normal opposed positive", nearest=unseen_rows)  # fmt: skip
_SIZES: Final = sizes(K=heads_(1, 2, 3), G=group(1, 2, 4), N="K*G", Sq=seq(6, 1, 17, 33, 130),
                      Sk=seq(9, 1, 17, 33, 131), D=head_dim(16, 64, 72, 128))  # fmt: skip
_SIDES: Final = both("Sq < Sk", "Sq == Sk", "Sq > Sk", "K == N", "preTokens < 0", "nextTokens < 0")
_BAND: Final = require("preTokens + nextTokens >= 0", "preTokens >= -Sq", "nextTokens >= -Sk")
_PINS: Final = (
    pin("sparseMode=3 Sq=17 Sk=9", "the first rows see nothing"),
    pin("sparseMode=4 preTokens=-2 nextTokens=Sk", "a band right of the diagonal"),
    pin("attenMaskOptional=rank4.whole_row", "a row that sees nothing by its mask"),
)
_ALL: Final = 65536


def _sequences(s: str, n: str, dtype: str, make: Callable[[str, str], Domain] = tensor) -> Domain:
    """A tensor of heads in the layout that inputLayout names."""
    return by("inputLayout", {
        "BNSD": make(f"B {n} {s} D", dtype), "BSND": make(f"B {s} {n} D", dtype),
        "BSH": make(f"B {s} {n}*D", dtype), "SBH": make(f"{s} B {n}*D", dtype)})  # fmt: skip


def _prefix_mask(_rng: Generator, _pattern: str, draw: Draw) -> Array:
    """Causal from the lower right, but for the columns of each sample's prefix."""
    far = np.arange(draw["Sk"])[None] - np.arange(draw["Sq"])[:, None] - draw["Sk"] + draw["Sq"]
    ends = draw["prefixOptional"].values()
    return np.stack([(far > 0) & (np.arange(draw["Sk"]) >= n) for n in ends])[:, None]


def _pressed_prefix(_rng: Generator, _pattern: str, _draw: Draw) -> Array:
    """What mode 6 presses to: the causal square, then 1,024 rows whose left half is open."""
    return np.r_[np.triu(np.ones((2048, 2048), bool), 1),
                 np.tile(np.arange(2048) >= 1024, (1024, 1))]  # fmt: skip


def _masks(patterns: str) -> Domain:
    return by("sparseMode", {
        0: optional(forms(rank2=mask("Sq Sk", patterns=patterns),
                          rank4=mask("B 1 Sq Sk", patterns=patterns),
                          heads=mask("B N Sq Sk", patterns=patterns))),
        1: forms(rank2=mask("Sq Sk", patterns=patterns),
                 rank4=mask("B 1 Sq Sk", patterns=patterns)),
        **dict.fromkeys((2, 3, 4), causal_mask("2048 2048")),
        5: content(_prefix_mask, "prefix", "bool", shape="B 1 Sq Sk",
                   reads=("Sq", "Sk", "prefixOptional")),
        6: content(_pressed_prefix, "prefix", "bool", shape="3072 2048")})  # fmt: skip


_SHIFTS: Final = optional(forms(
    full=tensor("B N Sq Sk", "query"), heads=tensor("1 N Sq Sk", "query"),
    row=tensor("B N 1 Sk", "query")))  # fmt: skip
_SLOPES: Final = forms(heads=tensor("N", "f32", 0.1, 1), samples=tensor("B N", "f32", 0.1, 1))


def starts_of(why: str) -> Domain:
    return by("pseType", {0: only(None, why), 1: only(None, why),
                          **dict.fromkeys((2, 3), optional(array((3,), (0,), (1,))))})  # fmt: skip


def _flash_params(version: int) -> dict[str, Domain]:
    """The domains of a version's parameters, in the order of its header."""
    second, third, fourth = version >= 2, version >= 3, version >= 4
    shifts = by("pseType", {0: _SHIFTS, 1: _SHIFTS, 2: _SLOPES, 3: _SLOPES}) if second else _SHIFTS
    kept = number(1.0, 0.8)
    parts: list[tuple[bool, dict[str, Domain]]] = [
        (True, {
            "query": _sequences("Sq", "N", "f16 bf16 f32"),
            "key": _sequences("Sk", "K", "query"), "value": _sequences("Sk", "K", "query"),
            "realShiftOptional": shifts,
            "dropMaskOptional": optional(bits("B*N*Sq*Sk", "keepProb"), iff="keepProb < 1"),
            "paddingMaskOptional": null("reserved: documents ask for null"),
            "attenMaskOptional": _masks("")}),
        (fourth, dict.fromkeys(("queryRopeOptional", "keyRopeOptional", "dScaleQOptional",
                                "dScaleKOptional", "dScaleVOptional"),
                               null("of the quantised and the split form, which has no formula"))),
        (third, {"sinkOptional": optional(tensor("N", "f32", -1, 3))}),
        (True, {"prefixOptional": optional(index("B", into="Sk+1", patterns="random edges"),
                                           iff="sparseMode in (5, 6)")}),
        (fourth, dict.fromkeys(("actualSeqQLenOptional", "actualSeqKvLenOptional"),
                               null("of the layout TND, whose rows are in flash_varlen.py"))),
        (second, {"qStartIdxOptional": starts_of("positions count for pseType 2 and 3"),
                  "kvStartIdxOptional": starts_of("positions count for pseType 2 and 3")}),
        (True, {
            # Larger ones make scores whose last bit shows in sums of their exponentials.
            "scaleValue": number("D**-0.5", "0.5*D**-0.5", "0.7*D**-0.5", 0.0),
            "keepProb": kept,
            "preTokens": by("sparseMode", _banded(number(_ALL, "Sk", 3, 0, -2))),
            "nextTokens": by("sparseMode", _banded(number(_ALL, 0, 1, "Sk//2", -2, "Sk"))),
            "headNum": equals("N"), "inputLayout": choice("BNSD", "BSH", "SBH", "BSND"),
            "innerPrecise": ignored("chooses between algorithms of one result", choice(0, 1)),
            "sparseMode": choice(0, 1, 2, 3, 4, 5, 6)}),
        (fourth, {"outDtype": only(0, "the query's dtype; the others are of 8-bit inputs")}),
        (second, {"pseType": choice(1, 0, 2, 3)}),
        (fourth, {"softmaxOutLayout": only("", "documents ask for the empty text"),
                  "seed": ignored("no mask is drawn here", choice(0, 7)),
                  "offset": ignored("no mask is drawn here", choice(0, 7))}),
        (True, {"softmaxMaxOut": out("f32"), "softmaxSumOut": out("f32"),
                "softmaxOutOut": out("query"), "attentionOutOut": out("query")}),
    ]  # fmt: skip
    return {name: domain for there, local in parts if there for name, domain in local.items()}


def _banded(band: Domain) -> dict[Any, Domain]:
    """Tokens before and after count in mode 4 alone."""
    return {**dict.fromkeys((0, 1, 2, 3, 5, 6), number(_ALL)), 4: band}


for _version in (1, 2, 3, 4):
    spec(f"aclnnFlashAttentionScore{f'V{_version}' if _version > 1 else ''}", _FLASH, _SIZES,
         _SIDES, _BAND, *_PINS, **_flash_params(_version))(flash)  # fmt: skip


def flash_grad(
    query: Array,
    keyIn: Array,
    value: Array,
    dy: Array,
    scaleValue: float,
    headNum: int,
    inputLayout: str,
    pseShiftOptional: Array | None = None,
    attenMaskOptional: Array | None = None,
    pseType: int = 1,
    sparseMode: int = 0,
    preTokens: int = 65536,
    nextTokens: int = 65536,
    keepProb: float = 1.0,
    dropMaskOptional: Array | None = None,
    prefixOptional: Sequence[int] | None = None,
    sinkInOptional: Array | None = None,
    qStartIdxOptional: Sequence[int] | None = None,
    kvStartIdxOptional: Sequence[int] | None = None,
    _version: int = 1,
) -> tuple[Array | None, ...]:
    """dV = P^T dO; dP = dO V^T; dS = P (dP - rowsum(dO O)); dQ = s dS K; dK = s dS^T Q. A sink has
    no value: its score gets -P rowsum(dO O)."""
    kv = _kv_heads(keyIn, query, inputLayout, headNum)
    q, g = by_heads(query, inputLayout, headNum), by_heads(dy, inputLayout, headNum)
    k, v = by_heads(keyIn, inputLayout, kv), by_heads(value, inputLayout, kv)
    sizes = (q.shape[2], k.shape[2])
    hidden = unseen(sparseMode, *sizes, preTokens, nextTokens, prefixOptional)
    share = dropped(dropMaskOptional, keepProb, (*q.shape[:3], k.shape[2]))
    starts = (qStartIdxOptional, kvStartIdxOptional)
    shift = biased(pseShiftOptional, pseType, headNum, sizes, starts)
    out, p, top, total = attend(q, k, v, scaleValue, shift, attenMaskOptional if hidden is None
                                else None, pseType == 1, hidden, share, sinkInOptional)  # fmt: skip
    group = q.shape[1] // kv
    kk, vv = np.repeat(k, group, 1), np.repeat(v, group, 1)
    along = (g * out).sum(-1, keepdims=True)
    ds = p * (share * (g @ vv.swapaxes(-1, -2)) - along)

    def fold(x: Array) -> Array:
        b, n, s, d = x.shape
        return x.reshape(b, kv, n // kv, s, d).sum(2)

    dq, dk = scaleValue * ds @ kk, fold(scaleValue * ds.swapaxes(-1, -2) @ q)
    dv = fold((p * share).swapaxes(-1, -2) @ g)
    given_shift = pseShiftOptional is not None and pseType < 2
    dshift = ds * (scaleValue if pseType == 1 else 1.0) if given_shift else None
    dsink = None
    if sinkInOptional is not None:
        dsink = -(np.exp(sinkInOptional[:, None, None] - top) / total * along).sum((0, 2, 3))
    split = (None, None) if _version > 3 else ()  # of the rotary parts
    grads = *(back(x, inputLayout) for x in (dq, dk, dv)), *split, dshift
    return (*grads, dsink) if _version > 2 else grads


def _forward(get: Callable[[str], Any]) -> tuple[Array, ...]:
    """(largest, sum, result); of rows that see nothing those statistics that make weights 0."""
    top, total, _, whole = flash(**arguments(
        flash, get, key="keyIn", realShiftOptional="pseShiftOptional",
        sinkOptional="sinkInOptional"))  # fmt: skip
    empty = np.isneginf(top)
    return np.where(empty, -LARGEST, top), np.where(empty, LARGEST, total), whole


_SAVED: Final = "query keyIn value attenMaskOptional pseShiftOptional dropMaskOptional"
_DTYPES: Final = "f16 bf16 f32"


def _grad_params(version: int) -> dict[str, Domain]:
    """The domains of a gradient's parameters, in the order of its header."""
    second, third, fourth = version >= 2, version >= 3, version >= 4
    own = _flash_params(version)
    shift: Domain = optional(known("B N Sq Sk", "dy"))
    # Slopes are small: float32 rounds scores of a hundred too much for gradients. Documents of the
    # third version list no float32 beside 16-bit queries.
    width = "dy" if version == 3 else "f32"
    slopes = forms(heads=known("N", width, 0.02, 0.2, "random"),
                   samples=known("B N", width, 0.02, 0.2, "random"))  # fmt: skip
    if second:
        shift = by("pseType", {0: shift, 1: shift, 2: slopes, 3: slopes})
    rotary: dict[str, Domain] = dict.fromkeys(
        ("queryRopeOptional", "keyRopeOptional", "dScaleQOptional", "dScaleKOptional",
         "dScaleVOptional", "dScaleDyOptional", "dScaleOOptional"),
        null("of the quantised and the split form, which has no formula"))  # fmt: skip
    stats = {n: saved(_forward, at, "B N Sq 8", "f32", _SAVED)
             for at, n in enumerate(("softmaxMaxOptional", "softmaxSumOptional"))}  # fmt: skip
    parts: list[tuple[bool, dict[str, Domain]]] = [
        (True, {
            "query": _sequences("Sq", "N", "dy", _narrow),
            "keyIn": _sequences("Sk", "K", "dy", _narrow),
            "value": _sequences("Sk", "K", "dy", known), "dy": _sequences("Sq", "N", _DTYPES),
            "pseShiftOptional": shift, "dropMaskOptional": own["dropMaskOptional"],
            "paddingMaskOptional": own["paddingMaskOptional"],
            # Where each row sees one key, gradients are 0, and what rounding leaves of them.
            "attenMaskOptional": _masks("random none causal whole_row padding"), **stats,
            "softmaxInOptional": null("reserved: documents ask for null"),
            "attentionInOptional": _sequences("Sq", "N", "dy", _of_result)}),
        (third, {"sinkInOptional": optional(known("N", "f32", -1, 3))}), (fourth, rotary),
        (True, {"prefixOptional": own["prefixOptional"]}),
        (fourth, {n: own[n] for n in ("actualSeqQLenOptional",
                                                 "actualSeqKvLenOptional") if fourth}),
        (second, {n: own[n] for n in ("qStartIdxOptional", "kvStartIdxOptional") if second}),
        (True, {"scaleValue": number("D**-0.5", "0.5*D**-0.5", 0.0)}),
        (True, {n: own[n] for n in ("keepProb", "preTokens", "nextTokens", "headNum",
                                    "inputLayout")}),
        (fourth, {"softmaxInLayout": only("", "documents ask for the empty text")}),
        (True, {n: own[n] for n in ("innerPrecise", "sparseMode")}),
        (second, {n: own[n] for n in ("pseType",) if second}),
        (fourth, {n: own[n] for n in ("seed", "offset", "outDtype") if fourth}),
        (True, {"dqOut": out("query"), "dkOut": out("keyIn"), "dvOut": out("value")}),
        (fourth, dict.fromkeys(("dqRopeOut", "dkRopeOut"), out("query"))),
        (True, {"dpseOut": out("query")}), (third, {"dsinkOut": out("f32")}),
    ]  # fmt: skip
    return {name: domain for there, local in parts if there for name, domain in local.items()}


def _narrow(shape: str, dtype: str) -> Domain:
    """Queries and keys whose scores leave no weight near 1, where gradients cancel."""
    return known(shape, dtype, -1, 1)


def _of_result(shape: str, dtype: str) -> Domain:
    return saved(_forward, 2, shape, dtype, _SAVED)


_BACK: Final = Rule("gradient", _PAPER, {
    "norm": 16.0, "reason": "the forward output comes rounded to 16 bit, and its error enters "
    "every row"}, formats=_FORMATS, values="normal opposed")  # fmt: skip


for _version in (1, 2, 3, 4):
    spec(f"aclnnFlashAttentionScoreGrad{f'V{_version}' if _version > 1 else ''}", _BACK, _SIZES,
         _SIDES, _BAND, *_PINS, **_grad_params(_version))(
        partial(flash_grad, _version=_version))  # fmt: skip
