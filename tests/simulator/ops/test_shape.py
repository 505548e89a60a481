"""Kernels of shape: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out
from torch_samples import values

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
DTYPES = [*FLOATS, torch.int8, torch.int32, torch.int64, torch.uint8, torch.bool]


@pytest.mark.parametrize("dtype", DTYPES)
def test_strided_assignment_equals_torch(sim: Any, dtype: Any) -> None:
    x = values(dtype, 6, 8)
    y = values(dtype, 2, 3, seed=1)
    expected = x.clone()
    expected[1:5:2, 2:8:2] = y
    sim.check("aclnnStridedSliceAssignV2", Out(expected, x), y, (1, 2), (5, 8), (2, 2), (0, 1))
