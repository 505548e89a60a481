"""Products whose operands or results go between ranks, against numpy on all ranks' tensors."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy_harness import Array, Ops, Out, bfloat16, code, e4m3, e8m0
from products import on
from rank_harness import Ranks

RNG = np.random.default_rng(7)
HALF = np.float16


@pytest.fixture(scope="module", params=[1, 2])
def ranks(request: pytest.FixtureRequest, nops: Ops) -> Iterator[Ranks]:
    made = Ranks(nops, request.param)
    yield made
    made.close()


def whole(*shape: int, dtype: Any = HALF) -> Array:
    """Small whole numbers, whose sums of products are exact."""
    return RNG.integers(-3, 4, shape).astype(dtype)


def columns(x: Array, rank: int) -> Array:
    """What rank `rank` has of all ranks' x after rows went to the ranks."""
    n = len(x)
    rows = x.shape[1] // n
    return np.concatenate(list(x[:, rank * rows : (rank + 1) * rows]), 1)


@pytest.mark.parametrize("version", ["", "V2"])
def test_rows_and_columns_go_to_all_ranks(ranks: Ranks, version: str) -> None:
    n = ranks.count
    x, w, bias = whole(n, 4, 6), whole(n, 6 * n, 4), whole(n, 4)
    mode = [""] if version else []
    made = ranks("aclnnAlltoAllMatmul" + version, [
        [x[r], w[r], bias[r], (-2, -1), ranks.names[r], *mode, False, False, Out((4 // n, 4), HALF),
         Out((4 // n, 6 * n), HALF)] for r in range(n)])  # fmt: skip
    for r, (y, moved) in enumerate(made):
        np.testing.assert_array_equal(moved, columns(x, r))
        np.testing.assert_array_equal(y, columns(x, r) @ w[r] + bias[r])
    v = whole(n, 6, 4)
    made = ranks("aclnnMatmulAlltoAll" + version, [
        [x[r], v[r], None, (-1, -2), ranks.names[r], *mode, False, False,
         Out((4 * n, 4 // n), HALF)]
        for r in range(n)])  # fmt: skip
    for r, (y,) in enumerate(made):
        np.testing.assert_array_equal(y, columns(np.swapaxes(x @ v, 1, 2), r).T)


@on("950")
@pytest.mark.parametrize("version", ["", "V2"])
def test_quantised_products_go_to_all_ranks(ranks: Ranks, version: str) -> None:
    n = ranks.count
    x, w = whole(n, 4, 6, dtype=bfloat16), whole(n, 6 * n, 4).astype(e4m3)
    scale, bias = RNG.random((n, 4)).astype(np.float32), whole(n, 4, dtype=np.float32)
    mode = [""] if version else []
    made = ranks("aclnnAlltoAllQuantMatmul" + version, [
        [x[r], w[r], bias[r], None, scale[r], None, None, None, ranks.names[r], *mode, (-2, -1),
         7, 2, 0, 0, code(e4m3), 0, False, False, Out((4 // n, 4)), None] for r in range(n)
    ])  # fmt: skip
    for r, (y,) in enumerate(made):
        rows = columns(x.astype(np.float32), r)
        peak = np.abs(rows).max(-1, keepdims=True) / 448
        small = (rows / np.where(peak, peak, 1)).astype(np.float32).astype(e4m3)
        expected = (small.astype(np.float64) @ w[r].astype(np.float64) + bias[r]) * peak * scale[r]
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    small, per_token = whole(n, 4, 6).astype(e4m3), RNG.random((n, 4)).astype(np.float32)
    v = whole(n, 6, 4).astype(e4m3)
    made = ranks("aclnnQuantMatmulAlltoAll" + version, [
        [small[r], v[r], bias[r], per_token[r], scale[r], None, None, None, (-1, -2),
         ranks.names[r], *mode, 3, 2, 0, 0, 0, False, False, Out((4 * n, 4 // n))] for r in range(n)
    ])  # fmt: skip
    all_ = [(small[r].astype(np.float64) @ v[r].astype(np.float64) + bias[r])
            * per_token[r][:, None] * scale[r] for r in range(n)]  # fmt: skip
    for r, (y,) in enumerate(made):
        expected = np.concatenate([m[:, r * (4 // n) : (r + 1) * (4 // n)] for m in all_])
        np.testing.assert_allclose(y, expected, rtol=1e-5)


@on("950")
def test_quantised_tensors_are_summed_over_ranks(ranks: Ranks) -> None:
    n = ranks.count
    x = whole(n, 4, 128).astype(e4m3)
    powers = np.exp2(RNG.integers(-2, 3, (n, 4, 2, 2))).astype(e8m0)
    wide = np.repeat(powers.astype(np.float32).reshape(n, 4, 4), 32, 2)
    total = (x.astype(np.float32) * wide).sum(0)
    made = ranks("aclnnQuantAllReduce", [
        [x[r], powers[r], ranks.names[r], "sum", Out((4, 128))] for r in range(n)])  # fmt: skip
    for (y,) in made:
        np.testing.assert_array_equal(y, total)
    made = ranks("aclnnQuantReduceScatter", [
        [x[r], powers[r], ranks.names[r], "sum", Out((4 // n, 128))] for r in range(n)
    ])  # fmt: skip
    np.testing.assert_array_equal(np.concatenate([y for (y,) in made]), total)


@on("910_93")
@pytest.mark.parametrize("version", ["", "V2"])
def test_tokens_meet_their_experts_and_go_home(ranks: Ranks, version: str) -> None:
    n, experts, h, cols = ranks.count, 2, 3, 4
    counts = RNG.integers(0, 4, (n, n, experts)) + (np.arange(n) == 0)[None, :, None]
    x = [whole(int(counts[r].sum()), h) for r in range(n)]
    w, mm_x, mm_w = whole(n, experts, h, cols), whole(5, h), whole(cols, h)
    blocks = [[np.split(x[s], np.cumsum(counts[s].reshape(-1))[:-1])[r * experts + e]
               for e in range(experts) for s in range(n)] for r in range(n)]  # fmt: skip
    sorted_ = [np.concatenate(blocks[r]) for r in range(n)]
    mode = [""] if version else []
    args, back = [], []
    for r in range(n):
        give, get = tuple(counts[r].reshape(-1).tolist()), tuple(counts[:, r].reshape(-1).tolist())
        rows = sum(get)
        head = [None, None, mm_x, mm_w, ranks.names[r], *mode, n]
        args.append([x[r], w[r], *head, give, get, False, True, True, Out((rows, cols), HALF),
                     Out((5, cols), HALF), Out((rows, h), HALF)])  # fmt: skip
        back.append([sorted_[r], w[r], *head, get, give, False, True, Out((len(x[r]), cols), HALF),
                     Out((5, cols), HALF)])  # fmt: skip
    for r, (y, shared, moved) in enumerate(ranks("aclnnAlltoAllvGroupedMatMul" + version, args)):
        np.testing.assert_array_equal(moved, sorted_[r])
        np.testing.assert_array_equal(shared, mm_x @ mm_w.T)
        parts = [b @ w[r, i // n] for i, b in enumerate(blocks[r])]
        np.testing.assert_array_equal(y, np.concatenate(parts))
    for r, (y, _) in enumerate(ranks("aclnnGroupedMatMulAlltoAllv" + version, back)):
        own = np.split(x[r], np.cumsum(counts[r].reshape(-1))[:-1])
        parts = [b @ w[i // experts, i % experts] for i, b in enumerate(own)]
        np.testing.assert_array_equal(y, np.concatenate(parts))


@on("950")
@pytest.mark.parametrize("version", ["", "V2"])
def test_quantised_tokens_meet_their_experts(ranks: Ranks, version: str) -> None:
    n, h, cols = ranks.count, 3, 4
    counts = np.full((n, n, 1), 2)
    x, w = whole(n, 2 * n, h).astype(e4m3), whole(n, 1, h, cols).astype(e4m3)
    one, two = np.full(1, 0.5, np.float32), np.full(1, 4, np.float32)
    mode = [""] if version else []
    args, back = [], []
    for r in range(n):
        give = tuple(counts[r].reshape(-1).tolist())
        head = [None] * 6
        args.append([x[r], w[r], one, two, *head, 1, 1, 0, 0, ranks.names[r], *mode, n, give, give,
                     False, False, 0, False, Out((2 * n, cols), HALF), None, None])  # fmt: skip
        back.append([x[r], w[r], one, two, *head, None, 1, 1, 0, 0, 0, 0, 0, ranks.names[r], *mode,
                     n, give, give, False, False, Out((2 * n, cols), HALF), None])  # fmt: skip
    rows = x.astype(np.float32).reshape(n, n, 2, h)
    for r, (y,) in enumerate(ranks("aclnnAlltoAllvQuantGroupedMatMul" + version, args)):
        expected = rows[:, r].reshape(-1, h) @ w[r, 0].astype(np.float32) * 2
        np.testing.assert_array_equal(y, expected.astype(HALF))
    for r, (y,) in enumerate(ranks("aclnnQuantGroupedMatMulAlltoAllv" + version, back)):
        parts = [rows[s, r] @ w[s, 0].astype(np.float32) * 2 for s in range(n)]
        np.testing.assert_array_equal(y, np.concatenate(parts).astype(HALF))


@on("910_93")
@pytest.mark.parametrize("shard", [0, 1])
@pytest.mark.parametrize("sharing", [False, True])
def test_experts_tokens_are_gathered_and_scattered(ranks: Ranks, shard: int, sharing: bool) -> None:
    n, tokens, h, cols = ranks.count, 4, 6, 4
    ep, tp = (1, n) if sharing else (n, 1)
    single = [Ranks(ranks.ops, 1, r) for r in range(n)]
    alone = [s.names[0] for s in single]
    eps, tps = (alone, ranks.names) if sharing else (ranks.names, alone)
    experts = 2
    x = whole(ep * experts, ep * tokens, h)  # of every expert, all tokens
    w, bias = whole(ep, experts, h, cols), whole(ep, experts, 1, cols)
    wide, high = (tp, 1) if shard == 0 else (1, tp)
    tokens_each, part = tokens // high, h // wide

    def place(r: int) -> tuple[int, int]:
        return (0, r) if sharing else (r, 0)

    def piece(full: Array, r: int, last: int) -> Array:
        """Rank r's tokens of every expert: its own rows of the ep, and its part of the tp."""
        e, t = place(r)
        own = full[:, e * tokens : (e + 1) * tokens]
        return (own[..., t * (last // tp) : (t + 1) * (last // tp)] if shard == 0
                else own[:, t * tokens_each : (t + 1) * tokens_each])  # fmt: skip

    rows = ep * tokens
    made = ranks("aclnnAlltoAllAllGatherBatchMatMul", [
        [np.ascontiguousarray(piece(x, r, h)), w[place(r)[0]], bias[place(r)[0]], eps[r], tps[r],
         ep, tp, shard, 3, Out((experts, rows, cols), HALF), Out((experts, rows, h), HALF),
         Out((experts, rows, cols), HALF)] for r in range(n)])  # fmt: skip
    for r, (y1, y2, y3) in enumerate(made):
        e = place(r)[0]
        mine = x[e * experts : (e + 1) * experts]
        np.testing.assert_array_equal(y2, mine)
        np.testing.assert_array_equal(y3, mine @ w[e] + bias[e])
        np.testing.assert_array_equal(y1, np.maximum(mine @ w[e] + bias[e], 0))
    # The way back: each rank that shares an expert adds its product, so that sums are tp times it.
    outs = np.concatenate([x[e * experts : (e + 1) * experts] @ w[e] for e in range(ep)]) * tp
    shape = (ep * experts, tokens_each, cols // wide)
    made = ranks("aclnnBatchMatMulReduceScatterAlltoAll", [
        [x[place(r)[0] * experts : (place(r)[0] + 1) * experts], w[place(r)[0]], None, eps[r],
         tps[r], ep, tp, shard, Out(shape, HALF)] for r in range(n)])  # fmt: skip
    assert part * wide == h
    for r, (y,) in enumerate(made):
        np.testing.assert_array_equal(y, piece(outs, r, cols))
    for one in single:
        one.close()
