"""Kernels of rnn: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, same

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


STEPS, BATCH, INPUTS, HIDDEN = 5, 3, 4, 6


def test_outside_of_training_a_cell_leaves_nothing(sim: Any) -> None:
    torch.manual_seed(1)
    net = torch.nn.LSTM(INPUTS, HIDDEN).eval()
    x = torch.randn(STEPS, BATCH, INPUTS)
    with torch.no_grad():
        y, (hy, cy) = net(x)
    zero = torch.zeros(1, BATCH, HIDDEN)
    nothing = [[Out(torch.zeros(0))] for _ in range(7)]
    got = sim.run("aclnnLSTM", x, [p.detach() for p in net.parameters()], (zero, zero), None, True,
                  1, 0.0, False, False, False, Out(y), Out(hy), Out(cy), *nothing)  # fmt: skip
    for found, out in got[:3]:
        same(found, out.expected, 2e-6)
