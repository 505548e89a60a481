"""Draws: true ones pass with many seeds, each planted defect is objected to."""

import numpy as np
import pytest

from mindtorch.laws.judge.distribution import objections

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
