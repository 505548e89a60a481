"""Types that training calls: recurrent cells, losses, gradients, optimizers, selections.

References are torch's own cells and losses, and its autograd.
"""

import math

import numpy as np
import pytest
from compiled import install
from numpy_harness import Ops, Out
from type_harness import Types

torch = pytest.importorskip("torch", reason="torch is the oracle")

RNG = np.random.default_rng(12)


# Each function, and whether its gradient is asked for with the result or with the argument.
OF_ONE_NUMBER = {
    "Sqrt": (torch.sqrt, True),
    "Rsqrt": (torch.rsqrt, True),
    "Reciprocal": (torch.reciprocal, True),
    "Inv": (torch.reciprocal, True),
    "Asinh": (torch.asinh, True),
    "Acosh": (torch.acosh, True),
    "Acos": (torch.acos, False),
    "Asin": (torch.asin, False),
    "Atan": (torch.atan, False),
    "Abs": (torch.abs, False),
}


@pytest.fixture(scope="module")
def types(nops: Ops) -> Types:
    return Types(nops, install())


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_recurrent_steps_are_those_of_the_cell(types: Types, dtype: str) -> None:
    steps, rows, size, hidden = 3, 4, 5, 6
    cell = torch.nn.LSTMCell(size, hidden, dtype=torch.float64)
    x, h, c = (
        RNG.normal(size=s).astype(dtype)
        for s in ((steps, rows, size), (1, rows, hidden), (1, rows, hidden))
    )
    order = np.r_[0:6, 6:12, 12:18, 18:24]  # torch's i, f, g, o are the type's i, f, c, o
    w_ih, w_hh = (
        p.detach().numpy().T[:, order].astype(dtype) for p in (cell.weight_ih, cell.weight_hh)
    )
    bias = (cell.bias_ih + cell.bias_hh).detach().numpy().astype(dtype)
    with torch.no_grad():
        for p, value in ((cell.weight_ih, w_ih.T), (cell.weight_hh, w_hh.T), (cell.bias_ih, bias)):
            p.copy_(torch.tensor(value.astype(np.float64)))
        cell.bias_hh.zero_()
    tx, th, tc = (torch.tensor(v.astype(np.float64), requires_grad=True) for v in (x, h, c))
    state, ys = (th[0], tc[0]), []
    for t in range(steps):
        state = cell(tx[t], state)
        ys.append(state[0])
    shape = Out((steps, rows, hidden), dtype)
    loose = {"rtol": 1e-4, "atol": 1e-5} if dtype == "float32" else {"rtol": 5e-3, "atol": 5e-3}
    outs = types(
        "DynamicRNNV2",
        [x, w_ih, w_hh, bias, None, h, c],
        [shape] * 8,
        gate_order="ifco",
        time_major=True,
        activation="tanh",
    )
    np.testing.assert_allclose(outs[0], torch.stack(ys).detach().numpy(), **loose)
    np.testing.assert_allclose(outs[2][-1], state[1].detach().numpy(), **loose)
    both = types(
        "DynamicRNN",
        [x, np.concatenate([w_ih, w_hh]), bias, None, h, c],
        [shape] * 8,
        gate_order="ifco",
    )
    for one, other in zip(outs, both, strict=True):
        np.testing.assert_allclose(one, other, **loose)

    dy = RNG.normal(size=(steps, rows, hidden)).astype(dtype)
    dh, dc = (RNG.normal(size=(1, rows, hidden)).astype(dtype) for _ in range(2))
    torch.autograd.backward(
        [torch.stack(ys), state[0], state[1]],
        [torch.tensor(v.astype(np.float64)) for v in (dy, dh[0], dc[0])],
    )
    grads = types(
        "DynamicRNNV2Grad",
        [x, w_ih, w_hh, outs[0], h, c, outs[1], outs[2], dy, dh, dc, *outs[3:8]],
        [
            Out(w_ih.shape, dtype),
            Out(w_hh.shape, dtype),
            Out((4 * hidden,), dtype),
            Out(x.shape, dtype),
            Out(h.shape, dtype),
            Out(c.shape, dtype),
        ],
        gate_order="ifjo",
    )
    expected = [
        cell.weight_ih.grad.T,
        cell.weight_hh.grad.T,
        cell.bias_ih.grad,
        tx.grad,
        th.grad,
        tc.grad,
    ]
    for got, want in zip(grads, expected, strict=True):
        np.testing.assert_allclose(
            got, want.numpy(), **({**loose, "atol": 0.03} if dtype == "float16" else loose)
        )


def test_connectionist_loss_and_gradient_agree_with_torch(types: Types) -> None:
    steps, batch, classes, length = 12, 3, 7, 4
    raw = torch.tensor(RNG.normal(size=(steps, batch, classes)), requires_grad=True)
    probs = raw.log_softmax(2)
    probs.retain_grad()
    targets = torch.tensor(RNG.integers(1, classes, (batch, length)))
    lengths, sizes = torch.tensor([12, 10, 9]), torch.tensor([4, 3, 2])
    loss = torch.nn.functional.ctc_loss(probs, targets, lengths, sizes, blank=0, reduction="none")
    loss.sum().backward()
    values = [
        probs.detach().numpy().astype(np.float32),
        targets.numpy(),
        lengths.numpy(),
        sizes.numpy(),
    ]
    blank = 0 + length * classes  # as torch_npu sends it
    nll, alpha = types(
        "CTCLossV2",
        values,
        [Out((batch,)), Out((batch, steps, 2 * length + 1))],
        blank=blank,
        zero_infinity=False,
    )
    np.testing.assert_allclose(nll, loss.detach().numpy(), rtol=1e-5)
    (grad,) = types(
        "CTCLossV2Grad",
        [np.ones(batch, np.float32), *values, nll, alpha],
        [Out((steps, batch, classes))],
        blank=0,
        zero_infinity=False,
    )
    assert raw.grad is not None
    np.testing.assert_allclose(grad, raw.grad.numpy(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, -1.0])
def test_distances_pull_as_autograd_does(types: Types, p: float) -> None:
    a = torch.tensor(RNG.normal(size=(2, 4, 5)).astype(np.float32), requires_grad=True)
    b = torch.tensor(RNG.normal(size=(2, 3, 5)).astype(np.float32))
    distance = torch.cdist(a, b, p=math.inf if p < 0 else p)
    pull = torch.tensor(RNG.normal(size=(2, 4, 3)).astype(np.float32))
    distance.backward(pull)
    assert a.grad is not None
    wide = [
        t.broadcast_to(2, 4, 3, 5).contiguous().detach().numpy()
        for t in (pull[..., None], a[:, :, None], b[:, None], distance[..., None])
    ]
    (given,) = types("CdistGrad", wide, [Out((2, 4, 5))], p=p)
    np.testing.assert_allclose(given, a.grad.numpy(), rtol=2e-4, atol=1e-5)


def test_ranges_of_an_axis_are_filled(types: Types) -> None:
    x = RNG.normal(size=(4, 3, 9)).astype(np.float16)
    start, end = np.array([[0, 2, 8]], np.int32), np.array([[3, 2, 12]], np.int32)
    (given,) = types(
        "MaskedFillRange",
        [x, start, end, np.array([7], np.float16)],
        [Out(x.shape, "float16")],
        axis=2,
    )
    expected = x.copy()
    expected[0, :, 0:3] = 7
    expected[2, :, 8:] = 7
    np.testing.assert_array_equal(given, expected)


def test_values_that_come_along_are_kept_until_the_call_runs(types: Types) -> None:
    x = RNG.normal(size=(3, 4)).astype(np.float32)
    low, high = np.array(-0.5, np.float32), np.array(0.5, np.float32)
    (given,) = types("ClipByValueV2", [x, low, high], [Out((3, 4))])
    np.testing.assert_array_equal(given, x.clip(-0.5, 0.5))
    values, positions = types(
        "TopKV2",
        [x, np.array([2], np.int32)],
        [Out((3, 2)), Out((3, 2), "int32")],
        dim=-1,
        largest=True,
    )
    np.testing.assert_array_equal(values, -np.sort(-x)[:, :2])
    np.testing.assert_array_equal(positions, np.argsort(-x)[:, :2])


def test_cross_entropy_and_its_gradient_agree_with_torch(types: Types) -> None:
    x = torch.tensor(RNG.normal(size=(5, 7)).astype(np.float32), requires_grad=True)
    target = torch.tensor(RNG.dirichlet(np.ones(7), 5).astype(np.float32))
    loss = -(target * x.log_softmax(1)).sum(1)
    loss.sum().backward()
    assert x.grad is not None
    given = types(
        "SoftmaxCrossEntropyWithLogits",
        [x.detach().numpy(), target.numpy()],
        [Out((5,)), Out((5, 7))],
    )
    np.testing.assert_allclose(given[0], loss.detach().numpy(), rtol=1e-5)
    np.testing.assert_allclose(given[1], x.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_steps_of_adam_are_those_of_the_optimizer(types: Types) -> None:
    weight = torch.tensor(RNG.normal(size=6).astype(np.float32), requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=0.1, betas=(0.8, 0.9), eps=1e-12)
    state = [weight.detach().numpy().copy(), np.zeros(6, np.float32), np.zeros(6, np.float32)]
    for step in range(1, 4):
        grad = RNG.normal(size=6).astype(np.float32)
        weight.grad = torch.tensor(grad)
        optimizer.step()
        numbers = [np.array(v, np.float32) for v in (0.8**step, 0.9**step, 0.1, 0.8, 0.9, 1e-12)]
        state = types("ApplyAdamD", [*state, *numbers, grad], [Out((6,))] * 3)
    np.testing.assert_allclose(state[0], weight.detach().numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "reference"), [("TanhGrad", torch.tanh), ("SigmoidGrad", torch.sigmoid)]
)
def test_gradients_take_the_result_first(types: Types, name: str, reference: object) -> None:
    assert callable(reference)
    x = torch.tensor(RNG.normal(size=8).astype(np.float32), requires_grad=True)
    grad = torch.tensor(RNG.normal(size=8).astype(np.float32))
    y = reference(x)
    y.backward(grad)
    assert x.grad is not None
    (given,) = types(name, [y.detach().numpy(), grad.numpy()], [Out((8,))])
    np.testing.assert_allclose(given, x.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_gradients_of_softmax_take_the_result_where_the_prototypes_do(types: Types) -> None:
    x = torch.tensor(RNG.normal(size=(3, 5)).astype(np.float32), requires_grad=True)
    grad = torch.tensor(RNG.normal(size=(3, 5)).astype(np.float32))
    for name, y, order, axis in (
        ("SoftmaxGrad", x.softmax(1), (0, 1), "axes"),
        ("LogSoftmaxGrad", x.log_softmax(1), (1, 0), "axis"),
    ):
        x.grad = None
        y.backward(grad)
        assert x.grad is not None
        pair = (y.detach().numpy(), grad.numpy())
        (given,) = types(name, [pair[i] for i in order], [Out((3, 5))], **{axis: [1]})
        np.testing.assert_allclose(given, x.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_steps_of_bert_add_decay_and_correct_no_bias(types: Types) -> None:
    var, m, v, grad = (RNG.uniform(0.1, 1, 6).astype(np.float32) for _ in range(4))
    numbers = [np.array(x, np.float32) for x in (0.01, 0.9, 0.99, 1e-6)]
    rest = [np.array(x, np.float32) for x in (-1, 0, 0.1)]  # no bound of the norm, decay
    given = types("ApplyAdamV2", [var, m, v, *numbers, grad, *rest], [Out((6,))] * 3)
    m1, v1 = 0.9 * m + 0.1 * grad, 0.99 * v + 0.01 * grad**2
    np.testing.assert_allclose(given[0], var - 0.01 * (m1 / np.sqrt(v1) + 0.1 * var), rtol=1e-4)
    np.testing.assert_allclose(given[1], m1, rtol=1e-5)
    np.testing.assert_allclose(given[2], v1, rtol=1e-5)


def test_products_add_a_bias_to_each_row(types: Types) -> None:
    a, b, bias = (RNG.normal(size=s).astype(np.float32) for s in ((3, 4), (5, 4), (5,)))
    (given,) = types("MatMulV2", [a, b, bias], [Out((3, 5))], transpose_x2=True)
    np.testing.assert_allclose(given, a @ b.T + bias, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", OF_ONE_NUMBER)
def test_gradients_of_one_number_are_those_of_autograd(types: Types, name: str, dtype: str) -> None:
    function, by_result = OF_ONE_NUMBER[name]
    low, high = (1.2, 3.0) if name == "Acosh" else (0.1, 0.9)
    x = RNG.uniform(low, high, (3, 5))
    if name not in {"Sqrt", "Rsqrt", "Acosh"}:
        x *= RNG.choice([-1.0, 1.0], x.shape)
    argument = torch.tensor(x, requires_grad=True)
    result = function(argument)
    dy = RNG.normal(size=x.shape).astype(dtype)
    given = (result.detach().numpy() if by_result else x).astype(dtype)
    [z] = types(f"{name}Grad", [given, dy], [Out(x.shape, dtype)])
    result.backward(torch.tensor(dy.astype(np.float64)))
    # In half, what is given was rounded before: slopes of up to 50 carry that over.
    close = {"rtol": 1e-5} if dtype == "float32" else {"rtol": 2e-2, "atol": 2e-3}
    np.testing.assert_allclose(z, argument.grad.numpy(), **close)
