"""Kernels of rotary: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out
from torch_samples import randn

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

FLOATS = [torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", FLOATS)
def test_rotary_embeddings_turn_pairs(sim: Any, dtype: Any) -> None:
    x, cos, sin = (
        randn(dtype, 2, 5, 3, 8),
        randn(dtype, 1, 5, 1, 8, seed=1),
        randn(dtype, 1, 5, 1, 8, seed=2),
    )
    wide = x.double()
    half = torch.cat([-wide[..., 4:], wide[..., :4]], -1)
    near = torch.stack([-wide[..., 1::2], wide[..., ::2]], -1).flatten(-2)
    for mode, turned in ((0, half), (1, near)):
        expected = (wide * cos.double() + turned * sin.double()).to(dtype)
        sim.check("aclnnRotaryPositionEmbedding", x, cos, sin, mode, Out(expected))
