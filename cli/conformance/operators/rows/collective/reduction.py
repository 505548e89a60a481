"""Products and sums reduced over ranks."""

from __future__ import annotations

from .....spec import *
from .._functions import plus
from .._ignored import RANKS
from .._quantizers import powers, real_scales, words
from .._words import *
from .gather import COMMON, LONG, PRODUCT, ordered

_SOURCE: Final = "op-plugin documents npu_mm_all_reduce_base, npu_mm_reduce_scatter_base"
_RULE: Final = Rule("gradient", _SOURCE, specials=False, cost="2*size(x1)*N")
_SHORT: Final = only(0, "of 8-bit operands with scales of blocks, which this form is not judged "
                     "with")  # fmt: skip
_SIZES: Final = sizes({"*B": leading("-", 1, 3)}, M=rows(4, 1, 3, 33, 130),
                      K=row(32, 1, 33, 260, 1041), N=column(6, 1, 33, 130))  # fmt: skip
_SUM: Final[dict[str, Domain]] = {
    **COMMON, "x1": tensor("*B M K", "f16 bf16"), "x2": tensor("K N", "x1"),
    "bias": optional(tensor("N", "x1")), "x3": optional(tensor("*B M N", "x1")),
    "output": out("x1"),
}  # fmt: skip


@spec("aclnnMatmulAllReduceV3 aclnnMatmulAllReduceV2 aclnnMatmulAllReduce", _RULE, _SIZES,
      **ordered("x1 x2 bias x3 group reduceOp commMode commTurn streamMode output",
                _SUM))  # fmt: skip
def reduced(
    x1: Array, x2: Array, bias: Array | None, x3: Array | None = None
) -> Array:  # fmt: skip
    return plus(x1 @ x2, bias, x3)


@spec("aclnnMatmulReduceScatterV2 aclnnMatmulReduceScatter", _RULE, LONG,
      **ordered("x1 x2 bias x1Scale x2Scale quantScale blockSize group reduceOp commTurn "
                "streamMode groupSize commMode output amaxOutOptional", PRODUCT,
                {"output": out("x1"), "amaxOut": null(
                    "of 8-bit operands, which this form is not judged with")}))  # fmt: skip
def scattered(x1: Array, x2: Array, bias: Array | None) -> Array:
    return plus(x1 @ x2, bias)


def _normed(y: Array, residual: Array, gamma: Array, epsilon: float) -> tuple[Array, Array]:
    total = y.reshape(residual.shape) + residual
    return total, total / np.sqrt((total**2).mean(-1, keepdims=True) + epsilon) * gamma


# A residual has three dims; its tokens may come as one dim.
_NORM_SIZES: Final = sizes(B=rows(1, 3), M=rows(4, 1, 33, 130), K=row(32, 1, 33, 260, 1041),
                           N=column(6, 1, 33, 130, 1032))  # fmt: skip
_NORM: Final[dict[str, Domain]] = {
    **_SUM, "x1": forms(tokens=tensor("B*M K", "f16 bf16"), batches=tensor("B M K", "f16 bf16")),
    "residual": tensor("B M N", "x1"), "gamma": tensor("N", "x1"),
    "epsilon": number(1e-5, 1e-12, 0.3), "y": out("x1"), "normOut": out("x1"),
}  # fmt: skip
_TAIL: Final = "epsilon group reduceOp commTurn streamMode"


def reduced_norm(
    x1: Array, x2: Array, bias: Array | None, residual: Array, gamma: Array, epsilon: float
) -> tuple[Array, Array]:
    return _normed(plus(x1 @ x2, bias), residual, gamma, epsilon)


spec("aclnnMatmulAllReduceAddRmsNorm", _RULE, _NORM_SIZES,
     **ordered(f"x1 x2 bias residual gamma {_TAIL} y normOut", _NORM))(reduced_norm)  # fmt: skip
spec("aclnnInplaceMatmulAllReduceAddRmsNorm", _RULE, _NORM_SIZES,
     **ordered(f"x1 x2 bias residual gamma {_TAIL} normOut", _NORM,
               {"residual": inout(_NORM["residual"])}))(reduced_norm)  # fmt: skip

_STEPS: Final = tensor("K N", "i8", -128, 127)


def _scales(param: str) -> Domain:
    """Scales of columns, or one; floats, or in words."""
    real = forms(columns=tensor("N", "", 0.005, 0.05), one=tensor("1", "", 0.005, 0.05))
    return by(f"{param}.dtype", {"u64": words("N"), "i64": words("N", "i64"), "f32": real,
                                 "bf16": real})  # fmt: skip


_QUANT_NORM: Final[dict[str, Domain]] = {
    **_NORM, "x1": forms(tokens=tensor("B*M K", "i8", -128, 127),
                         batches=tensor("B M K", "i8", -128, 127)),
    "x2": _STEPS, "bias": optional(tensor("N", "i32", -900, 900)),
    "dequantScale": _scales("dequantScale"), "residual": tensor("B M N", "gamma"),
    "gamma": tensor("N", "f16 bf16"), "y": out("gamma"), "normOut": out("gamma"),
}  # fmt: skip
_NORM_TYPES: Final = """x1 x2 dequantScale residual gamma {0}
                        i8 i8 bf16         bf16     bf16  {1}
                        i8 i8 u64          f16      f16   {2}"""


def quant_reduced_norm(
    x1: Array, x2: Array, bias: Array | None, dequantScale: Array, residual: Array, gamma: Array,
    epsilon: float,
) -> tuple[Array, Array]:  # fmt: skip
    y = plus(x1.astype(np.float64) @ x2, bias) * real_scales(dequantScale)
    return _normed(y, residual, gamma, epsilon)


spec("aclnnQuantMatmulAllReduceAddRmsNorm", _RULE, _NORM_SIZES,
     dtypes(_NORM_TYPES.format("y normOut", "bf16 bf16", "f16 f16")),
     **ordered(f"x1 x2 bias dequantScale residual gamma {_TAIL} y normOut",
               _QUANT_NORM))(quant_reduced_norm)  # fmt: skip
spec("aclnnInplaceQuantMatmulAllReduceAddRmsNorm", _RULE, _NORM_SIZES,
     dtypes(_NORM_TYPES.format("normOut", "bf16", "f16")),
     **ordered(f"x1 x2 bias dequantScale residual gamma {_TAIL} normOut", _QUANT_NORM,
               {"residual": inout(_QUANT_NORM["residual"])}))(quant_reduced_norm)  # fmt: skip

_MANY_RANKS: Final = null("scales of results that go between ranks as int8")
_QUANT: Final[dict[str, Domain]] = {
    **_SUM, "x1": tensor("*B M K", "i8", -128, 127), "x2": _STEPS,
    "bias": optional(tensor("N", "", -900, 900)), "x3": optional(tensor("*B M N", "", -90, 90)),
    "dequantScale": _scales("dequantScale"), "x2Scale": _scales("x2Scale"),
    "pertokenScale": tensor("size(x1)//K", "f32", 0.5, 2),
    "x1Scale": tensor("size(x1)//K", "f32", 0.5, 2), "commQuantScale1": _MANY_RANKS,
    "commQuantScale2": _MANY_RANKS, "groupSize": _SHORT, "commQuantMode": only(0, RANKS),
}  # fmt: skip
_TYPES: Final = """x1 x2 biasOptional x3Optional {0}     {1}  output
                   i8 i8 i32          f16        u64|i64 -    f16
                   i8 i8 i32          bf16       bf16    -    bf16
                   i8 i8 i32          f16        f32     f32  f16
                   i8 i8 i32          bf16       bf16    f32  bf16"""


def quantized_sum(
    x1: Array, x2: Array, biasOptional: Array | None, x3Optional: Array | None,
    dequantScale: Array, pertokenScaleOptional: Array | None = None,
) -> Array:  # fmt: skip
    y = plus(x1.astype(np.float64) @ x2, biasOptional) * real_scales(dequantScale)
    if pertokenScaleOptional is not None:
        y = y * pertokenScaleOptional.reshape(*x1.shape[:-1], 1)
    return plus(y, x3Optional)


spec("aclnnQuantMatmulAllReduceV3 aclnnQuantMatmulAllReduceV2", _RULE, _SIZES,
     also("aclnnQuantMatmulAllReduce", biasOptional="bias", x3Optional="x3"),
     dtypes(_TYPES.format("dequantScale", "pertokenScaleOptional")),
     require("given(pertokenScaleOptional) or dtype(dequantScale) != 'float32'"),
     **ordered("x1 x2 biasOptional x3Optional dequantScale pertokenScaleOptional "
               "commQuantScale1Optional commQuantScale2Optional group reduceOp commTurn "
               "streamMode output", _QUANT))(quantized_sum)  # fmt: skip
spec("aclnnQuantMatmulAllReduceV5 aclnnQuantMatmulAllReduceV4", _RULE, _SIZES,
     dtypes(_TYPES.format("x2Scale", "x1ScaleOptional")),
     **ordered("x1 x2 biasOptional x3Optional x1ScaleOptional x2Scale commQuantScale1Optional "
               "commQuantScale2Optional group reduceOp commMode commTurn streamMode groupSize "
               "commQuantMode output", _QUANT))(
    lambda x1, x2, biasOptional, x3Optional, x1ScaleOptional, x2Scale: quantized_sum(
        x1, x2, biasOptional, x3Optional, x2Scale, x1ScaleOptional))  # fmt: skip


def _by_groups(low: float, high: float) -> Domain:
    """One value, those of columns, or of blocks of 32 rows."""
    return by("antiquantGroupSize", {
        0: forms(columns=tensor("N", "x1", low, high), one=tensor("1", "x1", low, high)),
        32: tensor("K//32 N", "x1", low, high)})  # fmt: skip


_WEIGHT: Final[dict[str, Domain]] = {
    "x2": _STEPS, "antiquantScale": _by_groups(0.01, 0.1),
    "antiquantOffset": optional(_by_groups(-4, 4)), "antiquantGroupSize": number(0, 32),
}  # fmt: skip
_FIT: Final = require(
    "antiquantGroupSize == 0 or K % 32 == 0 and K > 32",
    "not given(antiquantOffset) or size(antiquantOffset) == size(antiquantScale)",
)
_WEIGHT_K: Final = sizes(K=row(64, 1, 33, 96, 1056))


def _restored(x2: Array, scale: Array, offset: Array | None, group: int) -> Array:
    weight = x2.astype(np.float64)
    if group:
        scale = np.repeat(scale, group, 0)
        offset = None if offset is None else np.repeat(offset, group, 0)
    return plus(weight, offset) * scale


@spec("aclnnWeightQuantMatmulAllReduceV2 aclnnWeightQuantMatmulAllReduce", _RULE, _SIZES,
      _WEIGHT_K, _FIT,
      **ordered("x1 x2 bias antiquantScale antiquantOffset x3 group reduceOp commMode commTurn "
                "streamMode antiquantGroupSize output", _SUM, _WEIGHT))  # fmt: skip
def weight_reduced(
    x1: Array, x2: Array, bias: Array | None, antiquantScale: Array,
    antiquantOffset: Array | None, x3: Array | None, antiquantGroupSize: int,
) -> Array:  # fmt: skip
    weight = _restored(x2, antiquantScale, antiquantOffset, antiquantGroupSize)
    return plus(x1 @ weight, bias, x3)


def weight_reduced_norm(
    x1: Array, x2: Array, bias: Array | None, antiquantScale: Array, antiquantOffset: Array | None,
    residual: Array, gamma: Array, epsilon: float, antiquantGroupSize: int,
) -> tuple[Array, Array]:  # fmt: skip
    y = weight_reduced(x1, x2, bias, antiquantScale, antiquantOffset, None, antiquantGroupSize)
    return _normed(y, residual, gamma, epsilon)


_WEIGHT_NORM: Final = Rule("gradient", "op-plugin documents npu_mm_all_reduce_base and "
                           "npu_weight_quant_batchmatmul; Zhang, Sennrich 2019", specials=False,
                           cost="2*size(x1)*N")  # fmt: skip
_WEIGHT_HEAD: Final = "x1 x2 bias antiquantScale antiquantOffset residual gamma"
spec("aclnnWeightQuantMatmulAllReduceAddRmsNorm", _WEIGHT_NORM, _NORM_SIZES, _WEIGHT_K, _FIT,
     **ordered(f"{_WEIGHT_HEAD} {_TAIL} antiquantGroupSize y normOut", _NORM, _WEIGHT))(
    weight_reduced_norm)  # fmt: skip
spec("aclnnInplaceWeightQuantMatmulAllReduceAddRmsNorm", _WEIGHT_NORM, _NORM_SIZES, _WEIGHT_K,
     _FIT, **ordered(f"{_WEIGHT_HEAD} {_TAIL} antiquantGroupSize normOut", _NORM, _WEIGHT,
                     {"residual": inout(_NORM["residual"])}))(weight_reduced_norm)  # fmt: skip


@spec("aclnnQuantAllReduce aclnnQuantReduceScatter",
      Rule("gradient", "operator document of aclnnQuantAllReduce", specials=False),
      sizes({"*B": leading("4", "1", "2x3", "65")}, H=row(128, 256, 1152)),
      dtypes("""x             scales output
                e4m3|e5m2     e8m0   f32|f16|bf16
                i8|e4m3|e5m2  f32    f32|f16|bf16"""),
      x=by("x.dtype", {"i8": tensor("*B H", "", -128, 127), "e4m3": tensor("*B H"),
                       "e5m2": tensor("*B H")}),
      scales=by("scales.dtype", {"e8m0": powers("*B H//64 2", -2, 3),
                                 "f32": tensor("*B H//128", "", 0.01, 0.5)}),
      group=COMMON["group"], reduceOp=COMMON["reduceOp"], output=out("f32"))  # fmt: skip
def restored_sum(x: Array, scales: Array) -> Array:
    """Each power of two belongs to 32 elements of a row, each float to 128."""
    return x * np.repeat(scales.reshape(*x.shape[:-1], -1), x.size // scales.size, -1)


@spec("aclnnGroupedMatMulAllReduce", Rule("gradient", _SOURCE, specials=False),
      sizes(L=members(2, 1, 3, 8, 66), M=rows(4, 1, 33), K=row(8, 1, 33, 260),
            N=column(6, 1, 33)),
      dtypes("""x    weight bias y
                f16  f16    f16  f16
                bf16 bf16   f32  bf16"""),
      x=tensors("L", "M@L K@L"), weight=tensors("L", "K@L N@L"),
      bias=optional(tensors("L", "N@L")),
      groupListOptional=null("splitItem 0 takes an x of each expert"),
      splitItem=only(0, "documents allow 0"), group=COMMON["group"],
      reduceOp=COMMON["reduceOp"], commTurn=COMMON["commTurn"],
      streamMode=COMMON["streamMode"], y=out("x"))  # fmt: skip
def reduced_members(x: list[Array], weight: list[Array], bias: list[Array] | None) -> list[Array]:
    every: Sequence[Array | None] = bias or [None] * len(x)
    return [plus(a @ w, b) for a, w, b in zip(x, weight, every, strict=True)]
