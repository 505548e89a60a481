"""Attention within windows of images."""

from __future__ import annotations

from .....spec import *
from .....spec import batch as batch_, heads as heads_
from .._quantizers import real_scales, words
from .._words import *

_SCORES: Final = Rule("gradient", "operator document of aclnnSwinAttentionScoreQuant; Liu et al.: "
                      "Swin Transformer, 2021", specials=False, values="normal")  # fmt: skip
_WINDOWS: Final = sizes(B=batch_(2, 1, 4), W="B // 2 if B > 1 else 1", N=heads_(2, 1, 3),
                        S=row(8, 1, 5, 72, 129), D=row(4, 1, 16, 33))  # fmt: skip
_PLAIN_ORDER: Final = only(False, "documents allow one value")


def _bits(x: Array) -> Array:
    return np.clip(np.rint(x), -128, 127)


def _integers(shape: str, dtype: str, most: int) -> Domain:
    """Whole numbers; `zeros`: all scores alike, so that probabilities are exact."""

    def make(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
        dims = resolve(shape, draw)
        return np.zeros(dims) if pattern == "zeros" else rng.integers(-most, most, dims)

    return content(make, "random zeros", dtype, shape=shape)


def _steps(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """What probabilities are multiplied by; `halves`: equal ones come half way between steps."""
    keys = draw["S"]
    if pattern == "halves":
        return keys * (rng.integers(0, 60 // keys + 1, (1, keys)) + 0.5)
    return rng.uniform(100, 127, (1, keys))


_MASKS: Final = optional(forms(heads=tensor("1 N S S", "f16"), windows=tensor("W 1 S S", "f16"),
                               whole=tensor("B N S S", "f16")))  # fmt: skip


@spec("aclnnSwinAttentionScoreQuant", _SCORES, _WINDOWS,
      both("S == 1", "given(paddingMask1Optional) and given(paddingMask2Optional)"),
      query=_integers("B N S D", "i8", 8),
      key=by("keyTranspose", {False: tensor("B N S D", "i8", -8, 8),
                              True: tensor("B N D S", "i8", -8, 8)}),
      value=tensor("B N S D", "i8", -8, 8),
      scaleQuant=content(_steps, "any halves", "f16", shape="1 S"),
      scaleDequant1=words("1 S"), scaleDequant2=words("1 D"),
      biasQuantOptional=optional(tensor("1 S", "f16")),
      biasDequant1Optional=optional(tensor("1 S", "i32", -9, 9)),
      biasDequant2Optional=optional(tensor("1 D", "i32", -9, 9)), paddingMask1Optional=_MASKS,
      paddingMask2Optional=_MASKS, queryTranspose=_PLAIN_ORDER, keyTranspose=flag(),
      valueTranspose=_PLAIN_ORDER, softmaxAxes=ignored("both name the last axis", choice(-1, 3)),
      out=out("f16"))  # fmt: skip
def window_scores(
    query: Array, key: Array, value: Array, scaleQuant: Array, scaleDequant1: Array,
    scaleDequant2: Array, biasQuantOptional: Array | None, biasDequant1Optional: Array | None,
    biasDequant2Optional: Array | None, paddingMask1Optional: Array | None,
    paddingMask2Optional: Array | None, keyTranspose: bool,
) -> Array:  # fmt: skip
    """Masks of fewer windows than there are samples repeat."""

    def plus(x: Array, *more: Array | None) -> Array:
        return x + sum(m for m in more if m is not None)

    masks = [None if m is None else np.tile(m, (len(query) // len(m), 1, 1, 1))
             for m in (paddingMask1Optional, paddingMask2Optional)]  # fmt: skip
    keys = key if keyTranspose else key.swapaxes(-1, -2)
    whole = query.astype(np.float64) @ keys
    score = plus(plus(whole, biasDequant1Optional) * real_scales(scaleDequant1), *masks)
    e = np.exp(score - score.max(-1, keepdims=True))
    share = _bits(plus(e / e.sum(-1, keepdims=True) * scaleQuant, biasQuantOptional))
    return plus(share @ value, biasDequant2Optional) * real_scales(scaleDequant2)


_PROJECTION: Final = Rule(
    "gradient", "operator document of aclnnSwinTransformerLnQkvQuant",
    {"norm": 64.0, "reason": "a step of eight bits may go to either neighbour"}, specials=False,
    values="normal")  # fmt: skip
_IMAGE: Final = sizes(B=batch_(2, 1, 3), N=heads_(1, 2, 3), Y=window(2, 1, 3), X=window(2, 1, 3),
                      C="32*N")  # fmt: skip


@spec("aclnnSwinTransformerLnQkvQuant", _PROJECTION, _IMAGE,
      both("X > Y", "hWinSize > wWinSize"),
      x=tensor("B oriHeight*oriWeight C", "f16"), gamma=tensor("C", "f16"),
      beta=tensor("C", "f16"), weight=by("weightTranspose", {
          True: tensor("3*C C", "i8", -8, 8), False: tensor("C 3*C", "i8", -8, 8)}),
      bias=tensor("3*C", "i32", -9, 9), quantScale=tensor("C", "f16", 9, 20),
      quantOffset=tensor("C", "f16"), dequantScale=words("3*C"), headNum=equals("N"),
      seqLength=only(32, "documents allow one value"), epsilon=number(1e-5, 0.25),
      oriHeight=equals("Y*hWinSize"), oriWeight=equals("X*wWinSize"),
      hWinSize=integer(2, 1, 7), wWinSize=integer(2, 1, 3), weightTranspose=flag(True),
      queryOutputOut=out("f16"), keyOutputOut=out("f16"), valueOutputOut=out("f16"))  # fmt: skip
def window_projection(
    x: Array, gamma: Array, beta: Array, weight: Array, bias: Array, quantScale: Array,
    quantOffset: Array, dequantScale: Array, headNum: int, seqLength: int, epsilon: float,
    oriHeight: int, oriWeight: int, hWinSize: int, wWinSize: int, weightTranspose: bool,
) -> tuple[Array, ...]:  # fmt: skip
    centred = x - x.mean(-1, keepdims=True)
    y = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * gamma + beta
    steps = _bits(y * quantScale + quantOffset)
    qkv = (steps @ (weight.T if weightTranspose else weight) + bias) * real_scales(dequantScale)
    down, across = oriHeight // hWinSize, oriWeight // wWinSize
    parts = qkv.reshape(len(x), down, hWinSize, across, wWinSize, 3, headNum, seqLength)
    parts = parts.transpose(5, 0, 1, 3, 6, 2, 4, 7)
    return tuple(parts.reshape(3, -1, headNum, hWinSize * wWinSize, seqLength))


_SOFTMAX: Final = Rule("gradient", "Liu et al.: Swin Transformer, 2021: softmax(scale x + mask + "
                       "bias)")  # fmt: skip


@spec("aclnnMaskedSoftmaxWithRelPosBias", _SOFTMAX,
      sizes(B=batch_(2, 1, 3), W=window(2, 1, 3), N=heads_(3, 1, 2), S=row(5, 1, 32),
            Z=row(32, 1, 7, 33, 257, 1030)),
      overload("five"), overload("four", x=tensor("B*W N S Z", "f32 f16 bf16")),
      x=tensor("B W N S Z", "f32 f16 bf16"),
      attenMaskOptional=optional(forms(
          five=tensor("1 W 1 S Z", "x"), four=tensor("W 1 S Z", "x"),
          three=tensor("W S Z", "x"))),
      relativePosBias=forms(five=tensor("1 1 N S Z", "x"), four=tensor("1 N S Z", "x"),
                            three=tensor("N S Z", "x")),
      scaleValue=number(1.0, 0.5, -2.0, 0.0),
      innerPrecisionMode=ignored("chooses between algorithms of one result", choice(0, 1)),
      out=out("x"))  # fmt: skip
def window_softmax(
    x: Array, attenMaskOptional: Array | None, relativePosBias: Array, scaleValue: float
) -> Any:
    """A mask is of windows, a bias of heads."""
    square = x.shape[-2:]
    score = x * scaleValue + relativePosBias.reshape(-1, *square)
    if attenMaskOptional is not None:
        masks = attenMaskOptional.reshape(-1, 1, *square)
        score = (score.reshape(-1, len(masks), *x.shape[-3:]) + masks).reshape(x.shape)
    e = np.exp(score - score.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)
