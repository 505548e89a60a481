"""Draws: true ones pass with many seeds, each planted defect is objected to."""

import numpy as np
import pytest
from mindtorch_npu.judge.distribution import objections

N = 10007
TRUE = {
    ("uniform", (-3.0, 5.0)): lambda r: r.uniform(-3, 5, N),
    ("normal", (2.0, 0.25)): lambda r: r.normal(2, 0.25, N),
    ("integers", (0, 10)): lambda r: r.integers(0, 10, N),
    ("permutation", ()): lambda r: r.permutation(N),
}  # fmt: skip


def asked(kind, params, drawn, rng, **changes):
    fresh = TRUE[kind, params]
    given = {"again": drawn, "other": fresh(rng), "later": fresh(rng), **changes}
    return objections(kind, params, drawn, **given)


@pytest.mark.parametrize(("kind", "params"), TRUE)
def test_true_draws_of_a_hundred_seeds_pass(kind, params):
    for seed in range(100):
        rng = np.random.default_rng(seed)
        assert asked(kind, params, TRUE[kind, params](rng), rng) == []


@pytest.mark.parametrize(
    ("kind", "params", "draw", "says"),
    [
        ("normal", (2.0, 0.25), lambda r: r.normal(2, 1, N), "variance"),
        ("normal", (2.0, 0.25), lambda r: r.normal(2.05, 0.25, N), "mean"),
        ("normal", (2.0, 0.25), lambda r: r.uniform(2 - 0.433, 2 + 0.433, N), "Kolmogorov"),
        ("uniform", (-3.0, 5.0), lambda r: r.uniform(-3, 5.1, N), "outside"),
        ("uniform", (-3.0, 5.0), lambda r: np.repeat(r.uniform(-3, 5, N // 2 + 1), 2)[:N],
         "neighbours"),
        ("integers", (0, 10), lambda r: r.integers(0, 9, N), "mean"),
        ("permutation", (), lambda r: np.arange(N), "stay in place"),
        ("permutation", (), lambda r: r.integers(0, N, N), "occurs once"),
    ],
)  # fmt: skip
def test_defect_is_objected_to(kind, params, draw, says):
    rng = np.random.default_rng(3)
    assert any(says in o for o in asked(kind, params, draw(rng), rng))


def test_seed_that_is_ignored_and_one_that_does_not_repeat_are_objected_to():
    rng = np.random.default_rng(0)
    drawn = rng.uniform(-3, 5, N)
    params = (-3.0, 5.0)
    assert any("another seed" in o for o in asked("uniform", params, drawn, rng, other=drawn))
    assert any("gives other" in o or "give other" in o
               for o in asked("uniform", params, drawn, rng, again=drawn[::-1]))  # fmt: skip


CHANCES = np.random.default_rng(99).uniform(0, 1, N)
WEIGHTS = np.random.default_rng(99).uniform(0.1, 1, (331, 9))


def picked(rng, weights, replace):
    chance = weights / weights.sum(-1, keepdims=True)
    return np.array([rng.choice(9, 4, replace, p) for p in chance])


@pytest.mark.parametrize(
    ("kind", "params", "draw"),
    [
        ("bernoulli", np.asarray(0.3), lambda r: r.uniform(0, 1, N) < 0.3),
        ("bernoulli", CHANCES, lambda r: r.uniform(0, 1, N) < CHANCES),
        ("categories", (WEIGHTS, True), lambda r: picked(r, WEIGHTS, True)),
        ("categories", (WEIGHTS, False), lambda r: picked(r, WEIGHTS, False)),
    ],
)
def test_true_choices_pass(kind, params, draw):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        drawn = draw(rng)
        assert objections(kind, params, drawn, drawn, draw(rng), draw(rng)) == []


@pytest.mark.parametrize(
    ("kind", "params", "draw", "says"),
    [
        ("bernoulli", np.asarray(0.3), lambda r: r.uniform(0, 1, N) < 0.7, "ones are"),
        ("bernoulli", np.asarray(0.3), lambda r: 2.0 * (r.uniform(0, 1, N) < 0.3), "neither"),
        ("bernoulli", CHANCES, lambda r: r.uniform(0, 1, N) < 1 - CHANCES, "by chance"),
        ("bernoulli", np.asarray(0.5), lambda r: np.tile(r.uniform(0, 1, 1024) < 0.5, 10)[:N],
         "1024 apart"),
        ("categories", (WEIGHTS, True), lambda r: r.integers(0, 9, (331, 4)), "more"),
        ("categories", (WEIGHTS, True), lambda r: r.integers(0, 10, (331, 4)), "outside"),
        ("categories", (WEIGHTS, False), lambda r: picked(r, WEIGHTS, True), "repeat"),
    ],
)  # fmt: skip
def test_wrong_choices_are_objected_to(kind, params, draw, says):
    rng = np.random.default_rng(3)
    drawn = draw(rng)
    assert any(says in o for o in objections(kind, params, drawn, drawn, draw(rng), draw(rng)))


def test_complex_draws_of_a_real_distribution_have_no_imaginary_parts():
    rng = np.random.default_rng(0)
    draws = [rng.integers(0, 10, 1000).astype(np.complex64) for _ in range(3)]
    assert not objections("integers", (0, 10), draws[0], draws[0], draws[1], draws[2])
    draws[1][3] += 1j
    told = objections("integers", (0, 10), draws[0], draws[0], draws[1], draws[2])
    assert told == ["1 draws have imaginary parts, which no distribution here has"]
