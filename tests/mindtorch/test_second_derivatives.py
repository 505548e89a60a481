"""Derivatives of gradients are torch's: zeros where slopes are constant, not absent ones."""

import numpy as np
import pytest
from agreement import agree

import mindtorch

FUNCTIONS = {
    "relu": lambda t, x: t.relu(x),
    "leaky_relu": lambda t, x: t.nn.functional.leaky_relu(x, 0.2),
    "hardtanh": lambda t, x: t.nn.functional.hardtanh(x),
    "relu6": lambda t, x: t.nn.functional.relu6(x),
    "softshrink": lambda t, x: t.nn.functional.softshrink(x),
    "hardshrink": lambda t, x: t.nn.functional.hardshrink(x),
    "threshold": lambda t, x: t.nn.functional.threshold(x, 0.1, 0.0),
    "rrelu": lambda t, x: t.nn.functional.rrelu(x),
    "prelu": lambda t, x: t.nn.functional.prelu(x, t.tensor([0.3])),
    "abs": lambda t, x: x.abs(),
    "clamp": lambda t, x: x.clamp(-0.5, 0.5),
    "max": lambda t, x: x.max(),
    "elu": lambda t, x: t.nn.functional.elu(x),
    "avg_pool": lambda t, x: t.nn.functional.avg_pool2d(x.reshape(1, 2, 2), 2),
    "adaptive_avg_pool": lambda t, x: t.nn.functional.adaptive_avg_pool2d(x.reshape(1, 2, 2), 1),
    "nll_loss": lambda t, x: t.nn.functional.nll_loss(x.reshape(2, 2), t.tensor([0, 1])),
    "prod with a zero": lambda t, x: (x * t.tensor([1.0, 0.0, 2.0, 3.0])).prod(),
    "cumprod with a zero": lambda t, x: (x * t.tensor([1.0, 0.0, 2.0, 3.0])).cumprod(0),
    "cumprod": lambda t, x: x.cumprod(0),
    "prod": lambda t, x: x.reshape(2, 2).prod(1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_derivative_of_a_constant_slope_is_zero(name):
    def run(t):
        x = t.tensor([0.3, -1.2, 2.5, 0.9], requires_grad=True)
        (slope,) = t.autograd.grad(FUNCTIONS[name](t, x).sum(), x, create_graph=True)
        if not slope.requires_grad:
            return slope
        (second,) = t.autograd.grad(slope.square().sum(), x, allow_unused=True)
        return slope, None if second is None else second + 0

    agree(run, digits=4)


def test_a_penalty_on_gradients_reaches_biases():
    def run(t):
        weight = t.tensor([[0.5, -1.0], [0.25, 2.0]], requires_grad=True)
        bias = t.tensor([0.1, -0.2], requires_grad=True)
        x = t.tensor([[1.0, -2.0], [0.5, 3.0]], requires_grad=True)
        hidden = t.nn.functional.leaky_relu(t.nn.functional.linear(x, weight, bias), 0.2)
        (slope,) = t.autograd.grad(hidden.sum(), x, create_graph=True)
        ((slope.norm(2, dim=1) - 1) ** 2).mean().backward()
        return weight.grad, bias.grad

    agree(run, digits=5)


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("reduce", ["mean", "prod", "amax"])
def test_in_place_reductions_by_index_have_gradients(reduce, device):
    def run(t):
        place = device if t.__name__ == "mindtorch" else "cpu"
        x = t.tensor([[1.0, 2.0], [3.0, 5.0], [4.0, 0.5]], device=place, requires_grad=True)
        at = t.tensor([0, 1, 1], device=place)
        sums = (x * 2).index_reduce_(0, at, x * 3, reduce, include_self=False)
        wide = at[:, None].expand(3, 2)
        sums = sums + (x * 1).scatter_reduce_(0, wide, x + 1, reduce)
        sums.square().sum().backward()
        return sums.detach().cpu(), x.grad.cpu()

    agree(run, digits=4)


def test_handles_of_tensors_hooks_are_removable_handles():
    def run(t):
        x = t.ones(2, requires_grad=True)
        return isinstance(x.register_hook(lambda g: g), t.utils.hooks.RemovableHandle)

    agree(run)


def standard(t, x, dims):
    centered = x - x.mean(dims, keepdim=True)
    return centered / (centered.square().mean(dims, keepdim=True) + 1e-5).sqrt()


# (the norm, its formula in torch, whose own third derivatives leave out what the statistics owe to
# the input)
NORMS = {
    "layer": (
        lambda t, x, w, b: t.nn.functional.layer_norm(x, (4,), w, b),
        lambda t, x, w, b: standard(t, x, (2,)) * w + b,
    ),
    "group": (
        lambda t, x, w, b: t.nn.functional.group_norm(x, 2, w, b),
        lambda t, x, w, b: (
            standard(t, x.reshape(2, 2, 8), (2,)).reshape(x.shape) * w[:, None] + b[:, None]
        ),
    ),
    "batch": (
        lambda t, x, w, b: t.nn.functional.batch_norm(x, None, None, w, b, True),
        lambda t, x, w, b: standard(t, x, (0, 2)) * w[:, None] + b[:, None],
    ),
}


def three_gradients(t, norm, dtype, device):
    """First, second and third derivatives of a sum of tanh of what is normed, as numpy."""
    x = (t.arange(32.0, dtype=t.float64) * 1.7).sin().reshape(2, 4, 4)
    leaves = [
        v.to(dtype).to(device).requires_grad_()
        for v in (x, t.arange(4.0) / 4 + 0.5, -t.arange(4.0) / 4)
    ]
    first = t.autograd.grad(norm(t, *leaves).tanh().sum(), leaves, create_graph=True)
    second = t.autograd.grad(sum((g * g).sum() for g in first), leaves[:2], create_graph=True)
    third = t.autograd.grad(sum((g * g).sum() for g in second) * 1e-2, leaves[:2])
    return [g.detach().cpu().double().numpy() for g in (*first, *second, *third)]


@pytest.mark.parametrize("name", NORMS)
def test_third_derivatives_of_norms_are_those_of_their_formulas(name):
    torch = pytest.importorskip("torch", reason="torch is the oracle")
    norm, formula = NORMS[name]
    expected = three_gradients(torch, formula, torch.float64, "cpu")
    for device, dtype, limit in (
        ("cpu", mindtorch.float64, 1e-10),
        ("npu", mindtorch.float32, 1e-4),
    ):
        for got, wanted in zip(
            three_gradients(mindtorch, norm, dtype, device), expected, strict=True
        ):
            np.testing.assert_allclose(got, wanted, atol=limit * np.abs(wanted).max())
