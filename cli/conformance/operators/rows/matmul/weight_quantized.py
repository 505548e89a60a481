"""Products with weights of integers."""

from __future__ import annotations

from .....spec import *
from .._ignored import SPEED
from .._quantizers import packed_scales, powers, real_scales, words
from .._words import *

_SOURCE: Final = "op-plugin document npu_weight_quant_batchmatmul"
_WEIGHTED: Final = sizes(M=batch(5, 1, 3, 130), K=row(64, 1, 33, 96, 160, 1032),
                         N=column(32, 2, 66, 130))  # fmt: skip
_FIT: Final = require(
    "antiquantGroupSize == 0 or K % 32 == 0 and K > 32",
    "not given(antiquantOffsetOptional) or size(antiquantOffsetOptional) == size(antiquantScale)",
)
_BLOCKS: Final = "K//32 N"


def _by_groups(low: float, high: float) -> Domain:
    """One value, those of columns, or of blocks of 32 rows."""
    return by("antiquantGroupSize", {
        0: forms(columns=tensor("N", "x", low, high), one=tensor("1", "x", low, high)),
        32: tensor(_BLOCKS, "x", low, high)})  # fmt: skip


# Weights that are exact in 16 bits where the result is steps of int8.
_EXACT: Final = by("antiquantGroupSize", {0: powers("N", -6, -2, "x"),
                                          32: powers(_BLOCKS, -6, -2, "x")})  # fmt: skip
_SCALES: Final = by("quantScaleOptional.dtype", {
    "u64": _EXACT, **dict.fromkeys(("f16", "bf16"), _by_groups(0.01, 0.1))})  # fmt: skip
_OFFSETS: Final = by("quantScaleOptional.dtype", {
    "u64": null("steps of int8 come of weights that are exact"),
    **dict.fromkeys(("f16", "bf16"), optional(_by_groups(-4, 4)))})  # fmt: skip
_WEIGHT: Final = by("weight.dtype", {"i8": tensor("K N", "", -128, 127),
                                     "i4": tensor("K N", "", -8, 7)})  # fmt: skip
_PARAMS: Final[dict[str, Domain]] = {
    "x": tensor("M K", "f16 bf16"), "weight": _WEIGHT, "antiquantScale": _SCALES,
    "antiquantOffsetOptional": _OFFSETS, "quantScaleOptional": words("N"),
    "quantOffsetOptional": optional(tensor("N", "f32", -9, 9)),
    "biasOptional": optional(tensor("N", "", -9, 9)), "antiquantGroupSize": number(0, 32),
}  # fmt: skip


@spec("aclnnWeightQuantBatchMatmulV3 aclnnWeightQuantBatchMatmulV2",
      Rule("gradient", _SOURCE, steps=True, cost="2*M*K*N"), _WEIGHTED, _FIT,
      pin("dtype=float16 types=1 biasOptional=given quantOffsetOptional=given", "steps of int8"),
      dtypes("""x weight quantScaleOptional quantOffsetOptional biasOptional y
                f16  i8|i4 -   -   f16 f16
                f16  i8    u64 f32 f16 i8
                bf16 i8|i4 -   -   f32 bf16"""),
      **_PARAMS, innerPrecise=ignored(SPEED, number(0, 1)), y=out("x"))  # fmt: skip
def weight_quant(
    x: Array,
    weight: Array,
    antiquantScale: Array,
    antiquantOffsetOptional: Array | None,
    biasOptional: Array | None,
    antiquantGroupSize: int,
    quantScaleOptional: Array | None = None,
    quantOffsetOptional: Array | None = None,
) -> Array:
    """Steps of int8 where a scale of the result comes along, packed in the low 32 bits."""
    scale, offset = antiquantScale, antiquantOffsetOptional
    if antiquantGroupSize:
        scale = np.repeat(scale, antiquantGroupSize, 0)
        offset = None if offset is None else np.repeat(offset, antiquantGroupSize, 0)
    y = x @ ((weight.astype(np.float64) + (0 if offset is None else offset)) * scale)
    y = y if biasOptional is None else y + biasOptional
    y = y if quantScaleOptional is None else y * real_scales(quantScaleOptional)
    return y if quantOffsetOptional is None else y + quantOffsetOptional


_NO_STEPS: Final = null("documents of tiles ask for null")
spec("aclnnWeightQuantBatchMatmulNz",
     Rule("gradient", _SOURCE, cost="2*M*K*N", formats={"weight": "FRACTAL_NZ"}),
     _WEIGHTED, _FIT,
     dtypes("""x weight biasOptional y
               f16  i8 f16 f16
               bf16 i8 f32 bf16"""),
     **_PARAMS | {"antiquantScale": _by_groups(0.01, 0.1), "quantScaleOptional": _NO_STEPS,
                  "antiquantOffsetOptional": optional(_by_groups(-4, 4)),
                  "quantOffsetOptional": _NO_STEPS}, y=out("x"))(weight_quant)  # fmt: skip


def _eye(_rng: object, _pattern: str, _draw: object) -> Array:
    return np.eye(32)


def _ones(_rng: object, _pattern: str, draw: object) -> Array:
    return packed_scales(np.ones((1, draw["N"])))  # type: ignore[index]


_FOLLOWS: Final = "follows from the other arguments"


@spec("aclnnWeightQuantBatchMatmul",
      Rule("gradient", "operator document of aclnnWeightQuantBatchMatmul", cost="2*M*K*N"),
      sizes(M=batch(4, 1, 3, 33), K=row(8, 1, 33, 130), N=column(6, 1, 33)),
      x1=by("transposeX1", {False: tensor("M K", "f16"), True: tensor("K M", "f16")}),
      x2=by("transposeX2", {False: tensor("K N", "i8", -128, 127),
                            True: tensor("N K", "i8", -128, 127)}),
      diagonalMatrix=ignored(_FOLLOWS, content(_eye, "unit", "i8", shape="32 32")),
      deqOffset=ignored(_FOLLOWS, tensor("1 N", "i32", 0, 1)),
      deqScale=ignored(_FOLLOWS, content(_ones, "ones", "u64", shape="1 N")),
      addOffset=tensor("1 N", "x1"), mulScale=tensor("1 N", "x1", 0.01, 0.1),
      bias=optional(tensor("N", "f32", -9, 9)), transposeX1=flag(), transposeX2=flag(),
      antiquantScale=number(0.5, 1.0, 0.0625), antiquantOffset=number(2.0, 0.0, -3.0),
      out=out("f16"))  # fmt: skip
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
