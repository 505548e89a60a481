"""Sampling of tokens from logits."""

from __future__ import annotations

from ....spec import *
from ._functions import softmax
from ._ignored import SPEED
from ._words import *

_LIKELY: Final = Rule("elementary", "op-plugin document and test npu_top_k_top_p_sample",
                      specials=False)  # fmt: skip
_TOKENS: Final = sizes(T=rows(3, 1, 17, 65), N=column(40, 1, 7, 33, 260, 1000))


def _ranks(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """How many of the best count; 0 and more than there are: all."""
    t, n = draw["T"], draw["N"]
    if pattern == "edges":
        return np.resize([1, n, 0, n + 1], t)
    return rng.integers(1, n + 1, t) if pattern == "random" else np.full(t, min(5, n))


def _shares(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """Shares of the sum, or of the best, with what turns them off."""
    t = draw["T"]
    if pattern == "edges":
        return np.resize([0.0, 1.0, 0.5], t)
    return rng.integers(1, 64, t) / 64 if pattern == "random" else np.full(t, 1.0)


def _sample_params(second: bool) -> dict[str, Domain]:
    dtypes = "f16 bf16 f32" if second else "f16 bf16"
    own = content(_shares, "edges random off", "logits", shape="T")
    more: tuple[dict[str, Domain], ...] = (
        {"minPs": optional(own)},
        {"ksMax": only(1024, "more of the best than any row here has"),
         "inputIsLogits": only(True, "what a row of shares gives has no public document"),
         "isNeedSampleResult": only(False, "order among equals is not stated")},
        {"logitsIdx": null("of isNeedSampleResult"),
         "logitsSortMasked": null("of isNeedSampleResult")},
    )  # fmt: skip
    first, second_, last = more if second else ({}, {}, {})
    return {
        "logits": tensor("T N", dtypes, -4, 4),
        "topK": content(_ranks, "few edges random", "i32", shape="T", reads=("N",)),
        "topP": content(_shares, "random edges off", "logits", shape="T"),
        "q": optional(tensor("T N", "f32", 0.1, 2)), **first, "eps": number(1e-6, 0.25),
        "isNeedLogits": only(True, "asks for a result, which is compared"),
        "topKGuess": only(32, SPEED), **second_, "logitsSelectIdx": out("i64"),
        "logitsTopKPSelect": out("f32"), **last,
    }  # fmt: skip


def sample_token(
    logits: Array, topK: Array, topP: Array, q: Array | None, eps: float,
    minPs: Array | None = None,
) -> tuple[Array, ...]:  # fmt: skip
    """(token, logits of what was kept): by rank, by share of the sum, by share of the best. A row
    without any of the three is not sorted: each of its elements has its own `q`."""
    tokens = np.zeros(len(logits), np.int64)
    candidates = np.full(logits.shape, -np.inf)
    for r, row in enumerate(logits):
        ranked, least = 1 <= topK[r] <= len(row), 0 if minPs is None else minPs[r]
        order = np.arange(len(row))
        if ranked or topP[r] < 1 or least >= 1:
            order = np.argsort(-row, kind="stable")[: topK[r] if ranked else None]
        share = np.exp(row[order] - row[order].max())
        share = share / share.sum()
        if topP[r] < 1:
            many = (np.cumsum(share) - share < topP[r]).sum() if topP[r] > 0 else 1
            order, share = order[:many], share[:many]
        if least > 0:
            near = share >= share.max() * min(least, 1)
            near[1:] &= least < 1
            order, share = order[near], share[near]
        candidates[r, order] = row[order]
        weight = share if q is None else share / (np.abs(q[r, : len(share)]) + eps)
        tokens[r] = order[weight.argmax()]
    return tokens, candidates


spec("aclnnTopKTopPSample", _LIKELY, _TOKENS, **_sample_params(False))(sample_token)
spec("aclnnTopKTopPSampleV2", _LIKELY, _TOKENS, **_sample_params(True))(sample_token)


def _least(rng: np.random.Generator, pattern: str, draw: Draw) -> Array:
    """How many of the best stay: at least one, at most all."""
    t, n = draw["T"], draw["N"]
    if pattern == "ends":
        return np.resize([1, n], t)
    return rng.integers(1, n + 1, t) if pattern == "random" else np.full(t, n)


@spec("aclnnApplyTopKTopP", Rule(
          "exact", "Holtzman et al.: The Curious Case of Neural Text Degeneration, 2020; vLLM, "
          "apply_top_k_top_p", specials=False, sparse=True),
      # Which of equal logits goes first is not stated: few tokens where rounding makes equals.
      _TOKENS, require("dtype(logits) == 'float32' or T <= 3 and N <= 7", refuses=None),
      logits=tensor("T N", "f32 f16 bf16", -4, 4),
      p=content(_shares, "off random edges", "logits", shape="T"),
      k=content(_least, "random all ends", "i32", shape="T", reads=("N",)),
      out=out("logits"))  # fmt: skip
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
