"""Kernels of random: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


def test_one_probability_serves_all_of_bernoulli(sim: Any) -> None:
    x = torch.zeros(3, 4)
    for p in (0.0, 1.0):
        accepted(sim, "aclnnBernoulliTensor", x, torch.tensor(p), 1, 0, Out(torch.full((3, 4), p)))


def test_dropout_keeps_what_bernoulli_of_the_rest_draws(sim: Any) -> None:
    """So that a dropout in place, which clients make of Bernoulli, agrees for one seed."""
    x = torch.ones(8, 64)
    drawn = sim.run("aclnnInplaceBernoulli", Out(x, given=x), 0.7, 5, 3)[0][0]
    mask = torch.zeros(64, dtype=torch.uint8)
    kept = sim.run("aclnnDropout", x, 0.3, True, 5, 3, Out(x), Out(mask))[0][0]
    assert 0.5 < (drawn != 0).float().mean() < 0.9
    assert torch.equal(kept != 0, drawn != 0)


def test_the_state_of_a_generator_may_be_signed(sim: Any) -> None:
    """torch keeps seeds and offsets as int64."""
    zeros = torch.zeros(64)
    drawn = [
        sim.run("aclnnInplaceUniformTensor", Out(zeros, given=zeros), 0.0, 1.0, state, state, 0)
        for state in (torch.tensor([3]), torch.tensor([3], dtype=torch.uint64))
    ]
    assert torch.equal(drawn[0][0][0], drawn[1][0][0])
    assert drawn[0][0][0].std() > 0.2


def test_seeds_in_tensors_give_the_numbers_of_seeds_on_the_host(sim: Any) -> None:
    zero = torch.zeros(200)
    for op, args in {"Normal": (1.0, 2.0), "Uniform": (0.0, 2.0), "Random": (0, 9)}.items():
        ((here, _),) = sim.run(f"aclnnInplace{op}", Out(zero), *args, 3, 5)
        width = torch.uint64 if op == "Uniform" else torch.int64
        seeds = (torch.tensor([3]).to(width), torch.tensor([4]).to(width))
        ((there, _),) = sim.run(f"aclnnInplace{op}Tensor", Out(zero), *args, *seeds, 1)
        torch.testing.assert_close(there, here)
        assert len(here.unique()) > 5


def test_random_streams_repeat_by_seed_and_offset_and_have_the_right_shape(sim: Any) -> None:
    zeros = torch.zeros(200, 300)

    def draw(op: str, *args: Any, like: Any = zeros) -> Any:
        return sim.run(op, Out(like), *args)[0][0]

    a = draw("aclnnInplaceUniform", -1.0, 3.0, 7, 0)
    assert torch.equal(a, draw("aclnnInplaceUniform", -1.0, 3.0, 7, 0))
    assert not torch.equal(a, draw("aclnnInplaceUniform", -1.0, 3.0, 7, 4))
    assert a.min() >= -1
    assert a.max() < 3
    assert abs(float(a.mean()) - 1) < 0.02
    n = draw("aclnnInplaceNormal", 1.0, 2.0, 7, 0)
    assert abs(float(n.mean()) - 1) < 0.03
    assert abs(float(n.std()) - 2) < 0.03
    assert abs(float(((n - 1) / 2).pow(4).mean()) - 3) < 0.2
    r = draw("aclnnInplaceRandom", -3, 5, 1, 0, like=zeros.long())
    assert sorted(r.unique().tolist()) == list(range(-3, 5))
    b = draw("aclnnInplaceBernoulli", 0.3, 1, 0)
    assert set(b.unique().tolist()) == {0.0, 1.0}
    assert abs(float(b.mean()) - 0.3) < 0.02
    p = sim.run("aclnnRandperm", 100, 3, 0, Out(torch.zeros(100, dtype=torch.int64)))[0][0]
    assert sorted(p.tolist()) == list(range(100))
    weights = torch.tensor([0.0, 1.0, 3.0, 0.0])
    drawn = sim.run("aclnnMultinomial", weights, 4000, True, 5, 0, Out(torch.zeros(4000).long()))[
        0
    ][0]
    counts = drawn.bincount(minlength=4)
    assert counts[0] == counts[3] == 0
    assert abs(int(counts[2]) - 3000) < 150


def test_dropout_keeps_and_scales_what_its_mask_says(sim: Any) -> None:
    x = torch.ones(1000)
    mask = torch.zeros(128, dtype=torch.uint8)
    out, bits = [r[0] for r in sim.run("aclnnDropout", x, 0.25, True, 1, 0, Out(x), Out(mask))]
    kept = torch.tensor([bool(bits[i // 8] >> (i % 8) & 1) for i in range(1000)])
    assert abs(float(kept.float().mean()) - 0.75) < 0.05
    assert torch.equal(out, kept / 0.75)
    sim.check("aclnnDropoutDoMask", x, bits, 0.25, Out(kept / 0.75))
    sim.check("aclnnDropoutBackward", x, bits, 2.0, Out(kept * 2.0))
    drawn = sim.run("aclnnDropoutGenMask", (1000,), 0.25, 1, 0, Out(mask))[0][0]
    assert torch.equal(drawn, bits)
    sim.check("aclnnDropout", x, 0.25, False, 1, 0, Out(x), Out(mask))
