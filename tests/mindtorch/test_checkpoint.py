"""What checkpointing runs again is what was run: the same numbers drawn, the same precision."""

import pytest

import mindtorch as torch
from mindtorch.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential

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
