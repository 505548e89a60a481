"""Cached causal convolutions, tokens chosen among the likely, routing with experts of no rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg

from ....judge.precision import Array
from ..spec import given, spec, t, take

_CONV: Final[dict[str, Any]] = {
    "family": "convolution",
    "tolerance": "composite",
    "specials": False,
    "source": "op-plugin test npu_fused_causal_conv1d; vLLM, causal_conv1d_fn",
}


def _h(*shape: int, **more: Any) -> Arg:
    return t(*shape, dtype="float16", **more)


def _conv(states: int, **more: Any) -> dict[str, Any]:
    return {
        "x": _h(7, 6),
        "weight": _h(3, 6),
        "queryStartLoc": given([0, 4, 7], "int32"),
        "convStates": _h(4, states, 6),
        "cacheIndices": given([2, 0], "int32"),
        "activationMode": 0,
        "padSlotId": -1,
        "runMode": 0,
        "maxQueryLen": -1,
        "residualConnection": 0,
        "blockSize": 0,
        "convMode": 0,
        **more,
    }


def convolved(
    x: Array,
    weight: Array,
    states: Array,
    starts: Array,
    slots: Array,
    bias: Array | None,
    fresh: Array | None,
    swish: bool,
    residual: bool,
) -> tuple[Array, Array]:
    """Results and states: a sequence follows the last rows of its slot, which its own replace."""
    y, states, width = x.copy(), states.copy(), len(weight)
    for b, slot in enumerate(slots):
        new = x[starts[b] : starts[b + 1]]
        before = np.zeros_like(states[slot]) if fresh is not None and fresh[b] else states[slot]
        rows = np.concatenate([before, new])
        taps = [rows[len(rows) - len(new) - width + 1 + k :][: len(new)] for k in range(width)]
        out = np.einsum("ktd,kd->td", np.array(taps), weight) + (0 if bias is None else bias)
        out = out / (1 + np.exp(-out)) if swish else out
        y[starts[b] : starts[b + 1]] = out + new if residual else out
        kept = rows[-states.shape[1] :]
        if fresh is not None and fresh[b]:  # nothing came before: older rows of the slot stay
            kept = rows[len(before) - width + 1 :][-states.shape[1] :]
        states[slot, states.shape[1] - len(kept) :] = kept
    return y, states


_CONVS: Final = [
    take(**_conv(2)),
    take(**_conv(5, bias=_h(6), activationMode=1)),
    take(**_conv(2, residualConnection=1, initialStateMode=given([0, 1], "int32"))),
]


@spec("aclnnFusedCausalConv1d", "y:x convStates:x", **_CONV, samples=_CONVS)
def fused(
    x: Array,
    weight: Array,
    convStates: Array,
    queryStartLoc: Array,
    cacheIndices: Array,
    initialStateMode: Array | None,
    bias: Array | None,
    activationMode: int,
    residualConnection: int,
) -> tuple[Array, ...]:
    fresh = None if initialStateMode is None else initialStateMode == 0
    return convolved(x, weight, convStates, queryStartLoc, cacheIndices, bias, fresh,
                     activationMode == 1, residualConnection == 1)  # fmt: skip


spec("aclnnInplaceFusedCausalConv1d", "x:x convStates:x", **_CONV, samples=_CONVS)(fused)

_LIKELY: Final[dict[str, Any]] = {
    "family": "vocabulary",
    "tolerance": "elementary",
    "specials": False,
    "source": "op-plugin document and test npu_top_k_top_p_sample",
    "casts": {"q": {"float16": "float32", "bfloat16": "float32"}},
}


def _sampled(ks: Sequence[float], ps: Sequence[float], dtype: str, **more: Any) -> dict[str, Any]:
    rows = len(ks)
    return {
        "logits": t(rows, 40, dtype=dtype, low=-4, high=4),
        "topK": given(ks, "int32"),
        "topP": given(np.array(ps, np.float32), dtype),
        "q": t(rows, 40, low=0.1, high=2),
        "eps": 1e-6,
        "isNeedLogits": True,
        "topKGuess": 32,
        **more,
    }


def _cases(dtype: str) -> list[dict[str, Any]]:
    return [
        _sampled([5, 40, 1], [0.9, 0.5, 1.0], dtype),
        _sampled([0, 3], [0.3, 1.0], dtype, q=None),
        _sampled([8, 0], [0.0, 0.7], dtype),
    ]


def chosen(
    logits: Array, topK: Array, topP: Array, q: Array, eps: float, least: Array | None = None
) -> tuple[Array, ...]:
    """(token, logits of what was kept): by rank, by share of the sum, by share of the best."""
    tokens = np.zeros(len(logits), np.int64)
    kept = np.full(logits.shape, -np.inf)
    for r, row in enumerate(logits):
        order = np.argsort(-row, kind="stable")
        if 1 <= topK[r] <= len(row):
            order = order[: topK[r]]
        share = np.exp(row[order] - row[order[0]])
        share = share / share.sum()
        if topP[r] < 1:
            many = (np.cumsum(share) - share < topP[r]).sum() if topP[r] > 0 else 1
            order, share = order[:many], share[:many]
        if least is not None and 0 < least[r] < 1:
            near = share >= share.max() * least[r]
            order, share = order[near], share[near]
        kept[r, order] = row[order]
        weight = share if q is None else share / (np.abs(q[r, : len(share)]) + eps)
        tokens[r] = order[weight.argmax()]
    return tokens, kept


spec("aclnnTopKTopPSample", "logitsSelectIdx:int64 logitsTopKPSelect:float32", **_LIKELY,
     samples=[*(take(**s) for s in _cases("float16")),
              # All of the sum is all, though the rest is too small to show in it.
              take(**{**_sampled([0, 4], [1.0, 1.0], "float16", q=None), "logits": given(
                  np.where(np.arange(40) % 9 == 4, 30.0, -30.0 - np.arange(40) / 8)
                  * np.ones((2, 1)),
                  "float16")})])(
    lambda logits, topK, topP, q, eps: chosen(logits, topK, topP, q, eps))  # fmt: skip
spec("aclnnTopKTopPSampleV2", "logitsSelectIdx:int64 logitsTopKPSelect:float32", **_LIKELY,
     samples=[take(**s, minPs=m, ksMax=1024, inputIsLogits=True, isNeedSampleResult=False)
              for s in _cases("float32")[:1] for m in (None, given([0.2, 0.5, 0.0], "float32"))])(
    lambda logits, topK, topP, q, eps, minPs:
    chosen(logits, topK, topP, q, eps, minPs))  # fmt: skip

# Four tokens with two experts each: experts 3 to 5 give nothing, the token, and a mixture.
_CHOICE: Final = np.array([[0, 3], [4, 1], [5, 2], [1, 0]], np.int32)
_ROUTED: Final[dict[str, Any]] = {
    "expandedX": t(8, 5),
    "expandedRowIdx": given(np.random.default_rng(1).permutation(8), "int32"),
    "scalesOptional": t(4, 2),
    "expertIdxOptional": given(_CHOICE, "int32"),
    "xOptional": t(4, 5),
    "a1Optional": t(1, 5),
    "a2Optional": t(1, 5),
    "vOptional": t(1, 5),
    "dropPadMode": 0,
    "zeroExpertRange": (3, 4),
    "copyExpertRange": (4, 5),
    "constantExpertRange": (5, 6),
    "k": 2,
}


@spec("aclnnMoeFinalizeRoutingV3 aclnnMoeFinalizeRoutingV4", "out:expandedX", family="moe",
      tolerance="gradient", specials=False, source="op-plugin documents npu_moe_finalize_routing, "
      "npu_moe_distribute_combine_v2", samples=[
          take(**_ROUTED), take(**_ROUTED, x1Optional=t(4, 5), biasOptional=t(6, 5)),
          take(**{**_ROUTED, "dropPadMode": 2, "zeroExpertRange": (2, 3),
                  "copyExpertRange": (3, 4), "constantExpertRange": (4, 6), "a1Optional": t(2, 5),
                  "a2Optional": t(2, 5), "vOptional": t(2, 5)}),
          take(**{**_ROUTED, "expandedX": t(2, 3, 5), "dropPadMode": 3, "expandedRowIdx": given(
              [0, -1, -1, 3, 1, -1, 4, -1], "int32")}, biasOptional=t(6, 5))])  # fmt: skip
def finalised(
    expandedX: Array,
    expandedRowIdx: Array,
    x1Optional: Array | None,
    x2Optional: Array | None,
    biasOptional: Array | None,
    scalesOptional: Array,
    expertIdxOptional: Array,
    xOptional: Array,
    a1Optional: Array,
    a2Optional: Array,
    vOptional: Array,
    dropPadMode: int,
    zeroExpertRange: tuple[int, int],
    copyExpertRange: tuple[int, int],
    constantExpertRange: tuple[int, int],
) -> Array:
    """Rows lie by columns of the table (modes 0, 1) or by lines (2, 3), those dropped are 0.
    Experts of three ranges give nothing, the token, or a1 x + a2 v of their own constants."""
    tokens, k = scalesOptional.shape
    at = expandedRowIdx.reshape(k, tokens).T if dropPadMode < 2 else expandedRowIdx.reshape(-1, k)
    flat = expandedX.reshape(-1, expandedX.shape[-1])
    rows = np.where((at >= 0)[..., None], flat[np.maximum(at, 0)], 0)
    if biasOptional is not None:
        rows = rows + biasOptional[expertIdxOptional]

    def of(span: tuple[int, int]) -> Array:
        return ((expertIdxOptional >= span[0]) & (expertIdxOptional < span[1]))[..., None]

    token = np.broadcast_to(xOptional[:, None], rows.shape)
    own = np.clip(expertIdxOptional - constantExpertRange[0], 0, len(a1Optional) - 1)
    mixed = a1Optional[own] * token + (a2Optional * vOptional)[own]
    rows = np.select([of(zeroExpertRange), of(copyExpertRange), of(constantExpertRange)],
                     [0 * rows, token, mixed], rows)  # fmt: skip
    out = (rows * scalesOptional[..., None]).sum(1)
    return out + sum(x for x in (x1Optional, x2Optional) if x is not None)
