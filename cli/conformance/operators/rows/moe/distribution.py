"""Tokens sent to the ranks of their experts, and back."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .....judge.precision import Array
from ...spec import OWN_GROUP, bf16, const, f16, spec, t, take
from .._functions import plus
from .._ignored import follows, one_rank, one_value, reserved

_ROW: Final[dict[str, Any]] = {
    "source": "op-plugin documents npu_moe_distribute_dispatch_v2, npu_moe_distribute_combine_v2",
    "tolerance": "gradient",
    "specials": False,
}
# Tokens of one rank that has all experts: rows in the order of experts, then of tokens.
_IDS: Final = np.array([[1, 2], [2, 0], [0, 1], [2, 1]], np.int32)
_EXPERTS: Final = 3
_HEAD: Final[dict[str, Any]] = {
    "groupEp": OWN_GROUP,
    "epWorldSize": 1,
    "epRankId": 0,
    "moeExpertNum": _EXPERTS,
    "groupTp": "",
    "tpWorldSize": 0,
    "tpRankId": 0,
    "expertShardType": 0,
    "sharedExpertNum": 0,
    "sharedExpertRankNum": 0,
    "globalBs": 4,
    "commAlg": "",
    "zeroExpertNum": 0,
    "copyExpertNum": 0,
    "constExpertNum": 0,
}


def _order(ids: Array) -> Array:
    return np.argsort(ids.reshape(-1), kind="stable")


def _sent(x: Array, expertIds: Array, kind: int) -> tuple[Array, ...]:
    order, flat = _order(expertIds), expertIds.reshape(-1)
    counts = np.bincount(flat, minlength=_EXPERTS)
    rows = x[order // expertIds.shape[1]]
    place = np.array([(flat[:i] == e).sum() for i, e in enumerate(flat)])
    return rows, place, counts if kind else counts.cumsum(), counts.cumsum()


_TOKENS: Final = [
    take(x=f16(4, 32), expertIds=const(_IDS, "int32"), **_HEAD, quantMode=0, expertTokenNumsType=k)
    for k in (0, 1)
]


@spec(
    "aclnnMoeDistributeDispatch",
    "expandX:x expandIdx:int32 expertTokenNums:int64 epRecvCounts:int32",
    ignored=reserved("xActiveMask")
    | one_value("expertShardType")
    | one_rank("sharedExpertNum sharedExpertRankNum tpRecvCounts"),
    uncovered="scales expertScales moeExpertNum quantMode dynamicScales expandScales",
    **{**_ROW, "tolerance": "exact"},
    samples=_TOKENS,
)
def dispatch(x: Array, expertIds: Array, expertTokenNumsType: int) -> tuple[Array, ...]:
    return _sent(x, expertIds, expertTokenNumsType)


@spec(
    "aclnnMoeDistributeDispatchV2 aclnnMoeDistributeDispatchV3 aclnnMoeDistributeDispatchV4",
    "expandXOut:x expertTokenNumsOut:int64 epRecvCountsOut:int32",
    ignored=one_value("expertShardType")
    | one_rank(
        "sharedExpertNum sharedExpertRankNum tpRecvCountsOut "
        "elasticInfoOptional performanceInfoOptional"
    ),
    uncovered="scalesOptional xActiveMaskOptional expertScalesOptional moeExpertNum "
    "quantMode dynamicScalesOut assistInfoForCombineOut expandScalesOut "
    "zeroExpertNum copyExpertNum constExpertNum",
    **{**_ROW, "tolerance": "exact"},
    samples=_TOKENS,
)
def dispatch_v2(x: Array, expertIds: Array, expertTokenNumsType: int) -> tuple[Array, ...]:
    rows, _, per_expert, counts = _sent(x, expertIds, expertTokenNumsType)
    return rows, per_expert, counts


_FLATIDS: Final = _IDS.reshape(-1)
_RESULTS: Final[dict[str, Any]] = {
    "expandX": f16(8, 32),
    "expertIds": const(_IDS, "int32"),
    **_HEAD,
    "outDtype": 0,
    "epSendCounts": const(np.bincount(_FLATIDS, minlength=_EXPERTS).cumsum(), "int32"),
    "expertScales": t(4, 2),
    "commQuantMode": 0,
    "groupListType": 0,
    "groupList_type": 0,
    "expandIdx": const([(_FLATIDS[:i] == e).sum() for i, e in enumerate(_FLATIDS)], "int32"),
    "assistInfoForCombine": const(np.zeros(8 * 128), "int32"),
}


def _weighted(expandX: Array, expertIds: Array, expertScales: Array) -> Array:
    home = np.empty_like(expandX)
    home[_order(expertIds)] = expandX
    return (home.reshape(*expertIds.shape, -1) * expertScales[..., None]).sum(1)


@spec("aclnnMoeDistributeCombineAddRmsNorm aclnnMoeDistributeCombineAddRmsNormV2",
      "yOut:expandX rstdOut:float32 xOut:expandX",
      ignored=reserved("activationScaleOptional weightScaleOptional groupListOptional "
                       "expandScalesOptional outDtype commQuantMode groupListType")
      | one_value("expertShardType sharedExpertNum sharedExpertRankNum")
      | follows("assistInfoForCombine epSendCounts moeExpertNum")
      | one_rank("tpSendCountsOptional elasticInfoOptional"),
      uncovered="xActiveMaskOptional sharedExpertXOptional oriXOptional "
                "constExpertAlpha1Optional constExpertAlpha2Optional constExpertVOptional "
                "zeroExpertNum copyExpertNum constExpertNum",
      **_ROW, samples=[
          take(**{**_RESULTS, "expandX": bf16(8, 32)}, residualX=bf16(4, 1, 32), gamma=bf16(32),
               normEps=1e-5)])  # fmt: skip
def combined_norm(
    expandX: Array, expertIds: Array, expertScales: Array, residualX: Array, gamma: Array,
    normEps: float,
) -> tuple[Array, Array, Array]:  # fmt: skip
    x = _weighted(expandX, expertIds, expertScales).reshape(residualX.shape) + residualX
    rstd = 1 / np.sqrt((x**2).mean(-1, keepdims=True) + normEps)
    return x * rstd * gamma, rstd, x


spec(
    "aclnnMoeDistributeCombine",
    "x:expandX",
    ignored=reserved("xActiveMask activationScale weightScale groupList outDtype groupListType")
    | one_value("expertShardType")
    | follows("expandIdx epSendCounts moeExpertNum")
    | one_rank("tpSendCounts sharedExpertNum sharedExpertRankNum commQuantMode"),
    uncovered="expandScales",
    **_ROW,
    samples=[take(**_RESULTS)],
)(lambda expandX, expertIds, expertScales: _weighted(expandX, expertIds, expertScales))
spec(
    "aclnnMoeDistributeCombineV2 aclnnMoeDistributeCombineV3 aclnnMoeDistributeCombineV4",
    "xOut:expandX",
    ignored=reserved(
        "activationScaleOptional weightScaleOptional groupListOptional outDtype groupListType"
    )
    | one_value("expertShardType")
    | follows("assistInfoForCombine epSendCounts moeExpertNum")
    | one_rank(
        "tpSendCountsOptional sharedExpertNum sharedExpertRankNum commQuantMode "
        "elasticInfoOptional performanceInfoOptional"
    ),
    uncovered="xActiveMaskOptional expandScalesOptional oriXOptional "
    "constExpertAlpha1Optional constExpertAlpha2Optional constExpertVOptional "
    "zeroExpertNum copyExpertNum constExpertNum",
    **_ROW,
    samples=[take(**_RESULTS, sharedExpertXOptional=s) for s in (None, f16(4, 32))],
)(
    lambda expandX, expertIds, expertScales, sharedExpertXOptional: plus(
        _weighted(expandX, expertIds, expertScales), sharedExpertXOptional
    )
)
