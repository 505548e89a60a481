"""Kernels of attention: results equal a reference, and what they refuse."""

from typing import Any

import numpy as np
import pytest
from numpy_harness import Ops, Out, close, sigmoid

RNG = np.random.default_rng(61)


def draw(*shape: int, dtype: Any = "float32") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def delta(
    s: np.ndarray, q: np.ndarray, k: np.ndarray, v: np.ndarray, beta: float, decay: Any
) -> Any:
    s = s * decay
    s = s + beta * np.outer(v - s @ k, k)
    return s, s @ q


def test_delta_rules_keep_a_state_for_each_token(nops: Ops) -> None:
    lengths = np.array([2, 3], np.int32)
    q, k, v = (draw(5, n, d, dtype="bfloat16") for n, d in ((1, 4), (1, 4), (2, 3)))
    beta, g = sigmoid(draw(5, 2)).astype("bfloat16"), -np.abs(draw(5, 2))
    gk = -np.abs(draw(5, 2, 4))
    state, places = draw(6, 2, 3, 4, dtype="bfloat16"), np.array([3, 0, 5, 1, 2], np.int32)
    accepted = np.array([1, 2], np.int32)
    found, out = nops.both(
        "aclnnRecurrentGatedDeltaRule",
        [q, k, v, beta],
        [
            Out(state.shape, "bfloat16", state),
            lengths,
            places,
            g,
            gk,
            accepted,
            0.5,
            Out(v.shape, "bfloat16"),
        ],
    )
    expected, values, first = state.astype(float), np.zeros(v.shape), 0
    for b, n in enumerate(lengths):
        for h in range(2):
            s = state[places[first + accepted[b] - 1], h].astype(float)
            for t in range(first, first + n):
                args = (x[t, 0].astype(float) for x in (q, k))
                decay = np.exp(g[t, h]) * np.exp(gk[t, h])[None]
                s, values[t, h] = delta(s, *args, v[t, h].astype(float), float(beta[t, h]), decay)
                expected[places[t], h] = s
        first += n
    close(out, values * 0.5, 2e-2)
    close(found, expected, 2e-2)


def test_chunks_of_delta_rules_end_in_a_state(nops: Ops) -> None:
    lengths = np.array([2, 3], np.int32)
    q, k, v = (draw(5, n, d, dtype="bfloat16") for n, d in ((2, 4), (2, 4), (2, 3)))
    beta, g = sigmoid(draw(5, 2)).astype("bfloat16"), -np.abs(draw(5, 2))
    state = draw(2, 2, 3, 4, dtype="bfloat16")
    out, last = nops.both(
        "aclnnChunkGatedDeltaRule",
        [q, k, v, beta, state, lengths, g],
        0.5,
        [Out(v.shape, "bfloat16"), Out(state.shape, "bfloat16")],
    )
    s, values = state.astype(float), np.zeros(v.shape)
    for t in range(5):
        for h in range(2):
            args = (x[t, h].astype(float) for x in (q, k, v))
            s[int(t >= 2), h], values[t, h] = delta(
                s[int(t >= 2), h], *args, float(beta[t, h]), np.exp(g[t, h])
            )
    close(out, values * 0.5, 2e-2)
    close(last, s, 2e-2)


def test_partial_attentions_join(nops: Ops) -> None:
    lse, parts = [draw(6) for _ in range(3)], [draw(6, 8) for _ in range(3)]
    lse[1][2] = np.inf
    out, joined = nops.both(
        "aclnnAttentionUpdate", tuple(lse), tuple(parts), 1, Out((6, 8)), Out((6,))
    )
    weights = np.exp(np.where(np.isinf(np.stack(lse)), -np.inf, np.stack(lse).astype(float)))
    close(joined, np.log(weights.sum(0)))
    close(out, (weights[..., None] * np.stack(parts)).sum(0) / weights.sum(0)[:, None])


@pytest.mark.parametrize("layout", ["SBH", "TND"])
def test_rings_of_attention_join(nops: Ops, layout: str) -> None:
    rows, batch, heads, d = 3, 2, 2, 4
    shape = (rows, batch, heads * d) if layout == "SBH" else (rows, heads, d)
    stats = (batch, heads, rows) if layout == "SBH" else (rows, heads)
    a, b = draw(*shape), draw(*shape)
    tops, sums = [draw(*stats) for _ in range(2)], [np.abs(draw(*stats)) + 0.5 for _ in range(2)]
    wide = [np.repeat(t[..., None], 8, -1) for t in (tops[0], sums[0], tops[1], sums[1])]
    outs = Out(shape), Out((*stats, 8)), Out((*stats, 8))
    out, top, total = nops.both(
        "aclnnRingAttentionUpdate", a, wide[0], wide[1], b, wide[2], wide[3], None, layout, *outs
    )
    most = np.maximum(*tops)
    weights = [s * np.exp(t - most) for s, t in zip(sums, tops, strict=True)]
    close(top[..., 0], most)
    close(total[..., 7], weights[0] + weights[1])
    if layout == "SBH":
        a, b = (x.reshape(rows, batch, heads, d).transpose(1, 2, 0, 3) for x in (a, b))
        out = out.reshape(rows, batch, heads, d).transpose(1, 2, 0, 3)
    share = (weights[0] / (weights[0] + weights[1]))[..., None]
    close(out, a * share + b * (1 - share))
