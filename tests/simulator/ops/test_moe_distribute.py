"""Tokens sent to their experts' ranks and back, against a walk over all tokens in numpy."""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy_harness import Ops, Out, bfloat16 as BF16
from products import on
from rank_harness import Ranks

RNG = np.random.default_rng(5)
BS, H, K = 4, 8, 2


@pytest.fixture(scope="module", params=[1, 2])
def ranks(request: pytest.FixtureRequest, nops: Ops) -> Iterator[Ranks]:
    made = Ranks(nops, request.param)
    yield made
    made.close()


def tokens(count: int, experts: int) -> tuple[np.ndarray, np.ndarray]:
    x = RNG.integers(-8, 9, (count, BS, H)).astype(np.float16)
    ids = np.stack([[RNG.permutation(experts)[:K] for _ in range(BS)] for _ in range(count)])
    return x, ids.astype(np.int32)


def rows_of(rank: int, x: np.ndarray, ids: np.ndarray, local: int) -> tuple[np.ndarray, list[int]]:
    rows, counts = [], []
    for expert in range(rank * local, (rank + 1) * local):
        for source in range(len(x)):
            rows += [x[source, t] for t in range(BS) if expert in ids[source, t]]
            counts.append(len(rows))
    return np.array(rows).reshape(-1, H), counts


def dispatch(r: Ranks, version: str, x: np.ndarray, ids: np.ndarray, local: int, quant: int = 0,
             scales: np.ndarray | None = None) -> list[list[np.ndarray]]:  # fmt: skip
    capacity, experts = BS * r.count * K, local * r.count
    args = []
    for rank in range(r.count):
        assist = Out((BS * K,), "int32") if not version else Out((capacity * 128,), "int32")
        args.append([
            x[rank], ids[rank], scales, None, None, *([None] if version in ("V3", "V4") else []),
            *([None] if version == "V4" else []), r.names[rank], r.count, rank, experts, "", 0, 0,
            0, 0, 0, quant, BS * r.count, 1, *([""] if version else []),
            *([0, 0, 0] if version in ("V3", "V4") else []),
            Out((capacity, H), "int8" if quant else "float16"), Out((capacity,)), assist,
            Out((local,), "int64"), Out((local * r.count,), "int32"), Out((1,), "int32"),
            Out((capacity,)),
        ])  # fmt: skip
    return r("aclnnMoeDistributeDispatch" + version, args)


@pytest.mark.parametrize("version", ["", "V2", "V3", "V4"])
def test_tokens_reach_their_experts_and_come_back_weighted(ranks: Ranks, version: str) -> None:
    local, n = 3, ranks.count
    x, ids = tokens(n, local * n)
    sent = dispatch(ranks, version, x, ids, local)
    scales = RNG.integers(1, 4, (n, BS, K)).astype(np.float32)
    args = []
    for rank, (rows, _, index, per_expert, counts, *_) in enumerate(sent):
        expected, ends = rows_of(rank, x, ids, local)
        np.testing.assert_array_equal(rows[: len(expected)], expected)
        np.testing.assert_array_equal(counts, ends)
        np.testing.assert_array_equal(per_expert, np.diff([0, *ends[n - 1 :: n]]))
        answer = rows * np.float16(2)
        more: list[object] = [None] * (11 - 5)
        if version:
            more = [None] * 7
            more += [None] * (0 if version == "V2" else 5 if version == "V3" else 6)
        args.append([
            answer, ids[rank], index, counts, scales[rank], *more, ranks.names[rank], n, rank,
            local * n, "", 0, 0, 0, 0, 0, BS * n, 0, 0, 0, *([""] if version else []),
            *([0, 0, 0] if version in ("V3", "V4") else []), Out((BS, H), "float16"),
        ])  # fmt: skip
    back = ranks("aclnnMoeDistributeCombine" + version, args)
    for rank, (result,) in enumerate(back):
        expected = (2 * x[rank].astype(np.float32)) * scales[rank].sum(-1, keepdims=True)
        np.testing.assert_array_equal(result, expected.astype(np.float16))


def test_rows_are_quantised_by_their_peaks(ranks: Ranks) -> None:
    local, n = 2, ranks.count
    x, ids = tokens(n, local * n)
    for rank, (rows, dynamic, *_) in enumerate(dispatch(ranks, "V2", x, ids, local, 2)):
        expected, _ = rows_of(rank, x, ids, local)
        peak = np.abs(expected.astype(np.float32)).max(-1, keepdims=True) / 127
        assert np.abs(rows[: len(expected)] * peak - expected).max() <= peak.max() / 2 + 1e-6
        np.testing.assert_allclose(dynamic[: len(expected)], peak[:, 0], rtol=1e-6)


@on("910_93")
def test_a_shared_expert_gets_every_token_and_norms_follow(ranks: Ranks) -> None:
    n, experts = ranks.count, 3
    if n < 2:
        pytest.skip("a rank for the shared expert, a rank for the others")
    x, ids = tokens(n, experts)
    x = x.astype(BF16)
    capacity = BS * n * K
    counts = [n, n * experts]
    heads = [(ranks.names[r], n, r, experts, "", 0, 0, 0, 1, 1) for r in range(n)]
    sent = ranks("aclnnMoeDistributeDispatchV2", [
        [x[r], ids[r], None, None, None, *heads[r], 0, BS * n, 1, "",
         Out((capacity, H), BF16), None, Out((capacity * 128,), "int32"), None,
         Out((counts[r],), "int32"), None, None] for r in range(n)])  # fmt: skip
    np.testing.assert_array_equal(sent[0][0][: n * BS], x.reshape(-1, H))
    np.testing.assert_array_equal(sent[0][2], [BS, 2 * BS])
    weights = np.ones((BS, K), np.float32)
    residual, gamma = np.ones((BS, 1, H), BF16), np.full(H, 2, BF16)
    back = ranks("aclnnMoeDistributeCombineAddRmsNorm", [
        [sent[r][0], ids[r], sent[r][1], sent[r][2], weights, residual, gamma, *[None] * 7,
         *heads[r], BS * n, 0, 0, 0, "", 1e-6, Out((BS, 1, H), BF16), Out((BS, 1, 1)),
         Out((BS, 1, H), BF16)] for r in range(n)])  # fmt: skip
    for r, (y, rstd, total) in enumerate(back):
        expected = x[r].astype(np.float64) * (K + 1) + 1
        root = 1 / np.sqrt((expected**2).mean(-1, keepdims=True) + 1e-6)
        np.testing.assert_array_equal(total[:, 0], expected.astype(BF16))
        np.testing.assert_allclose(rstd[:, 0], root, rtol=1e-6)
        np.testing.assert_allclose(y[:, 0].astype(np.float64), expected * root * 2, rtol=1e-2)
