"""Kernels of creation: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted
from torch_samples import values

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]


def test_linspace_and_arange_fill_integers_and_any_shape(sim: Any) -> None:
    for dtype in INTEGERS:
        accepted(sim, "aclnnLinspace", 0, 10, 5, Out(torch.linspace(0, 10, 5).to(dtype)))
        accepted(sim, "aclnnArange", 0, 6, 1, Out(torch.arange(6, dtype=dtype).view(2, 3)))


FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
DTYPES = [*FLOATS, torch.int8, torch.int32, torch.int64, torch.uint8, torch.bool]


@pytest.mark.parametrize("dtype", DTYPES)
def test_fills_and_copies_reach_only_the_view(sim: Any, dtype: Any) -> None:
    x, y = values(dtype, 4, 5, 3), values(dtype, 5, 1, seed=1)
    sim.check("aclnnInplaceZero", Out(torch.zeros_like(x), x))
    sim.check("aclnnInplaceOne", Out(torch.ones_like(x), x))
    sim.check("aclnnInplaceFillScalar", Out(torch.full_like(x, 3), x), 3)
    sim.check("aclnnInplaceCopy", Out(y.expand(4, 5, 3).contiguous(), x), y)
    sim.check("aclnnInplaceFillTensor", Out(torch.full_like(x, 1), x), torch.ones((), dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.float16])
def test_ranges_equal_torch(sim: Any, dtype: Any) -> None:
    sim.check("aclnnArange", 2, 17, 3, Out(torch.arange(2, 17, 3, dtype=dtype)))
    sim.check("aclnnArange", 9, -3, -2, Out(torch.arange(9, -3, -2, dtype=dtype)))
    sim.check("aclnnRange", 2, 17, 3, Out(torch.arange(2, 18, 3, dtype=dtype)))
    sim.check("aclnnEye", 3, 5, Out(torch.eye(3, 5, dtype=dtype)))
    if dtype.is_floating_point:
        sim.check("aclnnArange", 0.0, 1.0, 0.1, Out(torch.arange(0, 1, 0.1, dtype=dtype)))
        sim.check("aclnnLinspace", -1.0, 2.0, 7, Out(torch.linspace(-1, 2, 7, dtype=dtype)))
