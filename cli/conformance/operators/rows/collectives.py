"""Products joined with collectives, judged on a communicator of one rank.

What is exchanged comes back as it was: products, scales, biases and norms are what is left of the
formula. What ranks send to each other, the simulator's own tests compare over several of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import OWN_GROUP, given, spec, t, take

_PAGES: Final = (
    "op-plugin documents npu_mm_all_reduce_base, npu_all_gather_base_mm, "
    "npu_mm_reduce_scatter_base, npu_alltoallv_gmm, npu_gmm_alltoallv, "
    "npu_moe_distribute_dispatch_v2, npu_moe_distribute_combine_v2"
)
_ROW: Final[dict[str, Any]] = {
    "family": "collective",
    "source": _PAGES,
    "tolerance": "gradient",
    "specials": False,
}
_HALVES: Final = ("float16", "bfloat16")


def _h(*shape: int, **more: Any) -> Arg:
    return t(*shape, dtype="float16", **more)


def _b(*shape: int) -> Arg:
    return t(*shape, dtype="bfloat16")


def _i(*shape: int) -> Arg:
    return t(*shape, dtype="int8", low=-8, high=8)


def _plus(y: Array, *more: Array | None) -> Array:
    for one in more:
        y = y if one is None else y + one
    return y


_PAIRS: Final = [
    {"x1": _h(4, 8), "x2": _h(8, 6)},
    {"x1": _h(1, 32), "x2": _h(32, 16)},
    {"x1": _h(2, 3, 8), "x2": _h(8, 5)},
]
_FLAT: Final = [p for p in _PAIRS if len(p["x1"].shape) == 2]
_SUM: Final[dict[str, Any]] = {
    "group": OWN_GROUP,
    "reduceOp": "sum",
    "commTurn": 0,
    "streamMode": 1,
    "commMode": "",
}


def _bias(pair: Mapping[str, Arg]) -> Arg:
    return _h(pair["x2"].shape[-1])


def _shape(pair: Mapping[str, Arg]) -> tuple[int, ...]:
    return (*pair["x1"].shape[:-1], pair["x2"].shape[-1])


spec(
    "aclnnMatmulAllReduce",
    "output:x1",
    **_ROW,
    samples=[take(**p, **_SUM, bias=b) for p in _PAIRS for b in (None, _bias(p))],
)(lambda x1, x2, bias: _plus(x1 @ x2, bias))
spec(
    "aclnnMatmulAllReduceV2 aclnnMatmulAllReduceV3",
    "output:x1",
    **_ROW,
    samples=[
        take(**p, **_SUM, bias=b, x3=x)
        for p in _PAIRS
        for b, x in ((None, None), (_bias(p), None), (None, _h(*_shape(p))))
    ],
)(lambda x1, x2, bias, x3: _plus(x1 @ x2, bias, x3))
spec(
    "aclnnMatmulReduceScatter aclnnMatmulReduceScatterV2",
    "output:x1",
    **_ROW,
    dtypes=_HALVES,
    samples=[
        take(
            **p,
            **_SUM,
            bias=b,
            x1Scale=None,
            x2Scale=None,
            quantScale=None,
            blockSize=0,
            groupSize=0,
        )
        for p in _FLAT
        for b in (None, _bias(p))
    ],
)(lambda x1, x2, bias: _plus(x1 @ x2, bias))
spec(
    "aclnnAllGatherMatmul aclnnAllGatherMatmulV2",
    "output:x1 gatherOut:x1",
    **_ROW,
    dtypes=_HALVES,
    samples=[
        take(
            **p,
            group=OWN_GROUP,
            gatherIndex=0,
            commTurn=0,
            streamMode=1,
            commMode="",
            bias=b,
            x1Scale=None,
            x2Scale=None,
            quantScale=None,
            blockSize=0,
            groupSize=0,
        )
        for p in _FLAT
        for b in (None, _bias(p))
    ],
)(lambda x1, x2, bias: (_plus(x1 @ x2, bias), x1))
spec(
    "aclnnAlltoAllMatmul aclnnAlltoAllMatmulV2",
    "output:x1 alltoAllOutOptional:x1",
    **_ROW,
    samples=[
        take(
            **p,
            group=OWN_GROUP,
            commMode="",
            biasOptional=b,
            alltoAllAxesOptional=(-2, -1),
            transposeX1=False,
            transposeX2=False,
        )
        for p in _FLAT
        for b in (None, _bias(p))
    ],
)(lambda x1, x2, biasOptional: (_plus(x1 @ x2, biasOptional), x1))
spec(
    "aclnnMatmulAlltoAll aclnnMatmulAlltoAllV2",
    "output:x1",
    **_ROW,
    samples=[
        take(
            **p,
            group=OWN_GROUP,
            commMode="",
            biasOptional=b,
            alltoAllAxesOptional=(-1, -2),
            transposeX1=False,
            transposeX2=False,
        )
        for p in _FLAT
        for b in (None, _bias(p))
    ],
)(lambda x1, x2, biasOptional: _plus(x1 @ x2, biasOptional))


def _normed(y: Array, residual: Array, gamma: Array, epsilon: float) -> tuple[Any, Any]:
    total = y.reshape(residual.shape) + residual
    return total, total / np.sqrt((total**2).mean(-1, keepdims=True) + epsilon) * gamma


_NORMS: Final = [
    {
        **p,
        **_SUM,
        "bias": b,
        "residual": _h(1, *_shape(p)),
        "epsilon": 1e-5,
        "gamma": _h(p["x2"].shape[-1]),
    }
    for p in _FLAT
    for b in (None, _bias(p))
]


@spec(
    "aclnnMatmulAllReduceAddRmsNorm", "y:x1 normOut:x1", **_ROW, samples=[take(**n) for n in _NORMS]
)
def reduced_norm(
    x1: Array, x2: Array, bias: Array | None, residual: Array, gamma: Array, epsilon: float
) -> tuple[Array, ...]:
    return _normed(_plus(x1 @ x2, bias), residual, gamma, epsilon)


spec(
    "aclnnInplaceMatmulAllReduceAddRmsNorm",
    "residual:x1 normOut:x1",
    **_ROW,
    samples=[take(**n) for n in _NORMS],
)(reduced_norm)

_SMALL: Final[dict[str, Any]] = {"x1": _i(4, 8), "x2": _i(8, 6)}
_QUANT: Final = [
    take(
        **_SMALL,
        **_SUM,
        bias=b,
        biasOptional=b,
        x3=x,
        x3Optional=x,
        dequantScale=t(6, dtype="bfloat16", low=0.01),
        **o,
    )
    for b in (None, t(6, dtype="int32", low=-9, high=9))
    for x, o in (
        (None, {}),
        (t(4, 6, dtype="bfloat16"), {}),
        (None, {"pertokenScaleOptional": t(4, low=0.5)}),
    )
] + [
    take(**_SMALL, **_SUM, bias=None, biasOptional=None, x3=None, x3Optional=None,
         dequantScale=t(1, dtype="bfloat16", low=0.01))
]  # fmt: skip
_INT8: Final[dict[str, Any]] = {**_ROW, "dtypes": ("int8",)}
_QUANT_NORMS: Final = [
    take(**_SMALL, **_SUM, bias=b, dequantScale=t(6, dtype="bfloat16", low=0.01),
         residual=t(1, 4, 6, dtype="bfloat16"), gamma=t(6, dtype="bfloat16"), epsilon=1e-5)
    for b in (None, t(6, dtype="int32", low=-9, high=9))
]  # fmt: skip


def quant_reduced_norm(
    x1: Array, x2: Array, bias: Array | None, dequantScale: Array, residual: Array, gamma: Array,
    epsilon: float,
) -> tuple[Array, Array]:  # fmt: skip
    y = _plus(x1.astype(np.float64) @ x2, bias) * dequantScale
    return _normed(y, residual, gamma, epsilon)


spec("aclnnQuantMatmulAllReduceAddRmsNorm", "y:residual normOut:residual", **_INT8,
     samples=_QUANT_NORMS)(quant_reduced_norm)  # fmt: skip
spec("aclnnInplaceQuantMatmulAllReduceAddRmsNorm", "residual:residual normOut:residual", **_INT8,
     samples=_QUANT_NORMS)(quant_reduced_norm)  # fmt: skip


@spec(
    "aclnnQuantMatmulAllReduce",
    "output:bfloat16",
    **_INT8,
    samples=_QUANT[:2] + _QUANT[3:5] + _QUANT[-1:],
)
def quant_reduced(
    x1: Array, x2: Array, bias: Array | None, x3: Array | None, dequantScale: Array
) -> Array:
    y = _plus(x1.astype(np.float64) @ x2, bias) * dequantScale
    return _plus(y, x3)


@spec(
    "aclnnQuantMatmulAllReduceV2 aclnnQuantMatmulAllReduceV3",
    "output:bfloat16",
    **_INT8,
    samples=_QUANT,
)
def quant_reduced_v2(
    x1: Array,
    x2: Array,
    biasOptional: Array | None,
    x3Optional: Array | None,
    dequantScale: Array,
    pertokenScaleOptional: Array | None,
) -> Array:
    y = _plus(x1.astype(np.float64) @ x2, biasOptional) * dequantScale
    y = y if pertokenScaleOptional is None else y * pertokenScaleOptional[:, None]
    return _plus(y, x3Optional)


_WEIGHT: Final = [
    take(
        x1=_h(4, 8),
        x2=_i(8, 6),
        **_SUM,
        bias=b,
        antiquantScale=_h(6, low=0.1),
        x3=x,
        antiquantOffset=o,
        antiquantGroupSize=0,
    )
    for b, o, x in ((None, None, None), (_h(6), _h(6), None), (None, _h(6), _h(4, 6)))
]


@spec(
    "aclnnWeightQuantMatmulAllReduce aclnnWeightQuantMatmulAllReduceV2",
    "output:x1",
    **_ROW,
    samples=_WEIGHT,
)
def weight_reduced(
    x1: Array,
    x2: Array,
    bias: Array | None,
    antiquantScale: Array,
    antiquantOffset: Array | None,
    x3: Array | None,
) -> Array:
    return _plus(x1 @ (_plus(x2, antiquantOffset) * antiquantScale), bias, x3)


@spec(
    "aclnnDistributeBarrier aclnnDistributeBarrierV2",
    "xRef:xRef",
    **{**_ROW, "tolerance": "exact"},
    samples=[take(xRef=t(4, 8), group=OWN_GROUP, worldSize=1)],
)
def barrier(xRef: Array) -> Array:
    return xRef


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
    take(x=_h(4, 32), expertIds=given(_IDS, "int32"), **_HEAD, quantMode=0, expertTokenNumsType=k)
    for k in (0, 1)
]


@spec(
    "aclnnMoeDistributeDispatch",
    "expandX:x expandIdx:int32 expertTokenNums:int64 epRecvCounts:int32",
    **{**_ROW, "tolerance": "exact"},
    samples=_TOKENS,
)
def dispatch(x: Array, expertIds: Array, expertTokenNumsType: int) -> tuple[Array, ...]:
    return _sent(x, expertIds, expertTokenNumsType)


@spec(
    "aclnnMoeDistributeDispatchV2 aclnnMoeDistributeDispatchV3 aclnnMoeDistributeDispatchV4",
    "expandXOut:x expertTokenNumsOut:int64 epRecvCountsOut:int32",
    **{**_ROW, "tolerance": "exact"},
    samples=_TOKENS,
)
def dispatch_v2(x: Array, expertIds: Array, expertTokenNumsType: int) -> tuple[Array, ...]:
    rows, _, per_expert, counts = _sent(x, expertIds, expertTokenNumsType)
    return rows, per_expert, counts


_FLATIDS: Final = _IDS.reshape(-1)
_RESULTS: Final[dict[str, Any]] = {
    "expandX": _h(8, 32),
    "expertIds": given(_IDS, "int32"),
    **_HEAD,
    "outDtype": 0,
    "epSendCounts": given(np.bincount(_FLATIDS, minlength=_EXPERTS).cumsum(), "int32"),
    "expertScales": t(4, 2),
    "commQuantMode": 0,
    "groupListType": 0,
    "groupList_type": 0,
    "expandIdx": given([(_FLATIDS[:i] == e).sum() for i, e in enumerate(_FLATIDS)], "int32"),
    "assistInfoForCombine": given(np.zeros(8 * 128), "int32"),
}


def _weighted(expandX: Array, expertIds: Array, expertScales: Array) -> Array:
    home = np.empty_like(expandX)
    home[_order(expertIds)] = expandX
    return (home.reshape(*expertIds.shape, -1) * expertScales[..., None]).sum(1)


@spec("aclnnMoeDistributeCombineAddRmsNorm aclnnMoeDistributeCombineAddRmsNormV2",
      "yOut:expandX rstdOut:float32 xOut:expandX", **_ROW, samples=[
          take(**{**_RESULTS, "expandX": _b(8, 32)}, residualX=_b(4, 1, 32), gamma=_b(32),
               normEps=1e-5)])  # fmt: skip
def combined_norm(
    expandX: Array, expertIds: Array, expertScales: Array, residualX: Array, gamma: Array,
    normEps: float,
) -> tuple[Array, Array, Array]:  # fmt: skip
    x = _weighted(expandX, expertIds, expertScales).reshape(residualX.shape) + residualX
    rstd = 1 / np.sqrt((x**2).mean(-1, keepdims=True) + normEps)
    return x * rstd * gamma, rstd, x


@spec("aclnnAllGatherAdd", "cOut:a gatherOutOut:a", **_ROW, samples=[
    take(a=_h(240, 256), b=_h(240, 256), group=OWN_GROUP, rankSize=1)])  # fmt: skip
def gathered_sum(a: Array, b: Array) -> tuple[Array, Array]:
    return a + b, a


spec("aclnnMoeDistributeCombine", "x:expandX", **_ROW, samples=[take(**_RESULTS)])(
    lambda expandX, expertIds, expertScales: _weighted(expandX, expertIds, expertScales)
)
spec(
    "aclnnMoeDistributeCombineV2 aclnnMoeDistributeCombineV3 aclnnMoeDistributeCombineV4",
    "xOut:expandX",
    **_ROW,
    samples=[take(**_RESULTS, sharedExpertXOptional=s) for s in (None, _h(4, 32))],
)(
    lambda expandX, expertIds, expertScales, sharedExpertXOptional: _plus(
        _weighted(expandX, expertIds, expertScales), sharedExpertXOptional
    )
)
