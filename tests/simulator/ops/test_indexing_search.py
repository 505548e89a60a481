"""Kernels of indexing: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


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
