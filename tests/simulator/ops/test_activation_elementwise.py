"""Kernels of activation: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out
from torch_samples import gelu_tanh, reference, sample

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

F = torch.nn.functional
FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


GRADIENTS = {
    "SiluBackward": F.silu, "GeluBackward": gelu_tanh, "MishBackward": F.mish,
    "HardswishBackward": F.hardswish, "HardsigmoidBackward": F.hardsigmoid,
    "FastGeluBackward": lambda x: x * torch.sigmoid(1.702 * x),
}  # fmt: skip


def gradient(function: Any, x: Any, g: Any) -> Any:
    """The vector-Jacobian product in float64, rounded once."""
    wide = x.double().requires_grad_()
    return torch.autograd.grad(function(wide), wide, g.double())[0].to(x.dtype)


@pytest.mark.parametrize("dtype", FLOATS[:3])
def test_activation_gradients_equal_autograd(sim: Any, dtype: Any) -> None:
    x, g = sample(dtype), sample(dtype, seed=1)
    for name, function in GRADIENTS.items():
        sim.check(f"aclnn{name}", g, x, Out(gradient(function, x, g)))
    y = x.sigmoid()
    sim.check("aclnnSigmoidBackward", g, y, Out((g.double() * y * (1 - y.double())).to(dtype)))
    y = x.tanh()
    sim.check("aclnnTanhBackward", g, y, Out((g.double() * (1 - y.double() ** 2)).to(dtype)))
    sim.check("aclnnThresholdBackward", g, x, 0.5, Out(torch.where(x <= 0.5, g * 0, g)))
    sim.check(
        "aclnnLeakyReluBackward",
        g,
        x,
        0.1,
        False,
        Out(gradient(lambda v: F.leaky_relu(v, 0.1), x, g)),
    )
    sim.check(
        "aclnnEluBackward", g, 0.7, 1.0, 1.0, False, x, Out(gradient(lambda v: F.elu(v, 0.7), x, g))
    )
    sim.check(
        "aclnnSoftplusBackward", g, x, 2.0, 20.0, Out(gradient(lambda v: F.softplus(v, 2.0), x, g))
    )
    sim.check("aclnnHardtanhBackward", g, x, -1.0, 1.0, Out(gradient(F.hardtanh, x, g)))
    sim.check(
        "aclnnGeluBackwardV2",
        g,
        x,
        "tanh",
        Out(gradient(lambda v: F.gelu(v, approximate="tanh"), x, g)),
    )
    sim.check("aclnnHardshrinkBackward", g, x, 0.5, Out(gradient(F.hardshrink, x, g)))
    sim.check("aclnnSoftshrinkBackward", g, x, 0.5, Out(gradient(F.softshrink, x, g)))


@pytest.mark.parametrize("dtype", FLOATS[:3])
def test_parametrised_activations_equal_torch(sim: Any, dtype: Any) -> None:
    x = sample(dtype)
    sim.check("aclnnGeluV2", x, 1, Out(reference(lambda v: F.gelu(v, approximate="tanh"), x)))
    sim.check("aclnnLeakyRelu", x, 0.1, Out(reference(lambda v: F.leaky_relu(v, 0.1), x)))
    sim.check("aclnnElu", x, 0.7, 1.0, 1.0, Out(reference(lambda v: F.elu(v, 0.7), x)))
    sim.check("aclnnSoftplus", x, 2.0, 20.0, Out(reference(lambda v: F.softplus(v, 2.0), x)))
    sim.check("aclnnHardtanh", x, -1.0, 1.5, Out(reference(lambda v: F.hardtanh(v, -1.0, 1.5), x)))
    sim.check("aclnnHardshrink", x, 0.5, Out(reference(F.hardshrink, x)))
    sim.check("aclnnSoftshrink", x, 0.5, Out(reference(F.softshrink, x)))
    sim.check("aclnnThreshold", x, 0.5, 7.0, Out(F.threshold(x, 0.5, 7.0)))
    sim.check("aclnnCelu", x, 0.7, Out(reference(lambda v: F.celu(v, 0.7), x)))
    sim.check("aclnnNanToNum", x, 0.0, 1.0, -1.0, Out(x))
