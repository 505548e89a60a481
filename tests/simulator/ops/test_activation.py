"""Kernels of activation: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted, refused
from torch_samples import noise

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


F = torch.nn.functional


def test_a_function_of_integers_alone_writes_integers_in_place(sim: Any) -> None:
    x = torch.tensor([-6, 0, 5], dtype=torch.int32)
    expected = torch.nn.functional.hardsigmoid(x.float()).to(torch.int32)
    accepted(sim, "aclnnInplaceHardsigmoid", Out(expected, given=x))


def test_a_negative_threshold_does_not_shrink(sim: Any) -> None:
    x = torch.ones(2)
    refused(sim, "lambd should be 0 or more", "aclnnSoftshrink", x, -0.5, Out(x))


def test_random_slopes_lie_between_their_bounds(sim: Any) -> None:
    x, zero = noise(4, 50), torch.zeros(4, 50)
    accepted(sim, "aclnnRReluWithNoise", x, zero, 0.1, 0.3, False, 1, 0, Out(F.rrelu(x, 0.1, 0.3)))
    (noise_, _), (y, _) = sim.run(
        "aclnnRReluWithNoise", x, Out(zero), 0.1, 0.3, True, 1, 0, Out(zero)
    )
    assert (noise_[x > 0] == 1).all()
    slopes = noise_[x <= 0]
    assert 0.1 <= slopes.min() < slopes.max() <= 0.3
    torch.testing.assert_close(y, x * noise_)
    ((again, _),) = sim.run(
        "aclnnInplaceRReluWithNoise", Out(zero, given=x), zero, 0.1, 0.3, True, 1, 0
    )
    torch.testing.assert_close(again, y)
