"""Kernels of attention: results equal a reference, and what they refuse."""

from typing import Any

import numpy as np
from attention_reference import attention, causal
from numpy_harness import Ops, Out, close, softmax

RNG = np.random.default_rng(83)


def draw(*shape: int, dtype: Any = "float16") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def plain_gradients(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, dy: np.ndarray, scale: float, hidden: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Of one sequence [rows, heads, depth], by the rules of softmax."""
    group = q.shape[1] // k.shape[1]
    wide_k, wide_v = (np.repeat(t.astype(np.float64), group, 1) for t in (k, v))
    q, dy = q.astype(np.float64), dy.astype(np.float64)
    p = softmax(np.where(hidden, -np.inf, np.einsum("qnd,knd->nqk", q, wide_k) * scale))
    dp = np.einsum("qnd,knd->nqk", dy, wide_v)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * scale
    dk, dv = np.einsum("nqk,qnd->knd", ds, q), np.einsum("nqk,qnd->knd", p, dy)
    dk, dv = (t.reshape(len(k), -1, group, t.shape[-1]).sum(2) for t in (dk, dv))
    return np.einsum("nqk,knd->qnd", ds, wide_k), dk, dv


def test_blocks_of_a_mask_are_attended(nops: Ops) -> None:
    q, k, v = draw(2, 4, 6, 8), draw(2, 2, 8, 8), draw(2, 2, 8, 8)
    mask = (RNG.random((2, 4, 2, 2)) < 0.6).astype(np.int8)
    mask[..., 0] = 1
    open_ = np.repeat(np.repeat(mask, 4, 2)[:, :, :6], 4, 3).astype(bool)
    tail = ((4, 4), None, None)
    out, lse = nops(
        "aclnnBlockSparseAttention",
        [q, k, v, mask, None, *tail, None],
        ["BNSD", "BNSD", 2, 0, 0.4, 0, 0, 0, 0, 1],
        [Out(q.shape, "float16"), Out((2, 4, 6, 1))],
    )
    dy = draw(2, 4, 6, 8)
    grads = nops(
        "aclnnBlockSparseAttentionGrad",
        [dy, q, k, v, out, lse, mask, None, *tail],
        ["BNSD", "BNSD", 2, 0, 0.4, 0, 0],
        [Out(q.shape, "float16"), Out(k.shape, "float16"), Out(v.shape, "float16")],
    )
    for b in range(2):
        rows = [t[b].transpose(1, 0, 2) for t in (q, k, v)]
        expected, top, total = attention(*rows, 0.4, ~open_[b])
        close(out[b].transpose(1, 0, 2), expected, 3e-3)
        close(lse[b, ..., 0], top + np.log(total), 1e-4)
        for grad, want in zip(
            grads, plain_gradients(*rows, dy[b].transpose(1, 0, 2), 0.4, ~open_[b]), strict=True
        ):
            close(grad[b].transpose(1, 0, 2), want, 5e-3)


def test_lists_of_keys_are_attended_with_rotary_parts(nops: Ops) -> None:
    q, k, v = draw(1, 4, 2, 8), draw(1, 6, 1, 8), draw(1, 6, 1, 8)
    qr, kr = draw(1, 4, 2, 4), draw(1, 6, 1, 4)
    lists = np.full((1, 4, 1, 4), -1, np.int32)
    open_ = np.zeros((4, 6), bool)
    for i in range(4):
        chosen = RNG.permutation(3)[:2] if i else np.array([0, 2])
        lists[0, i, 0, :2] = chosen
        for block in chosen:
            open_[i, 2 * block : 2 * block + 2] = True
    hidden = (~open_ | causal(4, 6)).copy()
    open_any = hidden.all(1)
    assert not open_any.any()
    far = 2**31 - 1
    args = (None, None, None, qr, kr)
    out, top, total = nops(
        "aclnnSparseFlashAttention",
        [q, k, v, lists, *args],
        [0.4, 2, "BSND", "BSND", 3, far, far, 2, True],
        [Out(q.shape, "float16"), Out((1, 1, 4, 2)), Out((1, 1, 4, 2))],
    )
    wide_q, wide_k = np.concatenate([q, qr], -1)[0], np.concatenate([k, kr], -1)[0]
    expected, most, sums = attention(wide_q, wide_k, v[0], 0.4, hidden)
    close(out[0], expected, 3e-3)
    close(top[0, 0], most.T)
    close(total[0, 0], sums.T)
    dy = draw(*q.shape)
    grads = nops(
        "aclnnSparseFlashAttentionGrad",
        [q, k, v, lists, dy, out, top, total, None, None, qr, kr],
        [0.4, 2, "BSND", 3, far, far, True],
        *[Out(t.shape, "float16") for t in (q, k, v, qr, kr)],
    )
    dq, dk, dv = plain_gradients(wide_q, wide_k, v[0], dy[0], 0.4, hidden)
    wants = dq[..., :8], dk[..., :8], dv, dq[..., 8:], dk[..., 8:]
    for grad, want in zip(grads, wants, strict=True):
        close(grad[0], want, 5e-3)


def test_selected_blocks_of_packed_sequences(nops: Ops) -> None:
    q, k, v = draw(5, 2, 8), draw(12, 1, 8), draw(12, 1, 4)
    lists = np.array([[[0, 1]], [[1, -1]], [[0, 2]], [[2, 1]], [[0, -1]]], np.int32)
    ends_q, ends_k, far = (2, 5), (4, 12), 2
    top, total, out = nops(
        "aclnnNsaSelectedAttention",
        [q, k, v, lists, None, ends_q, ends_k],
        [0.3, 2, "TND", 0, far, 2],
        [Out((5, 2, 8)), Out((5, 2, 8)), Out((5, 2, 4), "float16")],
    )
    dy = draw(5, 2, 4)
    grads = nops(
        "aclnnNsaSelectedAttentionGrad",
        [q, k, v, out, dy, top, total, lists, ends_q, ends_k, None],
        [0.3, far, 2, 2, "TND", 0],
        *[Out(t.shape, "float16") for t in (q, k, v)],
    )
    for (a, b), (e, f) in (((0, 2), (0, 4)), ((2, 5), (4, 12))):
        open_ = np.zeros((b - a, f - e), bool)
        for i in range(a, b):
            for block in lists[i, 0]:
                if block >= 0:
                    open_[i - a, 2 * block : 2 * block + 2] = True
        expected, most, _ = attention(q[a:b], k[e:f], v[e:f], 0.3, ~open_)
        close(out[a:b], expected, 3e-3)
        close(top[a:b, :, 0], most.T)
        wants = plain_gradients(q[a:b], k[e:f], v[e:f], dy[a:b], 0.3, ~open_)
        for grad, want, (g, h) in zip(grads, wants, ((a, b), (e, f), (e, f)), strict=True):
            close(grad[g:h], want, 5e-3)


def test_indexers_rank_keys(nops: Ops) -> None:
    q, k, w = draw(2, 3, 4, 8), draw(2, 6, 1, 8), draw(2, 3, 4)
    indices, values = nops(
        "aclnnLightningIndexer",
        [q, k, w, None, None, None],
        ["BSND", "BSND", 5, 3, 2**31, 2**31, True],
        [Out((2, 3, 1, 5), "int32"), Out((2, 3, 1, 5), "float16")],
    )
    for b in range(2):
        s = np.maximum(np.einsum("qnd,kd->qnk", q[b].astype(float), k[b, :, 0].astype(float)), 0)
        score = np.where(causal(3, 6), -np.inf, (s * w[b].astype(float)[..., None]).sum(1))
        for i in range(3):
            order = np.argsort(-score[i], kind="stable")
            order = order[np.isfinite(score[i][order])][:5]
            np.testing.assert_array_equal(
                indices[b, i, 0], np.pad(order, (0, 5 - len(order)), constant_values=-1)
            )
            close(values[b, i, 0, : len(order)], score[i][order], 2e-3)


def test_windows_are_compressed_and_differentiate(nops: Ops) -> None:
    x, w, ends = draw(11, 2, 16), draw(4, 2), (3, 11)
    starts = [3, 5, 7]
    (y,) = nops("aclnnNsaCompress", x, w, ends, "TND", 4, 2, 0, Out((3, 2, 16), "float16"))
    expected = np.stack(
        [(x[s : s + 4].astype(float) * w.astype(float)[..., None]).sum(0) for s in starts]
    )
    close(y, expected, 3e-3)
    g = draw(3, 2, 16)
    dx, dw = nops(
        "aclnnNsaCompressGrad",
        [g, x, w, ends],
        [4, 2, 0, "TND"],
        [Out(x.shape, "float16"), Out(w.shape, "float16")],
    )
    want_x, want_w = np.zeros(x.shape), np.zeros(w.shape)
    for up, s in zip(g.astype(float), starts, strict=True):
        want_x[s : s + 4] += up[None] * w.astype(float)[..., None]
        want_w += (up[None] * x[s : s + 4].astype(float)).sum(-1)
    close(dx, want_x, 3e-3)
    close(dw, want_w, 3e-3)


def test_floyd_attention_adds_two_kinds_of_keys_and_differentiates(nops: Ops) -> None:
    q, dy = draw(1, 2, 3, 4, 8), draw(1, 2, 3, 4, 8)
    k1, v1, k2, v2 = (
        draw(1, 2, 3, 5, 8),
        draw(1, 2, 3, 5, 8),
        draw(1, 2, 5, 4, 8),
        draw(1, 2, 5, 4, 8),
    )
    parts = (q, k1, v1, k2, v2)
    top, total, out = nops(
        "aclnnFusedFloydAttention",
        [*parts, None],
        0.4,
        [Out((1, 2, 3, 4, 8)), Out((1, 2, 3, 4, 8)), Out(q.shape, "float16")],
    )

    def keys(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        wide = np.float64
        return (
            first.astype(wide)[..., :, None, :, :]
            + np.moveaxis(second.astype(wide), -3, -2)[..., None, :, :, :]
        )

    k, v, wide = keys(k1, k2), keys(v1, v2), q.astype(np.float64)  # [b, h, i, k, j, c]
    p_in = np.einsum("bhikc,bhikjc->bhikj", wide, k) * 0.4
    p = softmax(p_in)
    close(out, np.einsum("bhikj,bhikjc->bhikc", p, v), 2e-3)
    close(top[..., 0], p_in.max(-1))
    close(total[..., 7], np.exp(p_in - p_in.max(-1, keepdims=True)).sum(-1))
    found = nops(
        "aclnnFusedFloydAttentionGrad",
        [*parts, dy, None, top, total, out],
        0.4,
        *(Out(t.shape, "float16") for t in parts),
    )
    dp = np.einsum("bhikc,bhikjc->bhikj", dy.astype(np.float64), v)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * 0.4
    close(found[0], np.einsum("bhikj,bhikjc->bhikc", ds, k), 3e-3)
    close(found[1], np.einsum("bhikj,bhikc->bhijc", ds, wide), 3e-3)
    close(found[2], np.einsum("bhikj,bhikc->bhijc", p, dy), 3e-3)
    close(found[3], np.einsum("bhikj,bhikc->bhjkc", ds, wide), 3e-3)
    close(found[4], np.einsum("bhikj,bhikc->bhjkc", p, dy), 3e-3)
