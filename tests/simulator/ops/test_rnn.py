"""Kernels of rnn: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, accepted, same
from torch_samples import noise

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


def test_the_fused_cell_and_its_gradient(sim: Any) -> None:
    inputs, hidden = noise(3, 16).requires_grad_(), noise(3, 16, seed=1)
    c, b = noise(3, 4, seed=2).requires_grad_(), noise(16, seed=3)
    gates = inputs + hidden + b + b
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * c + i * g
    hy = o * cy.tanh()
    kept = torch.cat([i, f, g, o], 1)
    seen = [t.detach() for t in (hy, cy, kept)]
    accepted(sim, "aclnnThnnFusedLstmCell", inputs.detach(), hidden, c.detach(), b, b,
             *(Out(t, tolerance=1e-5) for t in seen))  # fmt: skip
    gh, gc = noise(3, 4, seed=4), noise(3, 4, seed=5)
    dgates, dc = torch.autograd.grad((hy * gh + cy * gc).sum(), (inputs, c))
    accepted(sim, "aclnnThnnFusedLstmCellBackward", gh, gc, c.detach(), seen[1], seen[2], True,
             Out(dgates, tolerance=1e-5), Out(dc, tolerance=1e-5),
             Out(dgates.sum(0), tolerance=1e-5))  # fmt: skip


STEPS, BATCH, INPUTS, HIDDEN = 5, 3, 4, 6


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_lstm_and_its_gradient_equal_torch(sim: Any, layers: int, both: bool, first: bool) -> None:
    torch.manual_seed(1)
    net = torch.nn.LSTM(
        INPUTS, HIDDEN, layers, batch_first=first, bidirectional=both, dtype=torch.float64
    )
    cells = layers * (2 if both else 1)
    shape = (BATCH, STEPS, INPUTS) if first else (STEPS, BATCH, INPUTS)
    x = torch.randn(shape, dtype=torch.float64).requires_grad_()
    h0 = torch.randn(cells, BATCH, HIDDEN, dtype=torch.float64).requires_grad_()
    c0 = torch.randn(cells, BATCH, HIDDEN, dtype=torch.float64).requires_grad_()
    y, (hy, cy) = net(x, (h0, c0))
    params = [p.detach().float() for p in net.parameters()]
    small = [t.detach().float() for t in (x, h0, c0, y, hy, cy)]
    trace = [[Out(torch.zeros(STEPS, BATCH, HIDDEN)) for _ in range(cells)] for _ in range(7)]
    flags = (True, layers, 0.0, True, both, first)
    got = sim.run("aclnnLSTM", small[0], params, small[1:3], None, *flags,
                  Out(small[3]), Out(small[4]), Out(small[5]), *trace)  # fmt: skip
    for given, out in got[:3]:
        same(given, out.expected, 2e-6)
    kept = [value for value, _ in got[3:]]
    lists = [kept[i * cells : (i + 1) * cells] for i in range(7)]
    grads = [torch.randn_like(t) for t in (y, hy, cy)]
    wanted = torch.autograd.grad((y, hy, cy), (x, h0, c0, *net.parameters()), grads)
    outs = [Out(g.float(), tolerance=1e-5) for g in wanted]
    sim.check("aclnnLstmBackward", small[0], small[1:3], params, *[g.float() for g in grads],
              *lists, None, *flags, (True,) * 4, *outs[:3], outs[3:],
              layouts=("contiguous", "offset"))  # fmt: skip


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_gru_and_its_gradient_equal_torch(sim: Any, layers: int, both: bool, first: bool) -> None:
    torch.manual_seed(1)
    net = torch.nn.GRU(
        INPUTS, HIDDEN, layers, batch_first=first, bidirectional=both, dtype=torch.float64
    )
    cells = layers * (2 if both else 1)
    shape = (BATCH, STEPS, INPUTS) if first else (STEPS, BATCH, INPUTS)
    x = torch.randn(shape, dtype=torch.float64).requires_grad_()
    h0 = torch.randn(cells, BATCH, HIDDEN, dtype=torch.float64).requires_grad_()
    y, hy = net(x, h0)
    params = [p.detach().float() for p in net.parameters()]
    small = [t.detach().float() for t in (x, h0, y, hy)]
    trace = [[Out(torch.zeros(STEPS, BATCH, HIDDEN)) for _ in range(cells)] for _ in range(5)]
    got = sim.run("aclnnGRU", small[0], params, small[1], None, True, layers, 0.0, True, both,
                  first, Out(small[2]), Out(small[3]), *trace)  # fmt: skip
    for given, out in got[:2]:
        same(given, out.expected, 2e-6)
    kept = [value for value, _ in got[2:]]
    lists = [kept[i * cells : (i + 1) * cells] for i in range(5)]
    grads = [torch.randn_like(t) for t in (y, hy)]
    wanted = torch.autograd.grad((y, hy), (x, h0, *net.parameters()), grads)
    outs = [Out(g.float(), tolerance=1e-5) for g in wanted]
    sim.check("aclnnGRUBackward", small[0], params, small[1], *[g.float() for g in grads], *lists,
              None, True, layers, both, first, *outs[:2], outs[2:],
              layouts=("contiguous", "offset"))  # fmt: skip


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
