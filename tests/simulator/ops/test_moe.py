"""Kernels of moe: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out
from torch_samples import noise

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


def test_sinkhorn_makes_rows_and_columns_weigh_the_same(sim: Any) -> None:
    x = noise(4, 3)
    ((p, _),) = sim.run("aclnnSinkhorn", x, 1e-7, Out(torch.zeros(4, 3)))
    torch.testing.assert_close(p.sum(0), torch.full((3,), 1 / 3), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(p.sum(1), torch.full((4,), 1 / 4), rtol=1e-3, atol=1e-4)
    ratio = (p / x.exp()).log()  # of rank one
    torch.testing.assert_close(ratio - ratio[:1] - ratio[:, :1] + ratio[0, 0], torch.zeros(4, 3),
                               rtol=0, atol=1e-4)  # fmt: skip
