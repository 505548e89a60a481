"""Random programs of views, in-place writes and reads do what they do in torch, gradients included.

Each program is drawn from its seed; a failing seed is the whole reproduction.
"""

import random

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")

STEPS = {}


def step(function):
    STEPS[function.__name__] = function
    return function


def shared(x, y):
    return x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()


@step
def view(t, x, pick, ts):
    ts.append(x.view(-1))


@step
def select(t, x, pick, ts):
    dim = pick.randrange(x.dim())
    ts.append(x.select(dim, pick.randrange(x.shape[dim])))


@step
def part(t, x, pick, ts):
    dim = pick.randrange(x.dim())
    start = pick.randrange(x.shape[dim])
    ts.append(x.narrow(dim, start, pick.randint(1, x.shape[dim] - start)))


@step
def transpose(t, x, pick, ts):
    ts.append(x.transpose(*pick.sample(range(x.dim()), 2)))


@step
def unsqueeze(t, x, pick, ts):
    ts.append(x.unsqueeze(pick.randint(0, x.dim())))


@step
def expand(t, x, pick, ts):
    ts.append(x.expand(2, *x.shape))


@step
def diagonal(t, x, pick, ts):
    ts.append(x.diagonal())


@step
def flatten(t, x, pick, ts):
    ts.append(x.reshape(-1))


@step
def read(t, x, pick, ts):
    ts.append(x * pick.choice([2.0, 0.5]))


@step
def total(t, x, pick, ts):
    ts.append(x.sum(pick.randrange(x.dim())))


@step
def take(t, x, pick, ts):
    ts.append(x[t.tensor([0, x.shape[0] - 1, 0])])


@step
def choose(t, x, pick, ts):
    ts.append(t.where(x > 1, x, x * 2))


@step
def detach(t, x, pick, ts):
    if pick.random() < 0.3:
        ts.append(x.detach())


@step
def scale(t, x, pick, ts):
    x.mul_(pick.choice([3.0, 0.5]))


@step
def negate(t, x, pick, ts):
    x.neg_()


@step
def add(t, x, pick, ts):
    y = pick.choice(ts)
    x.add_(y * 1 if shared(x, y) else y)


@step
def copy(t, x, pick, ts):
    y = pick.choice(ts)
    x.copy_(y.clone() if shared(x, y) else y)


@step
def zero(t, x, pick, ts):
    x.zero_()


@step
def fill(t, x, pick, ts):
    x.fill_(1.5)


@step
def relu(t, x, pick, ts):
    x.relu_()


@step
def put(t, x, pick, ts):
    x[pick.randrange(x.shape[0])] = 2.0


def run(t, seed):
    """What a program leaves: errors, values, strides, versions, gradient."""
    pick = random.Random(seed)
    leaf = (t.arange(24.0) / 10 + 0.5).requires_grad_()
    ts = [(leaf * 1).view(2, 3, 4)]
    if pick.random() < 0.3:
        ts.append(t.ones(3, 4))
    log = []
    for _ in range(pick.randint(3, 9)):
        x, name = pick.choice(ts), pick.choice(list(STEPS))
        state = pick.getstate()
        try:
            STEPS[name](t, x, pick, ts)
            log.append(name)
        except (RuntimeError, ValueError, IndexError) as error:
            log.append((name, type(error).__name__, str(error)[:80]))
        pick.setstate(state)
        pick.random()
    try:
        loss = sum((x * (i + 1)).sum() for i, x in enumerate(ts))
        if loss.requires_grad:
            loss.backward()
    except RuntimeError as error:
        return (log, str(error)[:80])
    grad = None if leaf.grad is None else [round(v, 3) for v in leaf.grad.tolist()]
    values = [[round(v, 3) for v in x.detach().reshape(-1).tolist()] for x in ts]
    layout = [(tuple(x.shape), tuple(x.stride()), x._version, x.requires_grad) for x in ts]
    return (log, grad, values, layout)


@pytest.mark.parametrize("block", range(20))
def test_programs_agree_with_torch(block):
    for seed in range(block * 20, block * 20 + 20):
        got, expected = run(mindtorch, seed), run(torch, seed)
        assert got == expected, f"seed {seed}: mindtorch {got}\ntorch {expected}"


@pytest.mark.parametrize("block", range(10))
def test_programs_agree_under_functionalize(block):
    for seed in range(block * 20, block * 20 + 20):
        eager = run(mindtorch, seed)
        if len(eager) == 2:
            continue  # a write invalidated what backward needs; pure ops have no such writes
        with mindtorch.functionalize():
            got = run(mindtorch, seed)
        assert got[:3] == eager[:3], f"seed {seed}: functionalized {got}\neager {eager}"


class On:
    """mindtorch whose factories make tensors on one device."""

    def __init__(self, device):
        self.device = device

    def __getattr__(self, name):
        return getattr(mindtorch, name)

    def arange(self, *args):
        return mindtorch.arange(*args, device=self.device)

    def ones(self, *args):
        return mindtorch.ones(*args, device=self.device)

    def tensor(self, data):
        return mindtorch.tensor(data, device=self.device)


@pytest.mark.parametrize("functional", [False, True], ids=["eager", "functionalized"])
@pytest.mark.parametrize("block", range(5))
def test_programs_on_npu_give_what_they_give_on_cpu(block, functional):
    if not mindtorch.npu.is_available():
        pytest.skip("NPU not available")
    for seed in range(block * 20, block * 20 + 20):
        expected = run(mindtorch, seed)
        if functional and len(expected) == 2:
            continue
        with mindtorch.functionalize() if functional else mindtorch.enable_grad():
            got = run(On("npu"), seed)
        assert got[:3] == expected[:3], f"seed {seed}: npu {got}\ncpu {expected}"
