"""Kernels of moe: results equal a reference, and what they refuse."""

import numpy as np
import pytest
from numpy_harness import Ops, Out, close, near, sigmoid, softmax

RNG = np.random.default_rng(11)
TOKENS, K, EXPERTS, H = 6, 2, 8, 5


def draw(*shape: int, dtype: object = "float32") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def table() -> np.ndarray:
    """Distinct experts of each token."""
    rows = [RNG.permutation(EXPERTS)[:K] for _ in range(TOKENS)]
    return np.array(rows, np.int32)


def test_gating_softmax_takes_the_best_and_skips_finished_rows(nops: Ops) -> None:
    x, finished = draw(5, 9, dtype="float16"), np.array([0, 1, 0, 0, 1], bool)
    y, experts, rows = nops.both(
        "aclnnMoeGatingTopKSoftmax",
        [x, finished],
        3,
        [Out((5, 3), "float16"), Out((5, 3), "int32"), Out((5, 3), "int32")],
    )
    p = softmax(x.astype(np.float64))
    order = np.argsort(-p, axis=-1, kind="stable")[:, :3]
    close(y, np.take_along_axis(p, order, -1))
    np.testing.assert_array_equal(experts, np.where(finished[:, None], 9, order))
    np.testing.assert_array_equal(rows, np.arange(15).reshape(3, 5).T)


@pytest.mark.parametrize("renorm", [0, 1])
def test_gating_softmax_v2_may_normalise_the_chosen(nops: Ops, renorm: int) -> None:
    x = draw(2, 3, 9)
    y, experts, whole = nops.both(
        "aclnnMoeGatingTopKSoftmaxV2",
        [x, None],
        [4, renorm, renorm == 0],
        [Out((2, 3, 4)), Out((2, 3, 4), "int32"), Out((2, 3, 9))],
    )
    p = softmax(x.astype(np.float64))
    order = np.argsort(-x, axis=-1, kind="stable")[..., :4]
    chosen = (
        softmax(np.take_along_axis(x, order, -1)) if renorm else np.take_along_axis(p, order, -1)
    )
    close(y, chosen)
    np.testing.assert_array_equal(experts, order)
    close(whole, p if renorm == 0 else np.zeros_like(p))


@pytest.mark.parametrize(("mode", "norm"), [(0, 0), (1, 1), (1, 0)])
def test_gating_top_k_opens_the_best_groups(nops: Ops, mode: int, norm: int) -> None:
    x, bias = draw(4, 12), draw(12)
    y, experts, whole = nops.both(
        "aclnnMoeGatingTopK",
        [x, bias],
        [3, 2, 4, mode, 0, norm, True, 2.5, 1e-20],
        [Out((4, 3)), Out((4, 3), "int32"), Out((4, 12))],
    )
    p = sigmoid(x) if norm else softmax(x.astype(np.float64))
    score = (p + bias).reshape(4, 4, 3)
    group = score.max(-1) if mode == 0 else np.sort(score, -1)[..., -2:].sum(-1)
    for r in range(4):
        closed = np.argsort(-group[r], kind="stable")[2:]
        score[r, closed] = -np.inf
    order = np.argsort(-score.reshape(4, 12), axis=-1, kind="stable")[:, :3]
    taken = np.take_along_axis(p, order, -1)
    np.testing.assert_array_equal(experts, order)
    close(y, (taken / taken.sum(-1, keepdims=True) if norm else taken) * 2.5)
    close(whole, p)


def test_gating_v2_looks_experts_up_by_token(nops: Ops) -> None:
    x, ids = draw(3, 6), np.array([1, 0, 1], np.int32)
    chart = np.array([[0, 5], [4, 2]], np.int32)
    y, experts = nops(
        "aclnnMoeGatingTopKV2",
        [x, None, ids, chart],
        [2, 1, 1, 0, 0, 1, False, 1.0, 0.0],
        [Out((3, 2)), Out((3, 2), "int32"), None],
    )
    np.testing.assert_array_equal(experts, chart[ids])
    taken = np.take_along_axis(sigmoid(x), chart[ids].astype(int), -1)
    close(y, taken / taken.sum(-1, keepdims=True))


@pytest.mark.parametrize("norm", [0, 1])
def test_gradient_of_gating_equals_differences(nops: Ops, norm: int) -> None:
    x, g = draw(2, 5).astype(np.float64), draw(2, 3)
    experts = np.array([[4, 0, 2], [1, 3, 0]], np.int32)

    def gate(x: np.ndarray) -> np.ndarray:
        p = sigmoid(x) if norm else softmax(x)
        taken = np.take_along_axis(p, experts.astype(int), -1)
        return 1.5 * (taken / (taken.sum(-1, keepdims=True) + 1e-6) if norm else taken)

    p = (sigmoid(x) if norm else softmax(x)).astype(np.float32)
    (dx,) = nops.both("aclnnMoeGatingTopKBackward", p, g, experts, 0, norm, 1.5, 1e-6, Out((2, 5)))
    steps = np.eye(10).reshape(10, 2, 5) * 1e-5
    numeric = [((gate(x + s) - gate(x - s)) * g).sum() / 2e-5 for s in steps]
    close(dx, np.reshape(numeric, (2, 5)), 1e-4)


def test_expert_tokens_count_up_to_each_expert(nops: Ops) -> None:
    experts = np.array([0, 0, 2, 2, 3], np.int32)
    (ends,) = nops("aclnnMoeComputeExpertTokens", experts, 5, Out((5,), "int32"))
    np.testing.assert_array_equal(ends, [2, 2, 4, 5, 5])


def test_init_routing_sorts_rows_by_expert(nops: Ops) -> None:
    x, experts = draw(TOKENS, H), table()
    numbers = np.arange(TOKENS * K, dtype=np.int32).reshape(K, TOKENS).T.copy()
    order = np.argsort(experts.reshape(-1), kind="stable")
    source = numbers.reshape(-1)[order]
    slots = np.empty(TOKENS * K, np.int32)
    slots[source] = np.arange(TOKENS * K)
    args = x, numbers, experts, 4
    outs = Out((TOKENS * K,), "int32"), Out((TOKENS * K,), "int32")
    rows, found, sorted_experts = nops.both("aclnnMoeInitRouting", *args, Out((4 * K, H)), *outs)
    np.testing.assert_array_equal(rows, x[source[: 4 * K] % TOKENS])
    np.testing.assert_array_equal(found, slots)
    np.testing.assert_array_equal(sorted_experts, experts.reshape(-1)[order])
    rows, *_ = nops("aclnnMoeInitRoutingQuant", *args, 20.0, 1.5, Out((4 * K, H), "int8"), *outs)
    near(rows, np.rint(x[source[: 4 * K] % TOKENS] * 20 + 1.5))


def test_init_routing_v2_without_and_with_capacity(nops: Ops) -> None:
    x, experts = draw(TOKENS, H, dtype="float16"), table()
    flat = experts.reshape(-1)
    order = np.argsort(flat, kind="stable")
    counts = np.bincount(flat, minlength=EXPERTS)
    rows, slots, ends = nops.both(
        "aclnnMoeInitRoutingV2",
        [x, experts],
        [0, 0, EXPERTS, 0, 1, False],
        [
            Out((TOKENS * K, H), "float16"),
            Out((TOKENS * K,), "int32"),
            Out((EXPERTS,), "int32"),
            None,
        ],
    )
    np.testing.assert_array_equal(rows, x[order // K])
    np.testing.assert_array_equal(slots[order], np.arange(TOKENS * K))
    np.testing.assert_array_equal(ends, np.cumsum(counts))
    rows, slots, before = nops(
        "aclnnMoeInitRoutingV2",
        [x, experts],
        [0, 2, EXPERTS, 1, 0, True],
        [
            Out((EXPERTS, 2, H), "float16"),
            Out((TOKENS * K,), "int32"),
            None,
            Out((EXPERTS,), "int32"),
        ],
    )
    np.testing.assert_array_equal(before, counts)
    for e in range(EXPERTS):
        takers = np.flatnonzero(flat == e)
        for place in range(2):
            expected = x[takers[place] // K] if place < len(takers) else np.zeros(H)
            np.testing.assert_array_equal(rows[e, place], expected)
        np.testing.assert_array_equal(slots[takers[:2]], e * 2 + np.arange(len(takers[:2])))
        np.testing.assert_array_equal(slots[takers[2:]], -1)


def test_init_routing_quant_v2_scales_each_row(nops: Ops) -> None:
    x, experts, smooth = draw(TOKENS, H), table(), np.abs(draw(EXPERTS, H)) + 0.1
    flat = experts.reshape(-1)
    order = np.argsort(flat, kind="stable")
    rows, _, counts, scale = nops.both(
        "aclnnMoeInitRoutingQuantV2",
        [x, experts, smooth, None],
        [0, 0, EXPERTS, 0, 2, False, 1],
        [
            Out((TOKENS * K, H), "int8"),
            Out((TOKENS * K,), "int32"),
            Out((EXPERTS,), "int32"),
            None,
            Out((TOKENS * K,)),
        ],
    )
    wide = x[order // K].astype(np.float64) * smooth[flat[order]]
    close(scale, np.abs(wide).max(-1) / 127)
    near(rows, np.rint(wide / scale.astype(np.float64)[:, None]))
    np.testing.assert_array_equal(counts, np.bincount(flat, minlength=EXPERTS))


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_init_routing_v3_keeps_its_range_of_experts(nops: Ops, kind: int) -> None:
    x, experts, scale = draw(TOKENS, H), table(), draw(TOKENS)
    flat = experts.reshape(-1)
    inside = (flat >= 2) & (flat < 6)
    order = np.argsort(np.where(inside, flat, 99), kind="stable")[: inside.sum()]
    counts = np.bincount(flat[order] - 2, minlength=4)
    shape = (4, 2) if kind == 2 else (4,)
    rows, slots, tokens, carried = nops.both(
        "aclnnMoeInitRoutingV3",
        [x, experts, scale, None, TOKENS * K],
        [-1, EXPERTS, 0, kind, True, -1, (2, 6), 0],
        [
            Out((TOKENS * K, H)),
            Out((TOKENS * K,), "int32"),
            Out(shape, "int64"),
            Out((TOKENS * K,)),
        ],
    )
    n = len(order)
    np.testing.assert_array_equal(rows[:n], x[order // K])
    np.testing.assert_array_equal(carried[:n], scale[order // K])
    expected = np.full(TOKENS * K, -1)
    expected[order] = np.arange(n)
    np.testing.assert_array_equal(slots, expected)
    if kind == 2:
        pairs = [(e + 2, m) for e, m in enumerate(counts) if m]
        np.testing.assert_array_equal(tokens[: len(pairs)], pairs)
    else:
        np.testing.assert_array_equal(tokens, np.cumsum(counts) if kind == 0 else counts)


def test_finalize_routing_weighs_and_adds(nops: Ops) -> None:
    rows, x1, x2, bias = draw(TOKENS * K, H), draw(TOKENS, H), draw(TOKENS, H), draw(EXPERTS, H)
    scales, experts = draw(TOKENS, K), table()
    slots = RNG.permutation(TOKENS * K).astype(np.int32)
    lost = slots.copy()
    lost[3] = -1

    def expected(slots: np.ndarray, at: list[list[int]]) -> np.ndarray:
        sums = x1.astype(np.float64) + x2
        for t in range(TOKENS):
            for k in range(K):
                slot = slots[at[t][k]]
                row = rows[slot] if slot >= 0 else 0
                sums[t] += scales[t, k] * (row + bias[experts[t, k]])
        return sums

    columns = [[k * TOKENS + t for k in range(K)] for t in range(TOKENS)]
    lines = [[t * K + k for k in range(K)] for t in range(TOKENS)]
    (out,) = nops.both(
        "aclnnMoeFinalizeRouting", rows, x1, x2, bias, scales, slots, experts, Out((TOKENS, H))
    )
    close(out, expected(slots, columns))
    for mode, at in ((0, columns), (2, lines)):
        (out,) = nops.both(
            "aclnnMoeFinalizeRoutingV2",
            [rows, lost, x1, x2, bias, scales, experts, mode],
            Out((TOKENS, H)),
        )
        close(out, expected(lost, at))


def test_gradients_of_routing_follow_the_slots(nops: Ops) -> None:
    rows, g, scales, experts = draw(TOKENS * K, H), draw(TOKENS, H), draw(TOKENS, K), table()
    bias = draw(EXPERTS, H)
    slots = RNG.permutation(TOKENS * K).astype(np.int32)
    dx, ds = nops.both(
        "aclnnMoeFinalizeRoutingV2Grad",
        [g, slots, rows, scales, experts, bias],
        [0, 0, EXPERTS, 0],
        [Out(rows.shape), Out(scales.shape)],
    )
    expected = np.zeros_like(rows)
    expected[slots] = (g[:, None, :] * scales[..., None]).reshape(-1, H)
    close(dx, expected)
    close(ds, ((rows[slots].reshape(TOKENS, K, H) + bias[experts]) * g[:, None]).sum(-1))
    (back,) = nops.both("aclnnMoeInitRoutingV2Grad", rows, slots, K, 0, 0, Out((TOKENS, H)))
    close(back, rows[slots].reshape(TOKENS, K, H).sum(1))


def test_permute_and_unpermute_are_inverse_and_differentiate(nops: Ops) -> None:
    x, experts, probs = draw(TOKENS, H), table(), draw(TOKENS, K)
    order = np.argsort(experts.reshape(-1), kind="stable")
    place = np.argsort(order)
    rows, slots = nops.both(
        "aclnnMoeTokenPermute",
        [x, experts],
        [0, False],
        [Out((TOKENS * K, H)), Out((TOKENS * K,), "int32")],
    )
    np.testing.assert_array_equal(rows, x[order // K])
    np.testing.assert_array_equal(slots, place)
    g = draw(TOKENS * K, H)
    (dx,) = nops.both("aclnnMoeTokenPermuteGrad", g, slots, K, False, Out((TOKENS, H)))
    close(dx, g[place].reshape(TOKENS, K, H).sum(1))
    (out,) = nops.both("aclnnMoeTokenUnpermute", g, slots, probs, False, None, Out((TOKENS, H)))
    close(out, (g[place].reshape(TOKENS, K, H) * probs[..., None]).sum(1))
    dy = draw(TOKENS, H)
    drows, dprobs = nops.both(
        "aclnnMoeTokenUnpermuteGrad",
        [g, dy, slots, probs],
        [False, None],
        [Out(g.shape), Out(probs.shape)],
    )
    close(drows[place], (dy[:, None] * probs[..., None]).reshape(-1, H))
    close(dprobs, (g[place].reshape(TOKENS, K, H) * dy[:, None]).sum(-1))


def test_an_expert_parallel_rank_keeps_its_rows(nops: Ops) -> None:
    x, experts, probs = draw(TOKENS, H), table(), draw(TOKENS, K)
    order = np.argsort(experts.reshape(-1), kind="stable")
    place = np.argsort(order)
    rows, slots, kept = nops.both(
        "aclnnMoeTokenPermuteWithEp",
        [x, experts, probs, (3, 9)],
        [0, False],
        [Out((6, H)), Out((TOKENS * K,), "int32"), Out((6,))],
    )
    np.testing.assert_array_equal(rows, x[order[3:9] // K])
    np.testing.assert_array_equal(kept, probs.reshape(-1)[order[3:9]])
    np.testing.assert_array_equal(slots, place)
    inside = ((place >= 3) & (place < 9)).reshape(TOKENS, K)
    (out,) = nops.both(
        "aclnnMoeTokenUnpermuteWithEp", rows, slots, probs, K, (3, 9), False, None, Out((TOKENS, H))
    )
    close(out, x * (probs * inside).sum(-1, keepdims=True))
    g, gp = draw(6, H), draw(6)
    dx, dp = nops.both(
        "aclnnMoeTokenPermuteWithEpGrad",
        [g, slots, gp, K, (3, 9)],
        False,
        [Out((TOKENS, H)), Out((TOKENS, K))],
    )
    full, fullp = np.zeros((TOKENS * K, H)), np.zeros(TOKENS * K)
    full[order[3:9]], fullp[order[3:9]] = g, gp
    close(dx, full.reshape(TOKENS, K, H).sum(1))
    close(dp, fullp.reshape(TOKENS, K))
    dy = draw(TOKENS, H)
    drows, dprobs = nops.both(
        "aclnnMoeTokenUnpermuteWithEpGrad",
        [dy, slots, rows, probs],
        [False, None, (3, 9), K],
        [Out(rows.shape), Out(probs.shape)],
    )
    close(drows, dy[order[3:9] // K] * probs.reshape(-1)[order[3:9], None])
    close(dprobs, (x * dy).sum(-1, keepdims=True) * inside)


@pytest.mark.parametrize("pads", [False, True])
def test_a_routing_map_permutes_and_comes_back(nops: Ops, pads: bool) -> None:
    taken = np.zeros((TOKENS, 4), np.int8)
    for t in range(TOKENS):
        taken[t, RNG.permutation(4)[:2]] = 1
    x, probs = draw(TOKENS, H), draw(TOKENS, 4)
    n = 8 if pads else int(taken.sum())
    if pads:
        ids = np.concatenate([np.argsort(-taken[:, e], kind="stable")[:2] for e in range(4)])
        owners = np.repeat(np.arange(4), 2)
        expected_slots = ids
    else:
        owners, ids = np.nonzero(taken.T)
        expected_slots = np.argsort(ids, kind="stable")
    rows, kept, slots = nops.both(
        "aclnnMoeTokenPermuteWithRoutingMap",
        [x, taken, probs, n, pads],
        [Out((n, H)), Out((n,)), Out((n,), "int32")],
    )
    np.testing.assert_array_equal(rows, x[ids])
    np.testing.assert_array_equal(kept, probs[ids, owners])
    np.testing.assert_array_equal(slots, expected_slots)
    g, gp = draw(n, H), draw(n)
    dx, dp = nops.both(
        "aclnnMoeTokenPermuteWithRoutingMapGrad",
        [g, gp, slots, taken],
        [4, TOKENS, pads],
        [Out((TOKENS, H)), Out((TOKENS, 4))],
    )
    expected, weights = np.zeros((TOKENS, H)), np.zeros((TOKENS, 4))
    np.add.at(expected, ids, g)
    weights[ids, owners] = gp
    close(dx, expected)
    close(dp, weights)
    out, index, tokens, _ = nops.both(
        "aclnnMoeTokenUnpermuteWithRoutingMap",
        [g, slots, taken, probs, pads, (TOKENS, H)],
        [Out((TOKENS, H)), Out((n,), "int32"), Out((n,), "int32"), Out((n,))],
    )
    summed = np.zeros((TOKENS, H))
    np.add.at(summed, ids, g * probs[ids, owners][:, None])
    close(out, summed)
    dy = draw(TOKENS, H)
    drows, dprobs = nops.both(
        "aclnnMoeTokenUnpermuteWithRoutingMapGrad",
        [dy, index, tokens, taken, g, probs, pads, (TOKENS, H)],
        [Out((n, H)), Out((TOKENS, 4))],
    )
    close(drows, dy[ids] * probs[ids, owners][:, None])
    expected = np.zeros((TOKENS, 4))
    expected[ids, owners] = (g * dy[ids]).sum(-1)
    close(dprobs, expected)


def test_bias_gradients_sum_their_groups(nops: Ops) -> None:
    g, ends = draw(7, 3), np.array([2, 2, 7], np.int32)
    expected = np.stack([g[:2].sum(0), np.zeros(3), g[2:].sum(0)])
    (out,) = nops.both("aclnnGroupedBiasAddGrad", g, ends, Out((3, 3)))
    close(out, expected)
    sizes = np.array([2, 0, 5], np.int64)
    (out,) = nops.both("aclnnGroupedBiasAddGradV2", g, sizes, 1, Out((3, 3)))
    close(out, expected)
    cube = draw(2, 4, 3)
    (out,) = nops.both("aclnnGroupedBiasAddGrad", cube, None, Out((2, 3)))
    close(out, cube.sum(1))


@pytest.mark.parametrize("norm", [True, False])
def test_fused_top_k_opens_the_best_groups(nops: Ops, norm: bool) -> None:
    x, more = draw(4, 12), draw(12)
    y, experts = nops.both(
        "aclnnMoeFusedTopk",
        [x, more, None, None],
        [3, 2, 2, 4, 0, norm, 1.5, False],
        [Out((4, 4)), Out((4, 4), "int32")],
    )
    p = sigmoid(x)
    score = (p + more).reshape(4, 3, 4)
    total = np.sort(score, -1)[..., -2:].sum(-1)
    for row, shut in enumerate(np.argmin(total, -1)):
        score[row, shut] = 0
    order = np.argsort(-score.reshape(4, 12), axis=-1, kind="stable")[:, :4]
    chosen = np.take_along_axis(p, order, -1)
    np.testing.assert_array_equal(experts, order)
    close(y, chosen / (chosen.sum(-1, keepdims=True) if norm else 1) * 1.5)
