"""Reductions, scans, order and softmax kernels against torch over dtypes and layouts."""

from __future__ import annotations

from typing import Any

import pytest
from kernel_harness import Out

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
DIMS = [(), (0,), (1,), (2,), (0, 2), (1, 2), (0, 1), (-1,), (0, 1, 2)]


def values(dtype: Any, shape: tuple[int, ...] = (6, 5, 7)) -> Any:
    g = torch.Generator().manual_seed(3)
    if dtype == torch.bool:
        return torch.randint(0, 4, shape, generator=g) > 0
    if not dtype.is_floating_point:
        return torch.randint(0 if dtype == torch.uint8 else -5, 6, shape, generator=g).to(dtype)
    return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)


def wide(x: Any) -> Any:
    return x.double() if x.is_floating_point() else x


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_sum_and_mean_over_any_axes_equal_torch(
    sim: Any, dtype: Any, dims: Any, keep: bool
) -> None:
    x = values(dtype)
    over = dims or tuple(range(3))
    sim.check("aclnnReduceSum", x, dims, keep, dtype, Out(wide(x).sum(over, keep).to(dtype)))
    sim.check("aclnnMean", x, dims, keep, dtype, Out(wide(x).mean(over, keep).to(dtype)))
    sim.check("aclnnAmax", x, dims, keep, Out(x.amax(over, keep)))
    sim.check("aclnnAmin", x, dims, keep, Out(x.amin(over, keep)))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64, torch.bool])
def test_integer_sums_widen_to_int64(sim: Any, dtype: Any) -> None:
    x = values(dtype)
    for dims in DIMS[1:]:
        sim.check("aclnnReduceSum", x, dims, False, torch.int64, Out(x.sum(dims)))
    sim.check("aclnnAny", x, (1,), False, Out(x.bool().any(1)))
    sim.check("aclnnAll", x, (0,), True, Out(x.bool().all(0, keepdim=True)))


def test_sum_of_nothing_is_zero_and_prod_is_one(sim: Any) -> None:
    x = torch.zeros(3, 0)
    sim.check("aclnnReduceSum", x, (1,), False, torch.float32, Out(torch.zeros(3), torch.ones(3)))
    sim.check("aclnnProdDim", x, 1, False, torch.float32, Out(torch.ones(3)))
    sim.check("aclnnAll", x.bool(), (1,), False, Out(torch.ones(3, dtype=torch.bool)))


@pytest.mark.parametrize(
    "shape", [(300_001,), (1000, 1030), (1030, 1000), (2, 70_000), (70_000, 3)]
)
def test_large_sums_are_accurate(sim: Any, shape: Any) -> None:
    x = torch.rand(shape) + 1
    every = tuple(range(len(shape)))
    sim.check("aclnnReduceSum", x, every, False, torch.float32, Out(x.double().sum().float()))
    for d in every:
        sim.check("aclnnReduceSum", x, (d,), False, torch.float32, Out(x.double().sum(d).float()))


@pytest.mark.parametrize("dtype", FLOATS)
def test_extrema_propagate_nan(sim: Any, dtype: Any) -> None:
    x = values(dtype, (4, 40))
    x[1, 33] = float("nan")
    x[2, 2] = float("inf")
    sim.check("aclnnAmax", x, (1,), False, Out(x.amax(1)))
    sim.check("aclnnMin", x, Out(x.min()))
    for name, function in (("MaxDim", torch.max), ("MinDim", torch.min)):
        best, at = function(x, 1)
        sim.check(f"aclnn{name}", x, 1, False, Out(best), Out(at))
    sim.check("aclnnArgMax", x, 1, True, Out(x.argmax(1, keepdim=True)))
    sim.check("aclnnArgMin", x, 0, False, Out(x.argmin(0)))


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf"), -float("inf")])
def test_norms_equal_torch(sim: Any, p: float) -> None:
    x = values(torch.float32)
    for dims in DIMS[1:]:
        expected = torch.linalg.vector_norm(x.double(), p, dims).float()
        sim.check("aclnnLinalgVectorNorm", x, p, dims, False, torch.float32, Out(expected))
    sim.check(
        "aclnnNorm",
        x,
        p,
        (1,),
        True,
        Out(torch.linalg.vector_norm(x.double(), p, 1, keepdim=True).float()),
    )
    a, b = values(torch.float32, (40,)), values(torch.float32, (3, 5))
    norms = [torch.linalg.vector_norm(t, p) for t in (a, b)]
    sim.check("aclnnForeachNorm", [a, b], p, [Out(n) for n in norms])


@pytest.mark.parametrize("dtype", FLOATS[:3])
@pytest.mark.parametrize("dims", DIMS[1:])
def test_variance_and_deviation_equal_torch(sim: Any, dtype: Any, dims: Any) -> None:
    x = values(dtype)
    var, mean = torch.var_mean(x.double(), dims, correction=1)
    sim.check("aclnnVarCorrection", x, dims, 1, False, Out(var.to(dtype)))
    sim.check("aclnnVar", x, dims, True, False, Out(var.to(dtype)))
    sim.check("aclnnStd", x, dims, 1, False, Out(var.sqrt().to(dtype)))
    sim.check("aclnnVarMean", x, dims, 1, False, Out(var.to(dtype)), Out(mean.to(dtype)))


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32, torch.int64])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_scans_equal_torch(sim: Any, dtype: Any, dim: int) -> None:
    x = values(dtype)
    tol = 5e-3 if dtype == torch.float16 else None
    sim.check("aclnnCumsum", x, dim, dtype, Out(wide(x).cumsum(dim).to(dtype), tolerance=tol))
    sim.check("aclnnCumprod", x, dim, dtype, Out(wide(x).cumprod(dim).to(dtype), tolerance=tol))
    for name, function in (("Cummax", torch.cummax), ("Cummin", torch.cummin)):
        best, at = function(x, dim)
        sim.check(f"aclnn{name}", x, dim, Out(best), Out(at))


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
