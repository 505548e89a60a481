"""Recurrences, hyper-connections and joins of partial results, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy_harness import Ops, Out, close, sigmoid, softmax
from products import on

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
        q,
        k,
        v,
        beta,
        Out(state.shape, "bfloat16", state),
        lengths,
        places,
        g,
        gk,
        accepted,
        0.5,
        Out(v.shape, "bfloat16"),
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
        q,
        k,
        v,
        beta,
        state,
        lengths,
        g,
        0.5,
        Out(v.shape, "bfloat16"),
        Out(state.shape, "bfloat16"),
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


def test_hyper_connections_mix_and_differentiate(nops: Ops) -> None:
    x, h = draw(3, 4, 8, dtype="bfloat16"), draw(3, 8, dtype="bfloat16")
    res, post, g = draw(3, 4, 4), draw(3, 4), draw(3, 4, 8, dtype="bfloat16")
    wide = [t.astype(np.float64) for t in (x, res, h, post)]
    (y,) = nops.both("aclnnMhcPost", x, res, h, post, Out(x.shape, "bfloat16"))
    close(
        y, np.einsum("tji,tjd->tid", wide[1], wide[0]) + wide[3][..., None] * wide[2][:, None], 2e-2
    )
    dx, dres, dh, dpost = nops.both(
        "aclnnMhcPostBackward",
        g,
        x,
        res,
        h,
        post,
        Out(x.shape, "bfloat16"),
        Out(res.shape),
        Out(h.shape, "bfloat16"),
        Out(post.shape),
    )
    up = g.astype(np.float64)
    close(dx, np.einsum("tji,tid->tjd", wide[1], up), 2e-2)
    close(dres, np.einsum("tid,tjd->tji", up, wide[0]), 1e-4)
    close(dh, np.einsum("tid,ti->td", up, wide[3]), 2e-2)
    close(dpost, np.einsum("tid,td->ti", up, wide[2]), 1e-4)


@on("950")
def test_hyper_connections_are_made_of_their_input(nops: Ops) -> None:
    n, d, tokens = 4, 16, 3
    x, phi = draw(tokens, n, d, dtype="bfloat16"), draw(n * n + 2 * n, n * d) / 8
    alpha, bias, gamma = draw(3), draw(n * n + 2 * n), draw(n, d)
    outs = [Out((tokens, d), "bfloat16"), Out((tokens, n)), Out((tokens, n, n)), Out((tokens,)),
            Out((tokens, n * n + 2 * n)), Out((tokens, n))]  # fmt: skip
    h_in, post, res, inv, mix, pre = nops.both(
        "aclnnMhcPre", x, phi, alpha, bias, gamma, 1e-6, 1e-3, *outs
    )
    flat = x.astype(np.float64).reshape(tokens, n * d)
    rstd = 1 / np.sqrt((flat**2).mean(-1, keepdims=True) + 1e-6)
    mixed = (flat * gamma.reshape(-1)) @ phi.T
    close(mix, mixed, 1e-4)
    close(inv, rstd[:, 0])
    weights = mixed * rstd
    p = sigmoid(weights[:, :n] * alpha[0] + bias[:n]) + 1e-3
    close(pre, p, 1e-4)
    close(post, 2 * sigmoid(weights[:, n : 2 * n] * alpha[1] + bias[n : 2 * n]), 1e-4)
    close(res.reshape(tokens, -1), weights[:, 2 * n :] * alpha[2] + bias[2 * n :], 1e-4)
    close(h_in, (p[..., None] * x.astype(np.float64)).sum(1), 2e-2)


def doubly(x: np.ndarray, eps: float, rounds: int) -> np.ndarray:
    y = softmax(x) + eps
    y = y / (y.sum(-2, keepdims=True) + eps)
    for _ in range(rounds - 1):
        y = y / (y.sum(-1, keepdims=True) + eps)
        y = y / (y.sum(-2, keepdims=True) + eps)
    return y


@on("950")
def test_sinkhorn_balances_and_differentiates(nops: Ops) -> None:
    x, g = draw(3, 4, 4), draw(3, 4, 4)
    y, norms, sums = nops.both(
        "aclnnMhcSinkhorn", x, 1e-6, 5, Out(x.shape), Out((10, 4, 4, 3)), Out((10, 4, 3))
    )
    close(y, doubly(x.astype(float), 1e-6, 5), 1e-5)
    (dx,) = nops("aclnnMhcSinkhornBackward", g, norms, sums, Out(x.shape))
    numeric = np.empty(x.size)
    for i in range(x.size):
        step = np.zeros(x.size)
        step[i] = 1e-5
        moved = [doubly(x + s * step.reshape(x.shape), 1e-6, 5) for s in (1, -1)]
        numeric[i] = ((moved[0] - moved[1]) * g).sum() / 2e-5
    close(dx.reshape(-1), numeric, 1e-3)


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


def test_decoding_steps_move_tokens_on(nops: Ops) -> None:
    tokens, samples = np.array([9, 9, 9]), np.array([[5], [6]])
    positions, lengths, slots = np.array([3, 7, 1]), np.array([4, 8, 2]), np.array([0, 0, 0])
    table = np.array([[10, 11, 12], [20, 21, 22]])
    given = [Out((3,), "int64", t) for t in (tokens, positions, lengths, slots)]
    t, p, n, s = nops(
        "aclnnAdvanceStep", given[0], samples, given[1], given[2], given[3], table, 3, 2, 4
    )
    np.testing.assert_array_equal(t, [5, 6, 0])
    np.testing.assert_array_equal(p, [4, 8, 0])
    np.testing.assert_array_equal(n, [5, 9, 2])
    np.testing.assert_array_equal(s, [44, 88, -1])
