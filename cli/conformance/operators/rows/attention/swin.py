"""Attention within windows of images."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .....judge.precision import Array
from ...spec import f16, i8, spec, t, take
from .._defaults import FLOATS
from .._quantizers import packed_scales


def _unpacked(words: Array) -> Array:
    return words.astype(np.uint64).astype(np.uint32).view(np.float32).astype(np.float64)


def _bits(x: Array) -> Array:
    return np.clip(np.rint(x), -128, 127)


_SMALL: Final = 2.0 ** -np.arange(7, 11)  # exact in ten bits of mantissa
_DEPTH, _KEYS = 4, 8


@spec(
    "aclnnSwinAttentionScoreQuant",
    "out:float16",
    uncovered="queryTranspose keyTranspose valueTranspose softmaxAxes",
    tolerance="gradient",
    specials=False,
    dtypes=("int8",),
    source="operator document of aclnnSwinAttentionScoreQuant; Liu et al.: Swin Transformer, 2021",
    samples=[
        take(
            **{
                "query": i8(2, 2, _KEYS, _DEPTH),
                "key": i8(2, 2, _KEYS, _DEPTH),
                "value": i8(2, 2, _KEYS, _DEPTH),
                "scaleQuant": f16(1, _KEYS, low=100, high=127),
                "scaleDequant1": packed_scales(np.tile(_SMALL, 2)[None]),
                "scaleDequant2": packed_scales(_SMALL[None]),
                "queryTranspose": False,
                "keyTranspose": False,
                "valueTranspose": False,
                "softmaxAxes": -1,
                **more,
            }
        )
        for more in (
            {},
            {
                "biasQuantOptional": f16(1, _KEYS),
                "biasDequant1Optional": t(1, _KEYS, dtype="int32", low=-9, high=9),
                "biasDequant2Optional": t(1, _DEPTH, dtype="int32", low=-9, high=9),
                "paddingMask1Optional": f16(1, 2, _KEYS, _KEYS),
                "paddingMask2Optional": f16(2, 1, _KEYS, _KEYS),
            },
            {  # more keys than a block of 64
                **{k: i8(1, 2, 72, _DEPTH) for k in ("query", "key", "value")},
                "scaleQuant": f16(1, 72, low=100, high=127),
                "scaleDequant1": packed_scales(np.tile(_SMALL, 18)[None]),
            },
        )
    ],
)
def window_scores(
    query: Array,
    key: Array,
    value: Array,
    scaleQuant: Array,
    scaleDequant1: Array,
    scaleDequant2: Array,
    biasQuantOptional: Array | None,
    biasDequant1Optional: Array | None,
    biasDequant2Optional: Array | None,
    paddingMask1Optional: Array | None,
    paddingMask2Optional: Array | None,
) -> Array:
    def plus(x: Array, *more: Array | None) -> Array:
        return x + sum(m for m in more if m is not None)

    whole = query.astype(np.float64) @ key.swapaxes(-1, -2)
    score = plus(whole, biasDequant1Optional) * _unpacked(scaleDequant1)
    score = plus(score, paddingMask1Optional, paddingMask2Optional)
    e = np.exp(score - score.max(-1, keepdims=True))
    share = _bits(plus(e / e.sum(-1, keepdims=True) * scaleQuant, biasQuantOptional))
    return plus(share @ value, biasDequant2Optional) * _unpacked(scaleDequant2)


_INNER: Final = 32


@spec(
    "aclnnSwinTransformerLnQkvQuant",
    "queryOutputOut:float16 keyOutputOut:float16 valueOutputOut:float16",
    constant="seqLength oriHeight",
    tolerance="gradient",
    specials=False,
    dtypes=("float16",),
    rule={"norm": 64.0, "reason": "a step of eight bits may go to either neighbour"},
    source="operator document of aclnnSwinTransformerLnQkvQuant",
    samples=[
        take(
            x=f16(2, 4 * wide, heads * _INNER),
            gamma=f16(heads * _INNER),
            beta=f16(heads * _INNER),
            weight=i8(*(3 * heads * _INNER, heads * _INNER)[:: 1 if turn else -1]),
            bias=t(3 * heads * _INNER, dtype="int32", low=-9, high=9),
            quantScale=f16(heads * _INNER, low=9, high=20),
            quantOffset=f16(heads * _INNER),
            dequantScale=packed_scales(np.tile(_SMALL, 3 * heads * _INNER // 4)),
            headNum=heads,
            seqLength=_INNER,
            epsilon=1e-5,
            oriHeight=4,
            oriWeight=wide,
            hWinSize=2,
            wWinSize=2,
            weightTranspose=turn,
        )
        for turn, heads, wide in ((True, 1, 4), (False, 1, 4), (True, 2, 4), (True, 1, 6))
    ],
)
def window_projection(
    x: Array,
    gamma: Array,
    beta: Array,
    weight: Array,
    bias: Array,
    quantScale: Array,
    quantOffset: Array,
    dequantScale: Array,
    headNum: int,
    seqLength: int,
    epsilon: float,
    oriHeight: int,
    oriWeight: int,
    hWinSize: int,
    wWinSize: int,
    weightTranspose: bool,
) -> tuple[Array, ...]:
    centred = x - x.mean(-1, keepdims=True)
    y = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * gamma + beta
    steps = _bits(y * quantScale + quantOffset)
    qkv = (steps @ (weight.T if weightTranspose else weight) + bias) * _unpacked(dequantScale)
    down, across = oriHeight // hWinSize, oriWeight // wWinSize
    parts = qkv.reshape(len(x), down, hWinSize, across, wWinSize, 3, headNum, seqLength)
    parts = parts.transpose(5, 0, 1, 3, 6, 2, 4, 7)
    return tuple(parts.reshape(3, -1, headNum, hWinSize * wWinSize, seqLength))


@spec("aclnnMaskedSoftmaxWithRelPosBias", "out:x", tolerance="gradient",
      dtypes=FLOATS, source="Liu et al.: Swin Transformer, 2021: softmax(scale x + mask + bias)",
      samples=[
          take(x=t(4, 2, 3, 32, 32), attenMaskOptional=mask, relativePosBias=t(1, 1, 3, 32, 32),
               scaleValue=s, innerPrecisionMode=0)
          for mask, s in ((t(1, 2, 1, 32, 32), 1.0), (None, 0.5))])  # fmt: skip
def window_softmax(
    x: Array, attenMaskOptional: Array | None, relativePosBias: Array, scaleValue: float
) -> Any:
    score = x * scaleValue + relativePosBias
    score = score if attenMaskOptional is None else score + attenMaskOptional
    e = np.exp(score - score.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)
