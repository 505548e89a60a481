"""Kernels of rnn: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, same

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


STEPS, BATCH, INPUTS, HIDDEN = 5, 3, 4, 6


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("flat", [False, True])
def test_sequences_of_different_lengths_end_where_they_end(
    sim: Any, both: bool, flat: bool
) -> None:
    torch.manual_seed(1)
    net = torch.nn.LSTM(INPUTS, HIDDEN, 1, bidirectional=both, dtype=torch.float64)
    cells, lengths = 2 if both else 1, torch.tensor([5, 3, 2])
    x = torch.randn(STEPS, BATCH, INPUTS, dtype=torch.float64).requires_grad_()
    h0 = torch.randn(cells, BATCH, HIDDEN, dtype=torch.float64).requires_grad_()
    c0 = torch.randn(cells, BATCH, HIDDEN, dtype=torch.float64).requires_grad_()
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths)
    y, (hy, cy) = net(packed, (h0, c0))
    y, _ = torch.nn.utils.rnn.pad_packed_sequence(y)
    params = [p.detach().float() for p in net.parameters()]
    small = [t.detach().float() for t in (x, h0, c0, y, hy, cy)]
    trace = [[Out(torch.zeros(STEPS, BATCH, HIDDEN)) for _ in range(cells)] for _ in range(7)]
    flags = (True, 1, 0.0, True, both, False)
    given = small[0].flatten(0, 1) if flat else small[0]
    outs = small[3].flatten(0, 1) if flat else small[3]
    got = sim.run("aclnnLSTM", given, params, small[1:3], packed.batch_sizes, *flags,
                  Out(outs), Out(small[4]), Out(small[5]), *trace)  # fmt: skip
    for found, out in got[:3]:
        same(found, out.expected, 2e-6)
    kept = [value for value, _ in got[3:]]
    lists = [kept[i * cells : (i + 1) * cells] for i in range(7)]
    grads = [torch.randn_like(t) for t in (y, hy, cy)]
    wanted = torch.autograd.grad((y, hy, cy), (x, h0, c0, *net.parameters()), grads)
    if not flat:
        wants = [Out(g.float(), tolerance=1e-5) for g in wanted]
        sim.check("aclnnLstmBackward", small[0], small[1:3], params, *[g.float() for g in grads],
                  *lists, packed.batch_sizes, *flags, (True,) * 4, *wants[:3], wants[3:],
                  layouts=("contiguous",))  # fmt: skip


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
