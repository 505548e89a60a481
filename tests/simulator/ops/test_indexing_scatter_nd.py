"""Kernels of indexing: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted, refused
from torch_samples import noise

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_tuples_read_and_write_slices(sim: Any, dtype: Any, depth: int) -> None:
    x = (noise(3, 4, 2) * 4).to(dtype)
    at = torch.tensor([[2, 3, 1], [0, 0, 0], [1, 2, 1]])[:, :depth].contiguous()
    places = tuple(at.unbind(1))
    accepted(sim, "aclnnGatherNd", x, at, True, Out(x[places]))
    if dtype == torch.int64:
        return
    updates = (noise(*x[places].shape, seed=1) * 4).to(dtype)
    written = x.clone()
    written[places] = updates
    accepted(sim, "aclnnScatterNd", x, at, updates, Out(written))
    accepted(sim, "aclnnScatterNdUpdate", Out(written, given=x), at, updates)


def test_tuples_outside_fail_on_the_stream(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    with pytest.raises(AclError, match="value 4 in indices is out of range"):
        sim.run("aclnnGatherNd", noise(3, 4), torch.tensor([[1, 4]]), True, Out(torch.zeros(1)))
    x = noise(3, 4)
    refused(sim, "Shape of updates", "aclnnScatterNd", x, torch.tensor([[1]]), noise(1, 3), Out(x))


REDUCES = {1: "sum", 2: "prod", 3: "amax", 4: "amin", 5: "mean"}


@pytest.mark.parametrize("reduce", REDUCES)
@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32])
def test_scatters_reduce_as_torch_does(sim: Any, reduce: int, include: bool, dtype: Any) -> None:
    x, src = (noise(3, 4) * 8).to(dtype), (noise(5, 4, seed=1) * 8).to(dtype)
    at = torch.tensor([[0, 1, 2, 0], [0, 0, 2, 1], [2, 2, 2, 2]])
    for dim in (0, -2):
        expected = x.scatter_reduce(dim, at, src, REDUCES[reduce], include_self=include)
        accepted(sim, "aclnnScatterReduce", x, dim, at, src, reduce, include, Out(expected))
    accepted(sim, "aclnnInplaceScatterReduce", Out(expected, given=x), 0, at, src, reduce, include)


def test_rows_change_by_index(sim: Any) -> None:
    x, updates = noise(4, 3), noise(2, 2, 3, seed=1)
    at = torch.tensor([[0, 3], [3, 1]], dtype=torch.int32)
    expected = x.index_add(0, at.flatten(), updates.flatten(0, 1))
    accepted(sim, "aclnnTfScatterAdd", Out(expected, given=x), at, updates)
    added = x.index_add(1, torch.tensor([2, 0]), noise(4, 2, seed=2), alpha=3)
    accepted(
        sim, "aclnnIndexAddV2", x, 1, torch.tensor([2, 0]), noise(4, 2, seed=2), 3, 0, Out(added)
    )


def test_batches_gather_by_indices_of_their_own(sim: Any) -> None:
    x, at = noise(2, 3, 4, 5), torch.tensor([[1, 0, 1], [3, 2, 0]])
    expected = torch.stack([x[b][:, at[b]] for b in range(2)])
    accepted(sim, "aclnnGatherV3", x, 2, at, 1, 0, Out(expected))
    accepted(sim, "aclnnGatherV3", x, 1, at % 3, 0, 0, Out(x[:, at % 3]))


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


def test_lists_of_caches_take_updates_where_the_mask_says(sim: Any) -> None:
    caches, updates = [noise(2, 6, 4), noise(2, 6, 4, seed=3)], noise(2, 2, 3, 4, seed=1)
    first = caches[0].clone()
    first[:, 2:5] = updates[0]
    outs = tuple(Out(e, given=g) for e, g in zip((first, caches[1]), caches, strict=True))
    accepted(sim, "aclnnScatterList", outs, torch.tensor([2, 0]), updates,
             torch.tensor([1, 0], dtype=torch.uint8), "update", -2)  # fmt: skip


def test_ragged_rows_are_permuted(sim: Any) -> None:
    order, begins, ends = (torch.tensor(v, dtype=torch.int32)
                           for v in ([2, 0, 1], [0, 2, 5, 9], [0, 4, 6, 9]))  # fmt: skip
    expected = torch.tensor([5, 6, 7, 8, 0, 1, 2, 3, 4], dtype=torch.int32)
    accepted(sim, "aclnnExpandIntoJaggedPermute", order, begins, ends, 9, Out(expected))


def test_unique_slices_are_ordered_by_their_elements_in_order(sim: Any) -> None:
    x = torch.zeros((2, 3, 2, 1))
    x[0, 1, 1] = x[1, 0, 0] = 1
    values, inverse, counts = torch.unique(x, True, True, True, dim=2)
    outs = [sim.put(t) for t in (torch.zeros_like(x), inverse * 0, counts * 0)]
    sim.cann.ops["aclnnUniqueDim"](sim.put(x), True, True, 2, *outs)
    sim.synchronize()
    assert sim.get(outs[0], x).equal(values)
    assert outs[1].numpy().tolist() == inverse.tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_unique_slices_equal_torch(sim: Any, dtype: Any, dim: int) -> None:
    x = torch.tensor([[[1, 0], [1, 0], [0, 1]], [[1, 0], [1, 0], [0, 1]]]).to(dtype)
    for op, f, args in (
        ("aclnnUniqueDim", torch.unique, (True, True, dim)),
        ("aclnnUniqueConsecutive", torch.unique_consecutive, (True, True, dim)),
    ):
        values, inverse, counts = f(x, return_inverse=True, return_counts=True, dim=dim)
        outs = [sim.put(t) for t in (torch.zeros_like(x), torch.zeros(x.shape[dim]).long(),
                                     torch.zeros(x.shape[dim]).long())]  # fmt: skip
        sim.cann.ops[op](sim.put(x), *args, *outs)
        sim.synchronize()
        flat = sim.get(outs[0], x).flatten()[: values.numel()]
        assert flat.view_as(values).equal(values)
        assert outs[1].numpy().tolist() == inverse.tolist()
        assert outs[2].numpy()[: len(counts)].tolist() == counts.tolist()
