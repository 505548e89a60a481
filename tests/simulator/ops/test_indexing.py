"""Kernels of indexing: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted, refused
from torch_samples import noise

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


def test_positions_past_the_end_fail_on_the_stream(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    x, index = torch.ones(2, 3), torch.tensor([6])
    for name, arguments in {
        "aclnnTake": (x, index, Out(torch.ones(1))),
        "aclnnInplacePut": (Out(x, given=x), index, torch.ones(1), False),
    }.items():
        with pytest.raises(AclError, match="value 6 in index is out of range for size 6"):
            sim.run(name, *arguments)


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool])
def test_dims_without_an_index_are_marked_by_empty_tensors_of_any_dtype(
    sim: Any, dtype: Any
) -> None:
    x = torch.arange(12).view(3, 4).to(dtype)
    nothing, index = torch.empty(0, dtype=dtype), torch.tensor([2, 0, -1])
    accepted(sim, "aclnnIndex", x, (nothing, index), Out(x[:, index]))
    written = x.clone()
    written[:, index] = torch.ones(3, 3).to(dtype)
    accepted(sim, "aclnnIndexPutImpl", Out(written, given=x), (nothing, index),
             torch.ones(3, 3).to(dtype), False, False)  # fmt: skip


def test_true_and_false_as_indices_select_all_and_nothing(sim: Any) -> None:
    x = torch.arange(6.0).view(2, 3)
    both = (torch.tensor([0]), torch.empty(0, dtype=torch.int64))
    accepted(sim, "aclnnIndex", x[None, None], both, Out(x[True, False]))


def test_indices_into_nothing_fail_on_the_stream(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    x, index = torch.zeros(0, 3), torch.tensor([0])
    calls = {
        "aclnnIndex": (x, (index,), Out(torch.zeros(1, 3))),
        "aclnnIndexPutImpl": (Out(x, given=x), (index,), torch.ones(1, 3), False, False),
    }
    for op, args in calls.items():
        with pytest.raises(AclError, match="out of bounds"):
            sim.run(op, *args)


@pytest.mark.parametrize("right", [False, True])
def test_searching_puts_nan_behind_everything(sim: Any, right: bool) -> None:
    sorted_, x = torch.tensor([1.0, 2.0, 3.0, float("nan")]), torch.tensor([2.0, float("nan"), 9.0])
    expected = torch.searchsorted(sorted_, x, right=right)
    accepted(sim, "aclnnSearchSorted", sorted_, x, False, right, None, Out(expected))


def test_searching_tells_large_integers_apart(sim: Any) -> None:
    sorted_ = torch.tensor([2**60, 2**60 + 1, 2**60 + 2])
    x = torch.tensor([2**60 + 1, 2**60 + 2])
    accepted(sim, "aclnnSearchSorted", sorted_, x, False, False, None, Out(torch.tensor([1, 2])))


def test_tuples_outside_fail_on_the_stream(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    with pytest.raises(AclError, match="value 4 in indices is out of range"):
        sim.run("aclnnGatherNd", noise(3, 4), torch.tensor([[1, 4]]), True, Out(torch.zeros(1)))
    x = noise(3, 4)
    refused(sim, "Shape of updates", "aclnnScatterNd", x, torch.tensor([[1]]), noise(1, 3), Out(x))


def test_caches_take_updates_at_their_positions(sim: Any) -> None:
    cache, updates = noise(3, 2, 6, 4), noise(2, 2, 2, 4, seed=1)
    expected = cache.clone()
    for b, position in enumerate((3, 0)):
        expected[b, :, position : position + 2] = updates[b]
    at = torch.tensor([3, 0])
    accepted(sim, "aclnnInplaceScatterUpdate", Out(expected, given=cache), at, updates, -2)
    pairs = torch.tensor([[2, 1], [0, 4]])
    expected = cache.clone()
    for b, (to, position) in enumerate(pairs.tolist()):
        expected[to, :, position : position + 2] = updates[b]
    accepted(sim, "aclnnInplaceScatterUpdate", Out(expected, given=cache), pairs, updates, -2)


def test_unique_slices_are_ordered_by_their_elements_in_order(sim: Any) -> None:
    x = torch.zeros((2, 3, 2, 1))
    x[0, 1, 1] = x[1, 0, 0] = 1
    values, inverse, counts = torch.unique(x, True, True, True, dim=2)
    outs = [sim.put(t) for t in (torch.zeros_like(x), inverse * 0, counts * 0)]
    sim.cann.ops["aclnnUniqueDim"](sim.put(x), True, True, 2, *outs)
    sim.synchronize()
    assert sim.get(outs[0], x).equal(values)
    assert outs[1].numpy().tolist() == inverse.tolist()


def test_index_out_of_range_fails_on_the_stream_and_writes_nothing_outside(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    x, bad = torch.randn(5, 6), torch.tensor([0, 5])
    calls = [
        ("aclnnIndex", (x, (bad,), Out(x[:2]))),
        ("aclnnIndexSelect", (x, 0, bad, Out(x[:2]))),
        ("aclnnIndexPutImpl", (Out(x, x), (bad,), x[:2], False, False)),
    ]
    for op, args in calls:
        with pytest.raises(AclError) as caught:
            sim.run(op, *args)
        assert caught.value.code == 507015
    sim.check("aclnnExp", x, Out(x.exp()))


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
def test_means_of_scattered_integers_are_rounded_down(sim: Any, include: bool, dtype: Any) -> None:
    x, src = (noise(3, 4) * 8).to(dtype), (noise(5, 4, seed=1) * 8).to(dtype)
    at = torch.tensor([[0, 1, 2, 0], [0, 0, 2, 1], [2, 2, 2, 2]])
    expected = x.scatter_reduce(0, at, src, "mean", include_self=include)
    accepted(sim, "aclnnScatterReduce", x, 0, at, src, 5, include, Out(expected))
