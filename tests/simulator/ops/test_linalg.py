"""Kernels of linalg: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted
from torch_samples import noise, randn

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
def test_distances_equal_torch(sim: Any, p: float) -> None:
    x, y = torch.randn(2, 5, 7), torch.randn(2, 4, 7)
    expected = torch.cdist(x.double(), y.double(), p).float()
    sim.check("aclnnCdist", x, y, p, 0, Out(expected))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 5), (1, 1)])
@pytest.mark.parametrize("some", [True, False])
def test_orthogonal_factors_equal_torch(sim: Any, dtype: Any, shape: Any, some: bool) -> None:
    x = noise(*shape, dtype=dtype)
    q, r = torch.linalg.qr(x, "reduced" if some else "complete")
    wide = not some and shape[-2] > shape[-1]  # what completes the basis is open
    ((found_q, _), (found_r, _)) = sim.run("aclnnQr", x, some, Out(q), Out(r))
    torch.testing.assert_close(found_r, r, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found_q @ found_r, x, rtol=1e-4, atol=1e-4)
    eye = torch.eye(q.shape[-1], dtype=dtype).expand(*q.shape[:-2], -1, -1)
    torch.testing.assert_close(found_q.mH @ found_q, eye, rtol=1e-4, atol=1e-4)
    if not wide:
        torch.testing.assert_close(found_q, q, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.complex128])
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_factors_by_mode_keep_imaginary_parts(sim: Any, dtype: Any, mode: str) -> None:
    x = noise(2, 3, 5, dtype=dtype)
    q, r = torch.linalg.qr(x, mode)
    code = ("reduced", "complete", "r").index(mode)
    outs = sim.run("aclnnLinalgQr", x, code, Out(torch.empty_like(x) if mode == "r" else q), Out(r))
    torch.testing.assert_close(outs[1][0], r, rtol=1e-4, atol=1e-4)
    if mode != "r":
        torch.testing.assert_close(outs[0][0], q, rtol=1e-4, atol=1e-4)


def test_a_triangle_is_its_own_factor(sim: Any) -> None:
    x = torch.tensor([[2.0, 1.0], [0.0, -3.0]])
    q, r = torch.linalg.qr(x)
    sim.check("aclnnLinalgQr", x, 0, Out(q), Out(r))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_determinants_and_cross_products_keep_imaginary_parts(sim: Any, dtype: Any) -> None:
    a = noise(2, 4, 4, dtype=dtype)
    sign, log = torch.linalg.slogdet(a)
    sim.check("aclnnSlogdet", a, Out(sign, tolerance=1e-5), Out(log, tolerance=1e-5))
    sim.check("aclnnLogdet", a, Out(torch.logdet(a), tolerance=1e-5))
    sign, log = torch.linalg.slogdet(torch.zeros(2, 2, dtype=dtype))
    sim.check("aclnnSlogdet", torch.zeros(2, 2, dtype=dtype), Out(sign), Out(log))
    u, v = noise(4, 3, dtype=dtype), noise(4, 3, seed=1, dtype=dtype)
    sim.check("aclnnLinalgCross", u, v, 1, Out(torch.linalg.cross(u, v), tolerance=1e-5))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 5)])
@pytest.mark.parametrize("full", [True, False])
def test_singular_values_and_vectors_compose_their_matrix(
    sim: Any, dtype: Any, shape: Any, full: bool
) -> None:
    x = noise(*shape, dtype=dtype)
    x[..., 0] = x[..., 1]  # of less than full rank
    u, s, vh = torch.linalg.svd(x, full_matrices=full)
    real = s if dtype != torch.complex64 else s.to(dtype)
    ((sigma, _), (found_u, _), (v, _)) = sim.run(
        "aclnnSvd", x, full, True, Out(real), Out(u), Out(vh.mH.contiguous())
    )
    torch.testing.assert_close(sigma, real, rtol=1e-4, atol=1e-4)
    k = s.shape[-1]
    again = (found_u[..., :k] * sigma[..., None, :].to(dtype)) @ v[..., :k].mH
    torch.testing.assert_close(again, x, rtol=1e-4, atol=1e-4)
    for basis in (found_u, v):
        eye = torch.eye(basis.shape[-1], dtype=dtype).expand(*basis.shape[:-2], -1, -1)
        torch.testing.assert_close(basis.mH @ basis, eye, rtol=1e-4, atol=1e-4)


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


def test_renorm_with_an_order_of_zero_counts(sim: Any) -> None:
    x = torch.tensor([[3.0, 0.0, 4.0], [1.0, 1.0, 1.0]])
    scale = torch.tensor([[1.0], [2 / (3 + 1e-7)]])
    accepted(sim, "aclnnRenorm", x, 0.0, 0, 2.0, Out(x * scale))
    accepted(sim, "aclnnEmbeddingRenorm", Out(x * scale, given=x), torch.tensor([0, 1]), 2.0, 0.0)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, float("inf")])
def test_distances_broadcast_leading_dims(sim: Any, p: float) -> None:
    g = torch.Generator().manual_seed(1)
    for a, b in (((2, 1, 3, 4), (5, 2, 4)), ((3, 4), (2, 5, 4)), ((2, 3, 4), (1, 2, 4))):
        x, y = torch.randn(*a, generator=g), torch.randn(*b, generator=g)
        accepted(sim, "aclnnCdist", x, y, p, 0, Out(torch.cdist(x, y, p=p), tolerance=1e-5))
