"""Shifted windows in eight bits, integer weights of the first version, bits compared."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import given, spec, t, take


def _i(*shape: int, low: int = -8, high: int = 8) -> Arg:
    return t(*shape, dtype="int8", low=low, high=high)


def _h(*shape: int, **more: Any) -> Arg:
    return t(*shape, dtype="float16", **more)


def _words(values: Array) -> Arg:
    """Scales as aclnnTransQuantParam packs them: the bits of a float32 in the low half."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return given(bits, "uint64")


def _unpacked(words: Array) -> Array:
    return words.astype(np.uint64).astype(np.uint32).view(np.float32).astype(np.float64)


def _bits(x: Array) -> Array:
    return np.clip(np.rint(x), -128, 127)


_SMALL: Final = 2.0 ** -np.arange(7, 11)  # exact in ten bits of mantissa
_DEPTH, _KEYS = 4, 8


@spec(
    "aclnnSwinAttentionScoreQuant",
    "out:float16",
    family="attention",
    tolerance="gradient",
    specials=False,
    dtypes=("int8",),
    source="operator document of aclnnSwinAttentionScoreQuant; Liu et al.: Swin Transformer, 2021",
    samples=[
        take(
            **{
                "query": _i(2, 2, _KEYS, _DEPTH),
                "key": _i(2, 2, _KEYS, _DEPTH),
                "value": _i(2, 2, _KEYS, _DEPTH),
                "scaleQuant": _h(1, _KEYS, low=100, high=127),
                "scaleDequant1": _words(np.tile(_SMALL, 2)[None]),
                "scaleDequant2": _words(_SMALL[None]),
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
                "biasQuantOptional": _h(1, _KEYS),
                "biasDequant1Optional": t(1, _KEYS, dtype="int32", low=-9, high=9),
                "biasDequant2Optional": t(1, _DEPTH, dtype="int32", low=-9, high=9),
                "paddingMask1Optional": _h(1, 2, _KEYS, _KEYS),
                "paddingMask2Optional": _h(2, 1, _KEYS, _KEYS),
            },
            {  # more keys than a block of 64
                **{k: _i(1, 2, 72, _DEPTH) for k in ("query", "key", "value")},
                "scaleQuant": _h(1, 72, low=100, high=127),
                "scaleDequant1": _words(np.tile(_SMALL, 18)[None]),
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
    family="attention",
    tolerance="gradient",
    specials=False,
    dtypes=("float16",),
    rule={"norm": 64.0, "reason": "a step of eight bits may go to either neighbour"},
    source="operator document of aclnnSwinTransformerLnQkvQuant",
    samples=[
        take(
            x=_h(2, 4 * wide, heads * _INNER),
            gamma=_h(heads * _INNER),
            beta=_h(heads * _INNER),
            weight=_i(*(3 * heads * _INNER, heads * _INNER)[:: 1 if turn else -1]),
            bias=t(3 * heads * _INNER, dtype="int32", low=-9, high=9),
            quantScale=_h(heads * _INNER, low=9, high=20),
            quantOffset=_h(heads * _INNER),
            dequantScale=_words(np.tile(_SMALL, 3 * heads * _INNER // 4)),
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


@spec(
    "aclnnWeightQuantBatchMatmul",
    "out:float16",
    family="quantisation",
    tolerance="gradient",
    dtypes=("float16",),
    source="operator document of aclnnWeightQuantBatchMatmul",
    samples=[
        take(
            x1=_h(*((8, 4) if a else (4, 8))),
            x2=_i(*((6, 8) if b else (8, 6))),
            diagonalMatrix=given(np.eye(32), "int8"),
            deqOffset=t(1, 6, dtype="int32", low=0, high=1),
            deqScale=_words(np.ones((1, 6))),
            addOffset=_h(1, 6),
            mulScale=_h(1, 6, low=0.1),
            bias=c,
            transposeX1=a,
            transposeX2=b,
            antiquantScale=0.5,
            antiquantOffset=2.0,
        )
        for a, b, c in ((False, False, None), (True, False, t(6)), (False, True, t(6)))
    ],
)
def first_weight(
    x1: Array,
    x2: Array,
    addOffset: Array,
    mulScale: Array,
    bias: Array | None,
    transposeX1: bool,
    transposeX2: bool,
    antiquantScale: float,
    antiquantOffset: float,
) -> Array:
    w = (((x2.T if transposeX2 else x2) + antiquantOffset) * antiquantScale + addOffset) * mulScale
    y = (x1.T if transposeX1 else x1) @ w
    return y if bias is None else y + bias


_HALVES: Final = ("float16", "bfloat16", "float32")


@spec(
    "aclnnPrecisionCompare",
    "out:uint32",
    family="pointwise",
    tolerance="exact",
    sparse=True,
    dtypes=_HALVES,
    source="operator document of aclnnPrecisionCompare",
    samples=[
        take(golden=t(4, 5), realdata=t(4, 5)),
        take(golden=t(3, 1), realdata=t(3, 1)),
        take(golden=given(np.ones((2, 3)), "float32"), realdata=given(np.ones((2, 3)), "float32")),
        take(golden=given([0.0, 1.0], "float32"), realdata=given([-0.0, 1.0], "float32")),
    ],
)
def compared(golden: Array, realdata: Array) -> np.uint32:
    """0 for the same bits, else 503."""
    same = np.array_equal(golden, realdata) and np.array_equal(
        np.signbit(golden), np.signbit(realdata)
    )
    return np.uint32(0 if same else 503)
