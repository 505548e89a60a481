"""Sampling of tokens from logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ....judge.precision import Array
from ..spec import const, spec, t, take
from ._functions import softmax
from ._ignored import requested

_LIKELY: Final[dict[str, Any]] = {
    "tolerance": "elementary",
    "specials": False,
    "source": "op-plugin document and test npu_top_k_top_p_sample",
    "casts": {"q": {"float16": "float32", "bfloat16": "float32"}},
}


def _sampled(ks: Sequence[float], ps: Sequence[float], dtype: str, **more: Any) -> dict[str, Any]:
    rows = len(ks)
    return {
        "logits": t(rows, 40, dtype=dtype, low=-4, high=4),
        "topK": const(ks, "int32"),
        "topP": const(np.array(ps, np.float32), dtype),
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


def sample_token(
    logits: Array, topK: Array, topP: Array, q: Array, eps: float, least: Array | None = None
) -> tuple[Array, ...]:
    """(token, logits of what was kept): by rank, by share of the sum, by share of the best."""
    tokens = np.zeros(len(logits), np.int64)
    candidates = np.full(logits.shape, -np.inf)
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
        candidates[r, order] = row[order]
        weight = share if q is None else share / (np.abs(q[r, : len(share)]) + eps)
        tokens[r] = order[weight.argmax()]
    return tokens, candidates


spec("aclnnTopKTopPSample", "logitsSelectIdx:int64 logitsTopKPSelect:float32",
     ignored=requested("isNeedLogits"),
     constant="eps",
     **_LIKELY,
     samples=[*(take(**s) for s in _cases("float16")),
              # All of the sum is all, though the rest is too small to show in it.
              take(**{**_sampled([0, 4], [1.0, 1.0], "float16", q=None), "logits": const(
                  np.where(np.arange(40) % 9 == 4, 30.0, -30.0 - np.arange(40) / 8)
                  * np.ones((2, 1)),
                  "float16")})])(
    lambda logits, topK, topP, q, eps: sample_token(logits, topK, topP, q, eps))  # fmt: skip
spec("aclnnTopKTopPSampleV2", "logitsSelectIdx:int64 logitsTopKPSelect:float32",
     ignored=requested("isNeedLogits"),
     uncovered="ksMax inputIsLogits isNeedSampleResult logitsIdx logitsSortMasked",
     constant="eps",
     **_LIKELY,
     samples=[take(**s, minPs=m, ksMax=1024, inputIsLogits=True, isNeedSampleResult=False)
              for s in _cases("float32")[:1] for m in (None, const([0.2, 0.5, 0.0], "float32"))])(
    lambda logits, topK, topP, q, eps, minPs:
    sample_token(logits, topK, topP, q, eps, minPs))  # fmt: skip


@spec("aclnnApplyTopKTopP", "out:logits", tolerance="exact", specials=False,
      sparse=True, source="Holtzman et al.: The Curious Case of Neural Text Degeneration, 2020; "
      "vLLM, apply_top_k_top_p", samples=[
          take(logits=t(3, 33, low=-4, high=4), p=p, k=k) for p, k in (
              (const([1.0] * 3, "float32"), const([5, 33, 1], "int32")),
              (const([0.7, 1.0, 0.3], "float32"), const([33] * 3, "int32")),
              (const([0.7, 0.95, 0.3], "float32"), const([20, 33, 5], "int32")))])  # fmt: skip
def top_k_top_p(logits: Array, p: Array, k: Array) -> Array:
    candidates = logits.copy()
    for row in range(len(candidates)):
        cut = np.sort(candidates[row])[-int(k[row])]
        candidates[row][candidates[row] < cut] = -np.inf
        order = np.argsort(candidates[row], kind="stable")
        share = np.cumsum(softmax(candidates[row])[order])
        drop = share <= 1 - p[row]
        drop[-1] = False
        candidates[row][order[drop]] = -np.inf
    return candidates
