"""Gradients of attention over selected keys."""

from __future__ import annotations

from .....spec import both, by, choice, ignored, number, out, require, seq, sizes, spec, tensor
from .._saved import known, saved
from .._words import *
from .sparse import (
    BLOCK_SIZES,
    FAR,
    FLOYD_SIZES,
    GROUPED,
    LATENT,
    LAYOUTS,
    LISTED,
    NO_MASK,
    RULE,
    SIDES,
    UNBANDED,
    block_sparse,
    blocks,
    by_heads,
    floyd,
    floyd_inputs,
    latent,
    listed,
    open_sequences,
    rotary_parts,
    selected,
    selection,
    sequences,
    sparse_flash,
    split,
    weighed,
)

_RULE: Final = replace(RULE, numbers={
    "norm": 16.0, "reason": "the forward output comes rounded to 16 bit, and its error enters "
    "every row"}, values="normal opposed", nearest=None)  # fmt: skip
_HALVES: Final = "f16 bf16"
Three = tuple[Array, Array, Array]
Get = Callable[[str], Any]


def back(q: Array, k: Array, v: Array, seen: Array, dy: Array, scale: float) -> Three:
    """Of heads [N, T, D]: dV = P^T dO; dS = P (dO V^T - its mean under P); dQ = s dS K."""
    scores = q @ k.swapaxes(1, 2) * scale
    _, top, total = weighed(scores, v, seen)
    most = np.where(np.isneginf(top), 0, top)[..., None]
    p = np.where(seen, np.exp(scores - most), 0) / np.where(total == 0, 1, total)[..., None]
    dp = dy @ v.swapaxes(1, 2)
    ds = scale * p * (dp - (dp * p).sum(-1, keepdims=True))
    return ds @ k, ds.swapaxes(1, 2) @ q, p.swapaxes(1, 2) @ dy


def folded(x: Array, groups: int) -> Array:
    """[T, M, D] from heads [N, T, D]: what all heads of a group give to the head that serves it."""
    return np.moveaxis(x.reshape(groups, len(x) // groups, *x.shape[1:]).sum(1), 0, 1)


def _finite(top: Array, total: Array) -> tuple[Array, Array]:
    """Statistics of rows that see nothing: those that make every weight 0."""
    largest, empty = np.finfo(np.float32).max, np.isneginf(top)
    return np.where(empty, -largest, top), np.where(empty, largest, total)


def _forward(reference: Callable[..., Any], names: str, **renamed: str) -> Callable[[Get], Any]:
    """(result, largest, sum) by a reference on what is known."""

    def forward(get: Get) -> Any:
        return reference(**{n: get(renamed.get(n, n)) for n in names.split()})

    return forward


_SELECTION: Final = ("query key value topkIndices attenMaskOptional actualSeqQLenOptional "
                     "actualSeqKvLenOptional scaleValue selectedBlockSize")  # fmt: skip


def _selected(get: Get) -> Three:
    top, total, whole = _forward(selected, _SELECTION)(get)
    return *_finite(top, total), whole


_SELECTION_DOMAINS: Final = selection(known, "attentionOutGrad")
_SELECTION_LAST: Final = ("topkIndices", "actualSeqQLenOptional", "actualSeqKvLenOptional",
                       "attenMaskOptional", "scaleValue", "selectedBlockSize",
                       "selectedBlockCount", "headNum", "inputLayout", "sparseMode")  # fmt: skip


@spec("aclnnNsaSelectedAttentionGrad", replace(
          _RULE, source="Yuan et al.: Native Sparse Attention, 2025, derivative of equation 12"),
      LISTED, GROUPED, both("Sq > Sk", "K > 1"),
      **{n: _SELECTION_DOMAINS[n] for n in ("query", "key", "value")},
      attentionOut=saved(_selected, 2, "B*Sq N V", "attentionOutGrad", _SELECTION),
      attentionOutGrad=tensor("B*Sq N V", _HALVES),
      softmaxMax=saved(_selected, 0, "B*Sq N 8", "f32", _SELECTION),
      softmaxSum=saved(_selected, 1, "B*Sq N 8", "f32", _SELECTION),
      **{n: _SELECTION_DOMAINS[n] for n in _SELECTION_LAST}, dqOut=out("query"),
      dkOut=out("key"),
      dvOut=out("value"))  # fmt: skip
def selected_back(
    query: Array, key: Array, value: Array, attentionOutGrad: Array, topkIndices: Array,
    actualSeqQLenOptional: Sequence[int], actualSeqKvLenOptional: Sequence[int],
    scaleValue: float, selectedBlockSize: int, attenMaskOptional: Array | None,
) -> Three:  # fmt: skip
    n, m, results = query.shape[1], key.shape[1], []
    for q, lists, dy, k, v in zip(
        *(split(x, actualSeqQLenOptional, True) for x in (query, topkIndices, attentionOutGrad)),
        *(split(x, actualSeqKvLenOptional, True) for x in (key, value)), strict=True,
    ):  # fmt: skip
        seen = listed(lists, len(k), selectedBlockSize, n, attenMaskOptional)
        dq, dk, dv = back(
            by_heads(q, n), by_heads(k, n), by_heads(v, n), seen, by_heads(dy, n), scaleValue
        )
        results.append((np.moveaxis(dq, 0, 1), folded(dk, m), folded(dv, m)))
    dq, dk, dv = (np.concatenate(part) for part in zip(*results, strict=True))
    return dq, dk, dv


_LATENT: Final = ("query key value sparseIndices queryRopeOptional keyRopeOptional scaleValue "
                  "sparseMode actualSeqLengthsQueryOptional "
                  "actualSeqLengthsKvOptional")  # fmt: skip


def _sparse(get: Get) -> Three:
    names = f"{_LATENT} sparseBlockSizeOptional layoutQueryOptional"
    whole, top, total = _forward(sparse_flash, names, sparseBlockSizeOptional="sparseBlockSize",
                                 layoutQueryOptional="layoutOptional")(get)  # fmt: skip
    return whole, *_finite(top, total)


def _of_latent(which: int, dtype: str) -> Domain:
    """A result of the forward pass; statistics are [B, 1, Sq, N]."""
    reads = f"{_LATENT} sparseBlockSize"
    shapes = ("B Sq N D", "B*Sq N D") if which == 0 else ("B 1 Sq N", "1 B*Sq N")
    return by("layoutOptional", {n: saved(_sparse, which, shape, dtype, reads)
                                 for n, shape in zip(("BSND", "TND"), shapes, strict=True)},
              )  # fmt: skip


@spec("aclnnSparseFlashAttentionGrad", replace(
          _RULE, source="DeepSeek-V3.2-Exp, 2025: derivative of attention to listed keys"),
      # Where one key has all the weight, be it alone or scores in the hundreds, the gradient of
      # scores is 0 but for the rounding of statistics.
      LISTED, sizes(Sk=seq(11, 6, 33)), LATENT, SIDES, require("scaleValue * D < 60"),
      **latent(known, "dOut", "layoutOptional", "sparseIndices", "sparseBlockSize"),
      dOut=sequences("Sq", "N", "D", "layoutOptional", tensor, _HALVES),
      out=_of_latent(0, "dOut"), softmaxMax=_of_latent(1, "f32"),
      softmaxSum=_of_latent(2, "f32"), **rotary_parts(known, "dOut", "layoutOptional"),
      scaleValue=number(0.4, "D**-0.5"), sparseBlockSize=choice(2, 1, 4, 16),
      layoutOptional=choice("BSND", "TND"), sparseMode=choice(0, 3), preTokens=FAR,
      nextTokens=FAR, deterministic=ignored("asks for one order of sums", choice(False, True)),
      dQueryOut=out("query"), dKeyOut=out("key"), dValueOut=out("value"),
      dQueryRopeOutOptional=out("query"), dKeyRopeOutOptional=out("key"))  # fmt: skip
def sparse_back(
    query: Array, key: Array, value: Array, sparseIndices: Array, dOut: Array,
    actualSeqLengthsQueryOptional: Array | None, actualSeqLengthsKvOptional: Array | None,
    queryRopeOptional: Array, keyRopeOptional: Array, scaleValue: float, sparseBlockSize: int,
    layoutOptional: str, sparseMode: int,
) -> tuple[Array, ...]:  # fmt: skip
    """Keys behind a sequence's length get nothing."""
    n, m, width, packed = query.shape[-2], key.shape[-2], query.shape[-1], layoutOptional == "TND"
    results = []
    for q, lists, dy, k, v, whole in zip(
        *(split(x, actualSeqLengthsQueryOptional, packed) for x in (
            np.concatenate([query, queryRopeOptional], -1), sparseIndices, dOut)),
        *(split(x, actualSeqLengthsKvOptional, packed, True) for x in (
            np.concatenate([key, keyRopeOptional], -1), value)),
        split(key, actualSeqLengthsKvOptional, packed), strict=True,
    ):  # fmt: skip
        seen = np.repeat(listed(lists, len(k), sparseBlockSize, m, None), n // m, 0)
        if sparseMode == 3:
            seen = seen & np.tri(len(q), len(k), len(k) - len(q), dtype=bool)
        dq, dk, dv = back(
            by_heads(q, n), by_heads(k, n), by_heads(v, n), seen, by_heads(dy, n), scaleValue
        )
        rest = ((0, len(whole) - len(k)), (0, 0), (0, 0))
        results.append((np.moveaxis(dq, 0, 1), *(np.pad(folded(x, m), rest) for x in (dk, dv))))
    join = np.concatenate if packed else np.stack
    dq, dk, dv = (join(part) for part in zip(*results, strict=True))
    return dq[..., :width], dk[..., :width], dv, dq[..., width:], dk[..., width:]


_OPEN: Final = ("query key value blockSparseMaskOptional blockShapeOptional qInputLayout "
                "actualSeqLengthsOptional actualSeqLengthsKvOptional scaleValue")  # fmt: skip


def _blocks(get: Get) -> tuple[Array, Array]:
    whole, lse = _forward(block_sparse, _OPEN)(get)
    # exp(score - lse) is 0 in a row that sees nothing.
    return whole, np.where(np.isneginf(lse), np.finfo(np.float32).max, lse)


def _of_blocks(which: int, last: str, dtype: str) -> Domain:
    return by("qInputLayout", {"BNSD": saved(_blocks, which, f"B N Sq {last}", dtype, _OPEN),
                               "TND": saved(_blocks, which, f"B*Sq N {last}", dtype, _OPEN)},
              )  # fmt: skip


_BLOCKED: Final = blocks(known, "dout")
# Where scores are in the hundreds, gradients are what rounding the forward output leaves.
_SCALED: Final = {**LAYOUTS, "scaleValue": number(0.4, "D**-0.5")}


@spec("aclnnBlockSparseAttentionGrad", replace(
          _RULE, source="op-plugin test npu_block_sparse_attention: derivative of attention "
          "whose mask leaves blocks out"), BLOCK_SIZES, both("Sq > Sk", "G > 1"),
      dout=sequences("Sq", "N", "D", "qInputLayout", tensor, _HALVES),
      **{n: _BLOCKED[n] for n in ("query", "key", "value")},
      attentionOut=_of_blocks(0, "D", "dout"), softmaxLse=_of_blocks(1, "1", "f32"),
      **{n: d for n, d in _BLOCKED.items() if n not in ("query", "key", "value")},
      **_SCALED, **UNBANDED, dq=out("query"), dk=out("key"), dv=out("value"))  # fmt: skip
def block_back(
    dout: Array, query: Array, key: Array, value: Array, blockSparseMaskOptional: Array,
    blockShapeOptional: Sequence[int], actualSeqLengthsOptional: Sequence[int] | None,
    actualSeqLengthsKvOptional: Sequence[int] | None, qInputLayout: str, scaleValue: float,
) -> Three:  # fmt: skip
    packed = qInputLayout == "TND"
    m, results = key.shape[1], []
    for (q, k, v, seen), dy in zip(open_sequences(
        query, key, value, blockSparseMaskOptional, blockShapeOptional, actualSeqLengthsOptional,
        actualSeqLengthsKvOptional, packed), split(dout, actualSeqLengthsOptional, packed),
        strict=True,
    ):  # fmt: skip
        flow = np.moveaxis(dy, 1, 0) if packed else dy
        dq, dk, dv = back(q, k, v, seen, flow, scaleValue)
        parts = np.moveaxis(dq, 0, 1), folded(dk, m), folded(dv, m)
        results.append(parts if packed else tuple(np.moveaxis(x, 1, 0) for x in parts))
    join = np.concatenate if packed else np.stack
    dq, dk, dv = (join(part) for part in zip(*results, strict=True))
    return dq, dk, dv


_PAIRS: Final = "query key1 value1 key2 value2 scaleValue"
_paired: Final = _forward(floyd, "query key1 value1 key2 value2 scaleValueOptional",
                          scaleValueOptional="scaleValue")  # fmt: skip


@spec("aclnnFusedFloydAttentionGrad", replace(
          _RULE, source="op-plugin document npu_fused_floyd_attention: derivative of attention "
          "over pairs of axes"), FLOYD_SIZES, both("I > J", "K > J"),
      **floyd_inputs(known, "dy"), dy=tensor("B H I K D", _HALVES), attenMaskOptional=NO_MASK,
      softmaxMax=saved(_paired, 0, "B H I K 8", "f32", _PAIRS),
      softmaxSum=saved(_paired, 1, "B H I K 8", "f32", _PAIRS),
      attentionIn=saved(_paired, 2, "B H I K D", "dy", _PAIRS),
      scaleValue=number(0.25, 1.0), dqOut=out("query"), dk1Out=out("query"),
      dv1Out=out("query"), dk2Out=out("query"), dv2Out=out("query"))  # fmt: skip
def floyd_back(
    query: Array, key1: Array, value1: Array, key2: Array, value2: Array, dy: Array,
    scaleValue: float,
) -> tuple[Array, ...]:  # fmt: skip
    def dots(x: Array, first: Array, second: Array) -> Array:
        return (np.einsum("bhijc,bhikc->bhijk", x, first)
                + np.einsum("bhijc,bhkjc->bhijk", x, second))  # fmt: skip

    scores = dots(query, key1, key2) * scaleValue
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    dp = dots(dy, value1, value2)
    ds = scaleValue * p * (dp - (dp * p).sum(-1, keepdims=True))
    dq = np.einsum("bhijk,bhikc->bhijc", ds, key1) + np.einsum("bhijk,bhkjc->bhijc", ds, key2)

    def spread(weights: Array, x: Array) -> tuple[Array, Array]:
        return (np.einsum("bhijk,bhijc->bhikc", weights, x),
                np.einsum("bhijk,bhijc->bhkjc", weights, x))  # fmt: skip

    (dk1, dk2), (dv1, dv2) = spread(ds, query), spread(p, dy)
    return dq, dk1, dv1, dk2, dv2
