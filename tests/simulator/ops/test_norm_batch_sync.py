"""Norms with what models put around them, by autograd; batch norm in pieces."""

from typing import Any

from kernel_harness import Out, accepted
from torch_samples import noise

EPS = 1e-3


def out(tensor: Any, tolerance: float = 1e-4) -> Out:
    return Out(tensor.detach().contiguous(), tolerance=tolerance)


def test_optional_outputs_of_norms_may_be_absent(sim: Any) -> None:
    a, b, gamma = noise(2, 8), noise(2, 8, seed=1), noise(8, seed=2)
    x = a + b
    y = x * (x.square().mean(-1, keepdim=True) + EPS).rsqrt() * gamma
    accepted(sim, "aclnnAddRmsNorm", a, b, gamma, EPS, out(y), None, None)
