"""Kernels of reduction: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted, refused
from torch_samples import fixed_values as values

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


def test_one_number_may_be_reduced_into_a_vector_of_one(sim: Any) -> None:
    """ggml sums its losses so."""
    x = torch.tensor([[1.0, 2.0], [3.0, 4.5]])
    for dims in ((0, 1), ()):
        accepted(sim, "aclnnReduceSum", x, dims, False, torch.float32, Out(x.sum()[None]))
    accepted(sim, "aclnnReduceSum", x[0], (0,), False, torch.float32, Out(x[0].sum()[None]))
    refused(sim, "Shape of out should be", "aclnnReduceSum", x, (0,), False, torch.float32,
            Out(x.sum()[None]))  # fmt: skip


FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


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
