"""Attention over whole sequences: FlashAttentionScore and its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from .....judge.precision import Array
from .....spec import (
    Rule,
    array,
    bits,
    both,
    by,
    choice,
    content,
    equals,
    forms,
    group,
    head_dim,
    ignored,
    index,
    mask,
    null,
    number,
    only,
    optional,
    out,
    pin,
    require,
    seq,
    sizes,
    tensor,
)  # fmt: skip
from .....spec import causal as causal_mask
from .....spec import heads as heads_
from .....spec.domains import Domain
from ...declare import declare
from ...spec import const, spec, t, take
from .._ignored import reserved, saved

_PAPER: Final = ("Vaswani et al.: Attention Is All You Need, 2017; Dao et al.: FlashAttention, "
                 "2022; op-plugin document npu_fusion_attention")  # fmt: skip
_ROW: Final[dict[str, Any]] = {"source": _PAPER, "tolerance": "gradient",
                               "formats": dict.fromkeys(("query", "key", "keyIn", "value", "dy",
                               "attentionOutOut", "dqOut", "dkOut", "dvOut"), "ND"),
                               }  # fmt: skip


def heads(x: Array, layout: str, n: int) -> Array:
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
    top = score.max(-1, keepdims=True)
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
    q = heads(query, inputLayout, headNum)
    k, v = heads(key, inputLayout, kv), heads(value, inputLayout, kv)
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


def shaped(layout: str, b: int, n: int, s: int, d: int) -> tuple[int, ...]:
    return {"BNSD": (b, n, s, d), "BSND": (b, s, n, d), "BSH": (b, s, n * d),
            "SBH": (s, b, n * d)}[layout]  # fmt: skip


def causal(sq: int, sk: int) -> Arg:
    return const(np.triu(np.ones((sq, sk)), sk - sq + 1).astype(bool).tolist(), "bool")


_USUAL: Final[dict[str, Any]] = {"keepProb": 1.0, "preTokens": 65536, "nextTokens": 65536,
                                 "innerPrecise": 0, "sparseMode": 0, "pseType": 1}  # fmt: skip
# layout, B, N, kv heads, Sq, Sk, D, masked, shifted
_FORMS: Final = (
    ("BSH", 2, 2, 2, 5, 7, 16, False, False), ("BNSD", 1, 4, 2, 9, 9, 16, True, False),
    ("SBH", 2, 2, 2, 5, 7, 16, True, False), ("BSND", 1, 2, 1, 17, 33, 32, False, False),
    ("BNSD", 1, 2, 2, 6, 6, 16, True, True), ("BNSD", 1, 1, 1, 130, 131, 64, True, False),
)  # fmt: skip
# The mask that sparse modes compress to: 2,048 squared, whatever the lengths.
_PRESSED: Final[dict[str, Any]] = {"attenMaskOptional": Arg(
    (2048, 2048), "bool", values=np.triu(np.ones((2048, 2048), bool), 1))}  # fmt: skip
# Mode 6 has it followed by 1,024 rows whose left half is open.
_PREFIXED: Final[dict[str, Any]] = {
    "attenMaskOptional": Arg(
        (3072, 2048),
        "bool",
        values=np.r_[
            np.triu(np.ones((2048, 2048), bool), 1), np.tile(np.arange(2048) >= 1024, (1024, 1))
        ],
    )
}
_BITS: Final = const([0xB7, 0x5E, 0xFD, 0x3B, 0xEE, 0x97, 0xDA, 0x7F], "uint8")
# A form, and what is not usual about it.
_RARE: Final[tuple[tuple[Any, dict[str, Any]], ...]] = (
    (("BNSD", 1, 2, 1, 6, 8, 16, True, True), {"scaleValue": 0.7, "pseType": 0}),
    (("BNSD", 1, 2, 2, 4, 8, 16, False, False), {"keepProb": 0.8, "dropMaskOptional": _BITS}),
    (("BSND", 1, 2, 1, 6, 9, 16, False, False), {"sparseMode": 2, **_PRESSED}),
    (("BNSD", 2, 2, 1, 6, 9, 16, False, False), {"sparseMode": 3, **_PRESSED}),
    (("BSH", 1, 2, 2, 6, 9, 16, False, False),
     {"sparseMode": 4, "preTokens": 3, "nextTokens": 1, **_PRESSED}),
    (("BNSD", 2, 2, 1, 6, 9, 16, False, False),
     {"sparseMode": 6, "prefixOptional": (4, 8), **_PREFIXED}),
    (("BSND", 2, 2, 2, 6, 9, 16, False, False),
     {"sparseMode": 5, "prefixOptional": (4, 8), "attenMaskOptional": const(
         [[np.triu(np.ones((6, 9), bool), 4) & (np.arange(9) >= n)] for n in (4, 8)], "bool")}),
)  # fmt: skip


# Of versions that make the shift themselves, and of those that take a sink.
def _sloped(dtype: str) -> tuple[Any, ...]:
    form = ("BNSD", 2, 2, 1, 6, 9, 16, False, False)
    return tuple(
        (form, {"pseType": p, "realShiftOptional": const(slopes, dtype), **starts})
        for p, slopes, starts in (
            (2, [0.5, 0.125], {}),
            (3, [[0.5, 0.125], [0.25, 1.0]], {}),
            (2, [0.5, 0.125], {"qStartIdxOptional": (3,), "kvStartIdxOptional": (1,)}),
        )
    )


_SLOPED: Final = _sloped("float32")
# A mask that hides keys anywhere, the first ones too.
_OPEN: Final = (
    (("BNSD", 2, 2, 1, 6, 9, 16, False, False), {"attenMaskOptional": const(
        (np.arange(6)[:, None] * 5 + np.arange(9) * 7) % 4 == 0, "bool")}),
)  # fmt: skip
_SUNK: Final = (
    (("BSH", 2, 4, 2, 6, 9, 16, False, False), {"sinkOptional": t(4, low=-1, high=3)}),
    (("BNSD", 1, 2, 2, 6, 6, 16, True, False), {"sinkOptional": t(2, low=-1, high=3)}),
)  # fmt: skip


def _inputs(
    form: tuple[str, int, int, int, int, int, int, bool, bool], key: str = "key"
) -> dict[str, Any]:
    layout, b, n, kv, sq, sk, d, masked, shifted = form
    half = {"dtype": "float16"}
    inputs: dict[str, Any] = {
        "query": t(*shaped(layout, b, n, sq, d), **half),
        key: t(*shaped(layout, b, kv, sk, d), **half),
        "value": t(*shaped(layout, b, kv, sk, d), **half, high=3.0),
        "scaleValue": d**-0.5, "headNum": n, "inputLayout": layout, **_USUAL,
    }  # fmt: skip
    if masked:
        inputs["attenMaskOptional"] = causal(sq, sk)
    if shifted:
        name = "realShiftOptional" if key == "key" else "pseShiftOptional"
        inputs[name] = t(b, n, sq, sk, **half)
    return inputs


# V4 and the gradients' V4: no mask of dropped elements is drawn, the output has the query's dtype.
_FOURTH: Final[dict[str, Any]] = {"seed": 0, "offset": 0, "outDtype": 0}


def _nearest(values: Sequence[Array], got: Sequence[Array]) -> list[Array]:
    """Of rows that see nothing documents state neither maximum nor sum: kernels leave the least
    and the largest number, or -inf and 0, where they began."""
    top, total, *others = values
    largest = np.finfo(np.float32).max
    least = np.isneginf(top) & (got[0] == -largest) & (got[1] == largest)
    return [np.where(least, got[0], top), np.where(least, got[1], total), *others]


_FLASH: Final = Rule("gradient", _PAPER, formats=_ROW["formats"], cost="4*B*N*Sq*Sk*D",
                     values="normal opposed positive", nearest=_nearest)  # fmt: skip
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


def _sequences(s: str, n: str, dtype: str) -> Domain:
    """A tensor of heads in the layout that inputLayout names."""
    return by("inputLayout", {
        "BNSD": tensor(f"B {n} {s} D", dtype), "BSND": tensor(f"B {s} {n} D", dtype),
        "BSH": tensor(f"B {s} {n}*D", dtype), "SBH": tensor(f"{s} B {n}*D", dtype)})  # fmt: skip


def _prefix_mask(_rng: Any, _pattern: str, draw: Any) -> Array:
    """Causal from the lower right, but for the columns of each sample's prefix."""
    far = np.arange(draw["Sk"])[None] - np.arange(draw["Sq"])[:, None] - draw["Sk"] + draw["Sq"]
    ends = draw["prefixOptional"].values()
    return np.stack([(far > 0) & (np.arange(draw["Sk"]) >= n) for n in ends])[:, None]


def _pressed_prefix(_rng: Any, _pattern: str, _draw: Any) -> Array:
    """What mode 6 presses to: the causal square, then 1,024 rows whose left half is open."""
    return np.r_[np.triu(np.ones((2048, 2048), bool), 1),
                 np.tile(np.arange(2048) >= 1024, (1024, 1))]  # fmt: skip


_MASKS: Final = by("sparseMode", {
    0: optional(forms(rank2=mask("Sq Sk"), rank4=mask("B 1 Sq Sk"), heads=mask("B N Sq Sk"))),
    1: forms(rank2=mask("Sq Sk"), rank4=mask("B 1 Sq Sk")),
    **dict.fromkeys((2, 3, 4), causal_mask("2048 2048")),
    5: content(_prefix_mask, "prefix", "bool", shape="B 1 Sq Sk",
               reads=("Sq", "Sk", "prefixOptional")),
    6: content(_pressed_prefix, "prefix", "bool", shape="3072 2048")})  # fmt: skip
_SHIFTS: Final = optional(forms(
    full=tensor("B N Sq Sk", "query"), heads=tensor("1 N Sq Sk", "query"),
    row=tensor("B N 1 Sk", "query")))  # fmt: skip
_SLOPES: Final = forms(heads=tensor("N", "f32", 0.1, 1), samples=tensor("B N", "f32", 0.1, 1))


def _starts(why: str) -> Domain:
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
            "attenMaskOptional": _MASKS}),
        (fourth, dict.fromkeys(("queryRopeOptional", "keyRopeOptional", "dScaleQOptional",
                                "dScaleKOptional", "dScaleVOptional"),
                               null("of the quantised and the split form, which has no formula"))),
        (third, {"sinkOptional": optional(tensor("N", "f32", -1, 3))}),
        (True, {"prefixOptional": optional(index("B", into="Sk+1", patterns="random edges"),
                                           iff="sparseMode in (5, 6)")}),
        (fourth, dict.fromkeys(("actualSeqQLenOptional", "actualSeqKvLenOptional"),
                               null("of the layout TND, whose rows are in flash_varlen.py"))),
        (second, {"qStartIdxOptional": _starts("positions count for pseType 2 and 3"),
                  "kvStartIdxOptional": _starts("positions count for pseType 2 and 3")}),
        (True, {
            "scaleValue": number("D**-0.5", 1.0, 0.7, 0.0), "keepProb": kept,
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
    declare(f"aclnnFlashAttentionScore{f'V{_version}' if _version > 1 else ''}", _FLASH, _SIZES,
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
    _sunk: bool = True,
) -> tuple[Array | None, ...]:
    """dV = P^T dO; dP = dO V^T; dS = P (dP - rowsum(dO O)); dQ = s dS K; dK = s dS^T Q. A sink has
    no value: its score gets -P rowsum(dO O)."""
    kv = _kv_heads(keyIn, query, inputLayout, headNum)
    q, g = heads(query, inputLayout, headNum), heads(dy, inputLayout, headNum)
    k, v = heads(keyIn, inputLayout, kv), heads(value, inputLayout, kv)
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
    grads = *(back(x, inputLayout) for x in (dq, dk, dv)), dshift
    return (*grads, dsink) if _sunk else grads


def _grad_inputs(
    form: tuple[str, int, int, int, int, int, int, bool, bool], **more: Any
) -> dict[str, Any]:
    names = {"realShiftOptional": "pseShiftOptional", "sinkOptional": "sinkInOptional"}
    inputs = {**_inputs(form, "keyIn"), **{names.get(k, k): v for k, v in more.items()}}
    layout, b, n, _, sq, _, d, *_ = form
    x = {k: (a.array() if hasattr(a, "array") else a) for k, a in inputs.items()}
    half = {k: v.astype(np.float16).astype(np.float64) if hasattr(v, "astype") and
            v.dtype.kind == "f" else v for k, v in x.items()}  # fmt: skip
    top, total, _, out = flash(
        half["query"], half["keyIn"], half["value"], x["scaleValue"], n, layout,
        half.get("pseShiftOptional"), x.get("attenMaskOptional"), x["pseType"], x["sparseMode"],
        x["preTokens"], x["nextTokens"], x["keepProb"], x.get("dropMaskOptional"),
        x.get("prefixOptional"), x.get("sinkInOptional"), x.get("qStartIdxOptional"),
        x.get("kvStartIdxOptional"),
    )  # fmt: skip
    fixed = {k: const(half[k].tolist(), "float16") for k in ("query", "keyIn", "value")}
    if "sinkInOptional" in x:
        fixed["sinkInOptional"] = const(x["sinkInOptional"].tolist(), "float32")
    if "pseShiftOptional" in half and x["pseType"] < 2:
        fixed["pseShiftOptional"] = const(half["pseShiftOptional"].tolist(), "float16")
    return {**inputs, **fixed, "dy": t(*shaped(layout, b, n, sq, d), dtype="float16"),
            "softmaxMaxOptional": const(top.tolist(), "float32"),
            "softmaxSumOptional": const(total.tolist(), "float32"),
            "attentionInOptional": const(out.tolist(), "float16")}  # fmt: skip


_DOUTS: Final = "dqOut:query dkOut:keyIn dvOut:value dpseOut:pseShiftOptional"
_GRAD_UNCOVERED: Final = (
    "queryRopeOptional keyRopeOptional dScaleQOptional dScaleKOptional dScaleVOptional "
    "dScaleDyOptional dScaleOOptional actualSeqQLenOptional actualSeqKvLenOptional softmaxInLayout "
    "seed offset outDtype dqRopeOut dkRopeOut"
)
for _versions, _rare, _outs, _gradients, _uncovered in (
    (("",), (*_RARE[1:], *_OPEN), _DOUTS, partial(flash_grad, _sunk=False), ""),
    (("V2",), (*_RARE, *_SLOPED, *_OPEN), _DOUTS, partial(flash_grad, _sunk=False), ""),
    (
        ("V3", "V4"),
        (*_RARE, *_sloped("float16"), *_SUNK, *_OPEN),
        f"{_DOUTS} dsinkOut:float32",
        flash_grad,
        _GRAD_UNCOVERED,
    ),
):
    spec(" ".join(f"aclnnFlashAttentionScoreGrad{v}" for v in _versions), _outs,
         ignored=reserved("paddingMaskOptional softmaxInOptional")
         | saved("softmaxMaxOptional softmaxSumOptional attentionInOptional"),
         uncovered=_uncovered,
         dtypes=("float16",),
         samples=lambda rare=_rare: [
             *(take(**_grad_inputs(f), **_FOURTH) for f in _FORMS),
             *(take(**_grad_inputs(f, **more), **_FOURTH) for f, more in rare)],
         **{**_ROW, "rule": {"norm": 16.0, "reason":
            "the forward output comes rounded to 16 bit, and its error enters every row"}},
         )(_gradients)  # fmt: skip
