"""Kernels of creation: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


def test_ranges_of_doubles_are_computed_in_double(sim: Any) -> None:
    sim.check("aclnnArange", 0.0, 1.0, 0.1, Out(torch.arange(0, 1, 0.1, dtype=torch.float64)))
