"""With MINDTORCH_ENABLE_CPU_FALLBACK, float64 that CANN's operators refuse is computed."""

import pytest

import mindtorch
from mindtorch._backends.npu import on_host

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")
from aclnn_bindings import AclParameterError  # noqa: E402

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
}


def matrix(t, device):
    x = t.arange(49, dtype=t.float64).reshape(7, 7).sin() + 3 * t.eye(7, dtype=t.float64)
    return x.to(device).requires_grad_()


def plain(result):
    parts = result if isinstance(result, tuple) else (result,)
    return [torch.tensor(p.detach().cpu().tolist(), dtype=torch.float64) for p in parts]


@pytest.mark.parametrize("name", CALLS)
def test_float64_gives_what_torch_gives(monkeypatch, name):
    monkeypatch.setattr(on_host, "ALLOWED", True)
    ours, theirs = matrix(mindtorch, "npu"), matrix(torch, "cpu")
    got, expected = CALLS[name](mindtorch, ours), CALLS[name](torch, theirs)
    torch.testing.assert_close(plain(got), plain(expected), rtol=1e-9, atol=1e-9)
    first = got[0] if isinstance(got, tuple) else got
    assert first.device.type == "npu"
    if first.requires_grad:
        first.sum().backward()
        (expected[0] if isinstance(expected, tuple) else expected).sum().backward()
        torch.testing.assert_close(plain(ours.grad), plain(theirs.grad), rtol=1e-7, atol=1e-7)


def test_float64_is_refused_elsewhere():
    x = mindtorch.ones(11, 11, dtype=mindtorch.float64, device="npu")
    with pytest.raises(AclParameterError):
        x @ x
