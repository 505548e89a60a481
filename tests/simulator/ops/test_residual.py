"""Kernels of residual: results equal a reference, and what they refuse."""

from typing import Any

import numpy as np
from numpy_harness import Ops, Out, close, sigmoid, softmax
from products import on

RNG = np.random.default_rng(61)


def draw(*shape: int, dtype: Any = "float32") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


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
        [g, x, res, h, post],
        [Out(x.shape, "bfloat16"), Out(res.shape), Out(h.shape, "bfloat16"), Out(post.shape)],
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
