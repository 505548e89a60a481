"""Attention over packed, cached and quantised sequences, against numpy."""

from typing import Any

import numpy as np
import pytest
from attention_reference import attention, causal
from numpy_harness import Ops, Out, close, near

RNG = np.random.default_rng(23)
HUGE = 2147483647


def draw(*shape: int, dtype: Any = "float16") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("sparse", [0, 2, 3, 4])
def test_packed_sequences_attend_to_themselves(nops: Ops, sparse: int) -> None:
    lengths_q, lengths_k = [3, 0, 2], [4, 0, 2]
    q, k, v = (
        draw(5, 4, 8, dtype="float32"),
        draw(6, 2, 8, dtype="float32"),
        draw(6, 2, 8, dtype="float32"),
    )
    top, total, _, out = nops.both(
        "aclnnFlashAttentionVarLenScore",
        [
            q,
            k,
            v,
            None,
            None,
            None,
            None,
            None,
            tuple(np.cumsum(lengths_q)),
            tuple(np.cumsum(lengths_k)),
        ],
        [0.3, 1.0, 1 if sparse == 4 else HUGE, 0 if sparse == 4 else HUGE, 4, "TND", 0, sparse],
        [Out((5, 4, 8)), Out((5, 4, 8)), Out((0,)), Out((5, 4, 8))],
    )
    at_q = at_k = 0
    for m, n in zip(lengths_q, lengths_k, strict=True):
        rows, columns = np.arange(m)[:, None], np.arange(n)[None]
        far = columns - rows - (n - m)
        hidden = {0: far > n, 2: columns > rows, 3: far > 0, 4: (far > 0) | (far < -1)}[sparse]
        expected, most, sums = attention(q[at_q:][:m], k[at_k:][:n], v[at_k:][:n], 0.3, hidden)
        close(out[at_q : at_q + m], expected)
        flat = top.reshape(4, 5, 8)[:, at_q : at_q + m]  # heads outermost, by default
        close(flat, np.repeat(most[..., None], 8, -1))
        close(total.reshape(4, 5, 8)[:, at_q : at_q + m, 0], sums)
        at_q, at_k = at_q + m, at_k + n


def test_gradients_of_packed_sequences_equal_differences(nops: Ops) -> None:
    q, k, v = (draw(5, 2, 4) for _ in range(3))
    ends, dy = (2, 5), draw(5, 2, 4)
    sink = draw(2, dtype="float32")

    def value(q: np.ndarray, k: np.ndarray, v: np.ndarray, sink: np.ndarray) -> float:
        total = 0.0
        for a, b in ((0, 2), (2, 5)):
            out, *_ = attention(q[a:b], k[a:b], v[a:b], 0.5, causal(b - a, b - a), 0, sink)
            total += float((out * dy[a:b]).sum())
        return total

    head = (None, None, None, None)
    outs = Out((5, 2, 8)), Out((5, 2, 8)), None, Out((5, 2, 4), "float16")
    top, total, out = nops(
        "aclnnFlashAttentionVarLenScoreV5",
        [q, None, k, None, v, *head, sink, None, ends, ends, None, None],
        [0.5, 1.0, HUGE, HUGE, 2, "TND", 0, 3, 1, "same_as_input"],
        *outs,
    )
    grads = nops(
        "aclnnFlashAttentionUnpaddingScoreGradV5",
        [q, None, k, None, v, dy, *head, top, total, None, out, sink, None, ends, ends, None, None],
        [0.5, 1.0, HUGE, HUGE, 2, "TND", 0, 3, 1, "same_as_input"],
        [
            Out(q.shape, "float16"),
            None,
            Out(k.shape, "float16"),
            None,
            Out(v.shape, "float16"),
            None,
            Out((2,)),
        ],
    )
    inputs = [t.astype(np.float64) for t in (q, k, v, sink)]
    for i, grad in enumerate(grads):
        numeric = np.empty(inputs[i].size)
        for j in range(inputs[i].size):
            moved = [t.copy() for t in inputs]
            moved[i].reshape(-1)[j] += 1e-5
            up = value(*moved)
            moved[i].reshape(-1)[j] -= 2e-5
            numeric[j] = (up - value(*moved)) / 2e-5
        close(grad.reshape(-1), numeric, 2e-3)


def test_rotary_parts_add_to_scores_and_have_gradients(nops: Ops) -> None:
    q, k, v = (draw(4, 2, 8, dtype="bfloat16") for _ in range(3))
    qr, kr = draw(4, 2, 4, dtype="bfloat16"), draw(4, 2, 4, dtype="bfloat16")
    stats = Out((4, 2, 8)), Out((4, 2, 8)), None
    tail = (
        None,
        None,
        None,
        None,
        None,
        (1, 4),
        (1, 4),
        None,
        None,
        0.4,
        1.0,
        HUGE,
        HUGE,
        2,
        "TND",
        0,
        0,
        1,
    )
    top, total, out = nops.both(
        "aclnnFlashAttentionVarLenScoreV3", q, qr, k, kr, v, *tail, *stats, Out(q.shape, "bfloat16")
    )
    wide_q, wide_k = np.concatenate([q, qr], -1), np.concatenate([k, kr], -1)
    for a, b in ((0, 1), (1, 4)):
        close(out[a:b], attention(wide_q[a:b], wide_k[a:b], v[a:b], 0.4)[0])
    outs = [Out(t.shape, "bfloat16") for t in (q, qr, k, kr, v)]
    split = nops(
        "aclnnFlashAttentionUnpaddingScoreGradV5",
        [
            q,
            qr,
            k,
            kr,
            v,
            q,
            None,
            None,
            None,
            None,
            top,
            total,
            None,
            out,
            None,
            *tail[4:],
            None,
            *outs,
            None,
            None,
        ],
    )
    plain = nops(
        "aclnnFlashAttentionUnpaddingScoreGradV2",
        [
            wide_q.astype("float32"),
            wide_k.astype("float32"),
            v.astype("float32"),
            q.astype("float32"),
            None,
            None,
            None,
            None,
            top,
            total,
            None,
            out.astype("float32"),
            *tail[4:],
        ],
        [Out(wide_q.shape), Out(wide_k.shape), Out(v.shape), None],
    )
    for given, expected in zip(
        (np.concatenate(split[:2], -1), np.concatenate(split[2:4], -1), split[4]),
        plain,
        strict=True,
    ):
        close(given, expected, 2e-2)


FUSED = "aclnnFusedInferAttentionScoreV4"


def fused(
    nops: Ops, q: np.ndarray, k: Any, v: Any, heads: int, layout: str, out: Out, **more: Any
) -> list[np.ndarray]:
    """V4 with the arguments of `more`, by header name; the others absent."""
    names = ("pse", "mask", "lengths_q", "lengths_k", "dequant1", "quant1", "dequant2", "quant2",
             "offset2", "anti", "anti_offset", "table", "pad_q", "pad_k", "key_scale", "key_offset",
             "value_scale", "value_offset", "prefix_k", "prefix_v", "prefix_length", "q_rope",
             "k_rope", "rope_scale", "query_scale", "sink")  # fmt: skip
    optional = [more.get(name) for name in names]
    lse = more.get("lse")
    return nops(
        FUSED,
        [
            q,
            k if isinstance(k, tuple) else (k,),
            v if isinstance(v, tuple) else (v,),
            *optional,
            heads,
        ],
        [
            0.35,
            more.get("before", HUGE),
            more.get("after", HUGE),
            layout,
            more.get("kv", 0),
            more.get("sparse", 0),
            0,
            more.get("block", 0),
            more.get("anti_mode", 0),
            lse is not None,
            more.get("key_mode", 0),
            more.get("value_mode", 0),
            0,
            out,
        ],
        Out((1,)) if lse is None else lse,
    )


@pytest.mark.parametrize("layout", ["BSH", "BSND", "BNSD", "BNSD_BSND", "BSH_NBSD"])
def test_dense_layouts_agree_and_grouped_heads_share_keys(nops: Ops, layout: str) -> None:
    q, k, v = draw(2, 3, 4, 8), draw(2, 5, 2, 8), draw(2, 5, 2, 8)
    mask = RNG.random((2, 1, 3, 5)) < 0.3
    mask[..., 0] = False
    expected = np.stack([attention(q[b], k[b], v[b], 0.35, mask[b])[0] for b in range(2)])
    give, _, take = layout.partition("_")
    order = {"BSH": (0, 1, 2, 3), "BSND": (0, 1, 2, 3), "BNSD": (0, 2, 1, 3), "NBSD": (2, 0, 1, 3)}

    def lay(x: np.ndarray, name: str) -> np.ndarray:
        x = np.ascontiguousarray(x.transpose(order[name]))
        return x.reshape(*x.shape[:2], -1) if name == "BSH" else x

    want = lay(expected, take or give)
    out, lse = fused(
        nops,
        lay(q, give),
        lay(k, give),
        lay(v, give),
        4,
        layout,
        Out(want.shape, "float16"),
        kv=2,
        mask=mask,
        lse=Out((2, 4, 3, 1)),
    )
    close(out, want, 2e-3)
    for b in range(2):
        _, top, total = attention(q[b], k[b], v[b], 0.35, mask[b])
        close(lse[b, ..., 0], top + np.log(total), 1e-4)


def test_lengths_prefixes_paddings_and_sinks(nops: Ops) -> None:
    q, k, v = draw(2, 3, 16), draw(2, 6, 16), draw(2, 6, 16)
    pk, pv, sink = draw(1, 4, 16), draw(1, 4, 16), draw(2)

    def split(x: np.ndarray) -> np.ndarray:
        return x.reshape(*x.shape[:-1], 2, 8)

    (out, _) = fused(
        nops,
        q,
        k,
        v,
        2,
        "BSH",
        Out(q.shape, "float16"),
        lengths_q=(2, 3),
        lengths_k=(4, 6),
        prefix_k=pk,
        prefix_v=pv,
        prefix_length=(3,),
    )
    for b, (m, n) in enumerate(((2, 4), (3, 6))):
        keys = np.concatenate([split(pk)[0, :3], split(k)[b, :n]])
        values = np.concatenate([split(pv)[0, :3], split(v)[b, :n]])
        close(split(out)[b, :m], attention(split(q)[b, :m], keys, values, 0.35)[0], 2e-3)
        assert not out[b, m:].any()
    pad = np.array([1], np.int64)
    (out, _) = fused(
        nops,
        q,
        k,
        v,
        2,
        "BSH",
        Out(q.shape, "float16"),
        lengths_q=(2,),
        lengths_k=(4,),
        pad_q=np.array([0], np.int64),
        pad_k=pad,
    )
    for b in range(2):
        expected = attention(split(q)[b, 1:3], split(k)[b, 1:5], split(v)[b, 1:5], 0.35)[0]
        close(split(out)[b, 1:3], expected, 2e-3)
    (out, _) = fused(nops, q, k, v, 2, "BSH", Out(q.shape, "float16"), sink=sink)
    for b in range(2):
        expected = attention(split(q)[b], split(k)[b], split(v)[b], 0.35, sink=sink.astype(float))[
            0
        ]
        close(split(out)[b], expected, 2e-3)


@pytest.mark.parametrize("form", ["rows", "heads", "inner"])
def test_a_cache_in_blocks_is_read_through_its_table(nops: Ops, form: str) -> None:
    size, n, d = 16, 2, 32
    lengths = (20, 7)
    blocks = draw(5, size, n, d), draw(5, size, n, d)
    table = np.array([[3, 1], [4, 0]], np.int32)
    q = draw(2, 4, 1, d)
    if form == "rows":
        k, v = (b.reshape(5, size, n * d) for b in blocks)
    elif form == "heads":
        k, v = (np.ascontiguousarray(b.transpose(0, 2, 1, 3)) for b in blocks)
    else:
        k, v = (
            np.ascontiguousarray(b.reshape(5, size, n, d // 16, 16).transpose(0, 2, 3, 1, 4))
            for b in blocks
        )
    (out, _) = fused(
        nops,
        q,
        k,
        v,
        4,
        "BNSD",
        Out(q.shape, "float16"),
        kv=n,
        table=table,
        lengths_k=lengths,
        block=size,
    )
    for b, length in enumerate(lengths):
        keys, values = (c[table[b]].reshape(-1, n, d)[:length] for c in blocks)
        expected = attention(q[b].transpose(1, 0, 2), keys, values, 0.35)[0]
        close(out[b].transpose(1, 0, 2), expected, 2e-3)


def test_packed_layouts_with_rotary_parts(nops: Ops) -> None:
    q, k, v = draw(5, 2, 16), draw(7, 1, 16), draw(7, 1, 16)
    qr, kr = draw(5, 2, 8), draw(7, 1, 8)
    for layout in ("TND", "TND_NTD"):
        shape = (2, 5, 16) if layout.endswith("NTD") else q.shape
        out, lse = fused(
            nops,
            q,
            k,
            v,
            2,
            layout,
            Out(shape, "float16"),
            kv=1,
            lengths_q=(2, 5),
            lengths_k=(3, 7),
            q_rope=qr,
            k_rope=kr,
            sparse=3,
            lse=Out((5, 2, 1)),
        )
        out = out.transpose(1, 0, 2) if layout.endswith("NTD") else out
        for (a, b), (e, f) in (((0, 2), (0, 3)), ((2, 5), (3, 7))):
            wide_q, wide_k = np.concatenate([q, qr], -1)[a:b], np.concatenate([k, kr], -1)[e:f]
            expected, top, total = attention(wide_q, wide_k, v[e:f], 0.35, causal(b - a, f - e))
            close(out[a:b], expected, 2e-3)
            close(lse[a:b, :, 0].T, top + np.log(total), 1e-4)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_caches_of_int8_are_dequantised(nops: Ops, mode: int) -> None:
    q = draw(2, 2, 1, 8)
    k, v = (RNG.integers(-20, 20, (2, 2, 6, 8)).astype(np.int8) for _ in range(2))
    shape = {0: (2, 8), 1: (2, 6), 2: (2,), 3: (2, 2, 6)}[mode]
    dtype = "float16" if mode in (0, 2) else "float32"
    scales = [(np.abs(draw(*shape)) / 10 + 0.01).astype(dtype) for _ in range(2)]
    offsets = [draw(*shape).astype(dtype) for _ in range(2)]
    (out, _) = fused(
        nops,
        q,
        k,
        v,
        2,
        "BNSD",
        Out(q.shape, "float16"),
        key_scale=scales[0],
        key_offset=offsets[0],
        value_scale=scales[1],
        value_offset=offsets[1],
        key_mode=mode,
        value_mode=mode,
    )
    spread = {0: (None, slice(None), None, slice(None)), 1: (slice(None), None, slice(None), None),
              2: (None, slice(None), None, None), 3: (..., None)}[mode]  # fmt: skip
    wide = [
        (x.astype(np.float64) + o.astype(float)[spread]) * s.astype(float)[spread]
        for x, s, o in zip((k, v), scales, offsets, strict=True)
    ]
    for b in range(2):
        keys, values = (x[b].transpose(1, 0, 2) for x in wide)
        expected = attention(q[b].transpose(1, 0, 2), keys, values, 0.35)[0]
        close(out[b].transpose(1, 0, 2), expected, 3e-3)


def test_quantised_operands_and_output(nops: Ops) -> None:
    q, k, v = (RNG.integers(-30, 30, (1, 4, 32)).astype(np.int8) for _ in range(3))
    factors = [np.array([f], np.float32) for f in (0.01, 127.0, 0.002)]
    scale, offset = np.array([40.0], np.float32), np.array([2.0], np.float32)
    (out, _) = fused(
        nops,
        q,
        k,
        v,
        2,
        "BSH",
        Out(q.shape, "int8"),
        dequant1=factors[0],
        quant1=factors[1],
        dequant2=factors[2],
        quant2=scale,
        offset2=offset,
    )
    wide = [t.astype(np.float64).reshape(4, 2, 16) for t in (q, k, v)]
    s = np.einsum("qnd,knd->nqk", wide[0], wide[1]) * 0.01 * 0.35
    p = np.exp(s - s.max(-1, keepdims=True))
    rows = np.einsum("nqk,knd->qnd", np.rint(p * 127), wide[2]) * np.float32(0.002)
    rows /= p.sum(-1).T[..., None]
    near(out.reshape(4, 2, 16), np.clip(np.rint(rows * 40 + 2), -128, 127))


@pytest.mark.parametrize("op", ["aclnnIncreFlashAttention", "aclnnIncreFlashAttentionV4"])
def test_incremental_attention_reads_lists_and_lengths(nops: Ops, op: str) -> None:
    q = draw(2, 1, 16)
    k, v = [draw(1, n, 16) for n in (5, 5)], [draw(1, n, 16) for n in (5, 5)]
    more: tuple = ()
    if op.endswith("V4"):
        more = (None,) * 9
    args = (None, None, (3, 5), *more, 2, 0.35, "BSH", 2)
    tail = (0, 0) if op.endswith("V4") else ()
    (out,) = nops(op, q, tuple(k), tuple(v), *args, *tail, Out(q.shape, "float16"))
    for b, n in enumerate((3, 5)):
        expected = attention(
            q[b].reshape(1, 2, 8), k[b][0, :n].reshape(n, 2, 8), v[b][0, :n].reshape(n, 2, 8), 0.35
        )[0]
        close(out[b].reshape(1, 2, 8), expected, 2e-3)


def test_prompts_have_lengths_of_their_own(nops: Ops) -> None:
    q, k, v = (draw(2, 4, 16) for _ in range(3))
    (out,) = nops(
        "aclnnPromptFlashAttentionV3",
        [q, k, v, None, None, (2, 4), (4, 3), None, None, None, None, None],
        [2, 0.35, HUGE, HUGE, "BSH", 0, 0, 0],
        Out(q.shape, "float16"),
    )
    for b, (m, n) in enumerate(((2, 4), (4, 3))):
        expected = attention(
            q[b, :m].reshape(m, 2, 8), k[b, :n].reshape(n, 2, 8), v[b, :n].reshape(n, 2, 8), 0.35
        )[0]
        close(out[b, :m].reshape(m, 2, 8), expected, 2e-3)
