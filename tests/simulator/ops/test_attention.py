"""Kernels of attention: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

FAR = 2**31 - 1


def test_unknown_layouts_and_modes_are_refused(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    q, stat = torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 8)
    for layout, mode, words in (("TND", 0, "layout"), ("BNSD", 5, "sparseMode")):
        with pytest.raises(AclError, match=words) as caught:
            sim.run(
                "aclnnFlashAttentionScore",
                q,
                q,
                q,
                None,
                None,
                None,
                None,
                None,
                1.0,
                1.0,
                FAR,
                FAR,
                2,
                layout,
                0,
                mode,
                Out(stat),
                Out(stat),
                Out(torch.zeros(1)),
                Out(q),
            )
        assert caught.value.code == 161002
