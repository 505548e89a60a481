"""Products whose operands or results go between ranks: by experts, by columns, in groups.

Judged on a communicator of one rank, where an exchange gives back what it took and sorting by
experts is all that is left of routing; what several ranks send, the simulator's tests compare.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import OWN_GROUP, given, spec, t, take

_PAGES: Final = (
    "op-plugin documents npu_alltoallv_gmm, npu_gmm_alltoallv, npu_alltoallv_quant_gmm, "
    "npu_quant_gmm_alltoallv, npu_all_to_all_quant_matmul, npu_quant_matmul_all_to_all, "
    "npu_mm_all_reduce_base and tests of their names"
)
_ROW: Final[dict[str, Any]] = {"family": "collective", "source": _PAGES, "tolerance": "gradient",
                               "specials": False}  # fmt: skip
_INT8: Final[dict[str, Any]] = {**_ROW, "dtypes": ("int8",)}


def _h(*shape: int, **more: Any) -> Arg:
    return t(*shape, dtype="float16", **more)


def _i(*shape: int) -> Arg:
    return t(*shape, dtype="int8", low=-8, high=8)


def _e4m3(*shape: int) -> Arg:
    return given((np.arange(np.prod(shape)) * 7 % 11 - 5).reshape(shape), "float8_e4m3fn")


def _turned(w: Array, transposed: bool) -> Array:
    return (w.swapaxes(-1, -2) if transposed else w).astype(np.float64)


def _weight(arg: Any, shape: tuple[int, ...], transposed: bool) -> Arg:
    return arg(*shape[:-2], shape[-1], shape[-2]) if transposed else arg(*shape)


def _plus(y: Array, *more: Array | None) -> Array:
    for one in more:
        y = y if one is None else y + one
    return y


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


@spec("aclnnAlltoAllvGroupedMatMul aclnnAlltoAllvGroupedMatMulV2",
      "gmmY:gmmX mmYOptional:gmmX permuteOutOptional:gmmX", **_ROW,
      samples=[take(**_experts(_h, *k), permuteOutFlag=k[1]) for k in _KINDS])  # fmt: skip
def to_experts(
    gmmX: Array, gmmWeight: Array, mmXOptional: Array | None, mmWeightOptional: Array | None,
    sendCounts: tuple[int, ...], transGmmWeight: bool, transMmWeight: bool, permuteOutFlag: bool,
) -> tuple[Array | None, ...]:  # fmt: skip
    y, shared = from_experts(gmmX, gmmWeight, mmXOptional, mmWeightOptional, sendCounts,
                             transGmmWeight, transMmWeight)  # fmt: skip
    return y, shared, gmmX if permuteOutFlag else None


@spec("aclnnGroupedMatMulAlltoAllv aclnnGroupedMatMulAlltoAllvV2", "y:gmmX mmYOptional:gmmX",
      **_ROW, samples=[take(**_experts(_h, *k)) for k in _KINDS])  # fmt: skip
def from_experts(
    gmmX: Array, gmmWeight: Array, mmXOptional: Array | None, mmWeightOptional: Array | None,
    sendCounts: tuple[int, ...], transGmmWeight: bool, transMmWeight: bool,
) -> tuple[Array, Array | None]:  # fmt: skip
    shared = None
    if mmXOptional is not None and mmWeightOptional is not None:
        shared = mmXOptional.astype(np.float64) @ _turned(mmWeightOptional, transMmWeight)
    return _by_expert(gmmX, sendCounts, _turned(gmmWeight, transGmmWeight)), shared


def _scaled(kind: Any) -> dict[str, Any]:
    """Quantised tokens: one scale for all of an operand."""
    one: dict[str, Any] = {"gmmXScale": t(1, low=0.5), "gmmWeightScale": t(1, low=0.5),
                           "gmmXQuantMode": 1, "gmmWeightQuantMode": 1, "mmXQuantMode": 0,
                           "mmWeightQuantMode": 0, "groupSize": 0, "commQuantMode": 0,
                           "commQuantDtypeOptional": 0}  # fmt: skip
    if kind[1]:
        one |= {"mmXScaleOptional": t(1, low=0.5), "mmWeightScaleOptional": t(1, low=0.5),
                "mmXQuantMode": 1, "mmWeightQuantMode": 1}  # fmt: skip
    return {**_experts(_e4m3, *kind), **one}


def _shared_scale(first: Array | None, second: Array | None) -> Any:
    return 1 if first is None or second is None else first * second


@spec("aclnnAlltoAllvQuantGroupedMatMul aclnnAlltoAllvQuantGroupedMatMulV2",
      "gmmY:float16 mmYOptional:float16 permuteOutOptional:gmmX", **_ROW,
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
      "y:float16 mmYOptional:float16", **_ROW,
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
      **_ROW, samples=[
          take(x1=_h(4, 8), x2=_weight(_i, (8, 6), turned), biasOptional=t(6) if turned else None,
               x1ScaleOptional=t(8, low=0.5) if turned else None, x2Scale=t(6, low=0.01),
               alltoAllAxesOptional=(-2, -1), x1QuantMode=7, x2QuantMode=2, x1QuantDtype=2,
               transposeX2=turned, **_COLUMNS) for turned in (False, True)])  # fmt: skip
def rounded_rows(
    x1: Array, x2: Array, biasOptional: Array | None, x1ScaleOptional: Array | None,
    x2Scale: Array, transposeX2: bool,
) -> tuple[Array, Array]:  # fmt: skip
    """Rows are rounded to int8 by their peaks; the bias is added before the scales."""
    x = x1 if x1ScaleOptional is None else x1 * x1ScaleOptional
    scale = np.abs(x).max(-1, keepdims=True) / 127
    y = np.rint(x / np.where(scale, scale, 1)) @ _turned(x2, transposeX2)
    return _plus(y, biasOptional) * scale * x2Scale, x1


@spec("aclnnQuantMatmulAlltoAll aclnnQuantMatmulAlltoAllV2", "output:float32", **_INT8, samples=[
    take(x1=kind(4, 8), x2=_weight(kind, (8, 6), turned), biasOptional=t(6) if turned else None,
         x1Scale=t(4, low=0.1), x2Scale=t(6, low=0.1), alltoAllAxesOptional=(-1, -2),
         x1QuantMode=3, x2QuantMode=2, transposeX2=turned, **_COLUMNS)
    for kind in (_i, _e4m3) for turned in (False, True)])  # fmt: skip
def quantised_columns(
    x1: Array, x2: Array, biasOptional: Array | None, x1Scale: Array, x2Scale: Array,
    transposeX2: bool,
) -> Array:  # fmt: skip
    y = _plus(x1.astype(np.float64) @ _turned(x2, transposeX2), biasOptional)
    return y * x1Scale[:, None] * x2Scale


_POWERS: Final = np.exp2(np.arange(4 * 4) % 5 - 2.0)


@spec("aclnnQuantAllReduce aclnnQuantReduceScatter", "output:float32", **_ROW, samples=[
    take(x=_e4m3(4, 128), scales=given(_POWERS.reshape(4, 2, 2), "float8_e8m0fnu"),
         group=OWN_GROUP, reduceOp="sum")])  # fmt: skip
def restored_sum(x: Array, scales: Array) -> Array:
    """Each power of two belongs to 32 elements of a row."""
    return x * np.repeat(scales.reshape(len(x), -1), 32, -1)


def _silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


_ACTIVATIONS: Final = (
    lambda x: x,
    lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    _silu,
    lambda x: np.maximum(x, 0),
    lambda x: x / (1 + np.exp(-1.702 * x)),
)
_TWO: Final[dict[str, Any]] = {"groupEp": OWN_GROUP, "groupTp": OWN_GROUP, "epWorldSize": 1,
                               "tpWorldSize": 1}  # fmt: skip
_SHARDED: Final = {
    **_ROW,
    "source": "torch_npu's documents of experts' products with gathered "
    "tokens: all-to-all, gather, batched product, activation, and the way back",
}


@spec("aclnnAlltoAllAllGatherBatchMatMul", "y1Out:x y2OutOptional:x y3OutOptional:x", **_SHARDED,
      samples=[
          take(x=_h(3, 4, 8), weight=_h(3, 8, 5), biasOptional=_h(3, 1, 5) if a % 2 else None,
               xShardType=a % 2, actType=a, **_TWO) for a in range(5)])  # fmt: skip
def gathered_experts(
    x: Array, weight: Array, biasOptional: Array | None, actType: int
) -> tuple[Array, Array, Array]:
    plain = _plus(x @ weight, biasOptional)
    return _ACTIVATIONS[actType](plain), x, plain


@spec("aclnnBatchMatMulReduceScatterAlltoAll", "out:x", **_SHARDED, samples=[
    take(x=_h(3, 4, 8), weight=_h(3, 8, 5), biasOptional=_h(3, 1, 5) if s else None, yShardType=s,
         **_TWO) for s in (0, 1)])  # fmt: skip
def scattered_experts(x: Array, weight: Array, biasOptional: Array | None) -> Array:
    return _plus(x @ weight, biasOptional)


_SUM: Final[dict[str, Any]] = {"group": OWN_GROUP, "reduceOp": "sum", "commTurn": 0,
                               "streamMode": 1, "commMode": ""}  # fmt: skip


@spec("aclnnGroupedMatMulAllReduce", "y:x", **_ROW, casts={"bias": {"bfloat16": "float32"}},
      samples=[
    take(x=[_h(4, 8), _h(3, 5)], weight=[_h(8, 6), _h(5, 2)], bias=b, splitItem=0, **_SUM)
    for b in ([_h(6), _h(2)], [])] + [
    take(x=[_h(2, 3)] * 66, weight=[_h(3, 2)] * 66, bias=[], splitItem=0, **_SUM)])  # fmt: skip
def reduced_members(x: list[Array], weight: list[Array], bias: list[Array]) -> list[Array]:
    products = [a @ w for a, w in zip(x, weight, strict=True)]
    return [_plus(y, *bias[n : n + 1]) for n, y in enumerate(products)]


@spec("aclnnQuantMatmulAllReduceV4 aclnnQuantMatmulAllReduceV5", "output:bfloat16", **_INT8,
      samples=[
          take(x1=_i(4, 8), x2=_i(8, 6), x3Optional=x, x1ScaleOptional=s, groupSize=0,
               biasOptional=t(6, dtype="int32", low=-9, high=9) if x else None,
               x2Scale=t(6, dtype="float32", low=0.01), commQuantMode=0, **_SUM)
          for x, s in ((None, None), (t(4, 6, dtype="bfloat16"), t(4, low=0.5)))] + [
          take(x1=_i(2, 8), x2=_i(8, 6), x3Optional=None, x1ScaleOptional=t(2, low=0.5),
               groupSize=0, biasOptional=None, x2Scale=t(6, dtype="float32", low=0.01),
               commQuantMode=0, **_SUM)])  # fmt: skip
def quantised_sum(
    x1: Array, x2: Array, biasOptional: Array | None, x3Optional: Array | None,
    x1ScaleOptional: Array | None, x2Scale: Array,
) -> Array:  # fmt: skip
    y = _plus(x1.astype(np.float64) @ x2, biasOptional) * x2Scale
    return _plus(y if x1ScaleOptional is None else y * x1ScaleOptional[:, None], x3Optional)
