"""Kernels of reduction: results equal a reference, and what they refuse."""

import math
from typing import Any

import pytest
from kernel_harness import Out, accepted, refused
from torch_samples import fixed_values as values
from torch_samples import noise

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


# Operators whose documents list complex types and whose cases elsewhere are real.
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_operators_of_complex_numbers_keep_both_parts(sim: Any, dtype: Any) -> None:
    x, y = torch.randn(4, 3, dtype=dtype), torch.randn(4, 3, dtype=dtype)
    square = torch.randn(5, 5, dtype=dtype)
    sim.check("aclnnTrace", square, Out(square.trace()))
    sim.check("aclnnLogdet", square, Out(square.logdet(), tolerance=1e-4))
    sim.check("aclnnLinalgCross", x, y, 1, Out(torch.linalg.cross(x, y)))
    sim.check("aclnnCumsumV2", x, 0, False, False, Out(x.cumsum(0)))
    sim.check("aclnnMeanV2", x, (0,), False, False, Out(x.mean(0)))
    sim.check("aclnnRsub", x, y, 2.0, Out(torch.rsub(x, y, alpha=2)))
    sim.check("aclnnRsubs", x, 3.0, 2.0, Out(torch.rsub(x, 3.0, alpha=2)))
    image = torch.randn(2, 3, 6, 5, dtype=dtype)
    if dtype == torch.complex64:
        columns = torch.nn.functional.unfold(image, (2, 3), (1, 1), (1, 0), (2, 1))
        sim.check("aclnnIm2col", image, (2, 3), (1, 1), (1, 0), (2, 1), Out(columns))
    at = torch.randint(0, 4, (4, 3))
    for number, name in ((1, "sum"), (2, "prod")):
        reduced = x.scatter_reduce(0, at, y, name)
        sim.check("aclnnScatterReduce", x, 0, at, y, number, True, Out(reduced))
    mask = torch.randn(4, 3) > 0
    sim.check("aclnnSWhere", mask, x, y, Out(torch.where(mask, x, y)))


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_extrema_along_a_dim_write_indices_of_either_width(sim: Any, index: Any) -> None:
    x = torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, -1.0]])
    for op, result in (("aclnnMinDim", x.min(1)), ("aclnnMaxDim", x.max(1))):
        accepted(sim, op, x, 1, False, Out(result.values), Out(result.indices.to(index)))


def test_one_number_may_be_reduced_into_a_vector_of_one(sim: Any) -> None:
    """ggml sums its losses so."""
    x = torch.tensor([[1.0, 2.0], [3.0, 4.5]])
    for dims in ((0, 1), ()):
        accepted(sim, "aclnnReduceSum", x, dims, False, torch.float32, Out(x.sum()[None]))
    accepted(sim, "aclnnReduceSum", x[0], (0,), False, torch.float32, Out(x[0].sum()[None]))
    refused(sim, "Shape of out should be", "aclnnReduceSum", x, (0,), False, torch.float32,
            Out(x.sum()[None]))  # fmt: skip


FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
DIMS = [(), (0,), (1,), (2,), (0, 2), (1, 2), (0, 1), (-1,), (0, 1, 2)]


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


def test_segment_sums_and_their_gradient(sim: Any) -> None:
    x = noise(2, 5).requires_grad_()
    sums = torch.stack([(x[:, None] * m).sum(-1) for m in
                        (torch.ones(5, 5).tril(-1).T[j] for j in range(5))], -1)  # fmt: skip
    total = x.cumsum(1)
    sums = total[:, :, None] - total[:, None]
    y = sums.masked_fill(torch.ones(5, 5).triu(1).bool(), -math.inf).exp()
    accepted(sim, "aclnnExpSegsum", x.detach(), Out(y.detach(), tolerance=1e-5))
    g = noise(2, 5, 5, seed=1)
    (expected,) = torch.autograd.grad((y * g).sum(), x)
    accepted(sim, "aclnnExpSegsumBackward", g, y.detach(), Out(expected, tolerance=1e-4))


def test_reductions_may_leave_their_input_as_it_is(sim: Any) -> None:
    x = noise(2, 3, 4).abs()
    accepted(sim, "aclnnMaxV2", x, (0, 2), False, True, Out(x.amax((0, 2))))
    accepted(sim, "aclnnMaxV2", x, (), False, True, Out(x))
    accepted(sim, "aclnnReduceLogSum", x, (1,), True, False, Out(x.sum(1, keepdim=True).log()))


def test_searching_and_counting_equal_torch(sim: Any) -> None:
    edges, x = torch.tensor([1.0, 3.0, 5.0, 7.0]), torch.tensor([[0.0, 3.0, 9.0], [5.0, 6.0, 1.0]])
    for right in (False, True):
        sim.check(
            "aclnnSearchSorted",
            edges,
            x,
            False,
            right,
            None,
            Out(torch.searchsorted(edges, x, right=right)),
        )
    sim.check("aclnnHistc", x, 4, 0.0, 8.0, Out(torch.histc(x, 4, 0, 8)))
    k = torch.tensor([1, 3, 1, 0])
    sim.check("aclnnBincount", k, None, 6, Out(k.bincount(minlength=6)))
