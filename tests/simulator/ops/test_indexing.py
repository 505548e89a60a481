"""Kernels of indexing: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int64,
          torch.uint8, torch.bool, torch.complex64]  # fmt: skip


def numbers(dtype: Any, *shape: int) -> Any:
    g = torch.Generator().manual_seed(0)
    return torch.randint(0, 9, shape, generator=g).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
def test_take_reads_flat_positions_as_torch_does(sim: Any, dtype: Any, index_dtype: Any) -> None:
    x = numbers(dtype, 3, 4, 5)
    index = torch.tensor([[0, 59, -1], [-60, 7, 7]])
    sim.check("aclnnTake", x, index.to(index_dtype), Out(x.take(index)))
    empty = torch.empty(0, 2, dtype=torch.int64)
    sim.check("aclnnTake", x, empty, Out(x.take(empty)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("accumulate", [False, True])
def test_put_writes_flat_positions_as_torch_does(sim: Any, dtype: Any, accumulate: bool) -> None:
    x, source = numbers(dtype, 4, 5), numbers(dtype, 2, 3) + numbers(dtype, 2, 3)
    # Without accumulation, which of two values for one place stays is open: none here.
    index = torch.tensor([[0, 19, -7], [-20, 7, 7]] if accumulate else [[0, 19, -7], [3, 7, 8]])
    expected = x.clone().put_(index, source, accumulate=accumulate)
    sim.check("aclnnInplacePut", Out(expected, given=x), index, source, accumulate)


def test_positions_past_the_end_fail_on_the_stream(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    x, index = torch.ones(2, 3), torch.tensor([6])
    for name, arguments in {
        "aclnnTake": (x, index, Out(torch.ones(1))),
        "aclnnInplacePut": (Out(x, given=x), index, torch.ones(1), False),
    }.items():
        with pytest.raises(AclError, match="value 6 in index is out of range for size 6"):
            sim.run(name, *arguments)


@pytest.mark.parametrize("invert", [False, True])
def test_membership_equals_torch(sim: Any, invert: bool) -> None:
    x = torch.tensor([[1, 2], [3, 2]])
    expected = torch.isin(x, 2, invert=invert)
    sim.check("aclnnIsInTensorScalar", x, 2, False, invert, Out(expected))
    sim.check("aclnnIsInScalarTensor", 3, x, False, invert, Out(torch.isin(3, x, invert=invert)))


def test_complex_numbers_are_equal_with_both_parts(sim: Any) -> None:
    x = torch.tensor([1 + 1j, 1 + 1j, 1 + 2j, 2 + 2j])
    sim.check("aclnnIsInTensorScalar", x, 1 + 2j, False, False, Out(x == 1 + 2j))
    places = torch.zeros(4, dtype=torch.int64)
    outs = sim.run("aclnnUniqueConsecutive", x, True, True, 1000, Out(x), Out(places), Out(places))
    values = outs[0][0]
    assert values.reshape(-1)[:3].tolist() == [1 + 1j, 1 + 2j, 2 + 2j]


def test_value_dependent_results_are_resized(sim: Any) -> None:
    x = torch.tensor([[3.0, 0.0, 3.0], [1.0, 2.0, 0.0]])
    cells = sim.put(torch.zeros(6, 2, dtype=torch.int64))
    sim.cann.ops.aclnnNonzero(sim.put(x), cells)
    sim.synchronize()
    count = int((x != 0).sum())
    assert torch.equal(torch.from_numpy(cells.numpy())[:count], x.nonzero())
    out = sim.put(torch.zeros(6))
    sim.cann.ops.aclnnMaskedSelect(sim.put(x), sim.put(x > 1), out)
    sim.synchronize()
    assert torch.from_numpy(out.numpy())[:3].tolist() == [3.0, 3.0, 2.0]
    value, inverse, counts = (
        sim.put(torch.zeros(6)),
        sim.put(torch.zeros(2, 3).long()),
        sim.put(torch.zeros(6).long()),
    )
    sim.cann.ops.aclnnUnique2(sim.put(x), True, True, True, value, inverse, counts)
    sim.synchronize()
    expected = x.unique(return_inverse=True, return_counts=True)
    assert torch.equal(torch.from_numpy(value.numpy())[:4], expected[0])
    assert torch.equal(torch.from_numpy(inverse.numpy()), expected[1])
    assert torch.equal(torch.from_numpy(counts.numpy())[:4], expected[2])
    source = torch.arange(6.0)
    sim.check("aclnnInplaceMaskedScatter", Out(x.masked_scatter(x > 1, source), x), x > 1, source)
