"""Kernels of loss: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, refused

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


def noise(*shape: int, seed: int = 0, dtype: Any = torch.float32) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def test_cross_entropy_refuses_targets_of_another_length(sim: Any) -> None:
    x, z = noise(2, 3), torch.zeros(1)
    refused(sim, "target should be", "aclnnCrossEntropyLoss", x, torch.tensor([1]), None, "mean",
            -100, 0.0, 0.0, False, Out(z), Out(x), Out(z), Out(z))  # fmt: skip
