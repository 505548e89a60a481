"""Kernels of linalg: results equal a reference, and what they refuse."""

import math
from typing import Any

import pytest
from kernel_harness import Out, accepted
from torch_samples import noise

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 3.0, math.inf])
def test_distances_of_pairs_and_their_gradient_equal_torch(sim: Any, p: float) -> None:
    x, y = noise(2, 3, 4).requires_grad_(), noise(2, 5, 4, seed=1)
    d, g = (
        torch.cdist(x, y, p=p, compute_mode="donot_use_mm_for_euclid_dist"),
        noise(2, 3, 5, seed=2),
    )
    (expected,) = torch.autograd.grad((d * g).sum(), x)
    accepted(
        sim, "aclnnCdistBackward", g, x.detach(), y, d.detach(), p, Out(expected, tolerance=1e-4)
    )
    pairs = torch.pdist(y[0], p)
    accepted(sim, "aclnnPdist", y[0], p, Out(pairs, tolerance=1e-5))
    accepted(sim, "aclnnPdistForward", y[0], p, Out(pairs, tolerance=1e-5))
