"""Kernels of activation: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out
from torch_samples import fixed_values as values

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax_family_equals_torch(sim: Any, dtype: Any, dim: int) -> None:
    x, g = values(dtype), values(dtype).flip(0)
    y, z = x.double().softmax(dim), x.double().log_softmax(dim)
    sim.check("aclnnSoftmax", x, dim, Out(y.to(dtype)))
    sim.check("aclnnLogSoftmax", x, dim, Out(z.to(dtype)))
    y, z, w = y.to(dtype), z.to(dtype), g.double()
    grad = y.double() * (w - (w * y.double()).sum(dim, keepdim=True))
    sim.check("aclnnSoftmaxBackward", g, y, dim, Out(grad.to(dtype)))
    grad = w - z.double().exp() * w.sum(dim, keepdim=True)
    sim.check("aclnnLogSoftmaxBackward", g, z, dim, Out(grad.to(dtype)))
    sim.check("aclnnLogSumExp", x, (dim,), False, Out(x.double().logsumexp(dim).to(dtype)))


def test_softmax_of_masked_rows_equals_torch(sim: Any) -> None:
    inf = float("inf")
    x = torch.tensor([[0.0, -inf, 2.0], [-inf, -inf, -inf], [inf, 1.0, 2.0], [1e4, -1e4, 0.0]])
    sim.check("aclnnSoftmax", x, -1, Out(x.softmax(-1)))
    across = torch.randn(3, 70, 33)
    across[0, :, 4] = -torch.inf
    across[1, 2, 5] = torch.nan
    sim.check("aclnnSoftmax", across, 1, Out(across.softmax(1)))
    sim.check("aclnnLogSoftmax", across.double(), 0, Out(across.double().log_softmax(0)))
    sim.check("aclnnLogSumExp", x, (1,), False, Out(x.logsumexp(1)))
