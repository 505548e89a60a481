"""Complex parts, distances, windows, membership and logits against torch."""

from __future__ import annotations

from typing import Any

import pytest
from kernel_harness import Out

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_complex_numbers_are_made_and_taken_apart(sim: Any, dtype: Any) -> None:
    a, b = torch.randn(3, 4, dtype=dtype), torch.randn(3, 4, dtype=dtype)
    sim.check("aclnnComplex", a, b, Out(torch.complex(a, b)))
    sim.check("aclnnPolar", a.abs(), b, Out(torch.polar(a.abs(), b)))
    if dtype == torch.float32:
        sim.check("aclnnReal", torch.complex(a, b), Out(a))
        sim.check("aclnnAbs", torch.complex(a, b), Out(torch.complex(a, b).abs()))


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
def test_distances_equal_torch(sim: Any, p: float) -> None:
    x, y = torch.randn(2, 5, 7), torch.randn(2, 4, 7)
    expected = torch.cdist(x.double(), y.double(), p).float()
    sim.check("aclnnCdist", x, y, p, 0, Out(expected))


def test_gradient_of_windows_sums_their_sources(sim: Any) -> None:
    x = torch.randn(4, 9, 3).requires_grad_()
    windows = x.unfold(1, 3, 2)
    g = torch.randn(windows.shape)
    (expected,) = torch.autograd.grad(windows, x, g)
    sim.check("aclnnUnfoldGrad", g, (4, 9, 3), 1, 3, 2, Out(expected))


def test_channels_shuffle_between_groups(sim: Any) -> None:
    x = torch.randn(2, 6, 3, 4)
    sim.check("aclnnChannelShuffle", x, 3, Out(torch.channel_shuffle(x, 3)))


@pytest.mark.parametrize("invert", [False, True])
def test_membership_equals_torch(sim: Any, invert: bool) -> None:
    x = torch.tensor([[1, 2], [3, 2]])
    expected = torch.isin(x, 2, invert=invert)
    sim.check("aclnnIsInTensorScalar", x, 2, False, invert, Out(expected))
    sim.check("aclnnIsInScalarTensor", 3, x, False, invert, Out(torch.isin(3, x, invert=invert)))


@pytest.mark.parametrize("eps", [-1.0, 0.1])
def test_logit_and_its_gradient_equal_torch(sim: Any, eps: float) -> None:
    x, g = torch.rand(5, 6).mul(0.98).add(0.01), torch.randn(5, 6)
    wide = x.double().requires_grad_()
    y = torch.logit(wide, None if eps < 0 else eps)
    (grad,) = torch.autograd.grad(y, wide, g.double())
    sim.check("aclnnLogit", x, eps, Out(y.detach().float()))
    sim.check("aclnnLogitGrad", x, g, eps, Out(grad.float()))
