"""Kernels of pointwise: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import LAYOUTS, Out, accepted, refused
from torch_samples import noise

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


def test_large_integers_keep_every_digit(sim: Any) -> None:
    big = torch.tensor([2**62, -(2**62), 2**53 + 1, 7])
    sim.check("aclnnAdds", big, 1, 1, Out(big + 1))
    sim.check("aclnnSWhere", big > 0, big, big * 0, Out(torch.where(big > 0, big, big * 0)))
    sim.check("aclnnMaximum", big, big.flip(0), Out(torch.maximum(big, big.flip(0))))


@pytest.mark.parametrize("n", [1, 7, 1023, 1024, 1025, 70001])
def test_every_block_length_is_covered(sim: Any, n: int) -> None:
    x, y = torch.randn(n), torch.randn(n)
    sim.check("aclnnAdd", x, y, 1.0, Out(x + y), layouts=LAYOUTS[:3])
    sim.check("aclnnMul", x.half(), y, Out(x.half() * y), layouts=LAYOUTS[:3])


def test_scales_stand_from_their_axis_on(sim: Any) -> None:
    x, scale, bias = noise(2, 3, 4, 5), noise(3, 4, seed=1), noise(3, 4, seed=2)
    accepted(
        sim, "aclnnScale", x, scale, bias, 1, 2, True, Out(x * scale[..., None] + bias[..., None])
    )
    refused(sim, "doesn't fit", "aclnnScale", x, scale, bias, 2, 2, True, Out(x))
