"""torch.linalg: values, gradients and errors; decompositions up to the signs LAPACK may choose."""

import pytest
from agreement import agree

import mindtorch


def square(t):
    return t.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.5, -0.5, 2.0]], dtype=t.float64)


def tall(t):
    return (t.arange(12.0, dtype=t.float64).view(4, 3) ** 1.5) % 5


CASES = {
    "inv": lambda t, a: t.linalg.inv(a),
    "det": lambda t, a: t.linalg.det(a),
    "slogdet": lambda t, a: t.linalg.slogdet(a)[1],
    "solve": lambda t, a: t.linalg.solve(a, a[:, :2] * 2),
    "solve vector": lambda t, a: t.linalg.solve(a, a[0] * 2),
    "cholesky": lambda t, a: t.linalg.cholesky((a + a.mT) / 2),
    "eigvalsh": lambda t, a: t.linalg.eigvalsh((a + a.mT) / 2),
    "eigh rebuilt": lambda t, a: (lambda r: (r[1] * r[0].exp()) @ r[1].mT)(t.linalg.eigh((a + a.mT) / 2)),
    "svdvals": lambda t, a: t.linalg.svdvals(a),
    "svd rebuilt": lambda t, a: (lambda r: (r[0] * (r[1] ** 2)) @ r[2])(t.linalg.svd(a, full_matrices=False)),
    "qr projector": lambda t, a: (lambda r: r[0] @ (r[0].mT * 2) + (r[1].mT @ r[1]))(t.linalg.qr(a)),
    "qr tall": lambda t, a: (lambda r: (r[0] @ r[0].mT).sum(1) + (r[1].mT @ r[1]).sum())(t.linalg.qr(a)),
    "pinv": lambda t, a: t.linalg.pinv(a),
    "norm": lambda t, a: t.linalg.norm(a),
    "vector norm": lambda t, a: t.linalg.vector_norm(a, 3, dim=1),
    "fro": lambda t, a: t.linalg.matrix_norm(a),
    "nuc": lambda t, a: t.linalg.matrix_norm(a, "nuc"),
    "inf": lambda t, a: t.linalg.matrix_norm(a, float("inf")),
    "one": lambda t, a: t.linalg.norm(a, 1),
    "two": lambda t, a: t.linalg.norm(a, 2),
    "power": lambda t, a: t.linalg.matrix_power(a, 3),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_agree_with_torch(name):
    def run(t):
        a = square(t).requires_grad_()
        out = CASES[name](t, a)
        (out * (t.arange(float(out.numel()), dtype=t.float64).view(out.shape) + 1)).sum().backward()
        return [
            float(f"{v:.8g}") for v in (*out.reshape(-1).tolist(), *a.grad.reshape(-1).tolist())
        ]

    agree(run, digits=6)


@pytest.mark.parametrize("name", ["svdvals", "svd rebuilt", "qr tall", "pinv"])
def test_tall_matrices_agree_with_torch(name):
    def run(t):
        a = tall(t).requires_grad_()
        out = CASES[name](t, a)
        (out * out).sum().backward()
        return [
            float(f"{v:.8g}") for v in (*out.reshape(-1).tolist(), *a.grad.reshape(-1).tolist())
        ]

    agree(run, digits=5)


def test_wide_svd_agrees_with_torch():
    def run(t):
        a = tall(t).mT.contiguous().requires_grad_()
        out = CASES["svd rebuilt"](t, a)
        (out * out).sum().backward()
        return [float(f"{v:.8g}") for v in a.grad.reshape(-1).tolist()]

    agree(run, digits=5)


@pytest.mark.parametrize("name", ["inv", "det", "solve", "cholesky"])
def test_matrices_that_are_not_square_are_refused(name):
    agree(lambda t: CASES[name](t, t.ones(2, 3)), text=False)


def test_singular_matrix_is_refused():
    with pytest.raises(mindtorch.linalg.LinAlgError, match="singular"):
        mindtorch.linalg.inv(mindtorch.zeros(2, 2))


def small_matrices(t, sizes):
    t.manual_seed(0)
    for n in sizes:
        for dtype in (t.float32, t.float64):
            yield n, *(t.randn(n, m, dtype=dtype) for m in (n, 3, 2 * n))


def test_every_digit_of_factors_of_small_matrices_is_torchs():
    def run(t):
        solve, every = t.linalg.solve, []
        for n, a, b, _ in small_matrices(t, (1, 2, 3, 4, 5, 8, 12)):
            every += [t.linalg.lu_factor(a)[0], t.linalg.det(a), solve(a, b[:, 0])]
            every += [t.linalg.inv(a), solve(a, b)] if n < 12 else []
        return [x.tolist() for x in every]

    agree(run)


def test_signs_of_vectors_of_small_matrices_are_torchs():
    def run(t):
        every = []
        for n, a, _, wide in small_matrices(t, (2, 3, 4, 5)):
            tall = t.cat([a, a[: n // 2] * 2])
            every += [t.linalg.eigh(a + a.mT)[1], t.linalg.svd(a)[0], t.linalg.svd(wide)[0]]
            every += [t.linalg.svd(tall, False)[0], t.view_as_real(t.linalg.eig(a)[1])]
            every += [t.view_as_real(t.linalg.eigh(t.complex(a + a.mT, a - a.mT))[1])]
        return [((x * 1e3 > 1) * 1 - (x * 1e3 < -1) * 1).tolist() for x in every]

    agree(run)


def test_exponentials_take_the_polynomial_that_torch_takes():
    def run(t):
        a = t.tensor([[1.0, 2.0], [3.0, 4.0]])
        scaled = [t.matrix_exp(a * s) for s in (1e-8, 5e-5, 1e-2, 1e-1, 0.2, 1.0)]
        return (
            scaled,
            t.matrix_exp(t.stack([a, a / 100])),
            t.fft.fft(a[0]),
            t.fft.fft(t.arange(4.0)),
        )

    agree(run, digits=6)


REFUSED = {
    "of one vector": lambda t: t.linalg.solve(t.eye(3).expand(2, 3, 3), t.ones(3), left=False),
    "removed": lambda t: t.solve(t.eye(2), t.eye(2)),
    "removed too": lambda t: t.lstsq(t.eye(2), t.eye(2)),
    "driver": lambda t: t.linalg.svdvals(t.eye(2), driver="gesvd"),
    "no pivots": lambda t: t.linalg.lu(t.eye(2), pivot=False),
    "no norm": lambda t: t.linalg.cond(t.eye(2), "bad"),
    "not square": lambda t: t.linalg.eigvals(t.ones(2, 3)),
    "class": lambda t: t.linalg.inv(t.zeros(2, 2)),
    "left over": lambda t: t.linalg.inv_ex(t.zeros(2, 2))[0],
    "no numbers": lambda t: t.linalg.cholesky(t.full((3, 3), float("nan"))),
    "no end": lambda t: t.linalg.eigh(t.full((2, 3, 3), float("nan"))),
    "no end of values": lambda t: t.linalg.eigvalsh(t.full((3, 3), float("nan"))),
    "older name": lambda t: t.cholesky(-t.eye(2)),
    "inverse of a map": lambda t: t.linalg.tensorinv(t.ones(4, 4), 1),
    "narrower": lambda t: t.linalg.norm(t.ones(2).double(), dtype=t.float32),
    "whole": lambda t: t.linalg.norm(t.ones(2), dtype=t.int32),
    "pivots": lambda t: t.lu_unpack(t.eye(2), t.tensor([1, 5], dtype=t.int32)),
    "a spectrum": lambda t: t.fft.fft(t.ones(4), out=t.empty(4)),
    "a signal": lambda t: t.fft.irfft(t.ones(4), out=t.empty(4, dtype=t.int64)),
    "spectra": lambda t: t.fft.ihfftn(t.ones(4, 4, dtype=t.complex64)),
    "frequencies": lambda t: t.fft.rfftfreq(8, dtype=t.int32),
    "window": lambda t: t.stft(t.ones(9), 4, return_complex=True, align_to_window=True),
    "results": lambda t: t.return_types.max((t.ones(1),)),
}


def test_refusals_and_what_is_left_are_torchs():
    for call in REFUSED.values():
        agree(call)


def test_eigenvalues_of_a_device_lose_no_digits(dev):
    a = mindtorch.tensor([[2.0, 1.0], [1.0, 2.0]], device=dev)
    assert mindtorch.linalg.eigvalsh(a).tolist() == [1.0, 3.0]
    assert mindtorch.linalg.eigvalsh(mindtorch.eye(3, device=dev)).tolist() == [1.0] * 3


def test_transforms_lay_their_results_out_as_torch_does(dev):
    def run(t, dev):
        x = t.arange(120.0).reshape(2, 3, 4, 5).to(dev)
        every = []
        for a in (x, x.permute(3, 1, 0, 2), t.complex(x, x)):
            for dim in ((0,), (2,), (3,), (1, 0), (0, 2), (2, 1, 0)):
                every += [f(a, dim=dim).stride() for f in (t.fft.fftn, t.fft.irfftn, t.fft.hfftn)]
                if not a.is_complex():
                    every += [f(a, dim=dim).stride() for f in (t.fft.rfftn, t.fft.ihfftn)]
        every += [t.fft.ifft(x).is_conj(), [str(n) for n in t.fft.fft(t.ones(4)).tolist()]]
        return every

    torch = pytest.importorskip("torch", reason="torch 2.13 is the oracle")
    assert run(mindtorch, dev) == run(torch, "cpu")


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3), (3, 0), (0, 2, 2)])
def test_factors_of_nothing_have_torchs_shapes(dtype, shape):
    def run(t):
        a = t.zeros(shape, dtype=getattr(t, dtype))
        parts = (*t.linalg.lu_factor(a), *t.linalg.lu(a), *t.linalg.svd(a), *t.linalg.qr(a))
        return [(tuple(p.shape), str(p.dtype).rpartition(".")[2]) for p in parts]

    assert run(mindtorch) == run(pytest.importorskip("torch", reason="torch 2.13 is the oracle"))


@pytest.mark.parametrize("dev", ["cpu", "npu"])
@pytest.mark.parametrize("shape", [(2, 2), (3, 2, 2)])
@pytest.mark.parametrize("checked", [False, True])
def test_factors_of_a_singular_matrix_are_refused_as_in_torch(shape, dev, checked):
    def run(t):
        a = t.zeros(shape, device=dev if t is mindtorch else "cpu")
        return t.linalg.lu_factor_ex(a, check_errors=True) if checked else t.linalg.lu_factor(a)

    assert agree(run)[0] == "raised"
