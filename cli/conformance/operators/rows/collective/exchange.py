"""Products and sums over ranks by all-to-all."""

from __future__ import annotations

from .....spec import *
from ...group import OWN_GROUP
from .._functions import plus
from .._ignored import RANKS
from .._microscaling import BLOCK, as_float32
from .._quantizers import powers
from .._words import *
from .gather import COMMON, ordered

_PAGES: Final = (
    "op-plugin documents npu_alltoallv_gmm, npu_gmm_alltoallv, npu_alltoallv_quant_gmm, "
    "npu_quant_gmm_alltoallv, npu_all_to_all_quant_matmul, npu_quant_matmul_all_to_all, "
    "npu_mm_all_reduce_base and tests of their names"
)
_RULE: Final = Rule("gradient", _PAGES, specials=False)
_RESERVED: Final = null("reserved: documents ask for null")


def _oriented(w: Array, transposed: bool) -> Array:
    return (w.swapaxes(-1, -2) if transposed else w).astype(np.float64)


def _restored(x: Array, scale: Array, transposed: bool = True) -> Array:
    """x times its scale: one, or one for each block of the inner axis (the last but one where it is
    a weight that is not transposed), which lie in pairs."""
    if scale.ndim == 1:
        return x * scale
    axis = -1 if transposed else -2
    lines = scale if transposed else np.moveaxis(scale, -1, -2)
    shape = [*x.shape[:-1], -1] if transposed else [*x.shape[:-2], -1, x.shape[-1]]
    each = np.repeat(lines.reshape(shape), BLOCK, axis)
    return np.asarray(x * each.take(np.arange(x.shape[axis]), axis))


def _matrix(flag_: str, batch: str, inner: str, columns: str, dtype: str) -> Domain:
    return by(flag_, {False: tensor(f"{batch}{inner} {columns}", dtype),
                      True: tensor(f"{batch}{columns} {inner}", dtype)})  # fmt: skip


# Tokens of one rank by expert, and those of an expert that all ranks share.
_TOKENS: Final = sizes(
    E=experts(3, 1, 8), T=tokens(6, 1, 33, 130), K=row(8, 1, 33, 260, 1041),
    N=column(5, 1, 33, 130), M=rows(4, 1, 33), H=row(8, 1, 33, 130),
    W=column(3, 1, 33))  # fmt: skip
_EXPERTS: Final[dict[str, Domain]] = {
    **COMMON, "gmmX": tensor("T K", "f16 bf16"),
    "gmmWeight": _matrix("transGmmWeight", "E ", "K", "N", "gmmX"),
    "sendCountsTensor": _RESERVED, "recvCountsTensor": _RESERVED,
    "mmX": optional(tensor("M H", "gmmX")),
    "mmWeight": optional(_matrix("transMmWeight", "", "H", "W", "gmmX"), iff="given(mmXOptional)"),
    "epWorldSize": only(1, RANKS), "sendCounts": parts("E", of="T"),
    "recvCounts": equals("sendCounts"), "transGmmWeight": flag(), "transMmWeight": flag(),
    "permuteOutFlag": flag(),
    **{n: out("gmmX") for n in ("y", "gmmY", "mmY", "permuteOut")},
}  # fmt: skip
_SENT: Final = "group commMode epWorldSize sendCounts recvCounts transGmmWeight transMmWeight"
_COUNTED: Final = "sendCountsTensorOptional recvCountsTensorOptional mmXOptional mmWeightOptional"


@spec("aclnnGroupedMatMulAlltoAllvV2 aclnnGroupedMatMulAlltoAllv", _RULE, _TOKENS,
      **ordered(f"gmmX gmmWeight {_COUNTED} {_SENT} y mmYOptional", _EXPERTS))  # fmt: skip
def from_experts(
    gmmX: Array, gmmWeight: Array, mmXOptional: Array | None, mmWeightOptional: Array | None,
    sendCounts: tuple[int, ...], transGmmWeight: bool, transMmWeight: bool,
) -> tuple[Array, Array | None]:  # fmt: skip
    shared = None
    if mmXOptional is not None and mmWeightOptional is not None:
        shared = mmXOptional.astype(np.float64) @ _oriented(mmWeightOptional, transMmWeight)
    groups = np.split(gmmX.astype(np.float64), np.cumsum(sendCounts)[:-1])
    matrices = zip(groups, _oriented(gmmWeight, transGmmWeight), strict=True)
    return np.concatenate([x @ w for x, w in matrices]), shared


@spec("aclnnAlltoAllvGroupedMatMulV2 aclnnAlltoAllvGroupedMatMul", _RULE, _TOKENS,
      **ordered(f"gmmX gmmWeight {_COUNTED} {_SENT} permuteOutFlag gmmY mmYOptional "
                "permuteOutOptional", _EXPERTS))  # fmt: skip
def to_experts(
    gmmX: Array, gmmWeight: Array, mmXOptional: Array | None, mmWeightOptional: Array | None,
    sendCounts: tuple[int, ...], transGmmWeight: bool, transMmWeight: bool, permuteOutFlag: bool,
) -> tuple[Array | None, ...]:  # fmt: skip
    y, shared = from_experts(gmmX, gmmWeight, mmXOptional, mmWeightOptional, sendCounts,
                             transGmmWeight, transMmWeight)  # fmt: skip
    return y, shared, gmmX if permuteOutFlag else None


# Quantisation modes: one scale for all of an operand, or a power of two for each block of 32.
_ONE, _BLOCKS = 1, 6
_TILE: Final = 1 << 32 | 1 << 16 | BLOCK


def _scale(shape: str, flag_: str = "", columns_first: str = "") -> Domain:
    blocks: Domain = powers(f"{shape} 2", -2, 3, "e8m0")
    if flag_:
        blocks = by(flag_, {False: blocks, True: powers(f"{columns_first} 2", -2, 3, "e8m0")})
    return by("gmmXQuantMode", {_ONE: tensor("1", "f32", 0.5, 2), _BLOCKS: blocks})


_WEIGHT_SCALE: Final = _scale("ceil(H,64) W", "transMmWeight", "W ceil(H,64)")
_QUANTISED: Final[dict[str, Domain]] = {
    **_EXPERTS, "gmmX": tensor("T K", "e4m3 e5m2"),
    "gmmWeight": _matrix("transGmmWeight", "E ", "K", "N", "e4m3"),
    "gmmXScale": _scale("T ceil(K,64)"),
    "gmmWeightScale": _scale("E ceil(K,64) N", "transGmmWeight", "E N ceil(K,64)"),
    "mmWeight": optional(_matrix("transMmWeight", "", "H", "W", "gmmWeight"),
                         iff="given(mmXOptional)"),
    "mmXScale": optional(_scale("M ceil(H,64)"), iff="given(mmXOptional)"),
    "mmWeightScale": optional(_WEIGHT_SCALE, iff="given(mmXOptional)"),
    "commQuantScale": _RESERVED, "gmmXQuantMode": choice(_ONE, _BLOCKS),
    "gmmWeightQuantMode": equals("gmmXQuantMode"),
    **{n: equals("gmmXQuantMode if given(mmXOptional) else 0")
       for n in ("mmXQuantMode", "mmWeightQuantMode")},
    "commQuantMode": only(0, "documents allow 0"),
    "commQuantDtype": only(0, "of a commQuantMode other than 0"),
    "groupSize": equals(f"{_TILE} if gmmXQuantMode == {_BLOCKS} else 0"),
    **{n: out("f16") for n in ("y", "gmmY", "mmY")},
}  # fmt: skip
_SMALL_TYPES: Final = """gmmX gmmWeight {0}  mmYOptional
                         e4m3 e4m3      f16  f16
                         e5m2 e5m2      bf16 bf16
                         e4m3 e5m2      bf16 bf16"""
_SCALES: Final = "gmmX gmmWeight gmmXScale gmmWeightScale"
_OF_SHARED: Final = f"{_COUNTED} mmXScaleOptional mmWeightScaleOptional"
_MODES: Final = "gmmXQuantMode gmmWeightQuantMode mmXQuantMode mmWeightQuantMode"


@spec("aclnnQuantGroupedMatMulAlltoAllvV2 aclnnQuantGroupedMatMulAlltoAllv", _RULE, _TOKENS,
      dtypes(_SMALL_TYPES.format("y")),
      **ordered(f"{_SCALES} {_OF_SHARED} commQuantScaleOptional {_MODES} commQuantMode "
                f"commQuantDtypeOptional groupSize {_SENT} y mmYOptional",
                _QUANTISED))  # fmt: skip
def from_experts_quantised(
    gmmX: Array, gmmWeight: Array, gmmXScale: Array, gmmWeightScale: Array,
    mmXOptional: Array | None, mmWeightOptional: Array | None, mmXScaleOptional: Array | None,
    mmWeightScaleOptional: Array | None, sendCounts: tuple[int, ...], transGmmWeight: bool,
    transMmWeight: bool,
) -> tuple[Array, Array | None]:  # fmt: skip
    if mmXOptional is not None and mmXScaleOptional is not None:
        mmXOptional = _restored(mmXOptional, mmXScaleOptional)
    if mmWeightOptional is not None and mmWeightScaleOptional is not None:
        mmWeightOptional = _restored(mmWeightOptional, mmWeightScaleOptional, transMmWeight)
    return from_experts(
        _restored(gmmX, gmmXScale), _restored(gmmWeight, gmmWeightScale, transGmmWeight),
        mmXOptional, mmWeightOptional, sendCounts, transGmmWeight, transMmWeight)  # fmt: skip


@spec("aclnnAlltoAllvQuantGroupedMatMulV2 aclnnAlltoAllvQuantGroupedMatMul", _RULE, _TOKENS,
      dtypes(_SMALL_TYPES.format("gmmY")),
      **ordered(f"{_SCALES} {_OF_SHARED} {_MODES} {_SENT} groupSize permuteOutFlag gmmY "
                "mmYOptional permuteOutOptional", _QUANTISED))  # fmt: skip
def to_experts_quantised(
    gmmX: Array, gmmWeight: Array, gmmXScale: Array, gmmWeightScale: Array,
    mmXOptional: Array | None, mmWeightOptional: Array | None, mmXScaleOptional: Array | None,
    mmWeightScaleOptional: Array | None, sendCounts: tuple[int, ...], transGmmWeight: bool,
    transMmWeight: bool, permuteOutFlag: bool,
) -> tuple[Array | None, ...]:  # fmt: skip
    y, shared = from_experts_quantised(
        gmmX, gmmWeight, gmmXScale, gmmWeightScale, mmXOptional, mmWeightOptional,
        mmXScaleOptional, mmWeightScaleOptional, sendCounts, transGmmWeight,
        transMmWeight)  # fmt: skip
    return y, shared, gmmX if permuteOutFlag else None


def _silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


_ACTIVATIONS: Final = (
    lambda x: x,
    lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    _silu,
    lambda x: np.maximum(x, 0),
    lambda x: x / (1 + np.exp(-1.702 * x)),
)
_SHARDED: Final = Rule("gradient", "torch_npu's documents of experts' products with gathered "
                       "tokens: all-to-all, gather, batched product, activation, and the way back",
                       specials=False)  # fmt: skip
_BATCH: Final = sizes(E=experts(3, 1, 8), M=rows(4, 1, 3, 33), K=row(8, 1, 33, 260, 1041),
                      N=column(5, 1, 33))  # fmt: skip
_BATCHES: Final[dict[str, Domain]] = {
    "x": tensor("E M K"), "weight": tensor("E K N"), "bias": optional(tensor("E 1 N")),
    **{n: only(OWN_GROUP, RANKS) for n in ("groupEp", "groupTp")},
    **{n: only(1, RANKS) for n in ("epWorldSize", "tpWorldSize")},
    **{n: ignored(RANKS, choice(0, 1)) for n in ("xShardType", "yShardType")},
    "actType": choice(0, 1, 2, 3, 4), "y1Out": out("x"), "y2Out": out("x"), "y3Out": out("x"),
    "out": out("x"),
}  # fmt: skip
_BATCH_TYPES: Final = dtypes("""x    weight biasOptional
                                f16  f16    f16
                                bf16 bf16   f32""")


@spec("aclnnAlltoAllAllGatherBatchMatMul", _SHARDED, _BATCH, _BATCH_TYPES,
      **ordered("x weight biasOptional groupEp groupTp epWorldSize tpWorldSize xShardType "
                "actType y1Out y2OutOptional y3OutOptional", _BATCHES))  # fmt: skip
def gathered_experts(
    x: Array, weight: Array, biasOptional: Array | None, actType: int
) -> tuple[Array, Array, Array]:
    plain = plus(x @ weight, biasOptional)
    return _ACTIVATIONS[actType](plain), x, plain


@spec("aclnnBatchMatMulReduceScatterAlltoAll", _SHARDED, _BATCH, _BATCH_TYPES,
      **ordered("x weight biasOptional groupEp groupTp epWorldSize tpWorldSize yShardType out",
                _BATCHES))  # fmt: skip
def scattered_experts(x: Array, weight: Array, biasOptional: Array | None) -> Array:
    return plus(x @ weight, biasOptional)


_ORIENTATION: Final = only(False, "documents allow a plain x1")
_FLAT: Final = sizes(M=rows(4, 1, 3, 33, 130), K=row(32, 1, 33, 260, 1041),
                     N=column(6, 1, 33, 130))  # fmt: skip
_PLAIN: Final[dict[str, Domain]] = {
    **COMMON, "x1": tensor("M K", "f16 bf16"), "bias": optional(tensor("N", "x1")),
    "x2": _matrix("transposeX2", "", "K", "N", "x1"),
    "transposeX1": _ORIENTATION, "transposeX2": flag(), "output": out("x1"),
    "alltoAllOut": out("x1"),
}  # fmt: skip
_PRODUCT: Final = replace(_RULE, cost="2*M*K*N")


@spec("aclnnAlltoAllMatmulV2 aclnnAlltoAllMatmul", _PRODUCT, _FLAT,
      **ordered("x1 x2 biasOptional alltoAllAxesOptional group commMode transposeX1 "
                "transposeX2 output alltoAllOutOptional", _PLAIN,
                {"alltoAllAxes": only((-2, -1), "documents allow this order")}))  # fmt: skip
def product_after_exchange(
    x1: Array, x2: Array, biasOptional: Array | None, transposeX2: bool
) -> tuple[Array, Array]:
    return plus(x1 @ _oriented(x2, transposeX2), biasOptional), x1


@spec("aclnnMatmulAlltoAllV2 aclnnMatmulAlltoAll", _PRODUCT, _FLAT,
      **ordered("x1 x2 biasOptional alltoAllAxesOptional group commMode transposeX1 "
                "transposeX2 output", _PLAIN,
                {"alltoAllAxes": only((-1, -2), "documents allow this order")}))  # fmt: skip
def product_before_exchange(
    x1: Array, x2: Array, biasOptional: Array | None, transposeX2: bool
) -> Array:
    return plus(x1 @ _oriented(x2, transposeX2), biasOptional)


_NOT_READ: Final = null("of modes that documents do not list")
_COLUMNS: Final[dict[str, Domain]] = {
    **_PLAIN, "bias": optional(tensor("N", "f32")),
    **dict.fromkeys(("commScale", "x1Offset", "x2Offset"), _NOT_READ),
    "x2Scale": tensor("N", "f32", 0.005, 0.05),
    **{n: only(0, "documents allow 0") for n in ("commQuantMode", "commQuantDtype")},
}  # fmt: skip


@spec("aclnnAlltoAllQuantMatmulV2 aclnnAlltoAllQuantMatmul", _PRODUCT, _FLAT,
      dtypes("""x1       x2 output
                f16      i8 f16
                bf16     i8 bf16
                f16|bf16 i8 f32"""),
      **ordered("x1 x2 biasOptional x1ScaleOptional x2Scale commScaleOptional x1OffsetOptional "
                "x2OffsetOptional group commMode alltoAllAxesOptional x1QuantMode x2QuantMode "
                "commQuantMode commQuantDtype x1QuantDtype groupSize transposeX1 transposeX2 "
                "output alltoAllOutOptional", _COLUMNS,
                {"x2": _matrix("transposeX2", "", "K", "N", "i8"),
                 "x1Scale": optional(powers("K", -1, 2)),
                 "alltoAllAxes": only((-2, -1), "documents allow this order"),
                 "x1QuantMode": only(7, "rows of floats are quantised by their peaks"),
                 "x2QuantMode": only(2, "int8 weights have scales of columns"),
                 "x1QuantDtype": only(2, "int8, as the weights"),
                 "output": out("x1")}))  # fmt: skip
def rounded_rows(
    x1: Array, x2: Array, biasOptional: Array | None, x1ScaleOptional: Array | None,
    x2Scale: Array, transposeX2: bool,
) -> tuple[Array, Array]:  # fmt: skip
    """Rows are rounded to int8 by their peaks, in float32, which decides on a number that is half
    way; the bias is added before the scales."""
    x = as_float32(x1 if x1ScaleOptional is None else x1 * x1ScaleOptional)
    scale = np.abs(x).max(-1, keepdims=True) / 127
    steps = np.rint(as_float32(x / as_float32(np.where(scale, scale, 1))))
    y = steps @ _oriented(x2, transposeX2)
    return plus(y, biasOptional) * scale * x2Scale, x1


@spec("aclnnQuantMatmulAlltoAllV2 aclnnQuantMatmulAlltoAll", _PRODUCT, _FLAT,
      dtypes("""x1   x2   x1Scale x2Scale output
                i8   i8   f32     f32     f16|bf16|f32
                e4m3 e4m3 f32     f32     f16|f32
                e4m3 e5m2 e8m0    e8m0    bf16|f32"""),
      **ordered("x1 x2 biasOptional x1Scale x2Scale commScaleOptional x1OffsetOptional "
                "x2OffsetOptional alltoAllAxesOptional group commMode x1QuantMode x2QuantMode "
                "commQuantMode commQuantDtype groupSize transposeX1 transposeX2 output",
                _COLUMNS,
                {"x1": tensor("M K", "i8"), "x2": _matrix("transposeX2", "", "K", "N", "x1"),
                 "x1Scale": by("x1Scale.dtype", {
                     "f32": tensor("M", "f32", 0.1, 1),
                     "e8m0": powers("M ceil(K,64) 2", -2, 3, "e8m0")}),
                 "x2Scale": by("x2Scale.dtype", {
                     "f32": tensor("N", "f32", 0.1, 1),
                     "e8m0": by("transposeX2", {
                         False: powers("ceil(K,64) N 2", -2, 3, "e8m0"),
                         True: powers("N ceil(K,64) 2", -2, 3, "e8m0")})}),
                 "alltoAllAxes": only((-1, -2), "documents allow this order"),
                 "x1QuantMode": equals("6 if dtype(x1Scale) == 'float8_e8m0fnu' else 3"),
                 "x2QuantMode": equals("6 if dtype(x2Scale) == 'float8_e8m0fnu' else 2"),
                 "groupSize": equals(f"{_TILE} if dtype(x1Scale) == 'float8_e8m0fnu' else 0"),
                 "output": out("f32")}))  # fmt: skip
def quantised_columns(
    x1: Array, x2: Array, biasOptional: Array | None, x1Scale: Array, x2Scale: Array,
    transposeX2: bool,
) -> Array:  # fmt: skip
    """Scales of rows and columns, behind the bias, or of blocks, before it."""
    if x1Scale.ndim > 1:
        product = _restored(x1, x1Scale) @ _oriented(_restored(x2, x2Scale, transposeX2),
                                                     transposeX2)  # fmt: skip
        return plus(product, biasOptional)
    y = plus(x1.astype(np.float64) @ _oriented(x2, transposeX2), biasOptional)
    return y * x1Scale[:, None] * x2Scale
