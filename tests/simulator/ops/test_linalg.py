"""Kernels of linalg: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out
from torch_samples import noise

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


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
