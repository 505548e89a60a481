"""Gated units, rotary embeddings and linear algebra kernels against torch."""

from __future__ import annotations

from typing import Any

import pytest
from kernel_harness import Out

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")
F = torch.nn.functional

FLOATS = [torch.float32, torch.float16, torch.bfloat16]


def randn(dtype: Any, *shape: int, seed: int = 0) -> Any:
    g = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)


def with_gradient(function: Any, g: Any, *inputs: Any) -> tuple[Any, ...]:
    wide = [x.double().requires_grad_() for x in inputs]
    value = function(*wide)
    grads = torch.autograd.grad(value, wide, g.double())
    return (value.detach().to(g.dtype), *[x.to(g.dtype) for x in grads])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gated_units_and_gradients_equal_torch(sim: Any, dtype: Any, dim: int) -> None:
    x = randn(dtype, 4, 6, 8)
    g = randn(dtype, *x.chunk(2, dim)[0].shape, seed=1)
    value, grad = with_gradient(lambda v: F.glu(v, dim), g, x)
    sim.check("aclnnGlu", x, dim, Out(value))
    sim.check("aclnnGluBackward", g, x, dim, Out(grad))

    def swiglu(v: Any) -> Any:
        a, b = v.chunk(2, dim)
        return F.silu(a) * b

    value, grad = with_gradient(swiglu, g, x)
    sim.check("aclnnSwiGlu", x, dim, Out(value))
    sim.check("aclnnSwiGluGrad", g, x, dim, Out(grad))
    a, b = x.double().chunk(2, dim)
    sim.check(
        "aclnnGeGlu",
        x,
        dim,
        1,
        Out((a * F.gelu(b, approximate="tanh")).to(dtype)),
        Out(F.gelu(b, approximate="tanh").to(dtype)),
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("channels", [1, 6])
def test_prelu_and_its_gradient_equal_torch(sim: Any, dtype: Any, channels: int) -> None:
    x, w, g = randn(dtype, 4, 6, 8), randn(dtype, channels, seed=2), randn(dtype, 4, 6, 8, seed=1)
    value, gx, gw = with_gradient(F.prelu, g, x, w)
    sim.check("aclnnPrelu", x, w, Out(value))
    sim.check(
        "aclnnPreluBackward",
        g,
        x,
        w,
        Out(gx),
        Out(gw, tolerance=2e-2 if dtype.itemsize == 2 else 1e-5),
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_rotary_embeddings_turn_pairs(sim: Any, dtype: Any) -> None:
    x, cos, sin = (
        randn(dtype, 2, 5, 3, 8),
        randn(dtype, 1, 5, 1, 8, seed=1),
        randn(dtype, 1, 5, 1, 8, seed=2),
    )
    wide = x.double()
    half = torch.cat([-wide[..., 4:], wide[..., :4]], -1)
    near = torch.stack([-wide[..., 1::2], wide[..., ::2]], -1).flatten(-2)
    for mode, turned in ((0, half), (1, near)):
        expected = (wide * cos.double() + turned * sin.double()).to(dtype)
        sim.check("aclnnRotaryPositionEmbedding", x, cos, sin, mode, Out(expected))


def test_factors_and_inverses_equal_torch(sim: Any) -> None:
    a = randn(torch.float32, 3, 5, 5) + 3 * torch.eye(5)
    spd = a @ a.mT + torch.eye(5)
    sim.check("aclnnInverse", a, Out(torch.linalg.inv(a.double()).float(), tolerance=1e-5))
    sign, log = torch.linalg.slogdet(a.double())
    sim.check("aclnnSlogdet", a, Out(sign.float()), Out(log.float()))
    low = torch.linalg.cholesky(spd.double()).float()
    sim.check("aclnnLinalgCholesky", spd, False, Out(low, tolerance=1e-5))
    sim.check("aclnnLinalgCholesky", spd, True, Out(low.mT.contiguous(), tolerance=1e-5))
    b = randn(torch.float32, 3, 5, 2, seed=1)
    for upper, transpose, unit in (
        (True, False, False),
        (False, False, True),
        (True, True, False),
        (False, True, False),
    ):
        solved = torch.triangular_solve(b.double(), spd.double(), upper, transpose, unit)[0]
        sim.check(
            "aclnnTriangularSolve",
            b,
            spd,
            upper,
            transpose,
            unit,
            Out(solved.float(), tolerance=1e-5),
            Out(spd),
        )
    for mode, name in ((0, "reduced"), (1, "complete")):
        for m in (randn(torch.float32, 6, 4), randn(torch.float32, 4, 6)):
            q, r = torch.linalg.qr(m, mode=name)
            got = [x[0] for x in sim.run("aclnnLinalgQr", m, mode, Out(q), Out(r))]
            torch.testing.assert_close(got[0] @ got[1], m, rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(
                got[0].mT @ got[0], torch.eye(q.shape[1]), rtol=1e-5, atol=1e-5
            )
    u, v = randn(torch.float32, 4, 3), randn(torch.float32, 4, 3, seed=1)
    sim.check("aclnnLinalgCross", u, v, 1, Out(torch.linalg.cross(u, v)))
    x = randn(torch.float32, 4, 5, 6)
    sim.check("aclnnRenorm", x, 2, 1, 3.0, Out(torch.renorm(x, 2, 1, 3.0)))
