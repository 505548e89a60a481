"""Experts and weights of tokens, chosen from their scores."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .....judge.precision import Array
from ...spec import const, spec, t, take
from .._functions import softmax

_GATE: Final[dict[str, Any]] = {
    "tolerance": "composite", "specials": False,
    "source": "Shazeer et al.: Outrageously Large Neural Networks, 2017; op-plugin documents "
    "npu_moe_gating_top_k_softmax, npu_moe_gating_top_k",
}  # fmt: skip


def _best(x: Array, k: int) -> Array:
    return np.argsort(-x, -1, kind="stable")[..., :k]


def _finished(index: Array, finished: Array | None, experts: int) -> Array:
    """Rows that are finished have expert `experts`, which does not exist."""
    return index if finished is None else np.where(finished[:, None], experts, index)


_LOGITS: Final = [take(x=t(5, 8, low=-3, high=3), k=2), take(x=t(3, 65, low=-3, high=3), k=4)]
_ENDED: Final = take(x=t(4, 8, low=-3, high=3), k=2,
                     finishedOptional=const([False, True, False, True], "bool"))  # fmt: skip


@spec("aclnnMoeGatingTopKSoftmax", "yOut:x expertIdxOut:int32 rowIdxOut:int32",
      samples=[*_LOGITS, _ENDED], **_GATE)  # fmt: skip
def gating_softmax(x: Array, finishedOptional: Array | None, k: int) -> tuple[Array, Array, Array]:
    p = softmax(x)
    at = _best(p, k)
    rows = np.arange(k)[None] * len(x) + np.arange(len(x))[:, None]
    return np.take_along_axis(p, at, -1), _finished(at, finishedOptional, x.shape[-1]), rows


@spec("aclnnMoeGatingTopKSoftmaxV2", "yOut:x expertIdxOut:int32 softmaxResultOutOptional:float32",
      **_GATE, samples=[take(**s.kwargs, renorm=r, outputSoftmaxResultFlag=f)
                        for s in _LOGITS for r, f in ((0, False), (1, False), (0, True))]
      + [take(**_ENDED.kwargs, renorm=r, outputSoftmaxResultFlag=False) for r in (0, 1)],
      )  # fmt: skip
def gating_softmax_v2(
    x: Array, finishedOptional: Array | None, k: int, renorm: int, outputSoftmaxResultFlag: bool
) -> tuple[Array, Array, Array | None]:
    """renorm 1: softmax over the chosen logits only."""
    at = _best(x, k)
    p = softmax(x)
    y = softmax(np.take_along_axis(x, at, -1)) if renorm else np.take_along_axis(p, at, -1)
    at = _finished(at, finishedOptional, x.shape[-1])
    return y, at, p if outputSoftmaxResultFlag else None


_GROUPS: Final[dict[str, Any]] = {"groupSelectMode": 0, "renorm": 0, "outFlag": False,
                                  "routedScalingFactor": 1.0, "eps": 1e-20}  # fmt: skip


@spec("aclnnMoeGatingTopK aclnnMoeGatingTopKV2",
      "yOut:x expertIdxOut:int32 outOut:float32",
      uncovered="outFlag inputIdsOptional tid2eidOptional",
      **_GATE, samples=[
    take(x=t(5, 16, low=-3, high=3), biasOptional=b, k=4, kGroup=kg, groupCount=gc, normType=n,
         **{**_GROUPS, "outFlag": True, "routedScalingFactor": f, "groupSelectMode": m, "eps": e,
            "renorm": r})
    for b, kg, gc, n, f, m, e, r in (
        (None, 1, 1, 0, 1.0, 0, 1e-20, 0), (t(16), 1, 1, 1, 2.5, 0, 1e-20, 0),
        (t(16), 2, 4, 1, 1.0, 1, 1e-20, 0), (None, 1, 1, 1, 1.0, 0, 0.5, 0),
        (None, 1, 1, 0, 2.5, 0, 0.5, 1))])  # fmt: skip
def gating_top_k(
    x: Array,
    biasOptional: Array | None,
    k: int,
    kGroup: int,
    groupCount: int,
    groupSelectMode: int,
    renorm: int,
    normType: int,
    routedScalingFactor: float,
    eps: float,
) -> tuple[Array, Array, Array]:
    """DeepSeek-V3's gate: bias steers the choice, the weight is the score itself."""
    score = softmax(x) if normType == 0 else 1 / (1 + np.exp(-x))
    steer = score if biasOptional is None else score + biasOptional
    if groupCount > 1:
        parts = steer.reshape(len(x), groupCount, -1)
        worth = np.sort(parts, -1)[..., -2:].sum(-1) if groupSelectMode else parts.max(-1)
        keep = np.zeros((len(x), groupCount), bool)
        np.put_along_axis(keep, _best(worth, kGroup), True, -1)
        steer = np.where(np.repeat(keep, parts.shape[-1], -1), steer, -np.inf)
    at = _best(steer, k)
    y = np.take_along_axis(score, at, -1)
    if normType == 1 or renorm == 1:
        y = y / (y.sum(-1, keepdims=True) + eps)
    return y * routedScalingFactor, at, score


_ROUTED: Final[dict[str, Any]] = {
    "tolerance": "exact", "specials": False,
    "source": "op-plugin documents npu_moe_init_routing, npu_moe_init_routing_v2",
}  # fmt: skip
MAPS: Final[dict[str, Any]] = {**_ROUTED, "tolerance": "gradient", "source": "Megatron-LM, permute "
                               "and unpermute of moe_utils; op-plugin tests of the operators' "
                               "names"}  # fmt: skip


@spec("aclnnMoeGatingTopKBackward", "out:gradY", **{**MAPS, "source": "derivative of DeepSeek-V3"
      "'s gate; op-plugin test test_npu_moe_gating_top_k_backward"}, dtypes=("float32",),
      sparse=True,
      samples=[
          take(xNorm=t(5, 8, low=0.1, high=0.9), gradY=t(5, 2), expertIdx=const(
              [[2, 0], [1, 7], [0, 1], [6, 1], [0, 2]], "int32"), renorm=r, normType=n,
               routedScalingFactor=f, eps=e)
          for f, e, n, r in ((1.0, 1e-20, 1, 0), (2.5, 0.5, 1, 0), (2.5, 0.5, 0, 0),
                             (2.5, 0.5, 0, 1))])  # fmt: skip
def gating_backward(
    xNorm: Array, gradY: Array, expertIdx: Array, renorm: int, normType: int,
    routedScalingFactor: float, eps: float,
) -> Array:  # fmt: skip
    """y = f s / (sum of the chosen s + eps) of s = sigmoid(x) (normType 1) or softmax(x) (0), which
    is divided with renorm alone."""
    s = np.take_along_axis(xNorm, expertIdx, -1)
    total = s.sum(-1, keepdims=True) + eps
    ds = routedScalingFactor * gradY
    if normType == 1 or renorm == 1:
        ds = ds / total - (ds * s).sum(-1, keepdims=True) / total**2
    flow = np.zeros_like(xNorm)
    np.put_along_axis(flow, expertIdx, ds, -1)
    # Softmax takes from each what all of them give it, the sigmoid what it gives itself.
    by_x = flow * xNorm
    return xNorm * (flow - (by_x if normType == 1 else by_x.sum(-1, keepdims=True)))


_BIAS: Final[dict[str, Any]] = {**MAPS, "source": "derivative of adding one bias to each group's "
                                "rows"}  # fmt: skip
_BIAS_GROUPS: Final = [
    take(gradY=t(12, 9), groupIdxOptional=const([4, 9, 12], "int32"), groupIdxType=0),
    take(gradY=t(3, 5, 9), groupIdxOptional=None, groupIdxType=0)]  # fmt: skip


def grouped_bias_grad(gradY: Array, groupIdxOptional: Array | None, groupIdxType: int = 0) -> Array:
    """Ends of groups, or their sizes (type 1); without them the first dimension counts groups."""
    ends = groupIdxOptional
    if ends is not None and groupIdxType == 1:
        ends = np.cumsum(ends)
    groups = gradY if ends is None else np.split(gradY, ends[:-1])
    return np.stack([g.sum(0) for g in groups])


spec("aclnnGroupedBiasAddGrad", "out:gradY", **_BIAS, samples=_BIAS_GROUPS)(
    lambda gradY, groupIdxOptional: grouped_bias_grad(gradY, groupIdxOptional))  # fmt: skip
spec(
    "aclnnGroupedBiasAddGradV2",
    "out:gradY",
    **_BIAS,
    samples=[
        *_BIAS_GROUPS,
        take(gradY=t(12, 9), groupIdxOptional=const([4, 5, 3], "int32"), groupIdxType=1),
    ],
)(grouped_bias_grad)


@spec("aclnnMoeFusedTopk", "y:float32 indices:int32",
      uncovered="mappingNum mappingTable activateType enableExpertMapping",
      tolerance="composite",
      specials=False, source="document of Ascend Transformer Boost, FusedAddTopkDivOperation: "
      "sigmoid, added bias (positive here: whether a closed group counts as 0 is open), best "
      "groups by their best, best experts, division by their sum",
      samples=[
          take(x=t(4, 12), addNum=t(12, low=0.1), mappingNum=None, mappingTable=None, groupNum=g,
               groupTopk=k, topN=n, topK=c, activateType=0, isNorm=norm, scale=s,
               enableExpertMapping=False)
          for g, k, n, norm, s, c in ((3, 2, 2, True, 1.5, 4), (3, 2, 1, False, 1.0, 4),
                                      (2, 1, 2, True, 0.5, 3))],
      casts={"addNum": {"float16": "float16", "bfloat16": "bfloat16"}})  # fmt: skip
def fused_top_k(
    x: Array, addNum: Array, groupNum: int, groupTopk: int, topN: int, topK: int, isNorm: bool,
    scale: float,
) -> tuple[Array, Array]:  # fmt: skip
    p = (1 + np.tanh(x / 2)) / 2
    score = (p + addNum).reshape(len(x), groupNum, -1)
    worth = np.sort(score, -1)[..., -topN:].sum(-1)
    shut = np.argsort(-worth, -1, kind="stable")[:, groupTopk:]
    np.put_along_axis(score, shut[..., None], -np.inf, 1)
    at = np.argsort(-score.reshape(len(x), -1), -1, kind="stable")[:, :topK]
    y = np.take_along_axis(p, at, -1)
    return (y / y.sum(-1, keepdims=True) if isNorm else y) * scale, at


@spec("aclnnSinkhorn", "p:cost", tolerance="gradient", dtypes=("float32",),
      source="Megatron-LM, sinkhorn of moe_utils; Clark et al.: Unified Scaling Laws for Routed "
      "Language Models, 2022", samples=[take(cost=t(9, 4, low=-2, high=2), tol=1e-4)])  # fmt: skip
def sinkhorn(cost: Array, tol: float) -> Array:
    """Rows and columns of exp(cost) are scaled in turn until columns hardly move."""
    k = np.exp(cost)
    rows, columns, gap = np.ones(len(k)), np.ones(k.shape[1]), np.inf
    while gap > tol:
        rows = 1 / (len(k) * (k @ columns + 1e-8))
        new = 1 / (k.shape[1] * (rows @ k + 1e-8))
        gap, columns = np.abs(columns - new).mean(), new
    return rows[:, None] * k * columns
