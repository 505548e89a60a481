"""Kernels of indexing: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out
from torch_samples import values

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
DTYPES = [*FLOATS, torch.int8, torch.int32, torch.int64, torch.uint8, torch.bool]
WHOLE = torch.empty(0, dtype=torch.int64)  # how clients say "all of this dim" in an index list


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put_equals_torch(sim: Any, dtype: Any, accumulate: bool) -> None:
    if accumulate and dtype == torch.bool:
        return
    x, i, j = values(dtype, 5, 6, 4), torch.tensor([0, 4, -1, 2]), torch.tensor([[1], [5]])
    cases = [
        ((i,), (4, 6, 4)),
        ((WHOLE, i), (5, 4, 4)),
        ((j.clamp(max=4), i), (2, 4, 4)),
        ((i, WHOLE, i.clamp(max=3)), (4, 6)),
        ((WHOLE, j, i.clamp(max=3)), (5, 2, 4)),
    ]
    for indices, shape in cases:
        v = values(dtype, *shape, seed=1)
        at = tuple(slice(None) if k is WHOLE else k for k in indices)
        expected = x.clone()
        if accumulate:
            places = torch.arange(x.numel()).reshape(x.shape)[at].reshape(-1)
            expected = x.double().clone()
            expected.view(-1).index_add_(0, places, v.double().reshape(-1))
            expected = expected.to(dtype)
        else:
            v = x.flatten()[:1].expand(shape).contiguous()  # duplicates agree
            expected[at] = v
        sim.check("aclnnIndexPutImpl", Out(expected, x), indices, v, accumulate, False)


def test_index_put_takes_masks_and_broadcast_values(sim: Any) -> None:
    x, mask = torch.randn(5, 6), torch.rand(5, 6) > 0.5
    expected = x.clone()
    expected[mask] = 7.0
    sim.check("aclnnIndexPutImpl", Out(expected, x), (mask,), torch.tensor([7.0]), False, False)
    expected = x.clone()
    expected[mask[:, 0]] = 3.0
    sim.check("aclnnIndexPutImpl", Out(expected, x), (mask[:, 0],), torch.tensor(3.0), False, False)


@pytest.mark.parametrize("dtype", DTYPES)
def test_advanced_reading_equals_torch(sim: Any, dtype: Any) -> None:
    x, i = values(dtype, 5, 6, 4), torch.tensor([[0, 4], [-1, 2]])
    sim.check("aclnnIndex", x, (i,), Out(x[i]))
    sim.check("aclnnIndex", x, (WHOLE, i), Out(x[:, i]))
    sim.check("aclnnIndex", x, (i, WHOLE, i.clamp(max=3)), Out(x[i, :, i.clamp(max=3)]))
    k = torch.tensor([3, 0, 3])
    for d in range(3):
        sim.check("aclnnIndexSelect", x, d, k, Out(x.index_select(d, k)))
        sim.check("aclnnIndexSelect", x, d, k.int(), Out(x.index_select(d, k)))
        at = torch.randint(0, 4, (3, 2, 4))
        sim.check("aclnnGather", x, d, at, Out(x.gather(d, at)))
    sim.check("aclnnGatherV2", x, 1, i.abs(), Out(x[:, i.abs()]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32, torch.int64])
def test_scatter_family_equals_torch(sim: Any, dtype: Any) -> None:
    x, src = values(dtype, 5, 6), values(dtype, 4, 6, seed=1)
    at = torch.stack([torch.randperm(5)[:4] for _ in range(6)], 1)
    sim.check("aclnnScatter", x, 0, at, src, 0, Out(x.scatter(0, at, src)))
    sim.check("aclnnScatter", x, 0, at, src, 1, Out(x.scatter(0, at, src, reduce="add")))
    sim.check("aclnnInplaceScatter", Out(x.scatter(0, at, src), x), 0, at, src, 0)
    sim.check("aclnnScatterAdd", x, 0, at, src, Out(x.scatter_add(0, at, src)))
    sim.check("aclnnScatterValue", x, 0, at, 3, 0, Out(x.scatter(0, at, 3)))
    k = torch.tensor([4, 0, 2])
    part = values(dtype, 3, 6, seed=2)
    sim.check("aclnnIndexAdd", x, 0, k, part, 2, Out(x.index_add(0, k, part, alpha=2)))
    sim.check("aclnnInplaceIndexCopy", Out(x.index_copy(0, k, part), x), 0, k, part)
    sim.check("aclnnInplaceIndexFill", Out(x.index_fill(1, k, 7), x), 1, k, 7)


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
