"""Kernels of activation: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted, refused
from torch_samples import noise, randn

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


@pytest.mark.parametrize("eps", [-1.0, 0.1])
def test_logit_and_its_gradient_equal_torch(sim: Any, eps: float) -> None:
    x, g = torch.rand(5, 6).mul(0.98).add(0.01), torch.randn(5, 6)
    wide = x.double().requires_grad_()
    y = torch.logit(wide, None if eps < 0 else eps)
    (grad,) = torch.autograd.grad(y, wide, g.double())
    sim.check("aclnnLogit", x, eps, Out(y.detach().float()))
    sim.check("aclnnLogitGrad", x, g, eps, Out(grad.float()))


F = torch.nn.functional
FLOATS = [torch.float32, torch.float16, torch.bfloat16]


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


def test_a_function_of_integers_alone_writes_integers_in_place(sim: Any) -> None:
    x = torch.tensor([-6, 0, 5], dtype=torch.int32)
    expected = torch.nn.functional.hardsigmoid(x.float()).to(torch.int32)
    accepted(sim, "aclnnInplaceHardsigmoid", Out(expected, given=x))


def test_a_negative_threshold_does_not_shrink(sim: Any) -> None:
    x = torch.ones(2)
    refused(sim, "lambd should be 0 or more", "aclnnSoftshrink", x, -0.5, Out(x))


def test_gelu_is_the_tanh_form_and_v2_says_which(sim: Any) -> None:
    x = torch.linspace(-4, 4, 33)
    gelu = torch.nn.functional.gelu
    accepted(sim, "aclnnGelu", x, Out(gelu(x, approximate="tanh")))
    accepted(sim, "aclnnGeluV2", x, 0, Out(gelu(x), tolerance=1e-5))


def test_a_slope_per_channel_may_have_the_shape_that_broadcasts(sim: Any) -> None:
    x, slope = torch.randn(2, 3, 4), torch.rand(3)
    expected = torch.nn.functional.prelu(x, slope)
    for shape in ((3,), (1, 3, 1)):
        accepted(sim, "aclnnPrelu", x, slope.view(shape), Out(expected, tolerance=1e-6))


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("left", [False, True])
def test_gelu_gates_have_gradients(sim: Any, approximate: str, left: bool) -> None:
    x, g = noise(3, 8).requires_grad_(), noise(3, 4, seed=1)
    halves = x.chunk(2, -1)
    active, other = halves if left else halves[::-1]
    gelu = F.gelu(active, approximate=approximate)
    (expected,) = torch.autograd.grad((gelu * other * g).sum(), x)
    args = (g, x.detach(), gelu.detach(), -1, int(approximate == "tanh"))
    accepted(sim, "aclnnGeGluV3Backward", *args, left, Out(expected, tolerance=1e-5))
    if not left:
        accepted(sim, "aclnnGeGluBackward", *args, Out(expected, tolerance=1e-5))
    a, b = x.detach().chunk(2, -1)
    accepted(sim, "aclnnGeluMul", x.detach(), approximate,
             Out(F.gelu(a, approximate=approximate) * b, tolerance=1e-5))  # fmt: skip


def test_fat_relu_keeps_what_exceeds_its_threshold(sim: Any) -> None:
    x = noise(3, 8)
    a, b = x.chunk(2, -1)
    accepted(sim, "aclnnFatreluMul", x, torch.tensor([0.3]), Out(torch.where(a > 0.3, a, 0.0) * b))


@pytest.mark.parametrize("fixed", [False, True])
def test_masked_softmax_and_its_gradient(sim: Any, fixed: bool) -> None:
    x = noise(2, 3, 4, 4).requires_grad_()
    mask = torch.ones(4, 4).triu(1).bool() if fixed else noise(2, 1, 4, 4, seed=1) > 0.5
    y = (x * 0.7).masked_fill(mask, -10000.0).softmax(-1)
    accepted(
        sim,
        "aclnnScaledMaskedSoftmax",
        x.detach(),
        mask,
        0.7,
        fixed,
        Out(y.detach(), tolerance=1e-5),
    )
    g = noise(2, 3, 4, 4, seed=2)
    (expected,) = torch.autograd.grad((y * g).sum(), x)
    accepted(sim, "aclnnScaledMaskedSoftmaxBackward", g, y.detach(), mask, 0.7, fixed,
             Out(expected, tolerance=1e-4))  # fmt: skip


def test_random_slopes_lie_between_their_bounds(sim: Any) -> None:
    x, zero = noise(4, 50), torch.zeros(4, 50)
    accepted(sim, "aclnnRReluWithNoise", x, zero, 0.1, 0.3, False, 1, 0, Out(F.rrelu(x, 0.1, 0.3)))
    (noise_, _), (y, _) = sim.run(
        "aclnnRReluWithNoise", x, Out(zero), 0.1, 0.3, True, 1, 0, Out(zero)
    )
    assert (noise_[x > 0] == 1).all()
    slopes = noise_[x <= 0]
    assert 0.1 <= slopes.min() < slopes.max() <= 0.3
    torch.testing.assert_close(y, x * noise_)
    ((again, _),) = sim.run(
        "aclnnInplaceRReluWithNoise", Out(zero, given=x), zero, 0.1, 0.3, True, 1, 0
    )
    torch.testing.assert_close(again, y)
