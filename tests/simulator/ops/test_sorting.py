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
        best, _ = x.topk(3, dim, largest)
        got = sim.run("aclnnTopk", x, 3, dim, largest, True, Out(best), Out(best.long()))
        assert torch.equal(got[0][0], best)
        assert torch.equal(x.gather(dim, got[1][0]), best)
    best, _ = x.kthvalue(2, dim)
    got = sim.run("aclnnKthvalue", x, 2, dim, False, Out(best), Out(best.long()))
    assert torch.equal(got[0][0], best)
    best, at = x.median(dim)
    got = sim.run("aclnnMedianDim", x, dim, False, Out(best), Out(at))
    assert torch.equal(got[0][0], best)
    sim.check("aclnnMedian", x, Out(x.median()))


def test_nan_sorts_last_and_is_the_median(sim: Any) -> None:
    x = torch.tensor([3.0, float("nan"), 1.0, -float("inf"), float("inf")])
    best, at = x.sort()
    sim.check("aclnnSort", x, True, 0, False, Out(best), Out(at))
    sim.check("aclnnMedian", x, Out(x.median()))
    sim.check("aclnnNanMedian", x, Out(x.nanmedian()))
