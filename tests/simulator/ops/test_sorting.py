"""Kernels of sorting: results equal a reference, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest
from kernel_harness import Out

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


def values(dtype: Any, shape: tuple[int, ...] = (6, 5, 7)) -> Any:
    g = torch.Generator().manual_seed(3)
    if dtype == torch.bool:
        return torch.randint(0, 4, shape, generator=g) > 0
    if not dtype.is_floating_point:
        return torch.randint(0 if dtype == torch.uint8 else -5, 6, shape, generator=g).to(dtype)
    return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)


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
