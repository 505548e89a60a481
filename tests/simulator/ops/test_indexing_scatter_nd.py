"""Kernels of indexing: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted, refused
from torch_samples import noise

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


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
