"""FusedInferAttentionScore: prompts and decoding in one operator."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .....judge.precision import Array
from ...spec import const, spec, t, take
from .flash import causal
from .inference import (
    INT8,
    NEAR,
    PAGED,
    PROMPTS,
    ROW,
    SCALES,
    SPARSE_MASK,
    STEPPED,
    TABLE,
    WHOLE,
    WIDE_MASK,
    apart,
    bytes,
    cached,
    infer,
    integers,
    listed,
    one,
    prompt_inputs,
)


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
    anti = apart(antiquantMode, antiquantScaleOptional, antiquantOffsetOptional)
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
    return take(**{**listed(prompt_inputs(*form), False), **_FUSED, **more})


_PLAIN: Final = [
    *(_whole(*p) for p in PROMPTS),
    *(take(**{**listed(prompt_inputs(*p), True), **_FUSED}) for p in PROMPTS[:3]),
]
_LENGTHS: Final = {"actualSeqLengthsKvOptional": (9, 14)}
_FOUR: Final = ("BNSD", 2, 2, 1, 16, 16, False)
_MASKED: Final = {"attenMaskOptional": SPARSE_MASK}
_BY_TOKEN: Final = {"key": bytes(2, 16, 32), "value": bytes(2, 16, 32)}
_FUSED_SCALES: Final = " ".join(f"{n}Optional" for n in SCALES.split())


def _tokenwise(dtype: str) -> Any:
    """One scale and offset a token."""
    return take(**{
        **cached(), **_FUSED, **_LENGTHS, **_BY_TOKEN, "antiquantMode": 1,
        "antiquantScaleOptional": t(2, 2, 16, dtype=dtype, low=0.05, high=0.3),
        "antiquantOffsetOptional": t(2, 2, 16, dtype=dtype, high=3)})  # fmt: skip


_TOKENWISE: Final = _tokenwise("float32")
_RICH: Final = [
    _whole("BNSD", 1, 4, 2, 32, 16, False, softmaxLseFlag=True, attenMaskOptional=causal(32, 32)),
    take(**{**cached(), **_FUSED, **_LENGTHS, "softmaxLseFlag": True}),
    *(take(**{**cached(), **_FUSED, **_LENGTHS, "key": w["key"], "value": w["value"],
              "antiquantScaleOptional": w["scale"], "antiquantOffsetOptional": w["offset"]})
      for w in WHOLE),
    take(**{**cached(), **_FUSED, **PAGED, "blockTableOptional": TABLE,
            "actualSeqLengthsKvOptional": (37, 64)}),
    _whole(*_FOUR, pseShiftOptional=t(2, 2, 16, 16, dtype="float16")),
    _whole(*_FOUR, **NEAR, **_MASKED),
    *(_whole(*_FOUR, **NEAR, attenMaskOptional=WIDE_MASK["attenMask"], sparseMode=m)
      for m in (2, 3, 4)),
    _whole(*_FOUR, actualSeqLengthsOptional=(11, 16), **_LENGTHS),
    _whole(*_FOUR, actualSeqLengthsOptional=(11, 13), **_LENGTHS,
           queryPaddingSizeOptional=one(1, "int64"), kvPaddingSizeOptional=one(2, "int64")),
    _whole("BNSD", 2, 2, 2, 16, 16, False, inputLayout="BNSD_BSND"),
    _TOKENWISE,
    take(**{**listed(integers(_FUSED_SCALES), False, "int8"), **_FUSED}),
    take(**{**listed(integers(_FUSED_SCALES, outDtype=INT8), False, "int8"), **_FUSED}),
    _whole("BNSD", 1, 2, 2, 16, 16, False, quantScale2Optional=STEPPED["quantScale2"],
           quantOffset2Optional=STEPPED["quantOffset2"], outDtype=INT8),
]  # fmt: skip
# The later versions: parameters of keys and values apart, a prefix that all sequences share.
_APART: Final = [
    take(**{**cached(), **_FUSED, **_LENGTHS, **_BY_TOKEN, "keyAntiquantMode": m[0],
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
_SWAPPED: Final = [_whole(
    "BNSD", 1, 2, 1, 3, 512, False, queryRopeOptional=t(1, 2, 3, 64, dtype="float16"),
    keyRopeOptional=t(1, 1, 3, 64, dtype="float16"))]  # fmt: skip
_SINK: Final = [_whole(*_FOUR, learnableSinkOptional=t(2, dtype="float16", low=-1, high=3))]
_SLOPED: Final = [
    *(_whole(*_FOUR, pseShiftOptional=t(2, dtype="float16", low=0.1, high=0.5), pseType=p,
             qStartIdxOptional=(3,), kvStartIdxOptional=(1,)) for p in (2, 3))]  # fmt: skip
_SECOND: Final = [*_PLAIN, *_RICH, *_APART, *_PREFIXED]
_THIRD_ON: Final = [*_SECOND, _whole("BNSD", 2, 4, 2, 16, 16, False, **_THREE), *_SWAPPED]
# The fourth version takes scales of keys and values together in the query's dtype alone.
_FOURTH: Final = [*(s for s in _THIRD_ON if s is not _TOKENWISE), *_SINK, _tokenwise("float16")]
_FIRST_NAMES: Final = """pseShift attenMask actualSeqLengths actualSeqLengthsKv deqScale1
quantScale1 deqScale2 quantScale2 quantOffset2 antiquantScale antiquantOffset blockTable
queryPaddingSize kvPaddingSize"""
_SAME: Final = {n: f"{n}Optional" for n in _FIRST_NAMES.split()}
# Masks of each sequence; those of one query a sequence have two dims.
_EACH: Final = np.random.default_rng(5).random((2, 1, 16, 16)) < 0.4
_MASKS: Final = [
    _whole(*_FOUR, softmaxLseFlag=True, attenMaskOptional=const(_EACH, "bool")),
    take(**{**cached(), **_FUSED, "attenMaskOptional": const(_EACH[:, 0, 3], "bool")}),
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
            **cached(),
            **_FUSED,
            **_LENGTHS,
            **_BY_TOKEN,
            "antiquantScaleOptional": t(2, 1, dtype="float16", low=0.05, high=0.3),
            "antiquantOffsetOptional": t(2, 1, dtype="float16", high=3),
        }
    ),
]
_THIRD_UNCOVERED: Final = "keyRopeAntiquantScaleOptional blockSize"
_FOURTH_UNCOVERED: Final = f"{_THIRD_UNCOVERED} dequantScaleQueryOptional queryQuantMode"
for _version, _samples, _uncovered in (
    ("", [*_PLAIN, *_RICH], "blockSize"), ("V2", _SECOND, "blockSize"),
    ("V3", _THIRD_ON, _THIRD_UNCOVERED), ("V4", _FOURTH, _FOURTH_UNCOVERED),
    ("V5", [*_FOURTH, *_SLOPED], _FOURTH_UNCOVERED),
):  # fmt: skip
    spec(f"aclnnFusedInferAttentionScore{_version}",
         "attentionOut:outDtype|query softmaxLse:float32", **ROW, steps=True,
         renamed=_SAME if not _version else {}, uncovered=_uncovered,
         samples=[*_samples, *_MASKS])(fused)  # fmt: skip
