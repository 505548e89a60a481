"""Products and sums over ranks by all-to-all."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from .....judge.precision import Array
from .....spec import (
    Rule,
    by,
    choice,
    column,
    dtypes,
    experts,
    flag,
    ignored,
    only,
    optional,
    out,
    row,
    rows,
    sizes,
    tensor,
)  # fmt: skip
from .....spec.domains import Domain
from ...declare import declare
from ...spec import OWN_GROUP, const, f16, i8, spec, t, take
from .._functions import plus
from .._ignored import RANKS, follows, reserved
from .gather import COMMON, ordered

_PAGES: Final = (
    "op-plugin documents npu_alltoallv_gmm, npu_gmm_alltoallv, npu_alltoallv_quant_gmm, "
    "npu_quant_gmm_alltoallv, npu_all_to_all_quant_matmul, npu_quant_matmul_all_to_all, "
    "npu_mm_all_reduce_base and tests of their names"
)
ROW: Final[dict[str, Any]] = {"source": _PAGES, "tolerance": "gradient",
                              "specials": False}  # fmt: skip
INT8: Final[dict[str, Any]] = {**ROW, "dtypes": ("int8",)}


def e4m3(*shape: int) -> Arg:
    return const((np.arange(np.prod(shape)) * 7 % 11 - 5).reshape(shape), "float8_e4m3fn")


def _oriented(w: Array, transposed: bool) -> Array:
    return (w.swapaxes(-1, -2) if transposed else w).astype(np.float64)


def _weight(arg: Any, shape: tuple[int, ...], transposed: bool) -> Arg:
    return arg(*shape[:-2], shape[-1], shape[-2]) if transposed else arg(*shape)


# Tokens of one rank for three experts, one of which may have none.
_COUNTS: Final = ((3, 1, 2), (0, 4, 2))


def _by_expert(x: Array, counts: tuple[int, ...], weight: Array) -> Array:
    parts = np.split(x.astype(np.float64), np.cumsum(counts)[:-1])
    return np.concatenate([part @ w for part, w in zip(parts, weight, strict=True)])


def _experts(small: Any, flags: tuple[bool, bool], shared: bool, counts: tuple[int, ...]) -> Any:
    gmm, mm = flags
    return {
        "gmmX": small(6, 8), "gmmWeight": _weight(small, (3, 8, 5), gmm),
        "mmXOptional": small(4, 8) if shared else None,
        "mmWeightOptional": _weight(small, (8, 3), mm) if shared else None, "group": OWN_GROUP,
        "commMode": "", "epWorldSize": 1, "sendCounts": counts, "recvCounts": counts,
        "transGmmWeight": gmm, "transMmWeight": mm,
    }  # fmt: skip


_KINDS: Final = [((False, False), True, _COUNTS[0]), ((True, True), True, _COUNTS[1]),
                 ((False, True), False, _COUNTS[1])]  # fmt: skip


@spec("aclnnGroupedMatMulAlltoAllv aclnnGroupedMatMulAlltoAllvV2", "y:gmmX mmYOptional:gmmX",
      ignored=reserved("sendCountsTensorOptional recvCountsTensorOptional")
      | follows("recvCounts"),
      **ROW, samples=[take(**_experts(f16, *k)) for k in _KINDS])  # fmt: skip
def from_experts(
    gmmX: Array, gmmWeight: Array, mmXOptional: Array | None, mmWeightOptional: Array | None,
    sendCounts: tuple[int, ...], transGmmWeight: bool, transMmWeight: bool,
) -> tuple[Array, Array | None]:  # fmt: skip
    shared = None
    if mmXOptional is not None and mmWeightOptional is not None:
        shared = mmXOptional.astype(np.float64) @ _oriented(mmWeightOptional, transMmWeight)
    return _by_expert(gmmX, sendCounts, _oriented(gmmWeight, transGmmWeight)), shared


@spec("aclnnAlltoAllvGroupedMatMul aclnnAlltoAllvGroupedMatMulV2",
      "gmmY:gmmX mmYOptional:gmmX permuteOutOptional:gmmX",
      ignored=reserved("sendCountsTensorOptional recvCountsTensorOptional")
      | follows("recvCounts"),
      **ROW,
      samples=[take(**_experts(f16, *k), permuteOutFlag=k[1]) for k in _KINDS])  # fmt: skip
def to_experts(
    gmmX: Array, gmmWeight: Array, mmXOptional: Array | None, mmWeightOptional: Array | None,
    sendCounts: tuple[int, ...], transGmmWeight: bool, transMmWeight: bool, permuteOutFlag: bool,
) -> tuple[Array | None, ...]:  # fmt: skip
    y, shared = from_experts(gmmX, gmmWeight, mmXOptional, mmWeightOptional, sendCounts,
                             transGmmWeight, transMmWeight)  # fmt: skip
    return y, shared, gmmX if permuteOutFlag else None


def _scaled(kind: Any) -> dict[str, Any]:
    """Quantised tokens: one scale for all of an operand."""
    one: dict[str, Any] = {"gmmXScale": t(1, low=0.5), "gmmWeightScale": t(1, low=0.5),
                           "gmmXQuantMode": 1, "gmmWeightQuantMode": 1, "mmXQuantMode": 0,
                           "mmWeightQuantMode": 0, "groupSize": 0, "commQuantMode": 0,
                           "commQuantDtypeOptional": 0}  # fmt: skip
    if kind[1]:
        one |= {"mmXScaleOptional": t(1, low=0.5), "mmWeightScaleOptional": t(1, low=0.5),
                "mmXQuantMode": 1, "mmWeightQuantMode": 1}  # fmt: skip
    return {**_experts(e4m3, *kind), **one}


def _shared_scale(first: Array | None, second: Array | None) -> Any:
    return 1 if first is None or second is None else first * second


@spec("aclnnAlltoAllvQuantGroupedMatMul aclnnAlltoAllvQuantGroupedMatMulV2",
      "gmmY:float16 mmYOptional:float16 permuteOutOptional:gmmX",
      ignored=reserved("sendCountsTensorOptional recvCountsTensorOptional")
      | follows("recvCounts"),
      uncovered="gmmXQuantMode gmmWeightQuantMode mmXQuantMode mmWeightQuantMode groupSize",
      **ROW,
      samples=[take(**_scaled(k), permuteOutFlag=k[1]) for k in _KINDS])  # fmt: skip
def to_experts_quantised(
    gmmX: Array, gmmWeight: Array, gmmXScale: Array, gmmWeightScale: Array,
    mmXOptional: Array | None, mmWeightOptional: Array | None, mmXScaleOptional: Array | None,
    mmWeightScaleOptional: Array | None, sendCounts: tuple[int, ...], transGmmWeight: bool,
    transMmWeight: bool, permuteOutFlag: bool,
) -> tuple[Array | None, ...]:  # fmt: skip
    y, shared, rows = to_experts(gmmX, gmmWeight, mmXOptional, mmWeightOptional, sendCounts,
                                 transGmmWeight, transMmWeight, permuteOutFlag)  # fmt: skip
    scale = _shared_scale(mmXScaleOptional, mmWeightScaleOptional)
    return (None if y is None else y * gmmXScale * gmmWeightScale,
            None if shared is None else shared * scale, rows)  # fmt: skip


@spec("aclnnQuantGroupedMatMulAlltoAllv aclnnQuantGroupedMatMulAlltoAllvV2",
      "y:float16 mmYOptional:float16",
      ignored=reserved("sendCountsTensorOptional recvCountsTensorOptional")
      | follows("recvCounts"),
      uncovered="commQuantScaleOptional gmmXQuantMode gmmWeightQuantMode mmXQuantMode "
                "mmWeightQuantMode commQuantMode commQuantDtypeOptional groupSize",
      **ROW,
      samples=[take(**_scaled(k)) for k in _KINDS])  # fmt: skip
def from_experts_quantised(
    gmmX: Array, gmmWeight: Array, gmmXScale: Array, gmmWeightScale: Array,
    mmXOptional: Array | None, mmWeightOptional: Array | None, mmXScaleOptional: Array | None,
    mmWeightScaleOptional: Array | None, sendCounts: tuple[int, ...], transGmmWeight: bool,
    transMmWeight: bool,
) -> tuple[Array, Array | None]:  # fmt: skip
    y, shared = from_experts(gmmX, gmmWeight, mmXOptional, mmWeightOptional, sendCounts,
                             transGmmWeight, transMmWeight)  # fmt: skip
    scale = _shared_scale(mmXScaleOptional, mmWeightScaleOptional)
    return y * gmmXScale * gmmWeightScale, None if shared is None else shared * scale


_COLUMNS: Final[dict[str, Any]] = {"group": OWN_GROUP, "commMode": "", "commQuantMode": 0,
                                   "commQuantDtype": 0, "groupSize": 0,
                                   "transposeX1": False}  # fmt: skip


@spec("aclnnAlltoAllQuantMatmul aclnnAlltoAllQuantMatmulV2", "output:x1 alltoAllOutOptional:x1",
      uncovered="commScaleOptional x1OffsetOptional x2OffsetOptional alltoAllAxesOptional "
                "x1QuantMode x2QuantMode commQuantMode commQuantDtype x1QuantDtype groupSize "
                "transposeX1",
      **ROW, samples=[
          take(x1=f16(4, 8), x2=_weight(i8, (8, 6), swap), biasOptional=t(6) if swap else None,
               x1ScaleOptional=t(8, low=0.5) if swap else None, x2Scale=t(6, low=0.01),
               alltoAllAxesOptional=(-2, -1), x1QuantMode=7, x2QuantMode=2, x1QuantDtype=2,
               transposeX2=swap, **_COLUMNS) for swap in (False, True)])  # fmt: skip
def rounded_rows(
    x1: Array, x2: Array, biasOptional: Array | None, x1ScaleOptional: Array | None,
    x2Scale: Array, transposeX2: bool,
) -> tuple[Array, Array]:  # fmt: skip
    """Rows are rounded to int8 by their peaks; the bias is added before the scales."""
    x = x1 if x1ScaleOptional is None else x1 * x1ScaleOptional
    scale = np.abs(x).max(-1, keepdims=True) / 127
    y = np.rint(x / np.where(scale, scale, 1)) @ _oriented(x2, transposeX2)
    return plus(y, biasOptional) * scale * x2Scale, x1


@spec("aclnnQuantMatmulAlltoAll aclnnQuantMatmulAlltoAllV2", "output:float32",
      uncovered="commScaleOptional x1OffsetOptional x2OffsetOptional alltoAllAxesOptional "
                "x1QuantMode x2QuantMode commQuantMode commQuantDtype groupSize transposeX1",
      **INT8, samples=[
    take(x1=kind(4, 8), x2=_weight(kind, (8, 6), swap), biasOptional=t(6) if swap else None,
         x1Scale=t(4, low=0.1), x2Scale=t(6, low=0.1), alltoAllAxesOptional=(-1, -2),
         x1QuantMode=3, x2QuantMode=2, transposeX2=swap, **_COLUMNS)
    for kind in (i8, e4m3) for swap in (False, True)])  # fmt: skip
def quantised_columns(
    x1: Array, x2: Array, biasOptional: Array | None, x1Scale: Array, x2Scale: Array,
    transposeX2: bool,
) -> Array:  # fmt: skip
    y = plus(x1.astype(np.float64) @ _oriented(x2, transposeX2), biasOptional)
    return y * x1Scale[:, None] * x2Scale


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


@declare("aclnnAlltoAllAllGatherBatchMatMul", _SHARDED, _BATCH, _BATCH_TYPES,
         **ordered("x weight biasOptional groupEp groupTp epWorldSize tpWorldSize xShardType "
                   "actType y1Out y2OutOptional y3OutOptional", _BATCHES))  # fmt: skip
def gathered_experts(
    x: Array, weight: Array, biasOptional: Array | None, actType: int
) -> tuple[Array, Array, Array]:
    plain = plus(x @ weight, biasOptional)
    return _ACTIVATIONS[actType](plain), x, plain


@declare("aclnnBatchMatMulReduceScatterAlltoAll", _SHARDED, _BATCH, _BATCH_TYPES,
         **ordered("x weight biasOptional groupEp groupTp epWorldSize tpWorldSize yShardType out",
                   _BATCHES))  # fmt: skip
def scattered_experts(x: Array, weight: Array, biasOptional: Array | None) -> Array:
    return plus(x @ weight, biasOptional)


_ORIENTATION: Final = only(False, "documents allow a plain x1")
_FLAT: Final = sizes(M=rows(4, 1, 3, 33, 130), K=row(32, 1, 33, 260, 1041),
                     N=column(6, 1, 33, 130))  # fmt: skip
_PLAIN: Final[dict[str, Domain]] = {
    **COMMON, "x1": tensor("M K", "f16 bf16"), "bias": optional(tensor("N", "x1")),
    "x2": by("transposeX2", {False: tensor("K N", "x1"), True: tensor("N K", "x1")}),
    "transposeX1": _ORIENTATION, "transposeX2": flag(), "output": out("x1"),
    "alltoAllOut": out("x1"),
}  # fmt: skip
_PRODUCT: Final = Rule("gradient", _PAGES, specials=False, cost="2*M*K*N")


@declare("aclnnAlltoAllMatmulV2 aclnnAlltoAllMatmul", _PRODUCT, _FLAT,
         **ordered("x1 x2 biasOptional alltoAllAxesOptional group commMode transposeX1 "
                   "transposeX2 output alltoAllOutOptional", _PLAIN,
                   {"alltoAllAxes": only((-2, -1), "documents allow this order")}))  # fmt: skip
def product_after_exchange(
    x1: Array, x2: Array, biasOptional: Array | None, transposeX2: bool
) -> tuple[Array, Array]:
    return plus(x1 @ _oriented(x2, transposeX2), biasOptional), x1


@declare("aclnnMatmulAlltoAllV2 aclnnMatmulAlltoAll", _PRODUCT, _FLAT,
         **ordered("x1 x2 biasOptional alltoAllAxesOptional group commMode transposeX1 "
                   "transposeX2 output", _PLAIN,
                   {"alltoAllAxes": only((-1, -2), "documents allow this order")}))  # fmt: skip
def product_before_exchange(
    x1: Array, x2: Array, biasOptional: Array | None, transposeX2: bool
) -> Array:
    return plus(x1 @ _oriented(x2, transposeX2), biasOptional)
