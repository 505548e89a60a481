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


# Operators whose documents list complex types and whose cases elsewhere are real.
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_operators_of_complex_numbers_keep_both_parts(sim: Any, dtype: Any) -> None:
    x, y = torch.randn(4, 3, dtype=dtype), torch.randn(4, 3, dtype=dtype)
    square = torch.randn(5, 5, dtype=dtype)
    sim.check("aclnnTrace", square, Out(square.trace()))
    sim.check("aclnnLogdet", square, Out(square.logdet(), tolerance=1e-4))
    sim.check("aclnnLinalgCross", x, y, 1, Out(torch.linalg.cross(x, y)))
    sim.check("aclnnCumsumV2", x, 0, False, False, Out(x.cumsum(0)))
    sim.check("aclnnMeanV2", x, (0,), False, False, Out(x.mean(0)))
    sim.check("aclnnRsub", x, y, 2.0, Out(torch.rsub(x, y, alpha=2)))
    sim.check("aclnnRsubs", x, 3.0, 2.0, Out(torch.rsub(x, 3.0, alpha=2)))
    image = torch.randn(2, 3, 6, 5, dtype=dtype)
    if dtype == torch.complex64:
        columns = torch.nn.functional.unfold(image, (2, 3), (1, 1), (1, 0), (2, 1))
        sim.check("aclnnIm2col", image, (2, 3), (1, 1), (1, 0), (2, 1), Out(columns))
    at = torch.randint(0, 4, (4, 3))
    for number, name in ((1, "sum"), (2, "prod")):
        reduced = x.scatter_reduce(0, at, y, name)
        sim.check("aclnnScatterReduce", x, 0, at, y, number, True, Out(reduced))
    mask = torch.randn(4, 3) > 0
    sim.check("aclnnSWhere", mask, x, y, Out(torch.where(mask, x, y)))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(("op", "mode"), [("Reflection", "reflect"), ("Replication", "replicate")])
def test_gradients_of_complex_paddings_equal_torch(
    sim: Any, op: str, mode: str, dims: int, dtype: Any
) -> None:
    x = torch.randn(2, 3, *(4, 5, 6)[:dims], dtype=dtype, requires_grad=True)
    sides = (1, 2, 2, 1, 0, 1)[: 2 * dims]
    padded = torch.nn.functional.pad(x, sides, mode)
    g = torch.randn_like(padded)
    (grad,) = torch.autograd.grad(padded, x, g)
    sim.check(f"aclnn{op}Pad{dims}dBackward", g, x.detach(), sides, Out(grad))
