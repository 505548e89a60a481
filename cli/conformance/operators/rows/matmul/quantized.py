"""Products of integers, scaled."""

from __future__ import annotations

from .....spec import *
from .....spec.declaration import Overload, Pin
from .._functions import gelu
from .._quantizers import dynamic, powers, real_scales, words
from .._words import *

_SOURCE: Final = "operator documents aclnnQuantMatmulV3 to V5; op-plugin document npu_quant_matmul"
_RULE: Final = Rule("gradient", _SOURCE, steps=True, cost="2*size(x1)*N")
_RESERVED: Final = null("reserved: documents ask for null")


def quant_matmul(
    x1: Array,
    x2: Array,
    bias: Array | None,
    transposeX1: bool,
    transposeX2: bool,
    scale: Array,
    offset: Array | None = None,
    pertokenScaleOptional: Array | None = None,
) -> Array:
    """A bias of integers counts products, one of floats results."""
    left, right = x1.astype(np.float64), x2.astype(np.float64)
    y = (left.swapaxes(-1, -2) if transposeX1 else left) @ (
        right.swapaxes(-1, -2) if transposeX2 else right)  # fmt: skip
    whole = bias is not None and bias.dtype.kind == "i"
    y = (y + bias if bias is not None and whole else y) * real_scales(scale)
    y = y if pertokenScaleOptional is None else y * pertokenScaleOptional[:, None]
    y = y if bias is None or whole else y + bias
    return y if offset is None else y + offset


def _whole(param: str, flags: str, plain: str, transposed: str) -> Domain:
    """A matrix of integers of their whole range, plain or transposed."""

    def ranged(low: int, high: int) -> Domain:
        return by(flags, {turn: tensor(shape, "", low, high, ones="ones scalar")
                          for turn, shape in ((False, plain), (True, transposed))})  # fmt: skip

    return by(f"{param}.dtype", {"i8": ranged(-128, 127), "i4": ranged(-8, 7)})


def _scales(param: str) -> Domain:
    """Scales of columns, or one; floats, or in words."""
    real = forms(columns=tensor("N", "", 0.005, 0.05), one=tensor("1", "", 0.005, 0.05))
    return by(f"{param}.dtype", {"u64": words("N"), "i64": words("N", "i64"), "f32": real,
                                 "bf16": real})  # fmt: skip


_X1: Final = _whole("x1", "transposeX1", "*B M K", "*B K M")
_X2: Final = _whole("x2", "transposeX2", "*#B K N", "*#B N K")
_BIAS: Final = optional(forms(columns=tensor("N", "", -90, 90),
                              batches=tensor("*B 1 N", "", -90, 90)))  # fmt: skip
_OFFSET: Final = optional(tensor("N", "f32", -9, 9))


def _most(draw: Draw) -> int:
    return 127 if draw["x1.dtype"] == "i8" else 7


def _largest(_rng: Generator, _pattern: str, draw: Draw) -> Array:
    transposed = draw["transposeX1"]
    return np.full(resolve("*B K M" if transposed else "*B M K", draw), _most(draw))


def _opposed(_rng: Generator, _pattern: str, draw: Draw) -> Array:
    """Columns of the largest steps, every other one negative."""
    transposed, n = draw["transposeX2"], draw["N"]
    signs = (_most(draw) * (-1) ** np.arange(n))[:, None if transposed else ...]
    return np.broadcast_to(signs, resolve("*B N K" if transposed else "*B K N", draw)).copy()


def _cancelling(rng: Generator, _pattern: str, draw: Draw) -> Array:
    """What leaves small odd numbers of the products of `_largest` and `_opposed`."""
    n, product = draw["N"], _most(draw) ** 2 * draw["K"]
    return 2 * rng.integers(-20, 20, n) + 1 - product * (-1) ** np.arange(n)


# Sums beyond 2^24, in which float32 loses units, and a bias that cancels them.
_BEYOND: Final[dict[str, Domain]] = {
    "x1": content(_largest, "largest", "i8", reads=("transposeX1", "M", "K")),
    "x2": content(_opposed, "opposed", "i8", reads=("transposeX2", "N", "K")),
    "bias": by("bias.dtype", {"i32": content(_cancelling, "cancelling", "i32", shape="N"),
                              "f32": None, "bf16": None}),
}  # fmt: skip
_PAST: Final[tuple[Overload | Pin, ...]] = (
    overload("any"), overload("beyond", **_BEYOND),
    *(pin(f"overload=beyond types={t} K=1041", "sums beyond 2^24") for t in (2, 3, 4)),
)  # fmt: skip
_SIZES: Final = sizes({"*B": leading("-", 1, 3, "2x3")}, M=batch(5, 1, 3, 130),
                      K=row(34, 1, 16, 65, 260, 1041), N=column(10, 1, 33, 130))  # fmt: skip
_BATCHES: Final = "rank(bias) <= 1 or rank(x1) == 3"
_EVEN: Final = "dtype(x1) != 'int4' or K % 2 + M % 2 + N % 2 == 0"


@spec("aclnnQuantMatmulV4", _RULE, _SIZES,
      require(_BATCHES, _EVEN, "given(pertokenScaleOptional) or dtype(scale) != 'float32'"),
      pin("types=0 offset=given bias=columns transposeX2=True", "steps of int8"), *_PAST,
      dtypes("""x1 x2 scale offset pertokenScaleOptional bias out
                i8 i8 u64|i64  f32 -   i32     i8
                i8 i8 u64|i64  -   -   i32     f16
                i8 i8 f32      -   f32 i32|f32 f16
                i8 i8 f32|bf16 -   f32 i32|f32 bf16
                i4 i4 f32|bf16 -   f32 i32     bf16
                i4 i4 u64      -   -   i32     f16"""),
      x1=_X1, x2=_X2, scale=_scales("scale"), offset=_OFFSET,
      pertokenScaleOptional=optional(tensor("M", "f32", 0.5, 2)), bias=_BIAS,
      transposeX1=flag(), transposeX2=flag(), out=out("f16"))  # fmt: skip
def quant_matmul_v4(
    x1: Array, x2: Array, scale: Array, offset: Array | None, pertokenScaleOptional: Array | None,
    bias: Array | None, transposeX1: bool, transposeX2: bool,
) -> Array:  # fmt: skip
    return quant_matmul(x1, x2, bias, transposeX1, transposeX2, scale, offset,
                        pertokenScaleOptional)  # fmt: skip


@spec("aclnnQuantMatmulV3", _RULE, _SIZES, require(_BATCHES, _EVEN),
      pin("types=0 offset=given bias=columns transposeX2=True", "steps of int8"), *_PAST,
      dtypes("""x1 x2 scale offset bias out
                i8 i8 u64|i64  f32 i32      i8
                i8 i8 u64|i64  -   i32      f16
                i8 i8 f32|bf16 -   i32|bf16 bf16
                i4 i4 u64      -   i32      f16"""),
      x1=_X1, x2=_X2, scale=_scales("scale"), offset=_OFFSET, bias=_BIAS,
      transposeX1=flag(), transposeX2=flag(), out=out("f16"))  # fmt: skip
def quant_matmul_v3(
    x1: Array, x2: Array, scale: Array, offset: Array | None, bias: Array | None,
    transposeX1: bool, transposeX2: bool,
) -> Array:  # fmt: skip
    return quant_matmul(x1, x2, bias, transposeX1, transposeX2, scale, offset)


_OTHER_TYPES: Final = "of types that are not declared here"


@spec("aclnnQuantMatmulV5 aclnnQuantMatmulWeightNz",
      Rule("gradient", _SOURCE, steps=True, cost="2*size(x1)*N",
           formats={"aclnnQuantMatmulWeightNz x2": "FRACTAL_NZ"}),
      _SIZES, require(_BATCHES, "given(x1Scale) or dtype(x2Scale) != 'float32'"),
      pin("types=0 x2Offset=given bias=columns transposeX2=True", "steps of int8"), *_PAST,
      dtypes("""x1 x2 x1Scale x2Scale x2Offset bias out
                i8 i8 -   u64|i64  f32 i32     i8
                i8 i8 -   u64|i64  -   i32     f16
                i8 i8 f32 f32      -   i32|f32 f16
                i8 i8 f32 f32|bf16 -   i32|f32 bf16"""),
      x1=_X1, x2=_X2, x1Scale=optional(tensor("M", "f32", 0.5, 2)), x2Scale=_scales("x2Scale"),
      yScale=null(_OTHER_TYPES), x1Offset=_RESERVED, x2Offset=_OFFSET,
      yOffset=null(_OTHER_TYPES), bias=_BIAS, transposeX1=flag(), transposeX2=flag(),
      groupSize=only(0, _OTHER_TYPES), out=out("f16"))  # fmt: skip
def quant_matmul_v5(
    x1: Array, x2: Array, x1Scale: Array | None, x2Scale: Array, bias: Array | None,
    transposeX1: bool, transposeX2: bool, x2Offset: Array | None = None,
) -> Array:  # fmt: skip
    """Without a scale for each row an offset is added to steps of int8."""
    return quant_matmul(x1, x2, bias, transposeX1, transposeX2, x2Scale, x2Offset, x1Scale)


def steps_of_rows(x: Array, smooth: Array | None, scale: Array | None) -> tuple[Array, Array]:
    """(integers, scale of each row): in a scale that comes along, or by each row's largest."""
    y = x if smooth is None else x * smooth
    if scale is None:
        steps, quantized = dynamic(y)
        return np.rint(steps), quantized
    quantized = np.broadcast_to(scale.reshape(-1), (len(x),))
    return np.clip(np.rint(y / quantized[:, None]), -128, 127), quantized


# What operators that quantise x by themselves take: scales in words hold the factor of x.
X_STEPS: Final[dict[str, Domain]] = {
    "biasOptional": _RESERVED,
    "xScaleOptional": by("xQuantMode", {"pertoken": optional(powers("T", -6, -3)),
                                        "pertensor": powers("1", -6, -3)}),
    "xOffsetOptional": _RESERVED, "smoothScaleOptional": optional(tensor("K", "x", 0.5, 1.5)),
    "xQuantMode": choice("pertoken", "pertensor"),
    "transposeWeight": only(True, "documents allow True alone"), "out": out("x"),
}  # fmt: skip
X_FIT: Final = require("dtype(weightScale) != 'int64' or given(xScaleOptional)")
X_TYPES: Final = dtypes("""x weightScale
                           f16 f32|i64""")


def weight_scales(shape: str) -> Domain:
    """Scales of a weight's columns, or words."""
    return by("weightScale.dtype", {"f32": tensor(shape, "", 0.01, 0.1),
                                    "i64": words(shape, "i64")})  # fmt: skip


@spec("aclnnQuantMatmulDequant",
      Rule("gradient", "operator document aclnnQuantMatmulDequant; op-plugin document "
           "npu_quant_matmul_dequant", specials=False, cost="2*size(x)*N"),
      sizes(T=batch(5, 1, 3, 130), K=row(32, 1, 33, 260), N=column(16, 1, 33, 130)), X_FIT,
      X_TYPES, x=tensor("T K", "f16"), weight=tensor("N K", "i8", -128, 127),
      weightScale=weight_scales("N"), **X_STEPS)  # fmt: skip
def quant_matmul_dequant(
    x: Array, weight: Array, weightScale: Array, smoothScaleOptional: Array | None,
    xScaleOptional: Array | None,
) -> Array:  # fmt: skip
    steps, scale = steps_of_rows(x, smoothScaleOptional, xScaleOptional)
    y = steps @ weight.T.astype(np.float64) * real_scales(weightScale)
    return y * scale[:, None] if weightScale.dtype.kind == "f" else y


def ended(y: Array, kind: str, x3: Array | None) -> Array:
    """The operation at a product's end."""
    if kind in ("add", "mul"):
        return y + x3 if kind == "add" else y * x3
    return np.maximum(y, 0) if kind == "relu" else gelu(y, kind[5:]) if kind else y


_RANGES: Final = (("small", -2, 2), ("whole", -128, 127))


@spec("aclnnFusedQuantMatmul aclnnFusedQuantMatmulWeightNz",
      Rule("gradient", "op-plugin document npu_quant_matmul, then the operation that the "
           "operator document names", specials=False, cost="2*size(x1)*N"),
      sizes(M=batch(5, 1, 3, 130), K=row(32, 1, 33, 260), N=column(16, 1, 33, 130)),
      pin("fusedOpType=gelu_erf biasOptional=low", "where the two formulas differ most"),
      pin("fusedOpType=gelu_tanh biasOptional=low", "where the two formulas differ most"),
      x1=forms(**{n: tensor("M K", "i8", low, high - 0.5) for n, low, high in _RANGES}),
      x2=forms(**{n: tensor("K N", "i8", low, high - 0.5) for n, low, high in _RANGES}),
      x1Scale=tensor("M", "f32", 0.5, 1), x2Scale=tensor("N", "f32", 0.005, 0.01),
      yScaleOptional=_RESERVED, x1OffsetOptional=_RESERVED, x2OffsetOptional=_RESERVED,
      yOffsetOptional=_RESERVED,
      biasOptional=optional(forms(around=tensor("N", "i32", -50, 50),
                                  low=tensor("N", "i32", -400, -250))),
      x3Optional=null("of operations that are not declared here"),
      fusedOpType=choice("relu", "gelu_erf", "gelu_tanh"), groupSizeOptional=only(0, "reserved"),
      out=out("f16"))  # fmt: skip
def fused_quant(
    x1: Array, x2: Array, x1Scale: Array, x2Scale: Array, biasOptional: Array | None,
    fusedOpType: str,
) -> Array:  # fmt: skip
    total = x1.astype(np.float64) @ x2 + (0 if biasOptional is None else biasOptional)
    return ended(total * x2Scale * x1Scale[:, None], fusedOpType, None)


_SMALL: Final = "e4m3 e5m2"


@spec("aclnnTransposeQuantBatchMatMul",
      Rule("gradient", "op-plugin document npu_transpose_quant_batchmatmul", specials=False,
           cost="2*size(x1)*N"),
      sizes(M=batch(5, 1, 3, 33), B=batch(2, 1, 3), K=row(8, 1, 33), N=column(16, 1, 33)),
      x1=tensor("M B K", _SMALL), x2=by("permX2", {(0, 1, 2): tensor("B K N", "x1"),
                                                   (0, 2, 1): tensor("B N K", "x1")}),
      bias=_RESERVED, x1Scale=tensor("M", "f32", 0.1, 2), x2Scale=tensor("N", "f32", 0.1, 2),
      dtype=choice(1, 27), groupSize=only(0, "of scales of blocks"),
      permX1=only((1, 0, 2), "documents allow one order"), permX2=array((0, 1, 2), (0, 2, 1)),
      permY=only((1, 0, 2), "documents allow one order"),
      batchSplitFactor=only(1, "documents allow 1"), out=out("dtype"))  # fmt: skip
def turned_product(
    x1: Array, x2: Array, x1Scale: Array, x2Scale: Array, permX2: tuple[int, ...]
) -> Array:
    y = np.einsum("mbk,bkn->mbn", x1.astype(np.float64), x2.astype(np.float64).transpose(permX2))
    return y * x1Scale[:, None, None] * x2Scale


@spec("aclnnQuantBatchMatmulInplaceAdd",
      Rule("gradient", "op-plugin document npu_add_quant_matmul_", specials=False),
      sizes(K=row(40, 1, 33, 130), M=batch(5, 1, 33), N=column(7, 1, 33)),
      x1=tensor("K M", _SMALL), x2=tensor("K N", "x1"),
      x1ScaleOptional=optional(tensor("1", "f32", 0.5, 2)), x2Scale=tensor("N", "f32", 0.1, 2),
      yRef=inout(tensor("M N", "f32")), transposeX1=only(True, "documents allow True"),
      transposeX2=only(False, "documents allow False"),
      groupSize=only(0, "of scales of blocks"))  # fmt: skip
def added_product(
    x1: Array, x2: Array, x1ScaleOptional: Array | None, x2Scale: Array, yRef: Array
) -> Array:
    y = x1.astype(np.float64).T @ x2.astype(np.float64) * x2Scale
    return yRef + (y if x1ScaleOptional is None else y * x1ScaleOptional)


@spec("aclnnQuantMatmulReduceSumWeightNz",
      Rule("gradient", "op-plugin document npu_quant_matmul_reduce_sum", cost="2*size(x1)*N",
           formats={"x2": "FRACTAL_NZ"}),
      sizes(B=batch(3, 1, 2, 8), M=batch(5, 1, 33), K=row(32, 16, 96), N=column(32, 64, 96)),
      x1=tensor("B M K", "i8", -128, 127), x2=tensor("B K N", "i8", -128, 127),
      x1Scale=tensor("B M", "f32", 0.5, 2), x2Scale=tensor("N", "bf16", 0.01, 0.05),
      yScale=_RESERVED, x1Offset=_RESERVED, x2Offset=_RESERVED, yOffset=_RESERVED,
      bias=_RESERVED, transposeX1=only(False, "documents allow False"),
      transposeX2=only(False, "documents allow False"), groupSize=only(-1, "reserved"),
      dims=only((0,), "documents sum over batches"),
      keepDims=only(False, "documents allow False"), out=out("bf16"))  # fmt: skip
def product_summed(x1: Array, x2: Array, x1Scale: Array, x2Scale: Array) -> Array:
    product = x1.astype(np.float64) @ x2.astype(np.float64)
    return (product * x2Scale * x1Scale[..., None]).sum(0)


@spec("aclnnQuantMatmulV2", Rule("gradient", _SOURCE, cost="2*size(x1)*N"),
      sizes(M=batch(5, 1, 3, 130), K=row(32, 1, 33, 260), N=column(16, 1, 33, 130)),
      x1=by("adjX1", {False: tensor("M K", "i8", -128, 127),
                      True: tensor("K M", "i8", -128, 127)}),
      x2=by("adjX2", {False: tensor("K N", "i8", -128, 127),
                      True: tensor("N K", "i8", -128, 127)}),
      bias=tensor("N", "i32", -900, 900), deqScale=words("N"), adjX1=flag(), adjX2=flag(),
      out=out("f16"))  # fmt: skip
def quant_matmul_v2(
    x1: Array, x2: Array, bias: Array, deqScale: Array, adjX1: bool, adjX2: bool
) -> Array:
    """The low 32 bits of a scale are a float32's."""
    return quant_matmul(x1, x2, bias, adjX1, adjX2, deqScale)


@spec("aclnnBatchMatmulQuant",
      Rule("gradient", "a product, then round(y scale) of a packed float32 scale (op-plugin "
           "document npu_trans_quant_param)", steps=True, cost="2*size(x1)*N"),
      sizes(B=batch, M=batch(5, 1, 33), K=row(32, 1, 33, 130), N=column(16, 1, 33)),
      x1=by("transposeX1", {False: tensor("B M K", "f16"), True: tensor("B K M", "f16")}),
      x2=by("transposeX2", {False: tensor("B K N", "x1", -9, 9),
                            True: tensor("B N K", "x1", -9, 9)}),
      quantParam=words("1"), bias=null("no document says whether it comes before the scale"),
      transposeX1=flag(), transposeX2=flag(), out=out("i8"))  # fmt: skip
def product_quantised(
    x1: Array, x2: Array, quantParam: Array, transposeX1: bool, transposeX2: bool
) -> Array:
    return quant_matmul(x1, x2, None, transposeX1, transposeX2, quantParam)


@spec("aclnnQuantMatmul",
      Rule("gradient", "operator document of aclnnQuantMatmul, CANN 8.1: (x1 x2 + bias) "
           "deqScale", specials=False),
      sizes({"*B": leading("-", 2, 3)}, M=batch(5, 1, 33), K=row(32, 1, 33),
            N=column(16, 1, 33)),
      x1=tensor("*B M K", "i8", -128, 127), x2=tensor("*B K N", "i8", -128, 127),
      bias=tensor("N", "i32", -900, 900), deqScale=number(0.01, 0.001, 0.03),
      out=out("f16"))  # fmt: skip
def scalar_quant_matmul(x1: Array, x2: Array, bias: Array, deqScale: float) -> Array:
    return (np.einsum("...ik,...kj->...ij", x1.astype(np.int64), x2) + bias) * deqScale
