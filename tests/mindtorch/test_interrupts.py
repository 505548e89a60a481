"""Ctrl-C at any moment leaves gradients, autocast and streams as they were, and no memory behind.

Python runs signal handlers as a Python function begins and as a call returns. A profiler is called
at the same moments and may raise: so each moment is tried, one after the other.
"""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mindtorch as torch
from aclnn_bindings.runtime import locks as lower
from mindtorch._autograd.grad_mode import LOCAL, MODES
from mindtorch._tensor import locks as upper

FEW = 11  # of the moments, tried in every run


def contexts(device):
    with torch.no_grad(), torch.autocast(device, torch.bfloat16), torch.enable_grad():
        pass
    with torch.inference_mode(), torch.autograd.graph.saved_tensors_hooks(id, id):
        pass
    with (
        torch.overrides.DisableTorchFunction(),
        torch._C._ExcludeDispatchKeyGuard(
            torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
        ),
    ):
        pass
    torch.no_grad()(torch.enable_grad()(lambda: None))()
    with torch.device("meta"), torch.device("npu"):
        pass


def lists(device):
    x = torch.ones(4, device=device)
    torch.stack([torch.cat([x, x])] * 40)
    torch._foreach_mul_([x, x.clone()], 2.0)


def session(device):
    from mindtorch._backends.npu import runtime

    torch.ones(2, device=device).tolist()
    runtime.cann().runtime.close()
    torch.ones(2, device=device).tolist()


def step(device):
    x = torch.ones(2, 3, device=device)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU()).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.autocast(device, torch.bfloat16):
        loss = model(x).float().sum()
    loss.backward()
    optimizer.step()
    with torch.inference_mode():
        model(x)


def streams(device):
    side = torch.npu.Stream()
    x = torch.ones(4, device=device)
    with torch.npu.stream(side), side, torch.npu.device(1):
        torch.ones(4, device="npu")
    torch.npu.synchronize()
    x.tolist()


CASES = [
    (contexts, "cpu"),
    (step, "cpu"),
    (step, "npu"),
    (streams, "npu"),
    (session, "npu"),
    (lists, "npu"),
]


def state():
    modes = [getattr(LOCAL, name) for name in sorted(vars(type(LOCAL))) if name[0] != "_"]
    stream = torch.npu.current_stream()
    held = [lock for part in (upper, lower) for lock in part._locks if lock._inner._is_owned()]
    return [*modes, MODES.active, torch.npu.current_device(), stream == torch.npu.default_stream(),
            len(held), torch.get_default_device()]  # fmt: skip


def interrupted_at(moment, action, device):
    """Whether `action` lasted until the moment; KeyboardInterrupt is raised there."""
    left = moment

    def strike(frame, event, argument):
        nonlocal left
        if event not in ("call", "c_return"):
            return
        left -= 1
        if left == 0:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(strike)
    try:
        action(device)
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return left <= 0


def wrong_moments(action, device, every):
    """What is not as before, by moment (set_grad_enabled sets as a function does: not here)."""
    for _ in range(2):  # what is made once, is made
        action(device)
    gc.collect()
    usual, held, moment = state(), memory(), 1
    wrong = []
    while interrupted_at(moment, action, device):
        if (now := state()) != usual:
            wrong.append((moment, now))
            restore(usual)
        if memory() != held:
            gc.collect()
        if memory() != held:
            wrong.append((moment, memory(), held))
            held = memory()
        moment += every
    assert moment > every
    return wrong


def memory():
    return [torch.npu.memory_allocated(i) for i in range(2)]


def restore(usual):
    names = [name for name in sorted(vars(type(LOCAL))) if name[0] != "_"]
    for name, value in zip(names, usual, strict=False):
        setattr(LOCAL, name, value)
    MODES.active = usual[len(names)]
    torch.npu.set_device(0)
    torch.npu.set_stream(torch.npu.default_stream())


@pytest.fixture(autouse=True)
def _forget_what_cannot_be_raised(monkeypatch):
    """An interrupt in a finalizer is told to a hook; pytest's keeps it, and its tensors."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)


@pytest.mark.parametrize(("action", "device"), CASES)
def test_an_interrupt_now_and_then_leaves_everything_as_it_was(action, device):
    assert wrong_moments(action, device, 1 if action is contexts else FEW) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("action", "device"), CASES)
def test_an_interrupt_at_every_moment_leaves_everything_as_it_was(action, device):
    assert wrong_moments(action, device, 1) == []


def test_a_context_written_in_python_alone_would_not_be_restored():
    class Naive:
        def __enter__(self):
            LOCAL.grad = False

        def __exit__(self, *exc):
            LOCAL.grad = True

    def careless(_):
        with Naive():
            pass

    assert wrong_moments(careless, "cpu", 1) != []


@pytest.mark.parametrize("nested", [False, True])
def test_contexts_may_be_used_again_and_by_hand(nested):
    context = torch.no_grad()
    with context:
        if nested:
            with context:
                pass
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    context.__enter__()
    assert not torch.is_grad_enabled()
    assert context.__exit__(None, None, None) is None
    assert torch.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), torch.inference_mode():
        raise ZeroDivisionError
    assert not torch.is_inference_mode_enabled()


def test_no_place_where_python_looks_for_signals_leaves_anything_behind():
    """A few of them: interrupt_sweep.py tries all, of scenarios of its own."""
    sweep = Path(__file__).with_name("interrupt_sweep.py")
    command = [sys.executable, str(sweep), "step npu", "transforms", "--every", "1409"]
    ran = subprocess.run(
        command, env={**os.environ, "ACLSIM_DEVICES": "2"}, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_device_of_a_with_statement_is_its_thread_s_alone():
    import threading

    seen = []
    with torch.device("meta"):
        thread = threading.Thread(target=lambda: seen.append(torch.ones(1).device.type))
        thread.start()
        thread.join()
        with torch.device("cpu") as inner:
            seen.append(torch.ones(1).device.type)
        seen.append(torch.ones(1).device.type)
    assert (seen, inner.type) == (["cpu", "cpu", "meta"], "cpu")


@pytest.mark.parametrize("draw", ["rand(2)", "randn(2)", "randperm(4)", "nn.Linear(2, 2).weight"])
def test_numbers_are_drawn_on_the_current_npu_of_a_with_statement(draw):
    with torch.device("npu"):
        assert eval("torch." + draw, {"torch": torch}).device == torch.device("npu:0")
