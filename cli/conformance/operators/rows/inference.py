"""Attention of inference: prompts, one token after another over caches, and both in one operator.

Caches may be shorter than their rows, lie in blocks that a table names, or hold 8-bit integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mindtorch._tensor.types import Array

from ..spec import given, spec, t, take
from .attention import attend, back, causal, heads, shaped

_PAGES: Final = ("Vaswani et al.: Attention Is All You Need, 2017; op-plugin documents "
                 "npu_prompt_flash_attention, npu_incre_flash_attention and "
                 "npu_fused_infer_attention_score")  # fmt: skip
_ROW: Final[dict[str, Any]] = {"family": "attention", "source": _PAGES, "tolerance": "gradient",
                               "formats": dict.fromkeys(("query", "key", "value", "attentionOut"),
                                                        "ND")}  # fmt: skip


def _gathered(blocks: Array, table: Array, size: int, rows: int) -> Array:
    """[B, rows, H] of blocks [count, size, H], as each sequence's line of the table names them."""
    whole = blocks[table].reshape(len(table), -1, blocks.shape[-1])
    assert blocks.shape[1] == size
    return whole[:, :rows]


def _restored(x: Array, scale: Array | None, offset: Array | None) -> Array:
    """(x + offset) scale of [B, N, S, D], with values for each channel of each head."""
    if scale is None:
        return x
    channels = (x.shape[1], 1, x.shape[3])
    shift = 0 if offset is None else offset.reshape(channels)
    return (x + shift) * scale.reshape(channels)


def infer(
    query: Array, key: Array | list[Array], value: Array | list[Array], numHeads: int,
    scaleValue: float, inputLayout: str, numKeyValueHeads: int, *, mask: Array | None = None,
    shift: Array | None = None, lengths: Sequence[int] | None = None,
    antiscale: Array | None = None, antioffset: Array | None = None, table: Array | None = None,
    block: int = 0,
) -> tuple[Array, Array]:  # fmt: skip
    """(out, log of the sum of exponentials); the last keys of a sequence may not count."""
    kv = numKeyValueHeads or numHeads
    q = heads(query, inputLayout, numHeads)
    caches = []
    for at, x in enumerate(x[0] if isinstance(x, list) else x for x in (key, value)):
        if table is not None:
            assert lengths is not None
            x = heads(_gathered(x, table, block, max(lengths)), "BSH", kv)
        else:
            x = heads(x, inputLayout, kv)
        scale, offset = (None if p is None else p[at] for p in (antiscale, antioffset))
        caches.append(_restored(x, scale, offset))
    k, v = caches
    hide = np.zeros((q.shape[0], 1, q.shape[2], k.shape[2]), bool)
    if lengths:
        hide |= np.arange(k.shape[2]) >= np.asarray(lengths)[:, None, None, None]
    if mask is not None:
        hide |= mask.astype(bool)
    out, _, top, total = attend(q, k, v, scaleValue, shift, hide, False)
    return back(out, inputLayout), top + np.log(total)


def prompt(
    query: Array, key: Array, value: Array, numHeads: int, scaleValue: float, inputLayout: str,
    numKeyValueHeads: int, attenMask: Array | None = None, pseShift: Array | None = None,
    actualSeqLengthsKv: tuple[int, ...] | None = None,
) -> Array:  # fmt: skip
    return infer(query, key, value, numHeads, scaleValue, inputLayout, numKeyValueHeads,
                 mask=attenMask, shift=pseShift, lengths=actualSeqLengthsKv)[0]  # fmt: skip


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
spec("aclnnPromptFlashAttention", "attentionOut:query", **_ROW, samples=[
    *(take(**_prompt(*p)) for p in _PROMPTS), _SHIFTED])(
    lambda query, key, value, numHeads, scaleValue, inputLayout, numKeyValueHeads, attenMask,
    pseShift: prompt(query, key, value, numHeads, scaleValue, inputLayout, numKeyValueHeads,
                     attenMask, pseShift))  # fmt: skip
spec("aclnnPromptFlashAttentionV2 aclnnPromptFlashAttentionV3", "attentionOut:query", **_ROW,
     samples=[*(take(**_prompt(*p)) for p in _PROMPTS), _SHIFTED,
              take(**_prompt("BSH", 2, 2, 2, 16, 16, False), actualSeqLengthsKv=(9, 14))])(
    prompt)  # fmt: skip


def _listed(inputs: dict[str, Any], one: bool) -> dict[str, Any]:
    """key and value as lists; a query of one token for incremental decoding."""
    listed = {**inputs, "key": [inputs["key"]], "value": [inputs["value"]]}
    if one:
        shape = list(inputs["query"].shape)
        shape[{"BSH": 1, "BNSD": 2, "BSND": 1}[inputs["inputLayout"]]] = 1
        listed["query"] = t(*shape, dtype="float16")
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


def incremental(
    query: Array, key: list[Array], value: list[Array], numHeads: int, scaleValue: float,
    inputLayout: str, numKeyValueHeads: int, attenMask: Array | None = None,
    actualSeqLengths: tuple[int, ...] | None = None, antiquantScale: Array | None = None,
    antiquantOffset: Array | None = None, blocktable: Array | None = None, blockSize: int = 0,
) -> Array:  # fmt: skip
    """The lengths are those of keys."""
    return infer(query, key, value, numHeads, scaleValue, inputLayout, numKeyValueHeads,
                 mask=attenMask, lengths=actualSeqLengths, antiscale=antiquantScale,
                 antioffset=antiquantOffset, table=blocktable, block=blockSize)[0]  # fmt: skip


_TOKENS: Final = [
    *(take(**{**_listed(_prompt(*p), True), "blockSize": 0}) for p in _PROMPTS),
    take(**_cached(actualSeqLengths=(9, 14))),
    take(**_cached(actualSeqLengths=(16, 11), attenMask=_HIDDEN)),
]
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
for _versions, _samples in (
    (("", "V2"), _TOKENS), (("V3", "V4"), _TOKENS + _INTEGERS + _BLOCKS),
):  # fmt: skip
    spec(" ".join(f"aclnnIncreFlashAttention{v}" for v in _versions), "attentionOut:query", **_ROW,
         samples=_samples)(incremental)  # fmt: skip


def fused(
    query: Array, key: list[Array], value: list[Array], numHeads: int, scaleValue: float,
    inputLayout: str, numKeyValueHeads: int, attenMaskOptional: Array | None = None,
    actualSeqLengthsKvOptional: tuple[int, ...] | None = None,
    antiquantScaleOptional: Array | None = None, antiquantOffsetOptional: Array | None = None,
    blockTableOptional: Array | None = None, blockSize: int = 0, softmaxLseFlag: bool = False,
) -> tuple[Array, Array]:  # fmt: skip
    out, log = infer(
        query, key, value, numHeads, scaleValue, inputLayout, numKeyValueHeads,
        mask=attenMaskOptional, lengths=actualSeqLengthsKvOptional,
        antiscale=antiquantScaleOptional, antioffset=antiquantOffsetOptional,
        table=blockTableOptional, block=blockSize)  # fmt: skip
    return out, log if softmaxLseFlag else np.zeros((0,))


_FUSED: Final = {"blockSize": 0, "antiquantMode": 0, "softmaxLseFlag": False, "keyAntiquantMode": 0,
                 "valueAntiquantMode": 0, "queryQuantMode": 0, "pseType": 0}  # fmt: skip
_PLAIN: Final = [
    *(take(**{**_listed(_prompt(*p), False), **_FUSED}) for p in _PROMPTS),
    *(take(**{**_listed(_prompt(*p), True), **_FUSED}) for p in _PROMPTS[:3]),
]
_LENGTHS: Final = {"actualSeqLengthsKvOptional": (9, 14)}
_RICH: Final = [
    take(**{**_listed(_prompt("BNSD", 1, 4, 2, 32, 16, False), False), **_FUSED,
            "softmaxLseFlag": True, "attenMaskOptional": causal(32, 32)}),
    take(**{**_cached(), **_FUSED, **_LENGTHS, "softmaxLseFlag": True}),
    *(take(**{**_cached(), **_FUSED, **_LENGTHS, "key": w["key"], "value": w["value"],
              "antiquantScaleOptional": w["scale"], "antiquantOffsetOptional": w["offset"]})
      for w in _WHOLE),
    take(**{**_cached(), **_FUSED, **_PAGED, "blockTableOptional": _TABLE,
            "actualSeqLengthsKvOptional": (37, 64)}),
]  # fmt: skip
spec("aclnnFusedInferAttentionScore", "attentionOut:query softmaxLse:float32", **_ROW,
     samples=_PLAIN)(fused)  # fmt: skip
spec(" ".join(f"aclnnFusedInferAttentionScore{v}" for v in ("V2", "V3", "V4", "V5")),
     "attentionOut:query softmaxLse:float32", **_ROW, samples=_PLAIN + _RICH)(fused)  # fmt: skip
