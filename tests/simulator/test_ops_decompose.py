"""Factorisations, Einstein sums, convolution over time, transforms and recurrent cells."""

from __future__ import annotations

from typing import Any

import pytest
from kernel_harness import Out, accepted, refused

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


def noise(*shape: int, seed: int = 0, dtype: Any = torch.float32) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


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


def test_complex_numbers_are_equal_with_both_parts(sim: Any) -> None:
    x = torch.tensor([1 + 1j, 1 + 1j, 1 + 2j, 2 + 2j])
    sim.check("aclnnIsInTensorScalar", x, 1 + 2j, False, False, Out(x == 1 + 2j))
    places = torch.zeros(4, dtype=torch.int64)
    outs = sim.run("aclnnUniqueConsecutive", x, True, True, 1000, Out(x), Out(places), Out(places))
    values = outs[0][0]
    assert values.reshape(-1)[:3].tolist() == [1 + 1j, 1 + 2j, 2 + 2j]


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


@pytest.mark.parametrize("equation", ["ij,jk->ik", "bij, bkj -> bik", "ii->i", "ij->", "i,j->ji"])
def test_einstein_sums_equal_torch(sim: Any, equation: str) -> None:
    sizes = {"i": 3, "j": 4, "k": 2, "b": 2}
    terms = equation.replace(" ", "").split("->")[0].split(",")
    operands = [noise(*(sizes[c] for c in t), seed=k) for k, t in enumerate(terms)]
    expected = torch.einsum(equation, *operands).contiguous()
    accepted(sim, "aclnnEinsum", tuple(operands), equation, Out(expected, tolerance=1e-5))


def test_equations_that_do_not_fit_are_refused(sim: Any) -> None:
    x = noise(2, 3)
    for equation in ("ij,jk->ik", "ijk->ij", "ij", "i...->i", "ij->ik"):
        refused(sim, "equation", "aclnnEinsum", (x,), equation, Out(x))


def test_convolution_over_time_and_its_gradients(sim: Any) -> None:
    x, w = noise(6, 2, 3).requires_grad_(), noise(3, 3, 4, seed=1).requires_grad_()
    b = noise(4, seed=2).requires_grad_()
    y = torch.conv_tbc(x, w, b, 1)
    given = [t.detach() for t in (x, w, b)]
    accepted(sim, "aclnnConvTbc", *given, 1, Out(y.detach(), tolerance=1e-5), 0)
    g = noise(*y.shape, seed=3)
    grads = torch.autograd.grad((y * g).sum(), (x, w, b))
    accepted(sim, "aclnnConvTbcBackward", g, *given, 1, 0, *(Out(t, tolerance=1e-5) for t in grads))


@pytest.mark.parametrize("n", [4, 7, 10])
@pytest.mark.parametrize(("norm", "name"), [(1, "backward"), (2, "forward"), (3, "ortho")])
def test_real_signals_are_transformed(sim: Any, n: int, norm: int, name: str) -> None:
    x = noise(2, 7, 3)
    expected = torch.view_as_real(torch.fft.rfft(x, n, 1, name)).contiguous()
    accepted(sim, "aclRfft1D", x, n, 1, norm, Out(expected, tolerance=1e-5))


@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
def test_short_time_transforms_equal_torch(sim: Any, onesided: bool, normalized: bool) -> None:
    x, window = noise(2, 20), torch.hann_window(6)
    expected = torch.stft(x, 8, 3, 6, window, False, normalized=normalized, onesided=onesided,
                          return_complex=True).contiguous()  # fmt: skip
    args = (8, 3, 6, normalized, onesided)
    accepted(sim, "aclStft", x, window, Out(expected, tolerance=1e-5), *args, True)
    pairs = torch.view_as_real(expected).contiguous()
    accepted(sim, "aclStft", x, window, Out(pairs, tolerance=1e-5), *args, False)


def test_the_fused_cell_and_its_gradient(sim: Any) -> None:
    inputs, hidden = noise(3, 16).requires_grad_(), noise(3, 16, seed=1)
    c, b = noise(3, 4, seed=2).requires_grad_(), noise(16, seed=3)
    gates = inputs + hidden + b + b
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * c + i * g
    hy = o * cy.tanh()
    kept = torch.cat([i, f, g, o], 1)
    seen = [t.detach() for t in (hy, cy, kept)]
    accepted(sim, "aclnnThnnFusedLstmCell", inputs.detach(), hidden, c.detach(), b, b,
             *(Out(t, tolerance=1e-5) for t in seen))  # fmt: skip
    gh, gc = noise(3, 4, seed=4), noise(3, 4, seed=5)
    dgates, dc = torch.autograd.grad((hy * gh + cy * gc).sum(), (inputs, c))
    accepted(sim, "aclnnThnnFusedLstmCellBackward", gh, gc, c.detach(), seen[1], seen[2], True,
             Out(dgates, tolerance=1e-5), Out(dc, tolerance=1e-5),
             Out(dgates.sum(0), tolerance=1e-5))  # fmt: skip
