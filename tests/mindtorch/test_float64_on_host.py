"""float64 is computed by the operators of CANN that take it; what none takes, on the host, where
MINDTORCH_ENABLE_CPU_FALLBACK says so."""

import pytest

import mindtorch
from mindtorch._backends.npu import on_host
from mindtorch._compat import warn_once

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")

pytestmark = pytest.mark.filterwarnings("ignore:CANN has operators that take no float64")

CALLS = {
    "eye": lambda t, x: t.eye(7, dtype=t.float64, device=x.device),
    "mm": lambda t, x: x @ x,
    "bmm": lambda t, x: t.bmm(x[None], x[None]),
    "addmm": lambda t, x: t.addmm(x, x, x),
    "mv": lambda t, x: x @ x[0],
    "cholesky": lambda t, x: t.linalg.cholesky(x * x.T + 9 * t.eye(7, device=x.device)),
    "inv": lambda t, x: t.linalg.inv(x),
    "solve": lambda t, x: t.linalg.solve(x, x + 1),
    "lstsq": lambda t, x: t.linalg.lstsq(x, x + 1)[0],
    "conv": lambda t, x: t.nn.functional.conv1d(x[None], x[None, :, :3]),
    "sort": lambda t, x: x.sort(),
    "median": lambda t, x: x.median(),
    "fft": lambda t, x: t.view_as_real(t.fft.fft(x)),
    "layer_norm": lambda t, x: t.nn.functional.layer_norm(x, (7,)),
    "mse": lambda t, x: t.nn.functional.mse_loss(x, x + 1),
    "cross_entropy": lambda t, x: t.nn.functional.cross_entropy(x, t.arange(7, device=x.device)),
    "relu in place": lambda t, x: x.clone().relu_(),
    "roll": lambda t, x: x.roll(2),
    "tanh": lambda t, x: x.tanh(),
    "nan_to_num": lambda t, x: x.nan_to_num(),
    "vectors": lambda t, x: x[0] @ x + x[1] @ x[2] + (x[None] @ x.T)[0, 0],
    "linear": lambda t, x: t.nn.functional.linear(x, x[:3], x[0, :3]),
    "expm1": lambda t, x: (x * 300 - 700).expm1() + (x / 1e9).expm1(),
    "log10": lambda t, x: (x * x + 1).log10(),
    "rounding": lambda t, x: (x * 3).trunc() + (x * 3).frac(),
    "logaddexp": lambda t, x: t.logaddexp(x, x.T) + t.logaddexp(x, x.new_full((), -t.inf)),
    "xlogy": lambda t, x: t.xlogy(x, x * x + 1) + t.xlogy(t.zeros_like(x), 2.5),
    "lerp": lambda t, x: t.lerp(x, x.T, 0.3) + t.lerp(x, x.T, x),
    "heaviside": lambda t, x: t.heaviside(x.detach().round(), x.detach()),
    "activations": lambda t, x: sum(
        getattr(t.nn.functional, f)(x * 9)
        for f in (
            "relu",
            "elu",
            "selu",
            "celu",
            "leaky_relu",
            "softplus",
            "logsigmoid",
            "mish",
            "gelu",
            "silu",
            "hardswish",
            "hardsigmoid",
            "softshrink",
            "hardshrink",
            "tanhshrink",
        )
    ),
    "gelu by tanh": lambda t, x: t.nn.functional.gelu(x, approximate="tanh"),
    "threshold": lambda t, x: t.nn.functional.threshold(x, 0.5, -7),
    "losses": lambda t, x: sum(
        getattr(t.nn.functional, f)(x, x.detach() * 3, reduction="sum")
        for f in ("mse_loss", "smooth_l1_loss", "l1_loss", "huber_loss")
    ),
    "weighted classes": lambda t, x: t.nn.functional.cross_entropy(
        x,
        t.tensor([0, 1, 2, 3, -100, 5, 6], device=x.device),
        x.detach()[0].abs(),
        label_smoothing=0.1,
    ),
    "each class": lambda t, x: t.nn.functional.nll_loss(
        x, t.arange(7, device=x.device), reduction="none"
    ),
    "descending": lambda t, x: x.sort(0, descending=True),
    "kth": lambda t, x: x.kthvalue(2, 0),
    "quantile": lambda t, x: x.quantile(0.3, 1),
    "max": lambda t, x: x.max(1),
    "min": lambda t, x: x.min(0, keepdim=True),
    "transforms": lambda t, x: sum(
        t.view_as_real(f).square().sum(-1)
        for f in (t.fft.fft(x), t.fft.ifft2(x), t.fft.hfft(x)[None])
        if f.is_complex()
    ),
    "middle of a transform": lambda t, x: t.fft.rfft(x[:, :6])[:, ::3].imag,
    "roll dims": lambda t, x: x.roll((1, -2), (0, 1)) + x.roll(5),
    "affine norm": lambda t, x: t.nn.functional.layer_norm(x, (7,), x[0], x[1]),
    "upper": lambda t, x: t.linalg.cholesky(x @ x.T, upper=True),
    "complex": lambda t, x: t.complex(x, x.T).abs(),
    "complex product": lambda t, x: t.view_as_real(t.complex(x, x.T) @ t.complex(x, x)),
    "covariance": lambda t, x: t.corrcoef(x) + t.cov(x),
    "erfinv": lambda t, x: (
        (x / 9).erfinv()
        + sum(
            t.tensor([c, -c, c * 1e-9], dtype=t.float64, device=x.device).erfinv().sum()
            for c in (1 - 1e-15, 1 - 1e-6, 0.9, 0.49, 1e-7, 0.0)
        )
    ),
    "bounded rows": lambda t, x: t.nn.functional.embedding(
        t.tensor([1, 2], device=x.device), x.detach().clone(), max_norm=0.5
    ),
    "grouped conv": lambda t, x: t.nn.functional.conv2d(
        x[None, :4, :, None] * x[:, 0],
        x[:6, :4].reshape(6, 2, 2, 1),
        x[0, :6],
        (2, 1),
        (1, 2),
        (2, 1),
        2,
    ),
    "transposed conv": lambda t, x: t.nn.functional.conv_transpose1d(
        x[None, :4], x[:4, :6].reshape(4, 2, 3), x[0, :4], 2, 1, 1, 2
    ),
    "complex conv": lambda t, x: t.view_as_real(
        t.nn.functional.conv1d(t.complex(x, x.T)[None], t.complex(x, x)[None, :, :3])
    ),
    "group_norm": lambda t, x: t.nn.functional.group_norm(x[:, :6], 2, x[0, :6], x[1, :6]),
    "maxima": lambda t, x: (
        t.nn.functional.max_pool2d(x[None], 3, 2, 1, 2, True)
        + t.nn.functional.max_pool3d(x[None, None], (1, 3, 2), (1, 2, 2))[0, :, :1, :1]
    ),
    "places of maxima": lambda t, x: t.nn.functional.max_pool2d(
        x.view(1, 1, 7, 7), 3, 2, 1, return_indices=True
    ),
    "means": lambda t, x: sum(
        t.nn.functional.avg_pool2d(x[None], 3, 2, 1, mode, inside, divisor).sum()
        for mode, inside, divisor in ((False, True, None), (True, False, None), (True, True, 5))
    ),
    "means of rows": lambda t, x: t.nn.functional.avg_pool1d(x, 2) ** 2,
    "means of blocks": lambda t, x: t.nn.functional.avg_pool3d(x[None, None], (1, 2, 3), 2) ** 2,
    "adaptive means": lambda t, x: t.nn.functional.adaptive_avg_pool2d(x[None], (3, 5)) ** 2,
    "adaptive maxima": lambda t, x: t.nn.functional.adaptive_max_pool3d(x[None, None], (1, 2, 3)),
    "batch norm": lambda t, x: t.nn.functional.batch_norm(
        x[None], x[0].detach(), x.detach()[1] ** 2, x[2], x[3]
    ),
    "batch statistics": lambda t, x: (
        t.nn.functional.batch_norm(x, None, None, x[0], x[1], True) * t.arange(7, device=x.device)
    ),
    "instances": lambda t, x: t.nn.functional.instance_norm(x[None]) ** 3,
    "chances": lambda t, x: sum(
        t.nn.functional.binary_cross_entropy(
            x.sigmoid(), (x.detach() > 0).to(x.dtype), w, reduction=r
        )
        for w, r in ((None, "mean"), (x.detach().abs(), "sum"))
    ),
    "columns": lambda t, x: t.nn.functional.unfold(x[None], (2, 3), (1, 2), (1, 0), (2, 1)) ** 2,
    "from columns": lambda t, x: (
        t.nn.functional.fold(x[:, :6].T[None].tile(1, 1, 2)[..., :12], (3, 6), (2, 1)) ** 2
    ),
    "embedding": lambda t, x: (
        t.nn.functional.embedding(t.tensor([[1, 2], [2, 6]], device=x.device), x, 6, None, 2, True)
        ** 2
    ),
    "fill": lambda t, x: x.index_fill(1, t.tensor([0, 3], device=x.device), 2.5),
    "no pairs of infinity": lambda t, x: (
        t.view_as_real(t.complex(x, x / 0).detach().nan_to_num())
        + t.view_as_real(t.complex(x, x).cfloat().detach().nan_to_num(posinf=2)) * 0
    ),
    "mode": lambda t, x: (x * 0.3).round().mode(0),
    "in order": lambda t, x: t.sort(x.detach().round(), stable=True, dim=0),
    "pairs": lambda t, x: t.view_as_real(
        t.cat([t.complex(x, x.T), t.complex(x, x).conj()], -1).tril(1).triu(-1).exp2()
    ),
    "logarithms of pairs": lambda t, x: t.view_as_real(
        t.complex(x, x.T).log() + t.complex(x, x).log10()
    ),
    "binary logarithms": lambda t, x: (
        t.logaddexp2(x, x.T) + t.logaddexp2(x, x.new_full((), -t.inf)) + t.logaddexp2(x.half(), x)
    ),
    "pairs along a line": lambda t, x: t.view_as_real(t.complex(x, x.T).cumprod(1)),
}


def matrix(t, device):
    x = t.arange(49, dtype=t.float64).reshape(7, 7).sin() + 3 * t.eye(7, dtype=t.float64)
    return x.to(device).requires_grad_()


def plain(result):
    parts = result if isinstance(result, tuple) else (result,)
    return [torch.tensor(p.detach().cpu().tolist(), dtype=torch.float64) for p in parts]


@pytest.mark.parametrize("name", CALLS)
def test_float64_gives_what_torch_gives(monkeypatch, name):
    monkeypatch.setattr(on_host, "ALLOWED", False)
    ours, theirs = matrix(mindtorch, "npu"), matrix(torch, "cpu")
    got, expected = CALLS[name](mindtorch, ours), CALLS[name](torch, theirs)
    torch.testing.assert_close(plain(got), plain(expected), rtol=1e-9, atol=1e-9)
    first = got[0] if isinstance(got, tuple) else got
    assert first.device.type == "npu"
    if first.requires_grad:
        first.sum().backward()
        (expected[0] if isinstance(expected, tuple) else expected).sum().backward()
        torch.testing.assert_close(plain(ours.grad), plain(theirs.grad), rtol=1e-7, atol=1e-7)


def test_a_matrix_without_factors_is_named():
    def refusal(lib, device):
        x = -matrix(lib, device).detach()
        text = []
        for f in (
            lib.linalg.cholesky,
            lambda m: lib.linalg.inv(m * 0),
            lambda m: lib.linalg.inv(m.float() * 0),
        ):
            with pytest.raises(lib.linalg.LinAlgError) as error:
                f(x)
            text.append(str(error.value))
        return text

    assert refusal(mindtorch, "npu") == refusal(torch, "cpu")


@pytest.mark.parametrize("name", ["eig", "ldl_factor"])
def test_what_no_operator_computes_says_how_the_host_does(monkeypatch, name):
    def run(t, device):
        return getattr(t.linalg, name)(t.tensor([[0.0, 1.0], [-1.0, 0.5]], device=device))[0]

    with pytest.raises(RuntimeError, match=r"CANN has no .*cpu\(\).*MINDTORCH_ENABLE_CPU_FALLBACK"):
        run(mindtorch, "npu")
    monkeypatch.setattr(on_host, "ALLOWED", True)
    monkeypatch.setattr(warn_once, "_warned", set())
    with pytest.warns(UserWarning, match="CANN has no .* computes them on the host"):
        ours = run(mindtorch, "npu")
    assert ours.device.type == "npu"
    assert torch.allclose(torch.tensor(ours.cpu().tolist()), run(torch, "cpu"))
