"""Kernels of indexing: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out

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
