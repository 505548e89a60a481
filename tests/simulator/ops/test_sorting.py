"""Kernels of sorting: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out
from torch_samples import fixed_values as values

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32, torch.int64])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_order_equals_torch_with_ties_in_place(sim: Any, dtype: Any, dim: int) -> None:
    x = values(dtype)
    for descending in (False, True):
        best, at = x.sort(stable=True, dim=dim, descending=descending)
        sim.check("aclnnSort", x, True, dim, descending, Out(best), Out(at))
        sim.check("aclnnArgsort", x, dim, descending, Out(at))
    for largest in (False, True):
        best, at = x.topk(3, dim, largest)
        sim.check("aclnnTopk", x, 3, dim, largest, True, Out(best), Out(at))
    best, at = x.kthvalue(2, dim)
    sim.check("aclnnKthvalue", x, 2, dim, False, Out(best), Out(at))
    best, at = x.median(dim)
    got = sim.run("aclnnMedianDim", x, dim, False, Out(best), Out(at))
    assert torch.equal(got[0][0], best)
    sim.check("aclnnMedian", x, Out(x.median()))


@pytest.mark.parametrize("size", [1, 2, 5, 16, 17, 40, 200])
def test_ties_fall_as_in_torch(sim: Any, size: int) -> None:
    x = torch.randint(0, 3, (3, size), generator=torch.manual_seed(size)).float()
    for k in {1, min(2, size), (size + 1) // 2, size}:
        for largest in (False, True):
            for ordered in (False, True):
                best, at = x.topk(k, 1, largest, ordered)
                sim.check("aclnnTopk", x, k, 1, largest, ordered, Out(best), Out(at))
        best, at = x.kthvalue(k, 1)
        sim.check("aclnnKthvalue", x, k, 1, False, Out(best), Out(at))


def test_nan_sorts_last_and_is_the_median(sim: Any) -> None:
    x = torch.tensor([3.0, float("nan"), 1.0, -float("inf"), float("inf")])
    best, at = x.sort()
    sim.check("aclnnSort", x, True, 0, False, Out(best), Out(at))
    sim.check("aclnnMedian", x, Out(x.median()))
    sim.check("aclnnNanMedian", x, Out(x.nanmedian()))
