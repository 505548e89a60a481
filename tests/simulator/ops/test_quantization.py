"""Kernels of quantization: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


def test_signs_pack_into_bits(sim: Any) -> None:
    x = torch.tensor([5.0, 4, 3, 2, 0, -1, -2, 4, 3, 2, 1, 0, -1, -2])
    packed = torch.tensor([[159], [15]], dtype=torch.uint8)
    accepted(sim, "aclnnSignBitsPack", x, 2, Out(packed))
    signs = torch.cat([torch.where(x >= 0, 1.0, -1.0), -torch.ones(2)])
    accepted(sim, "aclnnSignBitsUnpack", packed.flatten(), 2, torch.float32, Out(signs.view(2, 8)))
