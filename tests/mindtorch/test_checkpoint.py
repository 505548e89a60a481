"""What checkpointing runs again is what was run: the same numbers drawn, the same precision."""

import pytest

import mindtorch
import mindtorch as torch
from mindtorch.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential

oracle = pytest.importorskip("torch", reason="torch is the oracle of what runs when")
DEVICES = ("cpu", "npu")


@pytest.mark.parametrize("device", DEVICES)
def test_dropout_drops_the_same_when_it_is_run_again(device):
    torch.manual_seed(0)
    drop = torch.nn.Dropout(0.5)
    x = torch.ones(1000, device=device, requires_grad=True)
    y = checkpoint(lambda v: drop(v) * v, x, use_reentrant=False)
    y.sum().backward()
    assert torch.equal(x.grad, 2 * y.detach())


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_drawn_afterwards_is_not_what_running_again_left(device):
    torch.manual_seed(0)
    x = torch.ones(8, device=device, requires_grad=True)
    checkpoint(torch.nn.Dropout(0.5), x, use_reentrant=False).sum().backward()
    drawn = torch.rand(4, device=device).tolist()
    torch.manual_seed(0)
    torch.nn.Dropout(0.5)(x)
    assert drawn == torch.rand(4, device=device).tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_autocast_holds_when_it_is_run_again(device):
    layer = torch.nn.Linear(3, 4).to(device)
    x = torch.ones(2, 3, device=device)

    def gradient(through):
        layer.zero_grad()
        with torch.autocast(device, torch.bfloat16):
            loss = through(layer, x).float().sum()
        loss.backward()
        return layer.weight.grad.tolist()

    plain = gradient(lambda f, v: f(v))
    assert gradient(lambda f, v: checkpoint(f, v, use_reentrant=False)) == plain


def test_other_metadata_when_it_is_run_again_are_refused():
    dtypes = [torch.float32, torch.float64]
    x = torch.ones(3, requires_grad=True)
    y = checkpoint(lambda v: v.to(dtypes.pop(0)).exp(), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="different metadata"):
        y.sum().backward()


@pytest.mark.parametrize("reentrant", [False, True])
def test_segments_are_checkpointed_as_is_asked(reentrant):
    """Reentrant segments give no gradients where the input asks for none; others give them all."""
    steps = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(4)))
    checkpoint_sequential(steps, 2, torch.ones(2, 3), use_reentrant=reentrant).sum().backward()
    assert [p.grad is None for p in steps.parameters()] == [reentrant] * 4 + [False] * 4


CALLS = ("a", "a * 1", "a, w", "a, n", "n, a", "n", "a, w.detach(), 4")


def _runs(t, reentrant, call):
    """What a checkpointed function sees in each run, its results and gradients."""
    a, w = t.ones(3, requires_grad=True), t.full((3,), 2.0, requires_grad=True)
    seen, values = [], {"a": a, "w": w, "n": t.ones(3)}

    def run(x, y=None, k=3):
        seen.append((t.is_grad_enabled(), x.requires_grad, x.is_leaf, k))
        h = x.sin() * 2
        seen.append(h.requires_grad)  # unreached in a second run that has all it was run for
        return h if y is None else (h, h * y, None, 5)

    args = eval(f"({call},)", values)
    out = t.utils.checkpoint.checkpoint(run, *args, use_reentrant=reentrant)
    first = out[0] + out[1] if isinstance(out, tuple) else out
    if first.requires_grad:
        first.sum().backward()
    kinds = [type(v).__name__ for v in out] if isinstance(out, tuple) else first.grad_fn is not None
    return seen, kinds, [None if v.grad is None else round(v.grad[0].item(), 4) for v in (a, w)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reentrant", [False, True])
def test_a_function_is_run_as_often_and_as_far_as_in_torch(reentrant):
    for call in CALLS:
        assert _runs(mindtorch, reentrant, call) == _runs(oracle, reentrant, call), call


REFUSED = {
    "grad": lambda t, a, run: t.autograd.grad(run(t.nn.Linear(3, 3)).sum(), a),
    "inputs": lambda t, a, run: run(t.nn.Linear(3, 3)).sum().backward(inputs=[a]),
    "detached": lambda t, a, run: run(lambda x: x.detach()).sum().backward(),
    "check": lambda t, a, run: run(t.sin, use_reentrant=False, determinism_check="x"),
}


def test_what_reentrant_checkpoints_refuse_is_refused_in_torch_s_words():
    def refusal(t, call):
        a = t.ones(3, requires_grad=True)

        def run(function, use_reentrant=True, **options):
            return t.utils.checkpoint.checkpoint(
                function, a, use_reentrant=use_reentrant, **options
            )

        with pytest.raises((RuntimeError, ValueError)) as caught:
            call(t, a, run)
        return caught.type, str(caught.value)

    for name, call in REFUSED.items():
        assert refusal(mindtorch, call) == refusal(oracle, call), name


def test_a_context_keeps_attributes_of_any_plain_name():
    for name in ("function", "constants", "dirty", "not_differentiable", "inputs", "shape"):

        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, name=name):
                setattr(ctx, name, x)
                return x * x

            @staticmethod
            def backward(ctx, grad, name=name):
                return 2 * grad * getattr(ctx, name)

        x = torch.tensor(3.0, requires_grad=True)
        Square.apply(x).backward()
        assert x.grad == 6, name


def _reads(t, early):
    """How often a function runs: for each pass that reads what it saved, and for each look."""
    runs = []

    class Twice(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            first = ctx.saved_tensors[1]
            try:
                ctx.saved_tensors  # noqa: B018
            except RuntimeError as error:
                runs.append(str(error))
            return grad, (first is y) * grad

    def run(x):
        runs.append("run")
        inner = t.utils.checkpoint.checkpoint(t.sin, x * 2, use_reentrant=False)
        (slope,) = t.autograd.grad(inner.exp().sum(), x, create_graph=True)
        return Twice.apply(slope, y)

    x, y = t.ones(2, requires_grad=True), t.ones(2)
    with t.utils.checkpoint.set_checkpoint_early_stop(early):
        out = t.utils.checkpoint.checkpoint(run, x, use_reentrant=False)
    slopes = [t.autograd.grad(out.sum(), x, retain_graph=True)[0] for _ in range(2)]
    values = [round(v[0].item(), 4) for v in (*slopes, out.grad_fn.saved_tensors[0])]
    return values, runs


@pytest.mark.parametrize("early", [False, True])
def test_what_is_saved_is_made_again_once_for_each_pass(early):
    assert _reads(mindtorch, early) == _reads(oracle, early)
